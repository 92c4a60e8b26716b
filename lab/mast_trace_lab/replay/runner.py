"""Starts a program whose calls are answered from a recorded run, and compares the two runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from mast_trace.replay.comparison import first_difference
from mast_trace.replay.recording import tape_of
from mast_trace.semconv import Termination
from mast_trace_lab.program.process import Limits, play

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mast_trace.replay.player import ReplayReport
    from mast_trace.trajectory import Trajectory
    from mast_trace_lab.program.process import Played

Status = Literal["identical", "different", "diverged", "unfinished", "timeout", "not recorded"]


@dataclass(frozen=True)
class Replayed:
    """The result of a replay.

    Attributes:
        status: ``identical``: the program made every recorded call again, and every step is the same;
            ``different``: it made every call, but a step differs; ``diverged``: it made a call that
            the recorded run does not hold; ``unfinished``: it ended before it had made every
            recorded call; ``timeout``: it was killed; ``not recorded``: it never called
            `mast_trace.instrument()`.
        text: description of the first difference; empty if there is none.
        report: counts of the answered calls; None if the program was not recorded.
        exit_status: exit status of the program; negative if a signal ended it.
        run: the replayed run; None if the program recorded none.
    """

    status: Status
    text: str
    report: ReplayReport | None
    exit_status: int
    run: Trajectory | None = None


def replay(
    recorded: Trajectory,
    command: Sequence[str],
    *,
    earlier: Sequence[Trajectory] = (),
    timeout: float = 120.0,
    live_tools: Sequence[str] = (),
    hosts: Sequence[str] = (),
    quiet: bool = False,
) -> Replayed:
    """Run a program again with its model calls and tool calls answered from the record of a run.

    The program's other code runs for real, without network.

    Args:
        recorded: the recorded run.
        command: the program, which calls `mast_trace.instrument()`, and its arguments.
        earlier: interrupted runs of the same program that the run continues, the first one first.
        timeout: seconds after which the program and its child processes are killed.
        live_tools: names of tools that are executed if the record has no result of the
            call; ``*`` for all.
        hosts: addresses to which the program may connect.
        quiet: redirects the program's standard output to standard error.

    Raises:
        NotReplayable: the record lacks data that a replay needs; the program was not started.
        OSError: the command cannot be started.
    """
    limits = Limits(timeout, live_tools, hosts, output="standard error" if quiet else "shown")
    played = play(tape_of(recorded, *earlier, live_tools=live_tools), command, limits)
    return compared(recorded, played, timeout, earlier)


def compared(
    recorded: Trajectory, played: Played, timeout: float, earlier: Sequence[Trajectory] = ()
) -> Replayed:
    """Compare a program that has ended with the recorded run.

    Args:
        recorded: the recorded run.
        played: the program's traces.
        timeout: seconds that it had.
        earlier: interrupted runs that the recorded one continues, the first one first.
    """
    report, exit_status = played.report, played.exit_status
    runs = played.runs_like([*earlier, recorded])
    run = runs[-1]
    if report is None:
        text = "The program did not call mast_trace.instrument(), so nothing was answered."
        return Replayed("not recorded", text, None, exit_status or 0, run)
    status, text = _outcome([*earlier, recorded], runs, report)
    if exit_status is None:
        return Replayed("timeout", f"It did not end within {timeout:g} s. {text}", report, -9, run)
    return Replayed(status, text, report, exit_status, run)


def _outcome(
    recorded: Sequence[Trajectory], runs: Sequence[Trajectory | None], report: ReplayReport
) -> tuple[Status, str]:
    if report.divergence is not None:
        text = report.divergence.text
        all_made = not (report.waiting_exchanges or report.waiting_executions)
        if all_made and recorded[-1].termination_reason == Termination.INTERRUPTED:
            text += " The run was interrupted: replay the run that continues it, which includes it."
        return "diverged", text
    if report.waiting_exchanges or report.waiting_executions:
        left = f"{report.waiting_exchanges} model calls and {report.waiting_executions} tool calls"
        return "unfinished", f"The program ended without {left} of the recorded run."
    if report.other_parameters:
        return "different", report.other_parameters
    for before, after in zip(recorded, runs, strict=True):
        if after is None:
            return "unfinished", "The program ended without a run."
        difference = first_difference(before, after)
        if difference is not None:
            return "different", f"Step {difference.index}: {difference.text}."
    return "identical", ""
