"""`mast-trace judge agree`, `judge diff`, and judging many runs again."""

from __future__ import annotations

import asyncio
import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mast_trace.exceptions import ConfigurationError
from mast_trace.taxonomy import FAILURE_MODES
from mast_trace_collector.plugins import answers
from mast_trace_dashboards.cli.open_store import open_store
from mast_trace_dashboards.cli.options import AsJson, ConfigFile, DataDir, Since, Url
from mast_trace_dashboards.cli.output import (
    FittedTable,
    console,
    plain,
    print_json,
    say,
    shown_progress,
    warn,
)
from mast_trace_dashboards.plugins import Plugin
from mast_trace_dashboards.printable import counted
from mast_trace_dashboards.run_names import NotFound, parse_time
from mast_trace_judge.config import JudgeConfig
from mast_trace_judge.judge import Judge
from mast_trace_judge.store.labels import HumanLabel, labels_of
from mast_trace_judge.store.ledger import StoreLedger
from mast_trace_judge.store.model_records import ModelRecord, model_records
from mast_trace_judge.store.records import verdict_of
from mast_trace_judge.study.agreement import (
    Agreement,
    SelfConsistency,
    StepAgreement,
    agreement,
    panel_votes,
    self_consistency,
    step_agreement,
    wilson,
)
from mast_trace_judge.study.rejudge import RunDiff, Selection, VersionDiff, diff_versions, rejudge

if TYPE_CHECKING:
    from mast_trace_collector.storage import Store
    from mast_trace_judge.verdict import Verdict

JUDGE = "mast-trace judge"
"""The judge's name among the annotators."""
_LISTED = 20
_KNOWN_BY = {
    "blind": "blind labels",
    "beside": "labels beside the verdict",
    "replays": "confirmed replays",
}
"""The sources of a model's record in words. Only the first one counts."""

_VERDICTS = """
SELECT * FROM mast_latest_verdicts
WHERE Status = 'ok' AND (Project, TraceId) GLOBAL IN (SELECT Project, TraceId FROM mast_human_labels)
"""
_VERSIONS = """
SELECT JudgeVersion AS Version, count() AS Runs FROM mast_verdicts FINAL
GROUP BY JudgeVersion ORDER BY max(JudgedAt) DESC
"""


def agree(
    url: Url = None, data_dir: DataDir = None, config: ConfigFile = None, as_json: AsJson = False
) -> None:
    """Measure the agreement between the judge and people, and among people.

    For each failure mode and category: Cohen's kappa with a bootstrap interval (95 %), Gwet's AC1
    and the prevalence. Kappa is left out where an annotator named fewer than five runs. A label that
    names no modes is no opinion on them, unless it calls the run a success; `--mode none` states
    that there are none. From the tenth label with a decisive step on it also measures the gain of a
    profile fitted to the labels (`mast-trace judge fit`). For each model and prompt it counts the runs in
    which the step that it names first is the labelled one: labels that were given blind apart from those beside
    the verdict, and from confirmed replays; planted faults of self-tests follow. Only blind ones earn a model that its step counts as decisive.
    If several models read the runs as a panel, they are compared with each other over all runs of
    the newest version, labelled or not; if each reads a run several times (`judge_samples`), so is
    every model with itself.

    Example: `mast-trace judge agree --json`
    """
    with open_store(url, data_dir, config) as store:
        labels = labels_of(store)
        verdicts = [verdict_of(row) for row in store.query(_VERDICTS)]
        newest = [row["Version"] for row in store.query(_VERSIONS)][:1]
        panel = [each for version in newest for each in agreement(panel_votes(store, version))]
        selves = [each for version in newest for each in self_consistency(store, version)]
        records = model_records(store)
        asked = answers(Plugin, lambda each: tuple(each.reports("judge agree", store, config)))
        more = [(plugin.name, report) for plugin, reports in asked for report in reports]
    runs = len({_run(label) for label in labels})
    found = agreement(_ratings(labels, verdicts))
    steps = _steps(labels, verdicts)
    if as_json:
        values = [{**dataclasses.asdict(each), "prevalence": each.prevalence} for each in found]
        on_steps = [
            {"annotators": pair, **dataclasses.asdict(each)} for pair, each in steps.items()
        ]
        models = [{**dataclasses.asdict(each), "prevalence": each.prevalence} for each in panel]
        counts = {"labelled": runs, "judged": len(verdicts)}
        known = [dataclasses.asdict(each) for each in records]
        told = {"modes": values, "decisive": on_steps, "panel": models, "models": known}
        same = [dataclasses.asdict(each) for each in selves]
        added = {name: report.json for name, report in more}
        print_json({**counts, **told, "self_consistency": same, **added})
        return
    if selves:
        console().print(_selves_table(selves))
    _print_pairs(panel)
    if not labels:
        warn("No labels yet: `mast-trace label RUN` gives one.")
        return
    say(f"{runs} labelled runs, {len(verdicts)} of them with a verdict.")
    _print_pairs(found)
    if steps:
        console().print(_steps_table(steps))
    if records:
        console().print(_models_table(records))
        for record in records:
            say(record.standing)
    for _, report in more:
        console().print()
        for line in report.lines:
            say(line)


