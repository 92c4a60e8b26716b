"""`mast-trace cases`: failures kept as files for tests."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mast_trace.replay.recording import NotReplayable, tape_of
from mast_trace.trajectory import Trajectory, trajectory_from_dict
from mast_trace_dashboards.cli.open_store import open_store
from mast_trace_dashboards.cli.options import AsJson, ConfigFile, DataDir, Project, RunName, Url
from mast_trace_dashboards.cli.output import FittedTable, console, plain, print_json, say, warn
from mast_trace_dashboards.printable import ID_SHOWN, clip, counted
from mast_trace_dashboards.programs import config_file, program_of, programs_of
from mast_trace_dashboards.run_names import NotFound, resolve_run
from mast_trace_judge.gate.case_files import (
    FOLDER,
    Case,
    CaseRefused,
    case_paths,
    load_case,
    name_for,
    path_of,
    remove_case,
    same_failures,
    write_case,
)
from mast_trace_judge.store.replay_plans import masks_of
from mast_trace_judge.transfer.exporting import LongRun, export_runs

if TYPE_CHECKING:
    from mast_trace_collector.storage import Store

Folder = Annotated[Path, typer.Option("--dir", help="Folder of the cases, in your repository.")]
_NEVER_REDACTED = (
    "It holds the run's texts as they are stored: what redact= removed is not in them, everything else can "
    "be read. Look through it before you commit it."
)
_LIVE = """
from mast_trace_judge.testing import assert_no_mode, assert_outcome, load_case

def test_{name}(captured_spans):
    case = load_case("{path}")
    ...  # call your program with case.task: its models are asked
    assert_outcome(captured_spans, "success")
{modes}"""
_MODES = """    assert_no_mode(captured_spans, *case.modes, unexamined="pass")
"""
_REPLAYED = """
from mast_trace.testing import replayed

def test_{name}_is_reproduced():
    with replayed("{path}"{tools}) as replay:
        ...  # call your program as it was called: no model is asked
    replay.assert_identical()
"""

cases = typer.Typer(
    name="cases",
    help="Keep failures as cases: files in your repository that tests replay or run again.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)


@cases.command("add")
def add(
    run: RunName,
    name: Annotated[
        str | None, typer.Option(help="Name of the case.", show_default="of the run")
    ] = None,
    folder: Folder = FOLDER,
    note: Annotated[str, typer.Option(help="Your words on it, kept in the case.")] = "",
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace a case of that name.")
    ] = False,
    no_replay: Annotated[
        bool,
        typer.Option("--no-replay", help="Keep the run also where it cannot be replayed."),
    ] = False,
    live_tools: Annotated[
        list[str] | None,
        typer.Option("--live-tools", help="Tool that the test will execute; `*` for all."),
    ] = None,
    project: Project = None,
    url: Url = None,
    data_dir: DataDir = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Keep a run as a case: a compressed file with its steps, verdict and labels.

    `mast_trace.testing.replayed` answers a program's models and tools from it, with no network. The
    file holds the run's texts as they are stored.

    Examples: `mast-trace cases add last` · `mast-trace cases add 6a1f --name refund --note "page 2"`
    """
    with open_store(url, data_dir, config) as store:
        exported = _exported(store, resolve_run(store, run, project), project)
    runs = [trajectory_from_dict(each["trajectory"]) for each in exported]
    live_tools = [*(live_tools or ()), *_executed(runs[-1], config_file(config))]
    replay, calls = _replay(runs, live_tools, required=not no_replay)
    path = path_of(folder, name or name_for(runs[-1]))
    verdict = exported[-1]["verdict"] or {}
    shown = [mode["code"] for mode in verdict.get("modes", ()) if mode["probability"] >= 0.5]
    alike = [
        case.name for case in same_failures(_readable(folder), runs[-1], shown) if case.path != path
    ]
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    write_case(path, exported, added=now, note=note, replace=replace)
    case = load_case(path)
    if as_json:
        print_json(
            {**_as_dict(case), "replayable": not replay, "not_replayable": replay, "alike": alike}
        )
        return
    say(f"{path}: {_told(case)}")
    say(replay or f"It can be replayed: {calls}.")
    if alike:
        warn(f"the same failure is a case already: {', '.join(alike)}")
    warn(_NEVER_REDACTED)
    _show_tests(case, f", live_tools={live_tools!r}" if live_tools else "", replay)


@cases.command("list")
def list_cases(folder: Folder = FOLDER, as_json: AsJson = False) -> None:
    """List the cases of a folder. The exit status is 1 if a file cannot be read.

    Example: `mast-trace cases list --dir tests/cases`
    """
    found: list[Case] = []
    broken: list[str] = []
    for path in case_paths(folder):
        try:
            found.append(load_case(path))
        except (ValueError, OSError) as error:
            broken.append(str(error))
    if as_json:
        print_json({"cases": [_as_dict(case) for case in found], "unreadable": broken})
    elif found:
        console().print(_table(found))
    else:
        warn(f"{folder} has no cases; `mast-trace cases add RUN` adds one")
    for text in broken:
        warn(text)
    if broken:
        raise typer.Exit(1)


