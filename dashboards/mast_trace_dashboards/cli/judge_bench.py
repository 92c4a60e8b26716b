"""`mast-trace judge fit` and `mast-trace judge bench`."""

from __future__ import annotations

import asyncio
import dataclasses
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import Progress

from mast_trace.exceptions import ConfigurationError, MastTraceError
from mast_trace_collector.storage.runs import RunSummary
from mast_trace_dashboards.cli.open_store import open_store
from mast_trace_dashboards.cli.options import AsJson, ConfigFile, DataDir, Url
from mast_trace_dashboards.cli.output import console, plain, print_json, warn
from mast_trace_judge.config import JudgeConfig
from mast_trace_judge.judge import Judge
from mast_trace_judge.study.bench import LAYERS, run_bench
from mast_trace_judge.study.bench.rendering import tables, to_json, write_markdown
from mast_trace_judge.study.bench.scoring import Prediction
from mast_trace_judge.study.datasets.labelled import LabelledRun, data_folder
from mast_trace_judge.study.datasets.who_and_when import SUBSETS, read_who_and_when
from mast_trace_judge.study.stored_labels import labelled_runs
from mast_trace_judge.study.training import FEWEST_LABELS, REPEATS, fit
from mast_trace_judge.version import own_profiles

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mast_trace_judge.local.attribution.profile import Profile
    from mast_trace_judge.verdict import Verdict

_LLM = "llm"
Repeats = Annotated[
    int, typer.Option(min=1, help="Partitions over which cross-validated scores are averaged.")
]
Labelled = Annotated[
    Path | None,
    typer.Option("--data", help="Folder of labelled runs, such as Who&When.", show_default=False),
]


def register(group: typer.Typer) -> None:
    """Add the commands to the group `judge`."""
    group.command("fit")(fit_profile)
    group.command("bench")(bench)


def fit_profile(
    data: Labelled = None,
    name: Annotated[str, typer.Option(help="The profile's name, which verdicts give.")] = "own",
    framework: Annotated[
        list[str] | None,
        typer.Option(help="Only this framework's runs.", show_default="those labelled"),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="File to write.", show_default="NAME.json in judge_profiles_dir, or here"
        ),
    ] = None,
    repeats: Repeats = REPEATS,
    url: Url = None,
    data_dir: DataDir = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Fit a profile for decisive steps to labelled runs.

    It reads the decisive steps that people named by `mast-trace label RUN --step N`, or a folder of
    labelled runs. The judge uses the profiles in the folder named by `judge_profiles_dir`, for runs
    of the frameworks that they were fitted to.

    Example: `mast-trace judge fit --name billing --out profiles/billing.json`
    """
    if data is not None:
        folder = data_folder(data)
        runs = [run for subset in SUBSETS for run in read_who_and_when(folder, subset)]
    else:
        with open_store(url, data_dir, config) as store:
            runs = labelled_runs(store)
    if framework:
        runs = [run for run in runs if run.trajectory.framework in framework]
    if len(runs) < FEWEST_LABELS:
        raise MastTraceError(
            f"{len(runs)} runs have a label with a decisive step; a profile needs {FEWEST_LABELS}. "
            "Give more by `mast-trace label RUN --step N`, or name a folder of labelled runs by "
            "--data"
        )
    meant = sorted({run.trajectory.framework for run in runs} - {""})
    source = f"{len(runs)} labelled runs of {data.name if data else 'the store'}"
    profile = fit(runs, name=name, frameworks=tuple(meant), trained_on=source, repeats=repeats)
    used_folder = JudgeConfig.load(config).judge_profiles_dir
    folder = used_folder or Path()
    path = out or folder / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(profile.to_json(), encoding="utf-8")
    if as_json:
        values = {
            "file": str(path),
            "labels": profile.labels,
            "scores": profile.scores,
            "folded_by": profile.folded_by,
        }
        print_json({**values, "frameworks": meant})
        return
    scores = ", ".join(f"{what} {100 * share:.1f} %" for what, share in profile.scores.items())
    console().print(plain(f"Fitted to {profile.labels} labels. Cross-validated: {scores}."))
    console().print(plain(f"Written to {path}, for runs of {', '.join(meant) or 'no framework'}."))
    if used_folder is None or used_folder.resolve() != path.parent.resolve():
        used = "The judge uses the profiles in the folder that MAST_TRACE_JUDGE_PROFILES_DIR names."
        console().print(plain(used))
    if not meant:
        shape = "These runs name no framework: the profile is used for runs of their shape."
        console().print(plain(shape))
    if profile.folded_by == "run":
        warn(
            "Nearly all labelled runs have the same task, so that folds divide runs and not tasks: "
            "the scores hold for more runs of this task, not for others."
        )


def bench(
    data: Labelled = None,
    layers: Annotated[
        str, typer.Option(help=f"Some of {', '.join((*LAYERS, _LLM))}, with commas between.")
    ] = ",".join(LAYERS),
    report: Annotated[
        Path | None,
        typer.Option(help="Markdown file to write, its plots beside it.", show_default=False),
    ] = None,
    repeats: Repeats = REPEATS,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Score the judge on labelled runs: Who&When, AgentRx and MAST, beside simple baselines.

    The layer `llm` asks the configured model about every run that has a decisive step, which costs
    tokens.

    Example: `mast-trace judge bench --data ../data --layers rules,local --report bench.md`
    """
    folder = data_folder(data)
    chosen = [layer.strip() for layer in layers.split(",") if layer.strip()]
    judges = {}
    profiles: tuple[Profile, ...] = ()
    if _LLM in chosen:
        settings = JudgeConfig.load(config)
        said, profiles = _ask_model(folder, settings), own_profiles(settings)
        judges["with the model"] = lambda run: said[run.trajectory.trace_id]
    local = [layer for layer in chosen if layer != _LLM]
    shown = console(stderr=True)
    with shown.status("Scoring"):
        found = run_bench(folder, local, judges, repeats, profiles)
    if report is not None:
        write_markdown(found, report.parent, file=report.name)
    if as_json:
        print_json(to_json(found))
        return
    for table in tables(found):
        console().print(table)
    for note in found.notes:
        console().print(plain(f"- {note}"))


