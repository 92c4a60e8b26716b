"""Runs a program whose calls are answered from a recorded run, and compares the two runs."""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from mast_trace.replay.comparison import first_difference, masked_run
from mast_trace.replay.live import LiveCall, LiveCalls
from mast_trace.replay.plan_variable import PLAN_VARIABLE
from mast_trace.replay.program import ReplayFolder
from mast_trace.semconv import Termination
from mast_trace.trajectory import SpanRecord, Trajectory, read_trajectory
from mast_trace_lab.program.process import run_alone

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mast_trace.replay.intervention import Intervention
    from mast_trace.replay.player import ReplayReport
    from mast_trace.replay.tape import Tape
    from mast_trace_lab.program.setup import Setup


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
    tape: Tape,
    setup: Setup,
    intervention: Intervention | None = None,
    *,
    max_calls: int | None = None,
    lenient: float | None = None,
) -> Played:
    """Run a program to its end or its timeout.

    Args:
        tape: the record that its calls are answered from.
        setup: the program and its limits.
        intervention: the change of the run; without one, no request is live.
        max_calls: number of live model calls that may be sent; None for any number.
        lenient: see `mast_trace.replay.program.ReplayFolder.write_plan`.

    Raises:
        OSError: the command cannot be started.
        NotForkable: the process from which it is forked has ended.
    """
    with tempfile.TemporaryDirectory(prefix="mast-trace-replay-") as folder:
        files = ReplayFolder(Path(folder))
        runs = None if setup.run is None else len(setup.earlier) + 1
        clock = tape.start if setup.clock else None
        limits = (intervention, max_calls, runs, clock, lenient)
        files.write_plan(tape, setup.executed, setup.hosts, *limits)
        own = {**os.environ, **tape.environment, **setup.environment}
        environment = {**own, PLAN_VARIABLE: folder}
        run = run_alone if setup.parent is None else setup.parent.run
        exit_status = run(setup.command, environment, setup.output, setup.timeout)
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


def replay(recorded: Trajectory, setup: Setup) -> Replayed:
    """Run a program again with its model calls and tool calls answered from the record of a run.

    The program's other code runs for real, without network.

    Args:
        recorded: the recorded run.
        setup: the program, which calls `mast_trace.instrument()`, and its limits.

    Raises:
        NotReplayable: the record lacks data that a replay needs; the program was not started.
        OSError: the command cannot be started.
    """
    tape = setup.tape(recorded)
    return compared(recorded, play(tape, setup), setup)


def compared(recorded: Trajectory, played: Played, setup: Setup) -> Replayed:
    """Compare a program that has ended with the recorded run.

    Args:
        recorded: the recorded run.
        played: the program's traces.
        setup: its time limit, and the interrupted runs that the recorded one continues.
    """
    report, exit_status = played.report, played.exit_status
    whole = [*setup.earlier, recorded]
    runs = played.runs_like(whole)
    run = runs[-1]
    if report is None:
        text = "The program did not call mast_trace.instrument(), so nothing was answered."
        return Replayed("not recorded", text, None, exit_status or 0, run)
    status, text = _outcome(whole, runs, report, setup.masks)
    if status == "diverged":
        text += _of_another_run(whole, played, setup.run)
    if exit_status is None:
        late = f"It did not end within {setup.timeout:g} s; --set timeout=SECONDS gives it more."
        late += f" {text}" if status == "diverged" else ""
        return Replayed("timeout", late, report, -9, run)
    return Replayed(status, text, report, exit_status, run)


def _of_another_run(recorded: Sequence[Trajectory], played: Played, place: int | None) -> str:
    """Return a sentence if the program has made other runs than the recorded ones; empty if it has not."""
    made = {(run.task, run.name) for run in map(read_trajectory, played.spans.values())}
    known = len(played.spans) <= len(recorded) and (recorded[-1].task, recorded[-1].name) in made
    if not made or known:
        return ""
    call = f"\nThis call belongs to run {len(played.spans)} of this program"
    if place is not None:
        return f"{call}; the recorded one is said to be its run {place}."
    return (
        f"{call}, which makes several: --set run=N says that the recorded one is its N-th. Those before it are then "
        "answered from their own records."
    )


def _outcome(
    recorded: Sequence[Trajectory],
    runs: Sequence[Trajectory | None],
    report: ReplayReport,
    masks: Sequence[tuple[str, str]],
) -> tuple[Status, str]:
    if report.divergence is not None:
        text = report.divergence.text
        all_made = not (report.waiting_exchanges or report.waiting_executions)
        if all_made and recorded[-1].termination_reason == Termination.INTERRUPTED:
            text += " The run was interrupted: replay the run that continues it, which includes it."
        return "diverged", text
    if report.waiting_exchanges or report.waiting_executions:
        left = f"{report.waiting_exchanges} model calls and {report.waiting_executions} tool calls"
        return "unfinished", (
            f"The program ended without {left} of the recorded run. Where files of its own answer them, such as a "
            "cache, --set reset=COMMAND restores these before each replay."
        )
    if report.other_parameters:
        return "different", report.other_parameters
    for before, after in zip(recorded, runs, strict=True):
        if after is None:
            return "unfinished", "The program ended without a run."
        difference = first_difference(masked_run(before, masks), masked_run(after, masks))
        if difference is not None:
            return "different", f"Step {difference.index}: {difference.text}."
    return "identical", ""