def _run(one: HumanLabel | Verdict) -> str:
    return f"{one.project}/{one.trace_id}"


def _ratings(
    labels: Iterable[HumanLabel], verdicts: Iterable[Verdict]
) -> dict[str, dict[str, Mapping[str, bool]]]:
    ratings: dict[str, dict[str, Mapping[str, bool]]] = {}
    for label in labels:
        if label.modes or label.outcome == "success":
            rating = {code: code in label.modes for code in FAILURE_MODES}
            ratings.setdefault(label.annotator, {})[_run(label)] = rating
    for verdict in verdicts:
        shown = {mode.code for mode in verdict.shown}
        rating = {code: code in shown for code in FAILURE_MODES}
        ratings.setdefault(JUDGE, {})[_run(verdict)] = rating
    return ratings


def _steps(
    labels: Iterable[HumanLabel], verdicts: Iterable[Verdict]
) -> dict[tuple[str, str], StepAgreement]:
    """Compare decisive steps, for each pair of annotators that named one in the same run."""
    named: dict[str, dict[str, tuple[tuple[int, ...], str]]] = {}
    for label in labels:
        if label.decisive_steps:
            named_step = (label.decisive_steps, label.decisive_agent)
            named.setdefault(label.annotator, {})[_run(label)] = named_step
    for verdict in verdicts:
        if verdict.decisive is not None:
            named_step = ((verdict.decisive.step,), verdict.decisive.agent)
            named.setdefault(JUDGE, {})[_run(verdict)] = named_step
    found = {}
    for one in sorted(named):
        for other in sorted(named):
            shared = sorted(named[one].keys() & named[other].keys()) if one < other else []
            if shared:
                sides = ([named[who][run] for run in shared] for who in (one, other))
                found[one, other] = step_agreement(*sides)
    return found


def _print_pairs(found: Iterable[Agreement]) -> None:
    """Print a table for each pair of annotators."""
    by_pair: dict[tuple[str, str], list[Agreement]] = {}
    for each in found:
        by_pair.setdefault(each.annotators, []).append(each)
    for rows in by_pair.values():
        console().print(_agreement_table(rows))


def _agreement_table(rows: Iterable[Agreement]) -> FittedTable:
    rows = list(rows)
    numbers = ("answers", "yes", "both", "equal", "kappa", "95 %", "AC1", "prevalence")
    table = FittedTable("mode", numbers=numbers, title=plain(" and ".join(rows[0].annotators)))
    for row in rows:
        mode = FAILURE_MODES.get(row.subject)
        span = row.kappa_interval
        table.add_row(
            f"{row.subject} {mode.name}" if mode else row.subject,
            str(row.items),
            f"{row.positives[0]} / {row.positives[1]}",
            str(row.both),
            f"{100 * row.observed:.0f} %",
            "too few" if row.kappa is None else f"{row.kappa:.2f}",
            "" if span is None else f"{span.low:.2f} to {span.high:.2f}",
            "" if row.ac1 is None else f"{row.ac1:.2f}",
            f"{100 * row.prevalence:.0f} %",
        )
    return table


def _steps_table(steps: Mapping[tuple[str, str], StepAgreement]) -> FittedTable:
    numbers = ("runs", "same step", "±1", "±3", "same agent", "kappa of agents")
    table = FittedTable("annotators", numbers=numbers, title="decisive step")
    for pair, each in steps.items():
        shares = (each.exact, each.within_one, each.within_three, each.agent)
        kappa = "" if each.agent_kappa is None else f"{each.agent_kappa:.2f}"
        cells = (str(each.runs), *(f"{100 * share:.0f} %" for share in shares), kappa)
        table.add_row(plain(" and ".join(pair)), *cells)
    return table


def _selves_table(selves: Iterable[SelfConsistency]) -> FittedTable:
    """Return the table of models that have read runs several times."""
    numbers = ("runs", "readings", "same outcome", "modes (alpha)", "step of the verdict")
    table = FittedTable("model", numbers=numbers, title="models with themselves")
    for each in selves:
        table.add_row(
            plain(each.model),
            str(each.runs),
            str(each.readings),
            f"{100 * each.outcome:.0f} %",
            "all equal" if each.modes is None else f"{each.modes:.2f}",
            "" if each.step is None else f"{100 * each.step:.0f} %",
        )
    return table


