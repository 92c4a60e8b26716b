"""The end of a replayed program: whether it reached its change, and whether a limit or the endpoint ended it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mast_trace.replay.live import LiveCall
    from mast_trace.replay.player import Report
    from mast_trace_judge.arms import ReplayStatus
    from mast_trace_lab.program.process import Limits, Played

FIRST_ERROR: Final = 400
"""The first HTTP status of a live call that is an error."""
_NO_FAULT_OF_THE_AGENTS: Final = frozenset({0, 401, 403, 404, 408, 409, 425, 429})
"""Statuses of live calls for which the endpoint is responsible, besides those from 500."""


def ended(played: Played, limits: Limits, *, joint: bool) -> tuple[ReplayStatus, str]:
    """Return the status of a program that has ended, before its outcome is read, and a reason.

    A replay that a limit has ended while live calls were failing or unanswered is an error: a client that waits for an
    endpoint that is down, or asks it again and again, reaches its limits through no fault of the agents.

    Args:
        played: the traces of the program.
        limits: its limits.
        joint: whether it has several corrections to make.
    """
    report = played.report
    if report is None:
        return "error", "The program did not call mast_trace.instrument(), so nothing was answered."
    if report.over_budget:
        reason = f"It needed more than {limits.max_calls} live model calls."
        return _at_a_limit(played, "over budget", reason)
    if report.divergence is not None:
        return ("blocked" if report.divergence.after else "diverged"), report.divergence.text
    if played.exit_status is None:
        return _at_a_limit(played, "timeout", f"It did not end within {limits.timeout:g} s.")
    return _reached(played, report, joint=joint)


def _at_a_limit(played: Played, status: ReplayStatus, reason: str) -> tuple[ReplayStatus, str]:
    failed = _failed_calls(played.live)
    return ("error", f"{reason} {failed}") if failed else (status, reason)


def _reached(played: Played, report: Report, *, joint: bool) -> tuple[ReplayStatus, str]:
    if not report.changed:
        return "diverged", "The program ended before it had reached the step."
    if failed := _failed_calls(played.live):
        return "error", failed
    if joint and report.unmade_changes:
        # A success would be one of fewer fixes than the arm names.
        return "diverged", "The program ended before it had reached the last step of a joint fix."
    return "ok", ""


def _failed_calls(calls: Sequence[LiveCall]) -> str:
    """Return how many calls stayed without an answer through no fault of the agents; empty if none did.

    A call that was repeated with success is none of them; one that still waits for its response is.
    """
    answered: set[str] = set()
    failed: list[LiveCall] = []
    for call in reversed(calls):
        if 0 < call.status < FIRST_ERROR:
            answered.add(call.key)
        elif call.key not in answered and (
            call.status in _NO_FAULT_OF_THE_AGENTS or call.status >= 500
        ):
            failed.append(call)
    if not failed:
        return ""
    statuses = ", ".join(sorted({str(call.status or "no response") for call in failed}))
    return f"{len(failed)} live model calls failed: {statuses}."
