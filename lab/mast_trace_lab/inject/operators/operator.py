"""The shape of an operator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from mast_trace_judge.planted import PLANTED
from mast_trace_lab.inject.sites import Answer, Result

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from mast_trace_judge.planted import Level
    from mast_trace_lab.inject.changes import Change

Site = TypeVar("Site", Answer, Result)


@dataclass(frozen=True)
class Operator(Generic[Site]):
    """One way to plant a fault.

    Attributes:
        name: its name in `PLANTED`: the failure mode and a word, such as ``2.6-number``.
        fault: description of the fault.
        certain: the reason for which the label is certain.
        plant: returns the change at a site, or None where the operator does not apply.
        applies: the sites at which it applies, in words.
    """

    name: str
    fault: str
    certain: str
    plant: Callable[[Site, Random], Change | None]
    applies: str

    @property
    def mode(self) -> str:
        """Code of the failure mode; empty for a fault of the environment."""
        return PLANTED[self.name].mode

    @property
    def level(self) -> Level:
        """The level of the change."""
        return PLANTED[self.name].level

    @property
    def uncertain(self) -> str:
        """The reason for which its labels are often wrong; empty if they are not."""
        return PLANTED[self.name].uncertain

    @property
    def blames(self) -> bool:
        """True if the agent of the step is to blame; nobody is for a fault of the environment."""
        return bool(self.mode)

    @property
    def to_blame(self) -> str:
        """The one who is to blame, in words."""
        return "the agent of the step" if self.blames else "nobody"
