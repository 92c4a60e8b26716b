"""Starts a program whose calls are answered from a recorded run, and compares the two runs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from mast_trace.replay import PLAN_VARIABLE
from mast_trace.replay.comparison import first_difference
from mast_trace.replay.program import ReplayFolder
from mast_trace.replay.recording import tape_of
from mast_trace.semconv import Termination
from mast_trace.trajectory import SpanRecord, read_trajectory

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mast_trace.replay.player import Report
    from mast_trace.trajectory import Trajectory

_STANDARD_ERROR = 2
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
    report: Report | None
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
    tape = tape_of(recorded, *earlier)
    with tempfile.TemporaryDirectory(prefix="mast-trace-replay-") as folder:
        files = ReplayFolder(Path(folder))
        files.write_plan(tape, live_tools, hosts)
        exit_status = _run(command, {**os.environ, PLAN_VARIABLE: folder}, timeout, quiet=quiet)
        report = files.read_report()
        runs = _replayed_runs(files, [*earlier, recorded])
    run = runs[-1]
    if report is None:
        text = "The program did not call mast_trace.instrument(), so nothing was answered."
        return Replayed("not recorded", text, None, exit_status or 0, run)
    status, text = _outcome([*earlier, recorded], runs, report)
    if exit_status is None:
        return Replayed("timeout", f"It did not end within {timeout:g} s. {text}", report, -9, run)
    return Replayed(status, text, report, exit_status, run)


def _run(
    command: Sequence[str], environment: dict[str, str], timeout: float, *, quiet: bool
) -> int | None:
    """Run a command and return its exit status; None if it was killed at the timeout."""
    process = subprocess.Popen(
        [*command],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=_STANDARD_ERROR if quiet else None,
        start_new_session=True,
    )
    try:
        return process.wait(timeout)
    except subprocess.TimeoutExpired:
        return None
    finally:
        # A program that has ended by itself may have left child processes.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _replayed_runs(files: ReplayFolder, recorded: Sequence[Trajectory]) -> list[Trajectory | None]:
    """Return the program's run for each recorded one: with its task and name, else the first left."""
    if not files.spans.exists():
        return [None for _ in recorded]
    traces: dict[str, list[SpanRecord]] = {}
    for line in files.spans.read_text("utf-8").splitlines():
        span = SpanRecord(**json.loads(line))
        traces.setdefault(span.trace_id, []).append(span)
    runs = sorted((read_trajectory(spans) for spans in traces.values()), key=lambda run: run.start)
    found: list[Trajectory | None] = []
    for each in recorded:
        same = [run for run in runs if (run.task, run.name) == (each.task, each.name)]
        own = next(iter(same or runs), None)
        found.append(own)
        runs = [run for run in runs if run is not own]
    return found


def _outcome(
    recorded: Sequence[Trajectory], runs: Sequence[Trajectory | None], report: Report
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
    for before, after in zip(recorded, runs, strict=True):
        if after is None:
            return "unfinished", "The program ended without a run."
        difference = first_difference(before, after)
        if difference is not None:
            return "different", f"Step {difference.index}: {difference.text}."
    return "identical", ""
