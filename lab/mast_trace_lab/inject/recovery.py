"""The check that a stored failure comes from its fault: does the run succeed again from after a later step?

Agents repair many faults, and a run whose agents recovered from the fault may fail by a later error of its own. Its planted step
is then not the origin of the failure. Each later answer of the stored run is kept in turn, with all before it, and the
rest runs live; where that succeeds twice in a row, the agents had recovered from the fault. A replay without an outcome says nothing,
and is asked for again: a repair often calls a tool with new arguments, whose result the record does not hold.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from mast_trace_judge.arms import ReplayArm
from mast_trace_judge.decision_points import decision_points

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mast_trace.trajectory import Trajectory
    from mast_trace_judge.arms import ArmResult
    from mast_trace_lab.inject.faults import Fault

IN_A_ROW: Final = 2
"""Successes from after one step that show that the agents had recovered from the fault there."""
MOST_STEPS: Final = 12
"""Later steps that are looked at; of a longer run the first ones, for half of them, and the rest evenly apart."""
MOST_UNKNOWN: Final = 3
"""Replays without an outcome, of one stored failure, after which it is not known whether its agents recovered from the fault."""


@dataclass
class Recovery:
    """The replays of one stored failure, asked for one by one.

    Attributes:
        steps: later model answers of the stored run, by step; None if that run is not known or cannot be replayed.
        outcome_of: returns whether a replay succeeded; None if it is not known.
        results: so far.
    """

    steps: Sequence[int] | None
    outcome_of: Callable[[ArmResult], bool | None] = lambda result: result.success
    results: list[ArmResult] = field(default_factory=list)

    def ask(self) -> ReplayArm | None:
        """Return the arm of the next replay, of the stored run; None if it is decided."""
        place, successes = self._place
        if self.steps is None or self.is_unknown or successes == IN_A_ROW:
            return None
        return ReplayArm("keep", self.steps[place]) if place < len(self.steps) else None

    @property
    def is_repaired(self) -> bool:
        """True if the run succeeds again from after a later step."""
        return self._place[1] == IN_A_ROW

    @property
    def is_unknown(self) -> bool:
        """True if it stays unknown whether the agents had recovered from the fault."""
        unknown = sum(self.outcome_of(each) is None for each in self.results)
        return self.steps is None or unknown > MOST_UNKNOWN

    @property
    def _place(self) -> tuple[int, int]:
        """Number of the step that is looked at, and successes from after it.

        The failure stays after a step if more replays fail than have no outcome: where a repair is what has no
        outcome, the failures alone would speak for the fault. A failure may turn out later to have no outcome: its step is
        then looked at again.
        """
        steps = self.steps or ()
        for place, step in enumerate(steps):
            successes = failures = unknown = 0
            for outcome in (
                self.outcome_of(each) for each in self.results if each.arm.step == step
            ):
                if outcome is None:
                    unknown += 1
                elif outcome:
                    successes += 1
                else:
                    successes, failures = 0, failures + 1
            if failures <= unknown:
                return place, successes
        return len(steps), 0


def later_steps(failed: Trajectory, fault: Fault) -> tuple[int, ...]:
    """Return the steps of a stored failure that are looked at, in order.

    The last answer is not among them: the run has failed after it. An agent may answer a changed request or message rightly all the
    same, so that agents may have recovered from such a fault in the planted step. Most repairs come right after the fault, so
    that of a long run each of the first answers is looked at, and only the others lie apart.
    """
    first = fault.change.step + (fault.change.level not in {"request", "message"})
    steps = [each.step for each in decision_points(failed)][:-1]
    later = [step for step in sorted(steps) if step >= first]
    if len(later) <= MOST_STEPS:
        return tuple(later)
    near = MOST_STEPS // 2
    first_ones, others = later[:near], later[near:]
    apart = MOST_STEPS - near
    return (*first_ones, *(others[place * len(others) // apart] for place in range(apart)))
