"""The decision whether a faulty replay that was ended by a limit counts as a failure.

A fault may leave a team waiting for ever, or going round in circles. It is not known whether such a replay would have ended
at last. It counts as a failure only if the program and not the limit seems to be at fault: it must have taken `TIMES_AS_MUCH`
of what any replay without the fault took, and more where it had more to do. A restored replay follows a time-out at once and under the
same conditions, so that a machine that has become slow is seen, see `mast_trace_lab.inject.trial.Trial`. A replay that
only waited for its model has no status of `AT_A_LIMIT`, see `mast_trace_lab.program.endings`.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mast_trace.trajectory import Trajectory
    from mast_trace_judge.arms import ArmResult

TIMES_AS_MUCH: Final = 3
"""Times the largest amount of a replay without the fault from which a limit is no cause of the end."""
AT_A_LIMIT: Final = frozenset({"timeout", "over budget"})
"""Statuses of replays that a limit has ended."""


def has_failed(result: ArmResult, without_fault: Sequence[ArmResult]) -> bool:
    """Return whether a replay that a limit has ended counts as a failure.

    Seconds are compared for a time-out, and live calls for a replay with too many of them. A time-out that made more live
    calls than any replay without the fault may only have done its work again: it has as many times more seconds.

    Args:
        result: a replay of the fault, with a status of `AT_A_LIMIT`.
        without_fault: the run's replays without the fault. If the same limit has ended one of them, or if none has
            ended by itself, nothing is known.
    """
    if any(each.status == result.status for each in without_fault):
        return False
    whole = [each for each in without_fault if each.status == "ok"]
    calls = max((each.live_calls for each in whole), default=0)
    if result.status == "over budget":
        return 0 < TIMES_AS_MUCH * calls <= result.live_calls
    seconds = max((each.seconds for each in whole), default=0.0)
    work = max(1.0, result.live_calls / max(1, calls))
    return 0 < TIMES_AS_MUCH * work * seconds <= result.seconds


def with_readable_run(result: ArmResult, made: Trajectory | None, step: int) -> ArmResult:
    """Return the result; as an error if a limit has ended it, and its run lacks the planted step.

    A killed program leaves the spans that had ended. Without the step no label could point at it, and the program
    may have stopped before the fault was made.
    """
    if result.status not in AT_A_LIMIT or (made is not None and len(made.steps) > step):
        return result
    reason = f"{result.reason} Of its run, the planted step {step} was not recorded."
    return dataclasses.replace(result, status="error", reason=reason)
