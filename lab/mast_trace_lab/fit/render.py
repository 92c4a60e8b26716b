"""The report of `mast-trace judge fit` for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mast_trace_dashboards.cli.output import FittedTable, plain
from mast_trace_dashboards.printable import counted
from mast_trace_judge.local.attribution import NEVER
from mast_trace_judge.study.agreement import wilson
from mast_trace_lab.fit.detector import FEWEST_PAIRS, MOST_AUC
from mast_trace_lab.fit.gate import points
from mast_trace_lab.fit.labels import LEAST_UNITS
from mast_trace_lab.fit.models import JOINT, OPERATOR, PLAIN, SCENARIO
from mast_trace_lab.fit.scoring import FEWEST

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rich.console import RenderableType

    from mast_trace_lab.fit.report import FitReport, SchemeScore

_TITLES = {
    "untrained": "without a profile",
    PLAIN: "plain cross-validation: other runs",
    SCENARIO: "scenarios left out",
    OPERATOR: "operators left out",
    JOINT: "operators and scenarios left out together",
    "fitted": "with the profile",
}
_BY_RUNS = {
    SCENARIO: "original runs left out",
    JOINT: "operators and original runs left out together",
}
"""Titles where there are too few scenarios to leave some out."""
_MARKS = {"passed": "passed", "failed": "FAILED", "not examined": "not examined"}


def parts(found: FitReport) -> Iterator[RenderableType]:
    """Yield the parts of the report, top down."""
    yield plain(_labels(found))
    if found.scores:
        titles = _TITLES if found.unit == "task" else _TITLES | _BY_RUNS
        yield _scores("Right on runs that the profile has not seen, percent", found.scores, titles)
    if found.reserved:
        yield _scores("Operators that the set reserves, percent", found.reserved, _TITLES)
    if found.operators:
        yield _operators(found)
    for line in _remarks(found):
        yield plain(line)
    if found.gate:
        yield _gate(found)


def decision_words(found: FitReport) -> str:
    """Return one sentence: better or not, on which runs, by how much."""
    made = found.decision
    if made is None or not made.runs:
        return (
            "The profile could not be compared with the present judge: there are no runs that could be held out. "
            "Plant faults in further runs, or label more."
        )
    told = f"{_percent(made.old)} -> {_percent(made.new)} of {made.runs}"
    units = "scenarios" if found.unit == "task" else "original runs"
    around = (
        f"no interval, because there are fewer than {FEWEST} {units}"
        if made.difference is None
        else points(made.new - made.old, made.difference)
    )
    what = "is better than" if made.better else "is not shown to be better than"
    but = f"; but {made.held_back}" if made.held_back else ""
    return (
        f"The profile {what} {made.compared_with}, on {made.on}: {told}, {around}; one step, always named, "
        f"is right in {_percent(made.constant)}{but}."
    )


def _labels(found: FitReport) -> str:
    profile = found.profile
    counts = ", ".join(f"{count} {source}" for source, count in found.given.items())
    planted = f", planted in {counted(found.originals, 'run')}" if found.originals else ""
    weight = profile.injected_weight
    kind = (
        " Injection only: no weight was chosen on people's labels."
        if profile.injection_only
        else ""
        if weight is None
        else " People's labels give planted faults no weight: the profile is fitted without them."
        if weight == 0
        else f" Weight of planted faults beside people's labels: {weight:g}."
    )
    return f"{counted(sum(found.given.values()), 'label')} ({counts}) in {counted(found.scenarios, 'scenario')}{planted}.{kind}"


def _scores(title: str, scores: Sequence[SchemeScore], titles: Mapping[str, str]) -> FittedTable:
    numbers = ("runs", "step (95 %)", "top 3", "agent")
    table = FittedTable("held out", numbers=numbers, title=title)
    for score in scores:
        around = score.step_interval
        interval = "" if around is None else f" ({100 * around.low:.0f}-{100 * around.high:.0f})"
        table.add_row(
            titles.get(score.scheme, score.scheme),
            str(score.runs),
            f"{100 * score.step:.1f}{interval}",
            f"{100 * score.top_3:.1f}",
            "" if score.agent is None else f"{100 * score.agent:.1f}",
        )
    return table


def _operators(found: FitReport) -> FittedTable:
    numbers = ("failures", "without", "plain", "operator out", "both out", "AUC")
    table = FittedTable("operator", numbers=numbers, title="Exact step by operator, percent")
    looks = {each.operator: each for each in found.detected}
    for row in found.operators:
        seen = looks.get(row.operator)
        auc = "few" if seen is None or seen.auc is None else f"{seen.auc:.2f}"
        table.add_row(
            f"{row.operator} (uncertain)" if seen and seen.uncertain else row.operator,
            str(row.runs),
            f"{100 * row.untrained:.0f}",
            *(
                f"{100 * row.by_scheme[scheme]:.0f}" if scheme in row.by_scheme else "-"
                for scheme in (PLAIN, OPERATOR, JOINT)
            ),
            auc,
        )
    return table


def _remarks(found: FitReport) -> Iterator[str]:
    """Yield what the tables do not say."""
    if found.operators:
        yield (
            f"AUC: how well planted steps can be told from natural ones by their looks, with the operator unseen; above "
            f"{MOST_AUC} the operator is uncertain, below {FEWEST_PAIRS} steps nothing is said."
        )
    for each in found.fingerprints:
        yield (
            f"Refused: {each.feature} recognises {each.operator} alone (log probability {each.gain:+.2f}, elsewhere "
            f"{each.elsewhere:+.2f})."
        )
    if found.unit == "none":
        yield (
            "All faults were planted in one run, so that no scenario can be held out: plant some in further runs."
        )
    if found.unit == "run":
        yield (
            f"The labelled runs have fewer than {LEAST_UNITS} tasks, so that folds divide runs and not tasks: the scores "
            "hold for more runs of these tasks, not for others."
        )
    yield from _abstention(found)
    yield from _people(found)
    if found.labels_without_step:
        yield f"{found.labels_without_step} labels name a step that is no agent's act, or an agent alone."
    if found.repairable:
        yield f"{found.repairable} labels are origins that later steps could have repaired."


def _abstention(found: FitReport) -> Iterator[str]:
    told = found.abstention
    if told is None:
        return
    least = found.profile.abstain_below
    limit = (
        "It always abstains: at no probability was it right in 60 % of 20 natural failures for certain."
        if least >= NEVER
        else f"It abstains below {100 * least:.0f} %."
    )
    share = ""
    if told.named:
        low = wilson(told.right, told.named)
        share = f" ({100 * low.low:.0f} to {100 * low.high:.0f} %)"
    yield (
        f"{limit} Of {told.runs} held-out runs it names a step in {told.named} and is right in {told.right}{share}; "
        f"without a profile it names one in {told.named_before} and is right in {told.right_before}."
    )


def _people(found: FitReport) -> Iterator[str]:
    told = found.people
    if told is None:
        yield "People's labels: too few for a figure of their own; no planted fault counts as one."
        return
    gain = (
        ""
        if told.difference is None
        else f" ({points(told.fitted - told.before, told.difference)})"
    )
    yield (
        f"People's labels alone, {counted(told.runs, 'run')}: exact step {_percent(told.before)} with the present judge, "
        f"{_percent(told.fitted)} with the profile{gain}."
    )
    if found.originals and told.of_injection is not None:
        yield (
            f"Without planted faults it would be {_percent(told.people_only)} "
            f"({points(told.fitted - told.people_only, told.of_injection)} by them)."
        )


def _gate(found: FitReport) -> FittedTable:
    title = "Gate for planted faults: " + ("passed" if found.passed else "not passed")
    table = FittedTable(title=title)
    table.add_column("condition")
    table.add_column("", no_wrap=True)
    table.add_column("found")
    for each in found.gate:
        table.add_row(plain(each.name), _MARKS[each.status], plain(each.found))
    return table


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
