"""The gate: conditions under which a fit to planted faults may be said to help with failures.

Operator and scenario are held out together, and operators count alike, so that neither a phrase that one operator
plants nor a scenario that is easy can carry the result.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from mast_trace_lab.fit.labels import INJECTION
from mast_trace_lab.fit.report import Condition
from mast_trace_lab.fit.scoring import FEWEST, interval, macro

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mast_trace_judge.study.agreement import Interval
    from mast_trace_lab.fit.labels import Label
    from mast_trace_lab.fit.report import PeopleGain, Status
    from mast_trace_lab.fit.scoring import Hit

FEWEST_FAILURES: Final = 60
FEWEST_SCENARIOS: Final = 8
LEAST_ON_PEOPLE: Final = -0.03
"""Lower end of the interval of the gain on people's labels."""
HOPED: Final = 0.15
"""Gain of exact steps that is hoped for; it is reported, and no condition."""
POSITION: Final = ("first_actor", "log_position", "last_actor", "first_turn", "log_turn")
"""Features of the baseline that knows positions alone."""
PHRASES: Final = ("conclusion_words", "verification_words", "trouble_words", "plan_words")
"""Features of the baseline that knows phrases alone."""


def gate(
    labels: Sequence[Label],
    before: Mapping[int, Hit],
    fitted: Mapping[int, Hit],
    baselines: Mapping[str, Mapping[int, Hit]],
    people: PeopleGain | None,
    *,
    unit: str = "task",
) -> list[Condition]:
    """Return all conditions with what was found.

    Where folds divided original runs, because there are few tasks, no scenario was held out: what was measured is
    told, and does not pass as a condition.

    Args:
        labels: the labelled runs.
        before: hits of the untrained cascade, by place.
        fitted: hits of profiles that have seen neither operator nor scenario.
        baselines: hits of profiles of fewer features, held out likewise, by name.
        people: gain on people's labels; None if they are too few.
        unit: of the folds, see `FitReport.unit`.
    """
    planted = sorted(i for i in fitted if labels[i].source == INJECTION and i in before)
    found = [*_sizes(labels)]
    if not planted:
        reason = "nothing could be held out: it takes two scenarios and two operators"
        names = (
            "Gain over the untrained cascade",
            "No framework is worse",
            *map(_beats, baselines),
        )
        found += [Condition(name, "not examined", reason) for name in names]
    else:
        measured = [
            _gain(labels, planted, before, fitted),
            _no_framework_worse(labels, planted, before, fitted),
            *(
                _over(_beats(name), labels, planted, hits, fitted)
                for name, hits in baselines.items()
            ),
        ]
        found += measured if unit == "task" else map(_by_runs, measured)
    found.append(_people(people, unit))
    return found


def difference(
    labels: Sequence[Label],
    places: Sequence[int],
    old: Mapping[int, Hit],
    new: Mapping[int, Hit],
    units: Sequence[str] = (),
) -> tuple[float, Interval | None]:
    """Return the gain of exact steps, operators alike, and its interval over units.

    Args:
        labels: the labelled runs.
        places: of the compared ones.
        old: hits of one judge.
        new: hits of another.
        units: the unit of each label; its scenario if absent.
    """
    gains = [new[i].step - old[i].step for i in places]
    kinds = [labels[i].operator for i in places]
    clusters = [units[i] if units else labels[i].scenario for i in places]
    return macro(gains, kinds), interval(gains, kinds, clusters)