def _models_table(records: Iterable[ModelRecord]) -> FittedTable:
    """Return the table of models: the runs in which the step that they name first is the known one."""
    names, title = (
        ("model", "prompt", "framework", "known by"),
        "first steps of models, in failed runs",
    )
    table = FittedTable(*names, numbers=("runs", "right", "95 %"), title=title)
    for record in records:
        reader = map(plain, (record.model, record.prompt, record.framework))
        for source, cases in record.cases.items():
            right = record.hits[source]
            span = wilson(right, cases)
            between = f"{100 * span.low:.0f} to {100 * span.high:.0f} %"
            table.add_row(*reader, _KNOWN_BY[source], str(cases), str(right), between)
            reader = map(plain, ("", "", ""))
    return table


def diff(
    before: Annotated[str, typer.Argument(metavar="VERSION_A", help="A version's beginning.")],
    after: Annotated[str, typer.Argument(metavar="VERSION_B", help="Another's beginning.")],
    since: Since = None,
    url: Url = None,
    data_dir: DataDir = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Compare the verdicts of two judge versions on the same runs.

    Example: `mast-trace judge diff 1c8f09 9a0496 --since 7d`
    """
    begin = parse_time(since) if since else None
    with open_store(url, data_dir, config) as store:
        versions = [row["Version"] for row in store.query(_VERSIONS)]
        found = diff_versions(
            store, _version(before, versions), _version(after, versions), since=begin
        )
    if as_json:
        print_json(dataclasses.asdict(found))
    else:
        _print_diff(found)


def _version(beginning: str, versions: list[str]) -> str:
    matching = [version for version in versions if version.startswith(beginning)]
    if not matching:
        known = ", ".join(versions) or "none"
        raise NotFound(f"no judge version begins with {beginning!r}; in this store: {known}")
    if len(matching) > 1 and beginning not in matching:
        raise ConfigurationError(
            f"several judge versions begin with {beginning!r}: {', '.join(matching)}"
        )
    return beginning if beginning in matching else matching[0]


def _print_diff(found: VersionDiff) -> None:
    say(
        f"{counted(found.compared, 'run')} judged by both, {len(found.changed)} of them differently; "
        f"{found.only_before} by {found.before} alone, {found.only_after} by {found.after} "
        f"alone. Cost {found.cost_usd[0]:.4f} and {found.cost_usd[1]:.4f} USD."
    )
    if not found.changed:
        return
    modes = FittedTable("mode", "gained", "lost")
    for code in sorted({*found.gained, *found.lost}):
        counts = (str(found.gained.get(code, 0)), str(found.lost.get(code, 0)))
        modes.add_row(f"{code} {FAILURE_MODES[code].name}", *counts)
    if modes.rows:
        console().print(modes)
    runs = FittedTable("run", "name", "changed")
    for each in found.changed[:_LISTED]:
        runs.add_row(each.trace_id[:12], plain(each.name), plain(_change(each)))
    console().print(runs)
    if len(found.changed) > _LISTED:
        warn(f"and {len(found.changed) - _LISTED} more; --json lists all.")


def _change(run: RunDiff) -> str:
    parts = [f"+{code}" for code in run.gained] + [f"-{code}" for code in run.lost]
    pairs: dict[str, tuple[Any, Any] | None] = {
        "outcome": run.outcome,
        "decisive step": run.decisive,
        "status": run.status,
    }
    for what, pair in pairs.items():
        if pair is not None:
            old, new = ("none" if side is None else side for side in pair)
            parts.append(f"{what} {old} to {new}")
    return ", ".join(parts)


def judge_again(store: Store, selection: Selection, config: Path | None) -> dict[str, Any]:
    """Judge the selected runs with the present judge, with a progress bar on terminals."""
    judge = Judge(JudgeConfig.load(config), ledger=StoreLedger(store))
    counts = asyncio.run(_judge_again(store, judge, selection))
    return {"version": judge.version, "judged": sum(counts.values()), **counts}


async def _judge_again(store: Store, judge: Judge, selection: Selection) -> dict[str, int]:
    counts = Counter({"ok": 0, "unscored": 0})
    try:
        with shown_progress() as bar:
            task = bar.add_task("Judging", total=None)
            async for verdict in rejudge(store, judge, selection):
                counts[verdict.status] += 1
                bar.update(
                    task, advance=1, description=f"Judging: {counted(sum(counts.values()), 'run')}"
                )
    finally:
        await judge.aclose()
    return dict(counts)
