"""`mast-trace judge work` and `mast-trace judge run`; other commands join their group."""

from __future__ import annotations

import asyncio
import dataclasses
import signal
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mast_trace.exceptions import ConfigurationError
from mast_trace_collector.config import CollectorConfig
from mast_trace_collector.storage.removal.sweep import Sweeper, sweep
from mast_trace_collector.storage.runs import RunSummary, run_summary
from mast_trace_dashboards.cli.commands import judge_agreement
from mast_trace_dashboards.cli.commands.show import json_pieces, print_pieces
from mast_trace_dashboards.cli.open_store import open_store
from mast_trace_dashboards.cli.options import AsJson, ConfigFile, DataDir, Project, Uncertain, Url
from mast_trace_dashboards.cli.output import console, print_json, say, shown_progress, warn
from mast_trace_dashboards.cli.render import RunView, load, run_view
from mast_trace_dashboards.cli.until_stopped import end_within
from mast_trace_dashboards.printable import counted
from mast_trace_dashboards.run_names import NotFound, parse_time, resolve_run
from mast_trace_judge.batch import read_alone
from mast_trace_judge.config import JudgeConfig, WorkerConfig
from mast_trace_judge.judge import Judge
from mast_trace_judge.store.ledger import StoreLedger
from mast_trace_judge.store.model_records import record_behind
from mast_trace_judge.store.verdicts import save
from mast_trace_judge.study.bench import LAYERS, run_bench
from mast_trace_judge.study.bench.methods import planted_runs
from mast_trace_judge.study.bench.rendering import tables, to_json, write_markdown
from mast_trace_judge.study.bench.scoring import Prediction
from mast_trace_judge.study.labelled import LabelledRun
from mast_trace_judge.study.rejudge import Selection
from mast_trace_judge.study.training import REPEATS
from mast_trace_judge.version import own_profiles, rules_of
from mast_trace_judge.worker import Worker

if TYPE_CHECKING:
    from mast_trace.trajectory import Trajectory
    from mast_trace_collector.storage import Store
    from mast_trace_judge.verdict import ModeFinding, Verdict

_LLM = "llm"
Repeats = Annotated[
    int, typer.Option(min=1, help="Partitions over which cross-validated scores are averaged.")
]
Labelled = Annotated[Path, typer.Option("--data", help="Folder of `mast-trace dataset build`.")]


