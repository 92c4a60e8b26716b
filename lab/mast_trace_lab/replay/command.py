"""`mast-trace replay`: runs a program again, with its calls answered from a recorded run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from mast_trace.exceptions import ConfigurationError
from mast_trace_dashboards.cli.open_store import open_store
from mast_trace_dashboards.cli.options import AsJson, ConfigFile, Project, RunName, Url
from mast_trace_dashboards.cli.output import print_json
from mast_trace_dashboards.programs import config_file, program_of, programs_of
from mast_trace_dashboards.run_names import resolve_run
from mast_trace_lab.replay import replay as replay_program
from mast_trace_lab.replay.arms import arm_of, change
from mast_trace_lab.replay.options import (
    COMMAND,
    Given,
    MaxCalls,
    ThenCommand,
    Yes,
    budget_of,
    option,
    price_table,
)
from mast_trace_lab.replay.replaying import (
    as_dict,
    ask,
    mended,
    names_of,
    not_started,
    run_of,
    setup_of_run,
    show,
    warning,
    write_replay,
)

app = typer.Typer()


@app.command("replay", cls=ThenCommand)
def replay(
    ctx: typer.Context,
    run: RunName,
    changes: Annotated[
        list[str] | None,
        option(
            "--change",
            "KIND:STEP[=TEXT|@FILE]",
            "Change a step; the rest runs live. fix:STEP=TEXT another answer, result:STEP=TEXT another result of a "
            "tool, arguments:STEP=JSON, drop:STEP or drop:STEP=TEXT no tool calls, model:STEP=NAME another model, resample:STEP "
            "the model asked again, keep:STEP no change, start all of it live. fix and result can be repeated, and "
            "are made together.",
        ),
    ] = None,
    repeat: Annotated[int, typer.Option(min=1, help="Number of replays of a change.")] = 1,
    max_calls: MaxCalls = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="File for the replayed run, which the page of a run compares; not with `--repeat`.",
            show_default=False,
        ),
    ] = None,
    given: Given = None,
    yes: Yes = False,
    project: Project = None,
    url: Url = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Replay a run: run its program again from the record, and report the first difference.

    The program stands after `--`, or in the configuration file, where the run's name or service finds it. It is
    unchanged and calls `mast_trace.instrument()`. Its model calls and tool calls are answered from the record:
    no model is asked, no tool is executed, nothing is stored. All its other code runs for real, without
    network. The exit status is 0 if the run was identical, else 1.

    With `--change` the program runs live after it: its model is asked and costs money. The exit status is
    then 0 if every replay ended with an outcome, else 1.

    Example: `mast-trace replay last -- python my_team.py "What do they owe us?"`, or with two corrections
    that belong together `mast-trace replay last --change result:2=@stock.txt --change fix:5=@order.txt`.
    """
    arm = arm_of(changes or ())
    if arm is not None and out is not None and repeat > 1:
        raise ConfigurationError(f"--out holds one replay, and --repeat asks for {repeat}")
    config = config_file(config)
    programs = programs_of(config)
    with open_store(url, None, config) as store:
        summary, recorded = run_of(store, resolve_run(store, run, project), project)
        names = names_of(summary)
        program = program_of(programs, names, command=ctx.meta[COMMAND], given=given or ())
        output = "standard error" if as_json else "shown"
        setup = setup_of_run(
            store, summary, recorded, program, keeps_earlier=False, output=output
        ).with_task(recorded.task)
    if arm is not None:
        most = budget_of(program, max_calls).max_calls
        setup = replace(setup, prices=price_table(config)(recorded))
        change(recorded, setup, arm, repeat, max_calls=most, out=out, yes=yes, as_json=as_json)
        return
    tape = setup.tape(recorded)  # refused before anybody is asked
    ask(warning(setup, tape.plain_functions), yes=yes)
    try:
        setup.restore()
        done = replay_program(recorded, setup)
        if program.masks:
            with open_store(url, None, config) as store:
                done = mended(store, summary, recorded, setup, done, yes=yes)
    except OSError as error:
        raise not_started(setup.command, error) from error
    if as_json:
        print_json(as_dict(done))
    else:
        show(recorded, done)
    if out is not None:
        write_replay(out, done.run)
    if done.status != "identical":
        raise typer.Exit(1)
