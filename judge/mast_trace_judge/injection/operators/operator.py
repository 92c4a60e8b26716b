"""The shape of an operator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from mast_trace_judge.injection.sites import Answer, Result

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from mast_trace_judge.injection.changes import Change, Level

Site = TypeVar("Site", Answer, Result)


@dataclass(frozen=True)
class Operator(Generic[Site]):
    """One way to plant a fault.

    Attributes:
        name: the failure mode and a word, such as ``2.6-number``.
        mode: code of the failure mode; empty for a fault of the environment.
        level: the level of the change.
        fault: description of the fault.
        certain: the reason for which the label is certain.
        plant: returns the change at a site, or None where the operator does not apply.
    """

    name: str
    mode: str
    level: Level
    fault: str
    certain: str
    plant: Callable[[Site, Random], Change | None]

    @property
    def blames(self) -> bool:
        """True if the agent of the step is to blame; nobody is for a fault of the environment."""
        return bool(self.mode)
