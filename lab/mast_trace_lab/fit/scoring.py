"""Scores of predictions on labelled runs: exact step, first three, agent, with intervals over scenarios."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist, fmean
from typing import TYPE_CHECKING, Any, Final

from mast_trace_judge.local.attribution import Attribution, conclude
from mast_trace_judge.local.attribution.cascade import cascade
from mast_trace_judge.study.agreement import Interval
from mast_trace_judge.study.labelled import same_agent
from mast_trace_judge.study.numeric import numpy_module, special_module
from mast_trace_lab.fit.models import Mass, concluded
from mast_trace_lab.fit.report import OperatorScore, SchemeScore

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mast_trace_lab.fit.labels import Label

FEWEST: Final = 5
"""Scenarios below which there is no interval: of two, both gain by chance in a quarter of all fits."""
_RESAMPLES: Final = 2000
_TAIL: Final = 0.025


def macro(values: Sequence[float], kinds: Sequence[str]) -> float:
    """Return the mean over kinds of each kind's mean; 0 without values."""
    if not values:
        return 0.0
    sums, counts = _tables(values, kinds, [""] * len(values))
    return float((sums.sum(axis=0) / counts.sum(axis=0)).mean())


def interval(
    values: Sequence[float], kinds: Sequence[str], scenarios: Sequence[str]
) -> Interval | None:
    """Return the expanded percentile interval (95 %) of `macro`, with scenarios resampled.

    Plain percentiles of few scenarios are too narrow: of five without any gain, 7 % would lie above 0 in place of 2.5 %.
    The percentiles are those at which the interval of a mean has the width of Student's (Hesterberg 2015,
    doi:10.1080/00031305.2015.1089789). Fewer than `FEWEST` scenarios have none.

    Args:
        values: of each run.
        kinds: operator of each run, or one word for a mean over runs.
        scenarios: scenario of each run.

    Raises:
        ConfigurationError: numpy or scipy is not installed.
    """
    if len(set(scenarios)) < FEWEST:
        return None
    np = numpy_module()
    sums, counts = _tables(values, kinds, scenarios)
    # NumPy guarantees the numbers of this legacy generator, so equal labels give equal intervals.
    drawn = np.random.RandomState(0).multinomial(
        len(sums), np.full(len(sums), 1 / len(sums)), size=_RESAMPLES
    )
    own, seen = drawn @ sums, drawn @ counts
    known = seen > 0
    shares = np.divide(own, seen, out=np.zeros_like(own, dtype=float), where=known)
    means = np.sort(shares.sum(axis=1) / known.sum(axis=1))
    last = _RESAMPLES - 1
    tail = _expanded(len(sums))
    return Interval(float(means[round(tail * last)]), float(means[round((1 - tail) * last)]))


def _expanded(scenarios: int) -> float:
    """Return the share of resamples to leave out at either end."""
    student = special_module().stdtrit(scenarios - 1, _TAIL)
    return NormalDist().cdf(float(student) * sqrt(scenarios / (scenarios - 1)))


def _tables(values: Sequence[float], kinds: Sequence[str], scenarios: Sequence[str]) -> Any:
    """Return sums and counts by scenario (rows) and kind (columns)."""
    np = numpy_module()
    rows = {name: place for place, name in enumerate(dict.fromkeys(scenarios))}
    columns = {name: place for place, name in enumerate(dict.fromkeys(kinds))}
    sums, counts = np.zeros((len(rows), len(columns))), np.zeros((len(rows), len(columns)))
    for value, kind, scenario in zip(values, kinds, scenarios, strict=True):
        sums[rows[scenario], columns[kind]] += value
        counts[rows[scenario], columns[kind]] += 1
    return sums, counts


@dataclass(frozen=True)
class Hit:
    """The result of one prediction: 1 for a right step, step among the first three, or agent."""

    step: float
    top_3: float
    agent: float | None


def untrained(label: Label) -> Attribution:
    """Return what the untrained cascade says with the rules' findings."""
    run = label.trajectory
    return conclude(run, *cascade(run), label.findings, None)


def hit(label: Label, found: Attribution | None) -> Hit:
    """Score what was said of a run; nothing said is a miss."""
    candidates = found.candidates if found is not None else ()
    steps = [candidate.step for candidate in candidates]
    agent = label.run.agent
    return Hit(
        step=float(steps[:1] == [label.run.step]),
        top_3=float(label.run.step in steps),
        agent=float(bool(candidates) and same_agent(candidates[0].agent, agent)) if agent else None,
    )


def hits_of(labels: Sequence[Label], masses: Mapping[int, Mass]) -> dict[int, Hit]:
    """Score held-out probabilities, by place; labels without a step are left out."""
    return {
        place: hit(labels[place], concluded(labels[place], mass))
        for place, mass in masses.items()
        if labels[place].run.step is not None
    }


def scheme_score(
    scheme: str, units: Sequence[str], rounds: Sequence[Mapping[int, Hit]]
) -> SchemeScore | None:
    """Return the scores of a scheme, averaged over rounds; None if nothing could be scored.

    Args:
        scheme: its name.
        units: the unit of each label, over which the interval is taken.
        rounds: hits by place, of one partition each.
    """
    by_run: dict[int, list[Hit]] = defaultdict(list)
    for each in rounds:
        for place, found in each.items():
            by_run[place].append(found)
    if not by_run:
        return None
    steps = {place: fmean(each.step for each in found) for place, found in by_run.items()}
    blamed = [
        fmean(each.agent for each in found if each.agent is not None)
        for found in by_run.values()
        if found[0].agent is not None
    ]
    return SchemeScore(
        scheme=scheme,
        runs=len(by_run),
        step=fmean(steps.values()),
        top_3=fmean(fmean(each.top_3 for each in found) for found in by_run.values()),
        agent=fmean(blamed) if blamed else None,
        step_interval=mean_interval(units, steps),
    )


def mean_interval(units: Sequence[str], values: Mapping[int, float]) -> Interval | None:
    """Return the interval of a mean over runs, with units such as scenarios resampled.

    Args:
        units: the unit of each label.
        values: of the scored ones, by place.
    """
    places = sorted(values)
    return interval([values[i] for i in places], [""] * len(places), [units[i] for i in places])


def operator_scores(
    labels: Sequence[Label],
    before: Mapping[int, Hit],
    by_scheme: Mapping[str, Mapping[int, Hit]],
) -> list[OperatorScore]:
    """Return the share of right steps by operator."""
    places: dict[str, list[int]] = defaultdict(list)
    for place in before:
        if labels[place].operator:
            places[labels[place].operator].append(place)
    found = []
    for operator, own in sorted(places.items()):
        shares = {
            scheme: fmean(hits[i].step for i in own if i in hits)
            for scheme, hits in by_scheme.items()
            if any(i in hits for i in own)
        }
        mode = labels[own[0]].mode
        told = fmean(before[i].step for i in own)
        found.append(OperatorScore(operator, mode, len(own), told, shares))
    return found
