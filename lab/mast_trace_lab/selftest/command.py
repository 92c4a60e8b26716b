"""`mast-trace selftest`: how far to trust the judge on one's own agents."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated

import typer

from mast_trace.exceptions import ConfigurationError
from mast_trace_dashboards.cli.open_store import open_store
from mast_trace_dashboards.cli.options import AsJson, ConfigFile, Url
from mast_trace_dashboards.cli.output import print_document, print_json, shown_progress, warn
from mast_trace_dashboards.document import Sentence
from mast_trace_dashboards.printable import counted
from mast_trace_dashboards.programs import FILE, config_file, program_of, programs_of
from mast_trace_judge.config import JudgeConfig
from mast_trace_lab.inject.command import Operators, planted_operators, stopped
from mast_trace_lab.program.setup import setup_of
from mast_trace_lab.replay.options import (
    COMMAND,
    Given,
    MaxCalls,
    Seed,
    ThenCommand,
    Yes,
    budget_of,
    price_table,
)
from mast_trace_lab.replay.replaying import ask, going_on, warning
from mast_trace_lab.selftest.session import Reports, SelfTestPlan, examine
from mast_trace_lab.selftest.store import SelfTest
from mast_trace_lab.selftest.words import planted_sentences, said_of

app = typer.Typer()


@app.command("selftest", cls=ThenCommand)
def selftest(
    ctx: typer.Context,
    name: Annotated[
        str,
        typer.Argument(
            metavar="[PROGRAM]",
            help="Its name in the configuration file, where that has several.",
            show_default=False,
        ),
    ] = "",
    runs: Annotated[int, typer.Option(min=1, help="Runs that are recorded, over all tasks.")] = 5,
    count: Annotated[int, typer.Option(min=1, help="Most faults that are planted in all.")] = 40,
    operator: Operators = None,
    seed: Seed = 1,
    max_calls: MaxCalls = None,
    given: Given = None,
    yes: Yes = False,
    url: Url = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Examine the judge on your own program: record it, plant faults, and judge the faulty runs.

    The table says, for each failure mode, how many planted faults the judge finds, how many decisive steps it
    gets right, and how many untouched healthy runs it accuses, before and after fitting. The fit has never seen
    the operator that it is asked about. Each result is stored, so that the same command goes on after an
    interruption; another --seed makes another self-test.

    Examples: `mast-trace selftest -- python my_team.py "What do they owe us?"` ·
    `mast-trace selftest --runs 12 --count 60 --set tasks=tasks.txt -- python my_team.py {task}`
    """
    config = config_file(config)
    programs = programs_of(config)
    command = ctx.meta[COMMAND]
    if name and name not in programs:
        raise ConfigurationError(f"{config or FILE} has no [programs.{name}]")
    alone = next(iter(programs), "") if len(programs) == 1 and not command else ""
    program = program_of(programs, [name or alone], command=command, given=given or ())
    planted, left = planted_operators(operator or ())
    plan = SelfTestPlan(
        program=program,
        setup=setup_of(program),
        tasks=_tasks(Path(program.tasks) if program.tasks else None, program.command),
        runs=runs,
        count=count,
        only=planted,
        seed=seed,
        prices=price_table(config),
    )
    command = program.command
    ask(
        f"{runs} runs are recorded, and up to {count} faults are planted in them; a fault takes 5 to 40 replays of "
        f"the rest of its run, with live model calls. {warning(plan.setup)}",
        yes=yes,
    )
    budget = budget_of(program, max_calls)
    with (
        open_store(url, None, config) as store,
        going_on(command),
        shown_progress() as bar,
    ):
        bars: dict[str, int] = {}

        def advanced(what: str, done: int, total: int) -> None:
            if what not in bars:
                bars[what] = bar.add_task(what)
            bar.update(bars[what], completed=done, total=total or None)  # type: ignore[arg-type]

        made = examine(
            store,
            plan,
            budget,
            JudgeConfig.load(config),
            Reports(advanced, warn),
        )
    if as_json:
        print_json(
            as_dict(made.test)
            | {
                "replays": made.replays,
                "live_calls": made.live_calls,
                "verdicts": dict(made.verdicts),
                "left_out_as_uncertain": left,
            }
        )
    else:
        told = [
            *planted_sentences(made.verdicts),
            f"{counted(made.replays, 'replay')}, {counted(made.live_calls, 'live model call')}.",
        ]
        if left:
            told.append(
                f"Not planted: {len(left)} operators whose labels are uncertain ({', '.join(left)}); "
                "--operator plants one that it names."
            )
        print_document([*said_of(made.test), *map(Sentence, told)])
    # The limit of a single run is the rest that earlier ones have left.
    used = f" {made.live_calls} of {budget.max_calls} calls are used in all."
    stopped(made.limit, used if budget.max_calls else "")
    if not made.faults:
        raise typer.Exit(1)


def as_dict(test: SelfTest) -> dict[str, object]:
    """Return a self-test as JSON types."""
    shape = dataclasses.asdict(test)
    shape["measured_at"] = test.measured_at.isoformat()
    return shape


def _tasks(file: Path | None, command: tuple[str, ...]) -> tuple[str, ...]:
    """Return the tasks of a file.

    Raises:
        ConfigurationError: the file cannot be read or is empty, or the command has no place for a task.
    """
    placed = any("{task}" in part for part in command)
    if file is None:
        if placed:
            raise ConfigurationError(
                "the command has {task}: name the file of tasks by --set tasks=FILE"
            )
        return ()
    try:
        lines = [line.strip() for line in file.read_text("utf-8").splitlines()]
    except OSError as error:
        raise ConfigurationError(f"cannot read {file}: {error.strerror or error}") from error
    tasks = tuple(dict.fromkeys(filter(None, lines)))
    if not tasks:
        raise ConfigurationError(f"{file} has no task; write one in each line")
    if not placed:
        raise ConfigurationError("a file of tasks needs a place in the command: write {task} there")
    return tasks
