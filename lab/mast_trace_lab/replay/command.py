"""`mast-trace replay`: runs a program again, with its calls answered from a recorded run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from mast_trace.exceptions import ConfigurationError
from mast_trace_dashboards.cli.open_store import open_store
from mast_trace_dashboards.cli.options import AsJson, ConfigFile, DataDir, Project, RunName, Url
from mast_trace_dashboards.cli.output import print_json
from mast_trace_dashboards.run_names import resolve_run
from mast_trace_lab.program.setup import setup_of
from mast_trace_lab.replay import replay as replay_program
from mast_trace_lab.replay.arms import arm_of, change, warning
from mast_trace_lab.replay.options import (
    AllowHosts,
    Arguments,
    Command,
    Drop,
    Fixes,
    Hold,
    Keep,
    LiveCalls,
    OracleCommand,
    OtherModel,
    Repeat,
    Resample,
    Results,
    Start,
    Timeout,
    Yes,
    option,
    price_table,
)
from mast_trace_lab.replay.replaying import as_dict, ask, not_started, run_of, show, write_replay


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("replay")(replay)


def replay(
    run: RunName,
    command: Command,
    timeout: Timeout = 120.0,
    live_tools: Annotated[
        list[str] | None,
        option(
            "--live-tools",
            "NAME",
            "A tool that may be executed if the run has no result of the call; `all` for every tool.",
        ),
    ] = None,
    allow_hosts: AllowHosts = None,
    fix: Fixes = None,
    resample: Resample = None,
    keep: Keep = None,
    drop: Drop = None,
    result: Results = None,
    arguments: Arguments = None,
    model: OtherModel = None,
    start: Start = False,
    repeat: Repeat = 1,
    hold: Hold = False,
    max_calls: LiveCalls = None,
    oracle: OracleCommand = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="File for the replayed run, which the page of a run compares; not with `--repeat`.",
            show_default=False,
        ),
    ] = None,
    yes: Yes = False,
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

    With a change (`--fix`, `--resample`, `--keep`, `--drop`, `--result`, `--arguments`, `--model`,
    `--start`) the program runs live after it: its model is asked and costs money. The exit status is
    then 0 if every replay ended with an outcome, else 1.

    Example: `mast-trace replay last -- python my_team.py "What do they owe us?"`, or with two corrections
    that belong together `mast-trace replay last --result 2=@stock.txt --fix 5=@order.txt -- python my_team.py`.
    """
    options = {
        "--fix": fix,
        "--resample": resample,
        "--keep": keep,
        "--drop": drop,
        "--result": result,
        "--arguments": arguments,
        "--model": model,
    }
    arm = arm_of(options, start=start, hold=hold)
    if arm is not None and out is not None and repeat > 1:
        raise ConfigurationError(f"--out holds one replay, and --repeat asks for {repeat}")
    with open_store(url, data_dir, config) as store:
        _, recorded, earlier = run_of(store, resolve_run(store, run, project), project)
    setup = setup_of(
        command,
        oracle=(oracle or None) if arm is not None else None,
        live_tools=live_tools,
        hosts=allow_hosts,
        timeout=timeout,
        earlier=earlier,
        keeps_earlier=False,
        output="standard error" if as_json else "shown",
    )
    if arm is not None:
        setup = replace(setup, prices=price_table(config)(recorded))
        change(recorded, setup, arm, repeat, max_calls=max_calls, out=out, yes=yes, as_json=as_json)
        return
    ask(warning(command), yes=yes)
    try:
        done = replay_program(recorded, setup)
    except OSError as error:
        raise not_started(command, error) from error
    if as_json:
        print_json(as_dict(done))
    else:
        show(recorded, done)
    if out is not None:
        write_replay(out, done.run)
    if done.status != "identical":
        raise typer.Exit(1)
