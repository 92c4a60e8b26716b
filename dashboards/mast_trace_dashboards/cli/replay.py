"""`mast-trace replay`: runs a program again, with its calls answered from a recorded run."""

from __future__ import annotations

import dataclasses
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from mast_trace.exceptions import ConfigurationError
from mast_trace_collector.storage.runs import run_summary
from mast_trace_dashboards.cli.open_store import open_store
from mast_trace_dashboards.cli.options import AsJson, ConfigFile, DataDir, Project, RunName, Url
from mast_trace_dashboards.cli.output import console, plain, print_json, warn
from mast_trace_dashboards.found_run import find_run
from mast_trace_dashboards.run_names import NotFound, resolve_run
from mast_trace_judge.replay import Replayed
from mast_trace_judge.replay import replay as replay_program
from mast_trace_judge.store.runs import read_alone

if TYPE_CHECKING:
    from mast_trace.trajectory import Trajectory
    from mast_trace_collector.storage import Store

_STYLES = {"identical": "bold green"}


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("replay")(replay)


def replay(
    run: RunName,
    command: Annotated[
        list[str],
        typer.Argument(
            metavar="-- COMMAND...", help="The program that made the run.", show_default=False
        ),
    ],
    timeout: Annotated[
        float, typer.Option(min=1.0, metavar="SECONDS", help="Time until the program is killed.")
    ] = 120.0,
    live_tools: Annotated[
        list[str] | None,
        typer.Option(
            "--live-tools",
            metavar="NAME",
            help="A tool that may be executed if the run has no result of the call; `all` for every tool.",
            show_default=False,
        ),
    ] = None,
    allow_hosts: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-host",
            metavar="ADDRESS",
            help="An IP address to which the program may connect, such as 127.0.0.1.",
            show_default=False,
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before it runs.")] = False,
    project: Project = None,
    url: Url = None,
    data_dir: DataDir = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Replay a run: run its program again from the record, and report the first difference.

    The program is unchanged and calls `mast_trace.instrument()`. Its model calls and tool calls are
    answered from the record: no model is asked, no tool is executed, nothing is stored. All its
    other code runs for real, without network. The exit status is 0 if the run was identical, else 1.

    Example: `mast-trace replay last -- python my_team.py "What do they owe us?"`
    """
    with open_store(url, data_dir, config) as store:
        recorded = _recorded(store, resolve_run(store, run, project), project)
    _ask(command, yes=yes)
    tools = ["*" if name == "all" else name for name in live_tools or ()]
    try:
        done = replay_program(
            recorded,
            command,
            timeout=timeout,
            live_tools=tools,
            hosts=allow_hosts or (),
            quiet=as_json,
        )
    except OSError as error:
        raise ConfigurationError(f"cannot start {command[0]}: {error.strerror or error}") from error
    if as_json:
        print_json(_as_dict(done))
    else:
        _show(recorded, done)
    if done.status != "identical":
        raise typer.Exit(1)


def _recorded(store: Store, trace_id: str, project: str | None) -> Trajectory:
    found = find_run(store, trace_id, project)
    summary = run_summary(store, trace_id, project=found.row["Project"]) if found else None
    if summary is None:
        raise NotFound(f"there is no run {trace_id}")
    return read_alone(store, summary)


def _ask(command: list[str], *, yes: bool) -> None:
    """Warn that the program runs for real, and ask for confirmation.

    Raises:
        ConfigurationError: standard input is no terminal, so it cannot be confirmed.
    """
    if yes:
        return
    text = (
        f"This runs `{' '.join(command)}`. Models and tools are answered from the record; files, "
        "databases and whatever else its own code touches are real."
    )
    if not sys.stdin.isatty():
        raise ConfigurationError(f"{text} Add --yes to run it.")
    warn(text)
    typer.confirm("Run it?", abort=True, err=True)


def _show(recorded: Trajectory, done: Replayed) -> None:
    shown = console()
    shown.print(plain(done.status, _STYLES.get(done.status, "bold red")), end="")
    report = done.report
    if report is None:
        shown.print(plain(f": {done.text}"))
        return
    models = report.served_exchanges + report.waiting_exchanges
    tools = report.served_executions + report.waiting_executions
    shown.print(
        plain(
            f": {report.served_exchanges} of {models} model calls and {report.served_executions} of "
            f"{tools} tool calls answered from run {recorded.trace_id[:12]}, "
            f"{report.live_executions} tools executed"
        )
    )
    if done.text:
        shown.print(plain(done.text))
    elif done.status == "identical":
        shown.print(plain(f"All {len(recorded.steps)} steps are the same."))
    if done.exit_status:
        shown.print(plain(f"The program ended with {done.exit_status}."))


def _as_dict(done: Replayed) -> dict[str, object]:
    return {
        "status": done.status,
        "text": done.text,
        "report": None if done.report is None else dataclasses.asdict(done.report),
        "exit_status": done.exit_status,
    }