def _sizes(labels: Sequence[Label]) -> list[Condition]:
    scenarios: dict[str, set[str]] = defaultdict(set)
    failures: dict[str, int] = defaultdict(int)
    for label in labels:
        if label.source == INJECTION:
            scenarios[label.framework].add(label.scenario)
            failures[label.framework] += 1
    return [
        Condition(
            f"Size, {framework or 'no framework'}",
            "passed"
            if count >= FEWEST_FAILURES and len(scenarios[framework]) >= FEWEST_SCENARIOS
            else "failed",
            f"{_counted(count, 'failure')} (at least {FEWEST_FAILURES}), "
            f"{_counted(len(scenarios[framework]), 'scenario')} (at least {FEWEST_SCENARIOS})",
        )
        for framework, count in sorted(failures.items())
    ] or [Condition("Size", "failed", "no planted faults")]


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _by_runs(measured: Condition) -> Condition:
    """Return a condition as not examined, where original runs were held out in place of scenarios."""
    reason = "not scenarios but original runs were held out"
    return Condition(measured.name, "not examined", f"{measured.found}; {reason}")


def _gain(
    labels: Sequence[Label],
    places: Sequence[int],
    before: Mapping[int, Hit],
    fitted: Mapping[int, Hit],
) -> Condition:
    one = _over("Gain over the untrained cascade", labels, places, before, fitted)
    gain, _ = difference(labels, places, before, fitted)
    reached = "reached" if gain >= HOPED else "not reached"
    return Condition(one.name, one.status, f"{one.found}; the hoped +15 points are {reached}")


def _over(
    name: str,
    labels: Sequence[Label],
    places: Sequence[int],
    old: Mapping[int, Hit],
    new: Mapping[int, Hit],
) -> Condition:
    known = [i for i in places if i in old]
    if not known:
        return Condition(name, "not examined", "it could not be trained")
    gain, around = difference(labels, known, old, new)
    kinds = [labels[i].operator for i in known]
    shares = (
        f"{100 * macro([old[i].step for i in known], kinds):.1f} % -> "
        f"{100 * macro([new[i].step for i in known], kinds):.1f} % of {len(known)}"
    )
    if around is None:
        return Condition(
            name, "not examined", f"{shares}; fewer than {FEWEST} scenarios have no interval"
        )
    status: Status = "passed" if around.low > 0 else "failed"
    return Condition(name, status, f"{shares}: {points(gain, around)}")


def _no_framework_worse(
    labels: Sequence[Label],
    places: Sequence[int],
    before: Mapping[int, Hit],
    fitted: Mapping[int, Hit],
) -> Condition:
    name = "No framework is worse"
    told, worse, unknown = [], [], []
    for framework in sorted({labels[i].framework for i in places}):
        own = [i for i in places if labels[i].framework == framework]
        gain, around = difference(labels, own, before, fitted)
        shown = framework or "no framework"
        if around is None:
            unknown.append(shown)
            told.append(f"{shown} {100 * gain:+.1f}, no interval")
        else:
            told.append(f"{shown} {points(gain, around)}")
            worse += [shown] if around.high < 0 else []
    status: Status = "failed" if worse else "not examined" if unknown else "passed"
    return Condition(name, status, "; ".join(told))


def _people(people: PeopleGain | None, unit: str) -> Condition:
    name = "No worse on people's labels"
    if people is None:
        return Condition(
            name, "not examined", "too few people's labels: the profile is injection only"
        )
    if people.difference is None:
        return Condition(name, "not examined", in_few_units(unit))
    gain = people.fitted - people.before
    status: Status = "passed" if people.difference.low >= LEAST_ON_PEOPLE else "failed"
    return Condition(
        name,
        status,
        f"{points(gain, people.difference)} on {people.runs} runs (at least -3 points)",
    )


def in_few_units(unit: str) -> str:
    """Return the reason why there is no interval on people's labels, in words.

    Args:
        unit: of the folds, see `FitReport.unit`.
    """
    return f"people's labels are in fewer than {FEWEST} {'scenarios' if unit == 'task' else 'original runs'}"


def points(gain: float, around: Interval) -> str:
    """Return a gain with its interval, in points."""
    return f"{100 * gain:+.1f} points, 95 %: {100 * around.low:+.1f} to {100 * around.high:+.1f}"


def _beats(baseline: str) -> str:
    return f"Better than {baseline} alone"
