"""`mast-trace inject`, which plants faults in successful runs, and `mast-trace dataset`, which builds labelled sets of them."""

from __future__ import annotations

import dataclasses
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mast_trace.exceptions import ConfigurationError
from mast_trace_collector.storage.runs import RunSummary, run_summary
from mast_trace_dashboards.cli.open_store import open_store
from mast_trace_dashboards.cli.options import AsJson, ConfigFile, DataDir, Project, Url
from mast_trace_dashboards.cli.output import FittedTable, console, plain, print_json, say, warn
from mast_trace_dashboards.printable import counted
from mast_trace_dashboards.programs import config_file, program_of, programs_of
from mast_trace_dashboards.run_names import NotFound, resolve_run
from mast_trace_judge.batch import read_alone
from mast_trace_judge.config import JudgeConfig
from mast_trace_judge.planted import UNCERTAIN, is_uncertain
from mast_trace_judge.store.ledger import StoreLedger
from mast_trace_judge.store.replay_plans import masks_of
from mast_trace_judge.study.labelled import CARD, PARQUET, RUNS, has_parquet
from mast_trace_lab.inject.dataset import build
from mast_trace_lab.inject.faults import chosen, faults_of
from mast_trace_lab.inject.injecting import STOPPED, Injected, NotInjectable, inject
from mast_trace_lab.inject.operators import OPERATORS
from mast_trace_lab.inject.phrasings import Checked, PhrasingModel, Phrasings, check_model
from mast_trace_lab.program.forking import parent_of
from mast_trace_lab.program.setup import setup_of
from mast_trace_lab.replay.options import (
    COMMAND,
    Given,
    MaxCalls,
    Seed,
    ThenCommand,
    Yes,
    budget_of,
    option,
    price_table,
)
from mast_trace_lab.replay.replaying import (
    GOES_ON,
    INTERRUPTED,
    ask,
    going_on,
    names_of,
    progress_bar,
    warning,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mast_trace.trajectory import Trajectory
    from mast_trace_collector.storage import Store
    from mast_trace_judge.store.injections import Injection


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
    ) -> Phrasings:
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