def _ask_model(folder: Path, config: JudgeConfig) -> dict[str, Prediction]:
    if not config.uses_model:
        raise ConfigurationError(
            "the layer llm needs a model: set MAST_TRACE_JUDGE_MODEL and OPENAI_BASE_URL or "
            "OPENAI_API_KEY"
        )
    runs = [run for subset in SUBSETS for run in read_who_and_when(folder, subset)]
    verdicts = asyncio.run(_judge_all(Judge(config), runs))
    return {verdict.trace_id: _prediction(verdict) for verdict in verdicts}


async def _judge_all(judge: Judge, runs: Sequence[LabelledRun]) -> list[Verdict]:
    """Judge labelled runs, concurrently up to the endpoint's limit."""
    at_once = asyncio.Semaphore(judge.config.judge_concurrency)
    shown = console(stderr=True)
    with Progress(console=shown, transient=True, disable=not shown.is_terminal) as bar:
        task = bar.add_task("Asking the model", total=len(runs))

        async def judged(run: LabelledRun) -> Verdict:
            async with at_once:
                verdict = await judge.judge(_summary(run), run.trajectory)
            bar.advance(task)
            return verdict

        try:
            return list(await asyncio.gather(*map(judged, runs)))
        finally:
            await judge.aclose()


def _summary(run: LabelledRun) -> RunSummary:
    """Describe a run that was never in a store."""
    now = datetime.now(timezone.utc)
    empty = {field.name: "" for field in dataclasses.fields(RunSummary)}
    known = {
        **empty,
        "trace_id": run.trajectory.trace_id,
        "framework": run.trajectory.framework,
        "outcome": run.trajectory.outcome,
        "agents": run.trajectory.agents,
        "models": (),
        "has_root": True,
    }
    times = dict.fromkeys(("start", "end", "last_seen"), now)
    counts = dict.fromkeys(("spans", "errors", "input_tokens", "output_tokens"), 0)
    return RunSummary(**{**known, **times, **counts})  # type: ignore[arg-type]


def _prediction(verdict: Verdict) -> Prediction:
    best = verdict.decisive or (verdict.candidates[0] if verdict.candidates else None)
    if best is None:
        return Prediction((), "")
    others = (each.step for each in verdict.candidates if each.step != best.step)
    return Prediction((best.step, *others), best.agent, best.probability)
