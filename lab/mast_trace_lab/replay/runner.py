"""Runs a program whose calls are answered from a recorded run, and compares the two runs."""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from mast_trace.replay.comparison import first_difference
from mast_trace.replay.live import LiveCalls
from mast_trace.replay.plan_variable import PLAN_VARIABLE
from mast_trace.replay.program import ReplayFolder
from mast_trace.replay.recording import tape_of
from mast_trace.semconv import Termination
from mast_trace.trajectory import SpanRecord, read_trajectory
from mast_trace_lab.program.process import Output, run_alone

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mast_trace.replay.intervention import Intervention
    from mast_trace.replay.live import LiveCall
    from mast_trace.replay.player import ReplayReport
    from mast_trace.replay.tape import Tape
    from mast_trace.trajectory import Trajectory
    from mast_trace_lab.program.forking import Forking


@dataclass(frozen=True)
class Limits:
    """Limits of one replay.

    Attributes:
        timeout: seconds after which the program and its child processes are killed.
        live_tools: names of tools that are executed if the record has no result of the call; ``*``
            for all.
        hosts: addresses to which the program may connect.
        max_calls: number of live model calls that may be sent; None for any number.
        output: the destination of the program's standard output.
        environment: variables that the program gets besides those of this process.
        parent: the process from which the program is forked; None for a process of its own.
    """

    timeout: float = 120.0
    live_tools: Sequence[str] = ()
    hosts: Sequence[str] = ()
    max_calls: int | None = None
    output: Output = "shown"
    environment: Mapping[str, str] = field(default_factory=dict)
    parent: Forking | None = None


@dataclass(frozen=True)
class Played:
    """The traces of a program that has ended.

    Attributes:
        exit_status: exit status; negative if a signal ended it, None if it was killed at the timeout.
        report: counts of the answered calls; None if it never called `mast_trace.instrument`.
        spans: its spans, by trace id.
        live: its live model calls, in the order in which they were sent.
    """

    exit_status: int | None
    report: ReplayReport | None
    spans: Mapping[str, Sequence[SpanRecord]]
    live: Sequence[LiveCall]

    def run_like(self, recorded: Trajectory) -> Trajectory | None:
        """Return the run with the task and name of the recorded one, else the first; None without runs."""
        return self.runs_like([recorded])[0]

    def runs_like(self, recorded: Sequence[Trajectory]) -> list[Trajectory | None]:
        """Return a run for each recorded one: with its task and name, else the first that is left."""
        runs = sorted(map(read_trajectory, self.spans.values()), key=lambda run: run.start)
        found: list[Trajectory | None] = []
        for each in recorded:
            same = [run for run in runs if (run.task, run.name) == (each.task, each.name)]
            own = next(iter(same or runs), None)
            found.append(own)
            runs = [run for run in runs if run is not own]
        return found


def play(
    tape: Tape, command: Sequence[str], limits: Limits, intervention: Intervention | None = None
) -> Played:
    """Run a program to its end or its timeout.

    Args:
        tape: the record that its calls are answered from.
        command: the program and its arguments.
        limits: limits of the replay.
        intervention: the change of the run; without one, no request is live.

    Raises:
        OSError: the command cannot be started.
        NotForkable: the process from which it is forked has ended.
    """
    with tempfile.TemporaryDirectory(prefix="mast-trace-replay-") as folder:
        files = ReplayFolder(Path(folder))
        files.write_plan(tape, limits.live_tools, limits.hosts, intervention, limits.max_calls)
        environment = {**os.environ, **limits.environment, PLAN_VARIABLE: folder}
        exit_status = (
            limits.parent.run(environment, limits.output, limits.timeout)
            if limits.parent is not None
            else run_alone(command, environment, limits.output, limits.timeout)
        )
        return Played(
            exit_status, files.read_report(), _spans(files), LiveCalls(files.live).calls()
        )


def _spans(files: ReplayFolder) -> dict[str, list[SpanRecord]]:
    """Return the spans of each trace, without a last line that a kill has cut."""
    traces: dict[str, list[SpanRecord]] = {}
    if not files.spans.exists():
        return traces
    lines = files.spans.read_text("utf-8").split("\n")
    for line in lines[:-1]:
        span = SpanRecord(**json.loads(line))
        traces.setdefault(span.trace_id, []).append(span)
    return traces


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
