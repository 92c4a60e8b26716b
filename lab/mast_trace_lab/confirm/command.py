"""`mast-trace confirm RUN`: proves a run's decisive error by replays, or says that none is proved."""

from __future__ import annotations

import dataclasses
import signal
import threading
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from mast_trace.exceptions import ConfigurationError, MastTraceError
from mast_trace_collector.config import CollectorConfig
from mast_trace_dashboards.certainty import heading, price
from mast_trace_dashboards.cli.open_store import open_store
from mast_trace_dashboards.cli.options import (
    AsJson,
    ConfigFile,
    DataDir,
    Project,
    RunName,
    Url,
)
from mast_trace_dashboards.cli.output import console, plain, print_json, printed, say, warn
from mast_trace_dashboards.cli.step_texts import texts_by_step
from mast_trace_dashboards.commands import COMMANDS
from mast_trace_dashboards.printable import counted
from mast_trace_dashboards.programs import config_file, program_of, programs_of
from mast_trace_dashboards.run_documents import replays_said
from mast_trace_dashboards.run_names import resolve_run
from mast_trace_judge.proof import proved_step
from mast_trace_lab.confirm.confirm import Stopped, confirming
from mast_trace_lab.confirm.preparation import FailedRun, Prepared, check, expected_calls, limits_of
from mast_trace_lab.confirm.work import ConfirmWorker, Handled, load_work_config
from mast_trace_lab.program.budget import Budget, CallCost, call_cost, check_limits
from mast_trace_lab.program.conducting import locked_run
from mast_trace_lab.program.forking import parent_of
from mast_trace_lab.program.setup import Setup
from mast_trace_lab.replay.arms import arm_of, change
from mast_trace_lab.replay.masks import Mask, keep_masks
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
    ask,
    going_on,
    names_of,
    progress_bar,
    run_of,
    setup_of_run,
    told_masks,
    warning,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mast_trace.trajectory import Trajectory

_SUBCOMMANDS = {"run", "work", "--help", "-h"}
_TRIES = 4
"""Replays of a correction that may hold the answer."""


class RunFirst(TyperGroup):
    """A group whose command `run` needs no name: `confirm RUN` is `confirm run RUN`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert the name of the command where none stands."""
        if not args or args[0] not in _SUBCOMMANDS:
            args = ["run", *args]
        return super().parse_args(ctx, args)


group = typer.Typer(
    name="confirm",
    cls=RunFirst,
    help="Prove the decisive error of a failed run by replays. `confirm RUN -- COMMAND` is short "
    "for `confirm run RUN -- COMMAND`.",
)
prove = typer.Typer()


def work(
    once: Annotated[
        bool, typer.Option("--once", help="Confirm the failed runs of now, then stop.")
    ] = False,
    quiet: Annotated[
        float, typer.Option(min=0.0, metavar="SECONDS", help="Leave newer runs to the judge first.")
    ] = 60.0,
    url: Url = None,
    data_dir: DataDir = None,
    config: ConfigFile = None,
) -> None:
    """Confirm failed runs as they come, until Ctrl-C, under a daily budget of calls and dollars.

    Programs and budget come from the tables `programs` and `confirm` of the configuration file alone, never from
    the store or from a trace. Several workers of one machine share the budget and never replay the same run.

    Example: `mast-trace confirm work --config mast-trace.toml`
    """
    config = config_file(config)
    settings = load_work_config(config)
    folder = CollectorConfig.load(config, data_dir=data_dir).data_dir / "confirm"
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: _end(stop))
    with open_store(url, data_dir, config) as store:
        worker = ConfirmWorker(
            store, settings, folder, quiet=quiet, told=_tell, priced=price_table(config)
        )
        warn("Confirming failed runs; Ctrl-C stops.")
        try:
            if once:
                worker.run_once(stop)
            else:
                worker.run(stop)
        except KeyboardInterrupt:
            warn("Stopped. The results so far are stored; the next worker goes on after them.")


