"""The shape of an operator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from mast_trace_judge.injection.sites import Answer, Result

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from mast_trace_judge.injection.changes import Change, Level

Site = TypeVar("Site", Answer, Result)

REPAIRED: Final = "Agents often repair such a fault, so that a run with it may have failed by a later error of its own."
"""The usual reason for which an operator's labels are uncertain."""


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
        applies: the sites at which it applies, in words.
        uncertain: the reason for which its labels are often wrong, found by rollouts in `benchmarks/injection`; empty
            if they are not.
    """

    name: str
    mode: str
    level: Level
    fault: str
    certain: str
    plant: Callable[[Site, Random], Change | None]
    applies: str
    uncertain: str = ""

    @property
    def blames(self) -> bool:
        """True if the agent of the step is to blame; nobody is for a fault of the environment."""
        return bool(self.mode)

    @property
    def to_blame(self) -> str:
        """The one who is to blame, in words."""
        return "the agent of the step" if self.blames else "nobody"
