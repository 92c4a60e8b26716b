"""Replays at a terminal: the question before they run, the progress bar, an interruption, and the output."""

from __future__ import annotations

import dataclasses
import json
import signal
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import typer
from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn

from mast_trace.exceptions import ConfigurationError, StorageError
from mast_trace.trajectory import Trajectory, to_dict
from mast_trace_collector.storage.runs import RunSummary, run_summary, summary_of
from mast_trace_dashboards.cli.output import console, draft_of, plain, shown_progress, warn
from mast_trace_dashboards.found_run import find_run
from mast_trace_dashboards.printable import counted
from mast_trace_dashboards.run_names import NotFound
from mast_trace_judge.batch import read_alone
from mast_trace_judge.store.replay_plans import masks_of
from mast_trace_lab.program.setup import Setup, setup_of
from mast_trace_lab.replay.changes import NotConfirmable
from mast_trace_lab.replay.masks import Mask, NotMaskable, keep_masks, propose

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from mast_trace_collector.storage import Store
    from mast_trace_dashboards.programs import Program
    from mast_trace_lab.program.conducting import Progress as State
    from mast_trace_lab.replay import Replayed


INTERRUPTED: Final = 130
"""Exit status after Ctrl-C or SIGTERM."""
GOES_ON: Final = "The results so far are stored; the same command goes on after them."


_BEFORE: Final = """
SELECT * FROM mast_runs
WHERE Project = {project:String} AND ServiceName = {service:String} AND Kind IN ('', 'call')
  AND Start < (SELECT max(Start) FROM mast_runs WHERE Project = {project:String} AND TraceId = {trace:String})
ORDER BY Start DESC LIMIT {most:UInt32}
"""


def run_of(store: Store, trace_id: str, project: str | None) -> tuple[RunSummary, Trajectory]:
    """Return a run's row, and the run.

    Raises:
        NotFound: there is no such run.
        StorageError: the database does not answer.
    """
    found = find_run(store, trace_id, project)
    summary = run_summary(store, trace_id, project=found.row["Project"]) if found else None
    if summary is None:
        raise NotFound(f"there is no run {trace_id}")
    return summary, read_alone(store, summary)


def earlier_runs(
    store: Store, run: RunSummary, recorded: Trajectory, place: int | None
) -> tuple[Trajectory, ...]:
    """Return the runs that its program makes before a run, the first one first.

    Args:
        store: the database.
        run: the run's row.
        recorded: the run.
        place: of the run among those of its program, from 1; None for the interrupted runs alone that it continues.

    Raises:
        NotConfirmable: one of them is not stored.
        StorageError: the database does not answer.
    """
    if place is not None:
        named = {"project": run.project, "service": run.service, "trace": run.trace_id}
        rows = store.query(_BEFORE, {**named, "most": place - 1}) if place > 1 else []
        if len(rows) < place - 1:
            raise NotConfirmable(
                f"run {run.trace_id} is said to be number {place} of its program, and {len(rows)} runs of "
                f"{run.service or 'its service'} are stored before it"
            )
        return tuple(read_alone(store, summary_of(row)) for row in reversed(rows))
    found: list[Trajectory] = []
    seen, last = {recorded.trace_id}, recorded
    while last.resumes and last.resumes not in seen:
        seen.add(last.resumes)
        summary = run_summary(store, last.resumes, project=run.project)
        if summary is None:
            raise NotConfirmable(
                f"run {last.trace_id} continues the interrupted run {last.resumes}, which is not stored; "
                "no replay could be identical without it"
            )
        last = read_alone(store, summary)
        found.insert(0, last)
    return tuple(found)


def setup_of_run(
    store: Store, run: RunSummary, recorded: Trajectory, program: Program, **others: Any
) -> Setup:
    """Return the setup of a run's replays, with the runs before it and its masks; see `setup_of`.

    Raises:
        NotConfirmable: an earlier run is not stored.
        ConfigurationError: the file of the expected answer cannot be read.
        StorageError: the database does not answer.
    """
    earlier = earlier_runs(store, run, recorded, program.run)
    masks = masks_of(store, run.project, run.trace_id) if program.masks else ()
    return setup_of(program, earlier=earlier, masks=masks, **others)


def ask(text: str, *, yes: bool) -> None:
    """Tell what will run, and ask for confirmation.

    Raises:
        ConfigurationError: standard input is no terminal, so that nobody can be asked.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise ConfigurationError(f"{text} Add --yes to run it.")
    warn(text)
    typer.confirm("Run it?", abort=True, err=True)


def mended(
    store: Store, run: RunSummary, recorded: Trajectory, setup: Setup, done: Replayed, *, yes: bool
) -> Replayed:
    """Return a replay with the masks that make it identical, else as it was with the reason why there are none.

    The masks are kept with the run if a person wants them, or nobody is asked.

    Raises:
        ResetFailed: the state outside the program could not be restored.
        OSError: the command cannot be started.
        StorageError: the database does not answer.
    """
    divergence = done.report.divergence if done.report else None
    if done.status != "diverged" or divergence is None or divergence.kind != "model":
        return done
    try:
        masks, again = propose(recorded, setup)
    except NotMaskable as reason:
        return dataclasses.replace(done, text=f"{done.text}\n{reason}")
    warn(told_masks(masks))
    if not (yes or typer.confirm("Keep these masks with the run?", err=True)):
        return done
    keep_masks(store, run, masks)
    return again


def told_masks(masks: Sequence[Mask]) -> str:
    """Return the lines that show masks; empty for none."""
    told = ["These places of its prompts change by themselves, and are masked:"]
    return (
        "\n".join(
            [
                *told,
                *(
                    f"  {each.name}: recorded {each.recorded!r}, now {each.replayed!r}"
                    for each in masks
                ),
                "",
            ]
        )
        if masks
        else ""
    )


def names_of(run: RunSummary) -> tuple[str, str]:
    """Return the names by which the program of a run is found, the run's own first."""
    return run.name, run.service