def bench(
    data: Labelled,
    layers: Annotated[
        str, typer.Option(help=f"Some of {', '.join((*LAYERS, _LLM))}, with commas between.")
    ] = ",".join(LAYERS),
    report: Annotated[
        Path | None,
        typer.Option(help="Markdown file to write, its plots beside it.", show_default=False),
    ] = None,
    uncertain: Uncertain = False,
    repeats: Repeats = REPEATS,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Score the judge on a labelled set of your own, beside simple baselines.

    Profiles in the folder named by `judge_profiles_dir` are scored as well: on runs that they were fitted to and on
    others, apart.

    The layer `llm` asks the configured model about every run that has a decisive step, which costs
    tokens.

    Example: `mast-trace judge bench --data my-failures --layers rules,local --report bench.md`
    """
    chosen = [layer.strip() for layer in layers.split(",") if layer.strip()]
    judges = {}
    settings = JudgeConfig.load(config)
    profiles = own_profiles(settings)
    if _LLM in chosen:
        parts = planted_runs(data, uncertain=uncertain)
        said = ask_model([run for part in parts.values() for run in part], settings)
        judges["with the model"] = lambda run: said[run.trajectory.trace_id]
    local = [layer for layer in chosen if layer != _LLM]
    shown = console(stderr=True)
    with shown.status("Scoring"):
        found = run_bench(data, local, judges, repeats, profiles, uncertain=uncertain)
    if report is not None:
        write_markdown(found, report.parent, file=report.name)
    if as_json:
        print_json(to_json(found))
        return
    for table in tables(found):
        console().print(table)
    for note in found.notes:
        say(f"- {note}")


def ask_model(runs: Sequence[LabelledRun], config: JudgeConfig) -> dict[str, Prediction]:
    """Ask the configured model about runs, and return its predictions by their ids.

    Raises:
        ConfigurationError: no model is configured.
    """
    if not config.uses_model:
        raise ConfigurationError(
            "the layer llm needs a model: set MAST_TRACE_JUDGE_MODEL and OPENAI_BASE_URL or "
            "OPENAI_API_KEY"
        )
    verdicts = asyncio.run(_judge_all(Judge(config), runs))
    return {verdict.trace_id: _prediction(verdict) for verdict in verdicts}


async def _judge_all(judge: Judge, runs: Sequence[LabelledRun]) -> list[Verdict]:
    """Judge labelled runs, concurrently up to the endpoint's limit."""
    at_once = asyncio.Semaphore(judge.config.judge_concurrency)
    with shown_progress() as bar:
        task = bar.add_task("Asking the model", total=len(runs))

        async def judged(run: LabelledRun) -> Verdict:
            async with at_once:
                verdict = await judge.judge(unstored(run.trajectory), run.trajectory)
            bar.advance(task)
            return verdict

        try:
            return list(await asyncio.gather(*map(judged, runs)))
        finally:
            await judge.aclose()


def unstored(run: Trajectory) -> RunSummary:
    """Describe a run that was never in a store."""
    now = datetime.now(timezone.utc)
    empty = {field.name: "" for field in dataclasses.fields(RunSummary)}
    names = ("trace_id", "name", "service", "framework", "outcome", "termination_reason", "agents")
    known = {**empty, **{name: getattr(run, name) for name in names}}
    known |= {"models": (), "has_root": True, "spans": len(run.steps)}
    known |= dict.fromkeys(("start", "end", "last_seen"), now)
    known |= dict.fromkeys(("errors", "input_tokens", "output_tokens"), 0)
    return RunSummary(**known)


def _prediction(verdict: Verdict) -> Prediction:
    best = verdict.decisive or (verdict.candidates[0] if verdict.candidates else None)
    if best is None:
        return Prediction((), "")
    others = (each.step for each in verdict.candidates if each.step != best.step)
    return Prediction((best.step, *others), best.agent, best.probability)


def work(
    once: Annotated[
        bool, typer.Option("--once", help="Judge what is finished now, then stop.")
    ] = False,
    url: Url = None,
    data_dir: DataDir = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Judge runs as they finish, until Ctrl-C. `mast-trace up` does so by itself.

    Start as many as the work needs, on any machine: they divide the runs, also when one comes or goes.

    Example: `mast-trace judge work --url http://clickhouse:8123/mast_trace`
    """
    settings = WorkerConfig.load(config)
    seconds = CollectorConfig.load(config).shutdown_timeout_seconds
    with open_store(url, data_dir, config) as store:
        worker = Worker(store, _judge(store, config), settings)
        if once:
            judged = asyncio.run(_drain(worker))
            sweep(store)
        else:
            judged = asyncio.run(_work_on(worker, store, seconds))
    if as_json:
        print_json({"judged": judged})
    else:
        say(f"{counted(judged, 'run')} judged.")


def judge_now(store: Store, config: Path | None) -> int:
    """Judge every run that is not judged, however new it is; return how many were.

    Raises:
        StorageError: the database does not answer.
    """
    settings = WorkerConfig.load(config)
    at_once = settings.model_copy(update={"run_quiet_seconds": 0.0, "run_idle_seconds": 0.0})
    return asyncio.run(_drain(Worker(store, _judge(store, config), at_once)))


async def _drain(worker: Worker) -> int:
    total = 0
    while judged := await worker.drain_once():
        total += judged
    if worker.status.held_off:
        warn(
            f"{counted(worker.status.held_off, 'run')} cannot be judged now, for the reasons above: repeat this command later."
        )
    if worker.status.beside:
        warn(f"Beside the judging, this has failed: {worker.status.beside}")
    return total


async def _work_on(worker: Worker, store: Store, seconds: float) -> int:
    loop = asyncio.get_running_loop()

    def stop() -> None:
        end_within(seconds)
        worker.request_stop()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)
    warn("Judging runs as they finish; Ctrl-C stops.")
    sweeper = Sweeper(store)
    sweeper.start()
    try:
        await worker.run()
    finally:
        await asyncio.to_thread(sweeper.stop)
    return worker.status.judged


def run(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[RUN]", help="The run's id, its beginning, or `last`.", show_default=False
        ),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(help="All runs since then: 15m, 2h, 7d, or a time.", show_default=False),
    ] = None,
    version: Annotated[
        str, typer.Option(help="All runs that this judge version has judged.", show_default=False)
    ] = "",
    unscored: Annotated[
        bool, typer.Option("--unscored", help="Also runs that the present judge left unscored.")
    ] = False,
    keep: Annotated[
        bool, typer.Option("--save/--no-save", help="Store the verdict, or only print it.")
    ] = True,
    project: Project = None,
    url: Url = None,
    data_dir: DataDir = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Judge one run now, finished or not, and print the verdict; or judge many again.

    With `--since`, `--version` or `--unscored`, every selected run is judged unless the present
    judge has judged its present content, and the number is printed. It can be interrupted and
    repeated.

    Example: `mast-trace judge run last --no-save` or `mast-trace judge run --since 2d`
    """
    many = bool(since or version or unscored)
    if many == bool(name):
        raise ConfigurationError("name one run, or select many by --since, --version or --unscored")
    if many and not keep:
        raise ConfigurationError("--no-save is for one run: judging many stores their verdicts")
    begin = parse_time(since) if since else None
    with open_store(url, data_dir, config) as store:
        if name is None:
            chosen = Selection(begin, version, unscored, project)
            _report(judge_agreement.judge_again(store, chosen, config), as_json=as_json)
            return
        trace_id = resolve_run(store, name, project)
        shown = asyncio.run(_judge_one(store, trace_id, project, config, keep=keep))
        if as_json:
            print_pieces(json_pieces(shown))
            return
        for part in run_view(shown):
            console().print(part)


def try_rule(
    rule: Annotated[str, typer.Argument(help="Name of the rule.", show_default=False)],
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN...", help="Ids of runs, their beginnings, or `last`.", show_default=False
        ),
    ],
    project: Project = None,
    url: Url = None,
    data_dir: DataDir = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Show what a rule of your own would say of stored runs; no verdict changes.

    The rule is a table of `rules` in the configuration file, or of a plugin.

    Example: `mast-trace judge try refund-unapproved last --config mast-trace.toml`
    """
    rules = {each.name: each for each in rules_of(JudgeConfig.load(config))}
    if rule not in rules:
        known = f"there are {', '.join(rules)}" if rules else "there is none of your own"
        raise ConfigurationError(
            f"no rule is called {rule}: {known}. A rule is a table [[rules]] of the file that --config names"
        )
    found: list[tuple[str, ModeFinding | None]] = []
    with open_store(url, data_dir, config) as store:
        for trace_id in [resolve_run(store, name, project) for name in names]:
            summary = run_summary(store, trace_id, project=project)
            if summary is None:
                raise NotFound(f"there is no run {trace_id}")
            run = read_alone(store, summary)
            try:
                said = rules[rule].checked(run)
            except Exception as error:
                raise ConfigurationError(
                    f"the rule {rule} fails on {trace_id}: {error!r}"
                ) from error
            found += [(trace_id, each) for each in said]
            if not said:
                found.append((trace_id, None))
    if as_json:
        print_json(
            [
                {"run": run, "found": each.model_dump(mode="json") if each else None}
                for run, each in found
            ]
        )
        return
    for trace_id, each in found:
        say(f"{trace_id}  {_said(each)}")


def _said(found: ModeFinding | None) -> str:
    if found is None:
        return "nothing"
    steps = f", step {', '.join(map(str, found.steps))}" if found.steps else ""
    quotes = "".join(f"\n    {quote}" for quote in found.quotes)
    return f"{found.code} {found.evidence.value}{steps}: {found.reason}{quotes}"


def _report(counts: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(counts)
        return
    result_line = f"{counted(counts['judged'], 'run')} judged by version {counts['version']}"
    left = f", {counts['unscored']} of them left unscored" if counts["unscored"] else ""
    say(f"{result_line}{left}.")


async def _judge_one(
    store: Store, trace_id: str, project: str | None, config: Path | None, *, keep: bool
) -> RunView:
    summary = run_summary(store, trace_id, project=project)
    if summary is None:
        raise NotFound(f"there is no run {trace_id}")
    trajectory = read_alone(store, summary)
    judge = _judge(store, config)
    try:
        verdict = await judge.judge(summary, trajectory)
    finally:
        await judge.aclose()
    if keep:
        save(store, [verdict])
    found = load(store, trace_id, summary.project)
    return dataclasses.replace(found, verdict=verdict, record=record_behind(store, verdict))


def _judge(store: Store, config: Path | None) -> Judge:
    return Judge(JudgeConfig.load(config), ledger=StoreLedger(store))


group = typer.Typer(name="judge", help="Judge runs.", no_args_is_help=True)
group.command("work")(work)
group.command("run")(run)
group.command("try")(try_rule)
group.command("agree")(judge_agreement.agree)
group.command("diff")(judge_agreement.diff)
group.command("bench")(bench)
