"""`mast-trace inject`: plants faults in successful runs, to get labels for your own system."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.table import Table
from typer.core import TyperCommand

from mast_trace.exceptions import ConfigurationError
from mast_trace_collector.storage.runs import run_summary
from mast_trace_dashboards.cli.open_store import open_store
from mast_trace_dashboards.cli.options import AsJson, ConfigFile, DataDir, Project, Url
from mast_trace_dashboards.cli.output import console, plain, print_json, warn
from mast_trace_dashboards.run_names import NotFound, resolve_run
from mast_trace_judge.config import JudgeConfig
from mast_trace_judge.planted import UNCERTAIN, is_uncertain
from mast_trace_judge.store.ledger import StoreLedger
from mast_trace_judge.store.runs import read_alone
from mast_trace_lab.inject.faults import chosen, faults_of
from mast_trace_lab.inject.injecting import Injected, NotInjectable, inject
from mast_trace_lab.inject.operators import OPERATORS
from mast_trace_lab.inject.phrasing_calls import PhrasingModel, check_model
from mast_trace_lab.program.budget import Budget
from mast_trace_lab.program.setup import setup_of
from mast_trace_lab.replay.options import (
    LiveTools,
    MaxCalls,
    MaxCost,
    Operators,
    OracleCommand,
    Preload,
    Prices,
    ResetCommand,
    Seed,
    Timeout,
    Yes,
    price_table,
)
from mast_trace_lab.replay.replaying import ask, going_on, prepared_parent, progress_bar, warning

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mast_trace.trajectory import Trajectory
    from mast_trace_collector.storage import Store
    from mast_trace_collector.storage.runs import RunSummary
    from mast_trace_judge.store.injections import Injection
    from mast_trace_lab.inject.phrasings import Checked
    from mast_trace_lab.inject.phrasings import Phrasings as Written


Phrasings = Annotated[
    Literal["rules", "model"],
    typer.Option(
        "--phrasings",
        help="Writer of the sentences that a fault makes an agent say: rules, or the judge's model, whose sentences "
        "are checked.",
    ),
]


class PhrasedByModel:
    """Sentences of the judge's model for the faults of some runs.

    Args:
        config: of the judge.
        seed: of the injection.

    Raises:
        ConfigurationError: no model is set up.
    """

    def __init__(self, config: JudgeConfig, seed: int) -> None:
        check_model(config)
        self._config = config
        self._seed = seed
        self._checked: dict[str, Checked] = {}

    def for_run(
        self,
        store: Store,
        run: RunSummary,
        recorded: Trajectory,
        only: Sequence[str],
        live_tools: Sequence[str] = (),
    ) -> Written:
        """Return the sentences for those operators that apply to a run; the model is asked for what is missing.

        Raises:
            NotReplayable: the record lacks data that a replay needs.
            JudgeError: the model cannot be asked.
            StorageError: the database does not answer.
        """
        model = PhrasingModel(self._config, StoreLedger(store), run.project, self._seed)
        faults = faults_of(recorded, self._seed, only, live_tools=live_tools)
        written = model.ask({each.operator for each in faults})
        self._checked.update(written.checked)
        return written

    def report(self, injections: Iterable[Injection]) -> None:
        """Print, on standard error, how many sentences passed their checks and how many faults use a rule's."""
        planted = list(injections)
        for name, each in self._checked.items():
            number = len(each.accepted) + sum(each.refused.values())
            said = (
                f"{name}: {len(each.accepted)} of {number} sentences of the model passed the checks"
            )
            if each.refused:
                reasons = (f"{count} {reason}" for reason, count in sorted(each.refused.items()))
                said += f" (refused: {', '.join(reasons)})"
            own = [one for one in planted if one.operator == name]
            by_rules = sum(not one.change.get("phrased_by") for one in own)
            told = f"{said}; {by_rules} of {len(own)} faults use a rule's sentence."
            console(stderr=True).print(plain(told))


COMMAND = "mast_trace.command"
"""Key under which a context holds the command of a program."""