def warning(setup: Setup, plain_functions: Sequence[str] = ()) -> str:
    """Return the warning that a program runs for real.

    Args:
        setup: of its replays.
        plain_functions: see `mast_trace.replay.tape.Tape`.
    """
    restored = (
        f"`{' '.join(setup.reset)}` restores them before each replay"
        if setup.reset
        else "nothing restores them between replays"
    )
    real = "files, databases and whatever else its own code touches"
    if plain_functions:
        real = f"{', '.join(plain_functions)}, which it calls by itself, {real}"
    return (
        f"This runs `{' '.join(setup.command)}`. Models and recorded tools are answered from the record; "
        f"{real} are real, and {restored}."
    )


def not_started(command: Sequence[str], error: OSError) -> ConfigurationError:
    """Return the error of a command that cannot be started."""
    return ConfigurationError(f"cannot start {command[0]}: {error.strerror or error}")


@contextmanager
def going_on(command: Sequence[str]) -> Iterator[None]:
    """Let a block be interrupted, and say that its results are stored.

    Args:
        command: the program that the block runs.

    Raises:
        ConfigurationError: the command cannot be started.
        StorageError: the database does not answer; the text says that the results are stored.
        typer.Exit: the person has interrupted it.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    except OSError as error:
        raise not_started(command, error) from error
    except KeyboardInterrupt:
        warn(f"Interrupted. {GOES_ON}")
        raise typer.Exit(INTERRUPTED) from None
    except StorageError as error:
        raise StorageError(f"{error}. {GOES_ON}") from error


@contextmanager
def progress_bar(expected: int | None) -> Iterator[Callable[[State], None]]:
    """Show live calls, replays and cost while replays run; yield the function that updates them.

    Args:
        expected: live model calls in all; None if unknown.
    """
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[spent]}"),
        TimeElapsedColumn(),
    )
    with shown_progress(*columns) as progress:
        task = progress.add_task("Starting", total=expected and max(1, expected), spent="")

        def changed(state: State) -> None:
            place = f"step {state.step}" if state.step >= 0 else "whole program"
            progress.update(
                task,
                description=f"{state.phase}, {place}" if state.phase else "Concluding",
                completed=state.live_calls,
                total=expected and max(1, expected, state.live_calls),
                spent=f"{counted(state.live_calls, 'live call')}, {counted(state.replays, 'replay')}, "
                f"{state.cost_usd:.4f} USD",
            )

        yield changed


_STYLES = {"identical": "bold green"}


def write_replay(path: Path, run: Trajectory | None) -> None:
    """Write a replayed run as JSON, in the form of a downloaded run.

    Raises:
        ConfigurationError: there is no run, or the file cannot be written.
    """
    if run is None:
        raise ConfigurationError(f"nothing was written to {path}: the program recorded no run")
    text = json.dumps({"trajectory": to_dict(run), "verdict": None}, ensure_ascii=False)
    try:
        with draft_of(path) as draft:
            draft.write_text(f"{text}\n", encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise ConfigurationError(f"cannot write {path}: {error.strerror or error}") from error


def show(recorded: Trajectory, done: Replayed) -> None:
    """Print the result of a replay for people."""
    shown = console()
    report = done.report
    masked = report.masked_places if report else 0
    but = f" except for {masked} masked place{'s'[: masked > 1]}" if masked else ""
    shown.print(plain(f"{done.status}{but}", _STYLES.get(done.status, "bold red")), end="")
    if report is None:
        shown.print(plain(f": {done.text}"))
        return
    models = report.served_exchanges + report.waiting_exchanges
    tools = report.served_executions + report.waiting_executions
    shown.print(
        plain(
            f": {report.served_exchanges} of {models} model calls and {report.served_executions} of "
            f"{tools} tool calls answered from run {recorded.trace_id[:12]}, "
            f"{counted(report.live_executions, 'tool')} executed"
        )
    )
    if done.text:
        shown.print(plain(done.text))
    elif done.status == "identical":
        shown.print(plain(f"All {len(recorded.steps)} steps are the same."))
    if done.exit_status:
        shown.print(plain(f"The program ended with {done.exit_status}."))


def as_dict(done: Replayed) -> dict[str, object]:
    """Return the result of a replay for other programs."""
    return {
        "status": done.status,
        "text": done.text,
        "report": None if done.report is None else dataclasses.asdict(done.report),
        "exit_status": done.exit_status,
    }