def _end(stop: threading.Event) -> None:
    """Stop the worker, and its running replay with it."""
    stop.set()
    raise KeyboardInterrupt


def _tell(handled: Handled) -> None:
    ending = f"{handled.ending}; " if handled.ending and handled.stopped else handled.ending
    later = f"to be continued: {handled.stopped}" if handled.stopped else ""
    say(f"{handled.trace_id[:12]} {handled.service}: {ending}{later}")


@prove.command(
    "prove",
    cls=ThenCommand,
    help=f"{COMMANDS['prove'].help}\n\nExample: `mast-trace prove last -- python team.py`",
)
def confirm(
    ctx: typer.Context,
    run: RunName,
    max_calls: MaxCalls = None,
    fix: Annotated[
        list[str] | None,
        option(
            "--fix",
            "STEP=TEXT|@FILE",
            "A corrected answer of a step, or a tool's corrected result.",
        ),
    ] = None,
    result: Annotated[
        list[str] | None,
        option(
            "--result",
            "STEP=TEXT|@FILE",
            "The right result of a tool call, also where the step is the answer that asks for it.",
        ),
    ] = None,
    allow_answer: Annotated[
        bool,
        typer.Option(
            "--allow-answer",
            help="Replay the corrections although they may hold the right answer. This proves nothing about a step: "
            "nothing else is run, and nothing is stored.",
        ),
    ] = False,
    given: Given = None,
    yes: Yes = False,
    project: Project = None,
    url: Url = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Prove a run's decisive error by replays of its program, or say that none is proved.

    The program stands after `--`, or in the configuration file, where the run's name or service finds it.
    Replays keep the run up to a step and go on live from there; others correct the step as well. Each
    result is stored before the next replay starts, so that the same command goes on after an
    interruption. The exit status is 0 if a decisive error is proved, or that several errors are each enough, and
    1 if not.

    Examples: `mast-trace confirm last` ·
    `mast-trace confirm last --max-calls 200 -- python my_team.py "What do they owe us?"`
    """
    config, proves = config_file(config), ctx.info_name == "prove"
    programs, priced = programs_of(config), price_table(config)
    fixes = {
        "fixes": texts_by_step(fix, "--fix"),
        "results": texts_by_step(result, "--result"),
    }
    folder = CollectorConfig.load(config).data_dir / "confirm"
    with open_store(url, None, config) as store:
        summary, recorded = run_of(store, resolve_run(store, run, project), project)
        names = names_of(summary)
        program = program_of(programs, names, command=ctx.meta[COMMAND], given=given or ())
        prices = priced(recorded, program.stronger_model)
        setup = setup_of_run(store, summary, recorded, program, prices=prices, **fixes)
        budget = budget_of(program, max_calls)
        if allow_answer:
            changes = [f"fix:{each}" for each in fix or ()]
            changes += [f"result:{each}" for each in result or ()]
            _given_the_answer(recorded, setup, changes, budget, yes=yes, as_json=as_json)
        with locked_run(folder, summary.project, summary.trace_id) as mine:
            if not mine:
                raise MastTraceError(f"another process replays run {summary.trace_id} now")
            with parent_of(program, recorded.framework, warn) as parent:
                setup = dataclasses.replace(setup, parent=parent)
                points = check(recorded, setup)
                failed = FailedRun(store, summary, recorded, setup, points)
                failed.check_fixes()
                failed, masks = failed.verified() if proves else (failed, ())
                stopped, prepared = _conduct(
                    failed, budget, jobs=program.jobs, yes=yes, masks=masks
                )
    if as_json:
        print_json(_as_dict(stopped, prepared))
    else:
        _show(stopped, in_a_sentence=proves)
    found = stopped.confirmation
    if proved_step(found) is None and found.status != "overdetermined":
        raise typer.Exit(1)


def _given_the_answer(
    recorded: Trajectory,
    setup: Setup,
    changes: list[str],
    budget: Budget,
    *,
    yes: bool,
    as_json: bool,
) -> NoReturn:
    """Replay corrections that may hold the right answer, and end: they confirm nothing.

    Raises:
        ConfigurationError: there are none.
        typer.Exit: always.
    """
    arm = arm_of(changes)
    if arm is None:
        raise ConfigurationError("--allow-answer needs a correction, such as --fix")
    most = budget.max_calls
    told = setup.with_task(recorded.task)
    change(recorded, told, arm, _TRIES, max_calls=most, yes=yes, as_json=as_json, given_answer=True)
    raise typer.Exit(1)


def _conduct(
    failed: FailedRun, budget: Budget, *, jobs: int, yes: bool, masks: Sequence[Mask]
) -> tuple[Stopped, Prepared]:
    """Confirm a run: tell the estimate, ask, keep new masks with the run, run the replays with a progress bar.

    Raises:
        NotConfirmable: the run cannot be confirmed.
        ConfigurationError: the choices cannot be used, or nobody can be asked.
        StorageError: the database does not answer.
        typer.Exit: the person has interrupted it; the results so far are stored.
    """
    setup = failed.setup
    check_limits(failed.recorded, setup, budget, jobs=jobs)
    known = failed.stored()
    expected = (
        expected_calls(failed.points, setup) if known is None else known.experiment.expected_calls()
    )
    estimate = _estimate(budget, call_cost(failed.recorded, setup.prices), expected)
    plain = setup.tape(failed.recorded).plain_functions
    ask(f"{told_masks(masks)}{estimate} {warning(setup, plain)}", yes=yes)
    keep_masks(failed.store, failed.run, masks)
    with going_on(setup.command):
        prepared = known or failed.plan(limits_of(setup, budget.max_calls))
        _explain(prepared)
        with progress_bar(expected) as changed:
            work = confirming(failed, prepared, budget, jobs=jobs, changed=changed)
            work.resume()
            if known is not None and not known.experiment.waiting():
                warn("Concluded by an earlier call: no replay is left to run.")
            return work.run(), prepared


def _estimate(budget: Budget, cost: CallCost | None, expected: int) -> str:
    calls = expected if budget.max_calls is None else min(expected, budget.max_calls)
    money = f"about {calls * cost.mean:.2f} USD" if cost else "at a cost that is unknown here"
    limits = [
        f"{counted(budget.max_calls, 'call')}" if budget.max_calls is not None else "",
        f"{budget.max_cost_usd:g} USD" if budget.max_cost_usd is not None else "",
        f"{counted(budget.max_runs, 'replay')}" if budget.max_runs is not None else "",
    ]
    named = " and ".join(filter(None, limits))
    most = f"It ends at {named}." if named else "No budget is set (--max-calls)."
    return f"About {counted(calls, 'live model call')}, {money}. {most}"


def _explain(prepared: Prepared) -> None:
    for each in prepared.refused:
        warn(f"Not tried: the fix of step {each.step} from {each.source}. {each.reason}")
    if prepared.number > 1:
        warn(
            f"This is experiment {prepared.number} of this run. More evidence is needed than in the "
            "first, because trying again makes a chance result likelier."
        )


def _show(stopped: Stopped, *, in_a_sentence: bool) -> None:
    """Print the conclusion for people."""
    out, found = console(), stopped.confirmation
    parts = (
        [plain(f"{heading(found)}: {found.text or price(found)}.")]
        if in_a_sentence
        else printed(replays_said(found))
    )
    for part in parts:
        out.print(part)
    if stopped.reason:
        out.print(plain(f"Stopped: {stopped.reason}. A larger budget goes on from here.", "yellow"))


def _as_dict(stopped: Stopped, prepared: Prepared) -> dict[str, object]:
    """Return the conclusion for other programs."""
    return {
        "trace_id": prepared.plan.trace_id,
        "experiment": prepared.number,
        "confirmation": stopped.confirmation.model_dump(mode="json"),
        "stopped": stopped.reason,
        "refused_fixes": [dataclasses.asdict(each) for each in prepared.refused],
    }


group.command("run", cls=ThenCommand)(confirm)
group.command("work")(work)