def planted_operators(
    only: Sequence[str], *, uncertain: bool
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the operators whose faults are planted, and those that are left out as uncertain.

    Args:
        only: names of operators, or codes of failure modes; all if empty.
        uncertain: whether uncertain ones are planted as well.

    Raises:
        ConfigurationError: there is no such operator, or all of them are left out.
    """
    names = tuple(each.name for each in chosen(only))
    left = () if uncertain else tuple(filter(is_uncertain, names))
    if len(left) == len(names):
        raise ConfigurationError(
            f"labels of {', '.join(left)} are uncertain: add --uncertain to plant them all the same"
        )
    return tuple(name for name in names if name not in left), left


def list_operators(context: typer.Context, wanted: bool) -> None:
    """Print the table of operators and end, where an option asks for it."""
    if not wanted or context.resilient_parsing:  # a shell completes the line
        return
    shown = Table(
        *("operator", "mode", "level", "fault", "to blame", "applies where", "certain because"),
        show_lines=True,
    )
    for name, each in OPERATORS.items():
        mark = " (uncertain)" if each.uncertain else ""
        cells = (
            each.mode or "none",
            each.level,
            each.fault,
            each.to_blame,
            each.applies,
            each.certain,
        )
        shown.add_row(plain(f"{name}{mark}"), *map(plain, cells))
    console().print(shown)
    for reason in dict.fromkeys(filter(None, (each.uncertain for each in OPERATORS.values()))):
        names = ", ".join(name for name, each in OPERATORS.items() if each.uncertain == reason)
        console().print(plain(f"Uncertain: {names}. {reason}"))
    if UNCERTAIN:
        console().print(
            plain(
                "Their labels are kept in the store and in sets. `judge fit`, `judge bench`, `selftest` and "
                "`train export` leave them out unless --uncertain is given."
            )
        )
    raise typer.Exit


ListOperators = Annotated[
    bool,
    typer.Option(
        "--operators",
        is_eager=True,
        callback=list_operators,
        help="Show the table of operators, and plant nothing.",
    ),
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("inject", cls=RunsThenCommand)(plant)


class RunsThenCommand(TyperCommand):
    """A command whose arguments before ``--`` are runs; what follows is kept as the command of a program."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Divide the arguments at ``--``."""
        place = args.index("--") if "--" in args else len(args)
        ctx.meta[COMMAND] = args[place + 1 :]
        return super().parse_args(ctx, args[:place])


def plant(
    ctx: typer.Context,
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN... -- COMMAND...",
            help="Successful runs, and the program that made them.",
            show_default=False,
        ),
    ],
    operator: Operators = None,
    operators: ListOperators = False,  # noqa: ARG001  # its callback ends the command
    count: Annotated[int, typer.Option(min=1, help="Most faults for each run.")] = 20,
    seed: Seed = 1,
    phrasings: Phrasings = "rules",
    max_calls: MaxCalls = None,
    max_cost: MaxCost = None,
    prices: Prices = None,
    oracle: OracleCommand = None,
    reset: ResetCommand = None,
    live_tools: LiveTools = None,
    preload: Preload = None,
    timeout: Timeout = 120.0,
    yes: Yes = False,
    project: Project = None,
    url: Url = None,
    data_dir: DataDir = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Plant faults in successful runs, and keep those that make the run fail, with their labels.

    Agent, step and failure mode of such a failure are known. Each fault is replayed several times, and so
    is the run without it: only a fault that causes the failure is kept. `mast-trace dataset build` writes
    the labelled runs. Each result is stored, so that the same command goes on after an interruption.

    Example: `mast-trace inject last --operator 2.6 -- python my_team.py "What do they owe us?"`
    """
    command = ctx.meta[COMMAND]
    if not command:
        raise ConfigurationError("name a run and, after --, the program that made it")
    chosen(operator or ())
    judge = JudgeConfig.load(config)
    sentences = PhrasedByModel(judge, seed) if phrasings == "model" else None
    setup = setup_of(command, oracle=oracle, reset=reset, live_tools=live_tools, timeout=timeout)
    ask(
        f"Up to {count} faults are planted in each run; a fault takes 5 to 40 replays of the rest of the run, "
        f"with live model calls. {warning(command, setup.reset)}",
        yes=yes,
    )
    priced = price_table(config, prices)
    left = Budget(max_calls, max_cost)
    done: list[Injected] = []
    with (
        open_store(url, data_dir, config) as store,
        prepared_parent(command, preload) as parent,
    ):
        setup = dataclasses.replace(setup, parent=parent)
        for name in runs:
            run = run_summary(store, resolve_run(store, name, project), project=project)
            if run is None:
                raise NotFound(f"there is no run {name}")
            recorded = read_alone(store, run)
            passed = Counter(each.operator for one in done for each in one.injections)
            # A run that `inject` refuses at once needs no sentences, and the model would be paid for them.
            fit = setup.oracle or recorded.outcome == "success"
            told = (
                sentences.for_run(store, run, recorded, operator or (), setup.live_tools)
                if sentences and fit
                else None
            )
            try:
                with going_on(command), progress_bar(None) as changed:
                    made = inject(
                        store,
                        run,
                        recorded,
                        dataclasses.replace(setup, prices=priced(recorded)),
                        left,
                        seed=seed,
                        count=count,
                        only=operator or (),
                        passed=passed,
                        phrasings=told,
                        changed=changed,
                    )
            except NotInjectable as error:
                warn(str(error))
                continue
            if made.refused:
                warn(f"Run {run.trace_id[:12]} was refused: {made.refused}.")
            done.append(made)
            left = left.without(made.live_calls, made.cost_usd)
            if made.limit:
                warn(f"Stopped: {made.limit}. The same command with a larger limit goes on.")
                break
    injections = [each for one in done for each in one.injections]
    if sentences:
        sentences.report(injections)
    if as_json:
        print_json([_as_dict(each) for each in injections])
    else:
        console().print(_table(injections))
        calls = sum(one.live_calls for one in done)
        replays = sum(one.replays for one in done)
        console().print(plain(f"{replays} replays, {calls} live model calls.{_of_before(done)}"))
    if not any(each.verdict == "kept" for each in injections):
        raise typer.Exit(1)


def _of_before(done: Sequence[Injected]) -> str:
    """Return the sentence on faults that were not replayed; empty if there are none."""
    number = sum(one.skipped for one in done)
    if not number:
        return ""
    faults = "1 fault was" if number == 1 else f"{number} faults were"
    return f" {faults} decided before under the same setup and not replayed again."


def _table(injections: Sequence[Injection]) -> Table:
    words = ("repaired", "survived", "unproved", "censored")
    shown = Table("operator", "planted", "kept", "decisive", *words)
    for name in OPERATORS:
        own = [each for each in injections if each.operator == name]
        if own:
            verdicts = Counter(each.verdict for each in own)
            shown.add_row(
                name,
                str(len(own)),
                str(verdicts["kept"]),
                str(sum(each.decisive for each in own)),
                *(str(verdicts[word]) for word in words),
            )
    return shown


def _as_dict(injection: Injection) -> dict[str, object]:
    shape = dataclasses.asdict(dataclasses.replace(injection, run=None))
    shape.pop("run")
    return shape