def planted_operators(only: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the operators whose faults are planted, and those that are left out as uncertain.

    Args:
        only: names of operators, or codes of failure modes; all if empty. An uncertain operator is planted if it is
            named itself.

    Raises:
        ConfigurationError: there is no such operator, or all of them are left out.
    """
    names = tuple(each.name for each in chosen(only))
    left = tuple(name for name in names if is_uncertain(name) and name not in only)
    if len(left) == len(names):
        raise ConfigurationError(
            f"labels of {', '.join(left)} are uncertain: name an operator to plant it all the same"
        )
    return tuple(name for name in names if name not in left), left


def list_operators(context: typer.Context, names: list[str] | None) -> list[str] | None:
    """Print the table of operators and end, where ``list`` stands for their names."""
    if "list" not in (names or ()) or context.resilient_parsing:  # a shell completes the line
        return names
    shown = FittedTable(
        *("operator", "mode", "level", "fault", "to blame", "applies where", "certain because"),
        leading=1,
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
        told = ", ".join(name for name, each in OPERATORS.items() if each.uncertain == reason)
        say(f"Uncertain: {told}. {reason}")
    if UNCERTAIN:
        say(
            "Their labels are kept in the store and in sets. `judge fit`, `judge bench`, `selftest` and "
            "`train export` leave them out unless --uncertain is given."
        )
    raise typer.Exit


Operators = Annotated[
    list[str] | None,
    option(
        "--operator",
        "CODE",
        "A failure mode such as 2.6, or an operator such as 2.6-number; can be repeated. `list` shows them all, and "
        "plants nothing.",
        is_eager=True,
        callback=list_operators,
    ),
]


app = typer.Typer()


@app.command("inject", cls=ThenCommand)
def plant(
    ctx: typer.Context,
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN...", help="Successful runs of one program.", show_default=False
        ),
    ],
    operator: Operators = None,
    count: Annotated[int, typer.Option(min=1, help="Most faults for each run.")] = 20,
    seed: Seed = 1,
    max_calls: MaxCalls = None,
    given: Given = None,
    yes: Yes = False,
    project: Project = None,
    url: Url = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Plant faults in successful runs, and keep those that make the run fail, with their labels.

    Agent, step and failure mode of such a failure are known. Each fault is replayed several times, and so
    is the run without it: only a fault that causes the failure is kept. `mast-trace dataset build` writes
    the labelled runs. Each result is stored, so that the same command goes on after an interruption. The program
    stands after `--`, or in the configuration file, where the name or the service of the first run finds it.

    Example: `mast-trace inject last --operator 2.6 -- python my_team.py "What do they owe us?"`
    """
    chosen(operator or ())
    config = config_file(config)
    programs = programs_of(config)
    with open_store(url, None, config) as store:
        of_runs = [_run_of(store, name, project) for name in runs]
    names = names_of(of_runs[0])
    program = program_of(programs, names, command=ctx.meta[COMMAND], given=given or ())
    if program.run not in {None, 1}:
        raise ConfigurationError(
            "faults are planted in the first run that a program makes, and not in a later one"
        )
    judge = JudgeConfig.load(config)
    sentences = PhrasedByModel(judge, seed) if program.phrasings == "model" else None
    setup = setup_of(program)
    ask(
        f"Up to {count} faults are planted in each run; a fault takes 5 to 40 replays of the rest of the run, "
        f"with live model calls. {warning(setup)}",
        yes=yes,
    )
    priced = price_table(config)
    left = budget_of(program, max_calls)
    done: list[Injected] = []
    with (
        open_store(url, None, config) as store,
        parent_of(program, of_runs[0].framework, warn) as parent,
    ):
        setup = dataclasses.replace(setup, parent=parent)
        for run in of_runs:
            recorded = read_alone(store, run)
            passed = Counter(each.operator for one in done for each in one.injections)
            # A run that `inject` refuses at once needs no sentences, and the model would be paid for them.
            fit = setup.oracle or recorded.outcome == "success"
            told = (
                sentences.for_run(store, run, recorded, operator or (), setup.executed)
                if sentences and fit
                else None
            )
            try:
                with going_on(setup.command), progress_bar(None) as changed:
                    made = inject(
                        store,
                        run,
                        recorded,
                        dataclasses.replace(
                            setup,
                            prices=priced(recorded),
                            masks=masks_of(store, run.project, run.trace_id)
                            if program.masks
                            else (),
                        ),
                        left,
                        seed=seed,
                        count=count,
                        only=operator or (),
                        passed=passed,
                        phrasings=told,
                        jobs=program.jobs,
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
        say(f"{counted(replays, 'replay')}, {counted(calls, 'live model call')}.{_of_before(done)}")
    stopped(done[-1].limit if done else "")
    if not any(each.verdict == "kept" for each in injections):
        raise typer.Exit(1)


def stopped(limit: str, spent: str = "") -> None:
    """Tell what has ended an injection before all faults were decided; nothing if the limit is empty.

    Raises:
        typer.Exit: somebody has interrupted it.
    """
    if limit == STOPPED:
        warn(f"Interrupted. {GOES_ON}")
        raise typer.Exit(INTERRUPTED)
    if limit:
        warn(f"Stopped: {limit}.{spent} The same command with a larger limit goes on.")


def _run_of(store: Store, name: str, project: str | None) -> RunSummary:
    run = run_summary(store, resolve_run(store, name, project), project=project)
    if run is None:
        raise NotFound(f"there is no run {name}")
    return run


def _of_before(done: Sequence[Injected]) -> str:
    """Return the sentence on faults that were not replayed; empty if there are none."""
    number = sum(one.skipped for one in done)
    if not number:
        return ""
    faults = "1 fault was" if number == 1 else f"{number} faults were"
    return f" {faults} decided before under the same setup and not replayed again."


def _table(injections: Sequence[Injection]) -> FittedTable:
    words = ("repaired", "survived", "unproved", "censored")
    shown = FittedTable("operator", "planted", "kept", "decisive", *words)
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


group = typer.Typer(
    name="dataset",
    help="Build labelled sets from planted faults and proved errors.",
    no_args_is_help=True,
)


@group.callback()
def _group() -> None:
    pass


@group.command("build")
def build_set(
    out: Annotated[Path, typer.Option("--out", help="Folder of the set.", show_default=False)],
    licence: Annotated[str, typer.Option("--licence", help="Licence, for the card.")] = "",
    service: Annotated[str, typer.Option("--service", help="Only this service's runs.")] = "",
    project: Project = None,
    url: Url = None,
    data_dir: DataDir = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Write the runs of `mast-trace inject` and the errors that `mast-trace confirm` proved, with labels.

    The folder gets runs.jsonl, runs.parquet (with pyarrow) and card.md. `mast-trace import`, `judge fit --dataset`,
    `judge bench --data` and `train` read it. The runs hold texts of your agents: treat them as such.

    Example: `mast-trace dataset build --out my-failures --licence CC-BY-4.0`
    """
    with open_store(url, data_dir, config) as store:
        runs = build(store, out, project=project, service=service, licence=licence)
    counts = Counter((each.source, "failures" if each.failed else "survivors") for each in runs)
    if as_json:
        print_json(
            {
                "folder": str(out),
                "runs": len(runs),
                "failures": sum(each.failed for each in runs),
                "uncertain": sum(bool(each.uncertain) for each in runs),
                "parquet": has_parquet(),
            }
        )
        return
    told = ", ".join(
        f"{count} {what} by {source}" for (source, what), count in sorted(counts.items())
    )
    say(
        f"Wrote {counted(len(runs), 'run')} to {out / RUNS} ({told or 'nothing labelled yet'}); {CARD} describes them."
    )
    if unsure := sum(bool(each.uncertain) for each in runs):
        say(
            f"{unsure} of them are marked as uncertain, by their operator; commands that read the set leave "
            "them out unless --uncertain is given."
        )
    if not has_parquet():
        say(f"Without {PARQUET}, which needs pyarrow: pip install pyarrow")
