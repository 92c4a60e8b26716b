"""The decision whether a faulty replay that was ended by a limit has failed.

A fault may leave a team waiting for ever, or going round in circles. Such a replay has failed only if the program and
not the limit is at fault: it must have taken `TIMES_AS_MUCH` of what any replay without the fault took.
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
    """Return whether a replay that a limit has ended is surely a failure.

    Seconds are compared for a time-out, and live calls for a replay with too many of them.

    Args:
        result: a replay of the fault, with a status of `AT_A_LIMIT`.
        without_fault: the run's replays without the fault. If the same limit has ended one of them, or if none has
            ended by itself, nothing is known.
    """
    if any(each.status == result.status for each in without_fault):
        return False
    most = max((_amount(each, result) for each in without_fault if each.status == "ok"), default=0)
    return most > 0 and _amount(result, result) >= TIMES_AS_MUCH * most


def _amount(replay: ArmResult, like: ArmResult) -> float:
    return replay.seconds if like.status == "timeout" else replay.live_calls


def with_readable_run(result: ArmResult, made: Trajectory | None, step: int) -> ArmResult:
    """Return the result; as an error if a limit has ended it, and its run lacks the planted step.

    A killed program leaves the spans that had ended. Without the step no label could point at it, and the program
    may have stopped before the fault was made.
    """
    if result.status not in AT_A_LIMIT or (made is not None and len(made.steps) > step):
        return result
    reason = f"{result.reason} Of its run, the planted step {step} was not recorded."
    return dataclasses.replace(result, status="error", reason=reason)
