"""The check that a stored failure comes from its fault: does the run succeed again from after a later step?

Agents repair many faults, and a run whose fault was made good may fail by a later error of its own. Its planted step
is then not the origin of the failure. Each later answer of the stored run is kept in turn, with all before it, and the
rest runs live; where that succeeds twice in a row, the fault had been made good.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from mast_trace_judge.arms import Arm
from mast_trace_judge.replay.points import decision_points

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mast_trace.trajectory import Trajectory
    from mast_trace_judge.arms import ArmResult
    from mast_trace_judge.injection.faults import Fault

IN_A_ROW: Final = 2
"""Successes from after one step that show that the fault had been made good there."""
MOST_STEPS: Final = 12
"""Later steps that are looked at; of a longer run so many that lie evenly apart."""


@dataclass
class Recovery:
    """The replays of one stored failure, asked for one by one.

    Attributes:
        steps: later model answers of the stored run, by step.
        results: so far.
    """

    steps: Sequence[int]
    results: list[ArmResult] = field(default_factory=list)

    def ask(self) -> Arm | None:
        """Return the arm of the next replay, of the stored run; None if it is decided."""
        place, successes = self._place
        if successes == IN_A_ROW or place == len(self.steps):
            return None
        return Arm("keep", self.steps[place])

    @property
    def is_repaired(self) -> bool:
        """True if the run succeeds again from after a later step."""
        return self._place[1] == IN_A_ROW

    @property
    def _place(self) -> tuple[int, int]:
        """Number of the step that is looked at, and successes from after it; no outcome is no success."""
        place = successes = 0
        for each in self.results:
            successes = successes + 1 if each.success else 0
            place += not each.success
        return place, successes


def later_steps(failed: Trajectory, fault: Fault) -> tuple[int, ...]:
    """Return the steps of a stored failure that are looked at, in order.

    The last answer is not among them: the run has failed after it. An agent may answer a changed request or message rightly all the
    same, so that such a fault may have been made good in the planted step.
    """
    first = fault.change.step + (fault.change.level not in {"request", "message"})
    steps = [each.step for each in decision_points(failed)][:-1]
    later = [step for step in sorted(steps) if step >= first]
    if len(later) <= MOST_STEPS:
        return tuple(later)
    return tuple(later[place * len(later) // MOST_STEPS] for place in range(MOST_STEPS))
