"""`mast-trace judge bench`."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import Progress

from mast_trace.exceptions import ConfigurationError
from mast_trace_collector.storage.runs import RunSummary
from mast_trace_dashboards.cli.options import AsJson, ConfigFile, Uncertain
from mast_trace_dashboards.cli.output import console, plain, print_json
from mast_trace_judge.config import JudgeConfig
from mast_trace_judge.judge import Judge
from mast_trace_judge.study.bench import LAYERS, run_bench
from mast_trace_judge.study.bench.methods import planted_runs
from mast_trace_judge.study.bench.rendering import tables, to_json, write_markdown
from mast_trace_judge.study.bench.scoring import Prediction
from mast_trace_judge.study.labelled import LabelledRun
from mast_trace_judge.study.training import REPEATS
from mast_trace_judge.version import own_profiles

if TYPE_CHECKING:
    from mast_trace.trajectory import Trajectory
    from mast_trace_judge.verdict import Verdict

_LLM = "llm"
Repeats = Annotated[
    int, typer.Option(min=1, help="Partitions over which cross-validated scores are averaged.")
]
Labelled = Annotated[Path, typer.Option("--data", help="Folder of `mast-trace dataset build`.")]


def register(group: typer.Typer) -> None:
    """Add the command to the group `judge`."""
    group.command("bench")(bench)


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
        console().print(plain(f"- {note}"))


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
    shown = console(stderr=True)
    with Progress(console=shown, transient=True, disable=not shown.is_terminal) as bar:
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
