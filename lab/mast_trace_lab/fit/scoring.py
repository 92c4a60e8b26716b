"""Scores of predictions on labelled runs: exact step, first three, agent, with intervals over scenarios."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from mast_trace_judge.local.attribution import conclude
from mast_trace_judge.local.attribution.cascade import cascade
from mast_trace_judge.study.datasets.who_and_when import same_agent
from mast_trace_lab.fit.intervals import interval
from mast_trace_lab.fit.models import concluded
from mast_trace_lab.fit.report import OperatorScore, SchemeScore

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mast_trace_judge.local.attribution import Attribution
    from mast_trace_judge.study.agreement import Interval
    from mast_trace_lab.fit.labels import Label
    from mast_trace_lab.fit.models import Mass


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