@cases.command("remove")
def remove(
    names: Annotated[list[str], typer.Argument(help="Names of cases.", metavar="NAME...")],
    folder: Folder = FOLDER,
) -> None:
    """Remove cases. The runs stay in the store.

    Example: `mast-trace cases remove refund-6a1f0c2d`
    """
    paths = [path_of(folder, name) for name in names]
    missing = [path for path in paths if not path.is_file()]
    if missing:
        raise CaseRefused(f"there is no case {missing[0]}; nothing was removed")
    for path in paths:
        remove_case(path)
        say(f"{path} is removed.")


def _executed(run: Trajectory, file: Path | None) -> tuple[str, ...]:
    """Return the tools that the run's program may execute by the configuration file."""
    programs, names = programs_of(file), (run.name, run.service)
    known = any(name in programs for name in names)
    return program_of(programs, names).executed if known else ()


def _exported(store: Store, trace_id: str, project: str | None) -> list[dict[str, Any]]:
    """Return a run as it is exported, after the interrupted runs that it continues."""
    found: list[dict[str, Any]] = []
    seen: set[str] = set()
    while trace_id and trace_id not in seen:
        seen.add(trace_id)
        rows = list(export_runs(store, project=project, run=trace_id))
        if not rows:
            raise NotFound(
                f"run {trace_id}, which the case needs, is not stored, or retention left its spans out"
            )
        if len(rows) > 1:
            raise CaseRefused(f"several projects have a run {trace_id}: choose one by --project")
        if isinstance(rows[0]["trajectory"], LongRun):
            raise CaseRefused(
                f"run {trace_id} is too long for a case; `mast-trace export` writes it"
            )
        masks = masks_of(store, rows[0]["project"], trace_id)
        found.insert(0, {**rows[0], "masks": masks} if masks else rows[0])
        trace_id = rows[0]["trajectory"].get("resumes") or ""
    return found


def _replay(
    runs: Sequence[Trajectory], live_tools: Sequence[str], *, required: bool
) -> tuple[str, str]:
    """Return the reason why a run cannot be replayed, and what is answered if it can."""
    try:
        tape = tape_of(runs[-1], *runs[:-1], live_tools=live_tools)
    except NotReplayable as error:
        if required:
            raise CaseRefused(
                f"{error} --no-replay keeps it for its task and its findings alone."
            ) from None
        return str(error), ""
    return (
        "",
        f"{counted(len(tape.exchanges), 'model call')} and {counted(len(tape.executions), 'tool call')} are answered",
    )


def _show_tests(case: Case, tools: str, not_replayable: str) -> None:
    """Print tests to begin with: of the changed program, and of the recorded failure."""
    names = {
        "name": "".join(each if each.isalnum() else "_" for each in case.name),
        "path": case.path.as_posix(),
    }
    shown = console()
    shown.print(plain("\nA test that passes once the failure is gone:"))
    shown.print(plain(_LIVE.format(**names, modes=_MODES if case.modes else "")), soft_wrap=True)
    if not not_replayable:
        shown.print(
            plain("A test that holds the failure as long as the program asks its models the same:")
        )
        shown.print(plain(_REPLAYED.format(**names, tools=tools)), soft_wrap=True)


def _readable(folder: Path) -> list[Case]:
    """Return the cases of a folder that can be read, for comparison; `list` names the others."""
    found = []
    for path in case_paths(folder):
        try:
            found.append(load_case(path))
        except (ValueError, OSError) as error:
            warn(str(error))
    return found


def _told(case: Case) -> str:
    parts = [f"{counted(len(case.trajectory.steps), 'step')}", case.outcome or "no known outcome"]
    if case.modes:
        parts.append(f"modes {' '.join(case.modes)}")
    if case.decisive is not None:
        number, agent = case.decisive
        parts.append(f"decisive error of {agent or 'nobody'} at step {number}")
    if case.verdict is None:
        parts.append("not judged")
    return ", ".join(parts)


def _as_dict(case: Case) -> dict[str, Any]:
    step, agent = case.decisive or (None, "")
    return {
        "name": case.name,
        "file": case.path,
        "run": case.run,
        "added": case.added,
        "outcome": case.outcome,
        "modes": case.modes,
        "decisive_step": step,
        "decisive_agent": agent,
        "steps": len(case.trajectory.steps),
        "task": case.task,
        "note": case.note,
    }


def _table(found: Sequence[Case]) -> FittedTable:
    table = FittedTable()
    for name in ("CASE", "RUN", "ADDED", "OUTCOME", "MODES", "DECISIVE ERROR", "TASK, NOTE"):
        table.add_column(name, no_wrap=name in {"RUN", "ADDED"})
    for case in found:
        step, agent = case.decisive or (None, "")
        table.add_row(
            plain(case.name),
            plain(case.run[:ID_SHOWN]),
            plain(case.added[:10]),
            plain(case.outcome or "unknown"),
            plain(" ".join(case.modes)),
            plain("-" if step is None else f"{clip(agent, 20) or 'nobody'}, step {step}"),
            plain(f"{clip(case.task, 40)}\n{clip(case.note, 30)}".strip()),
        )
    return table
