"""The gate: conditions under which a fit to planted faults may be said to help with failures.

Operator and scenario are held out together, and operators count alike, so that neither a phrase that one operator
plants nor a scenario that is easy can carry the result.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from mast_trace_dashboards.printable import counted
from mast_trace_lab.fit.labels import INJECTION, OF_INJECTED, PERSON, Label
from mast_trace_lab.fit.models import PARTS, Mass, Recipe, parts, trained
from mast_trace_lab.fit.report import Condition, PeopleGain, Status
from mast_trace_lab.fit.scoring import FEWEST, Hit, interval, macro

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mast_trace_judge.study.agreement import Interval


_INNER: Final = 3


@dataclass(frozen=True)
class OnPeople:
    """Held-out probabilities of people's runs, and the chosen weight.

    Attributes:
        fitted: with planted faults, by place; their weight was chosen without the run's scenario.
        people_only: without them.
        weight: the weight that all of people's labels choose.
    """

    fitted: dict[int, Mass]
    people_only: dict[int, Mass]
    weight: float


def nested(
    labels: Sequence[Label],
    units: Sequence[str],
    recipe: Recipe,
    advance: Callable[[], None] = lambda: None,
) -> OnPeople:
    """Cross-validate on people's labels, and choose the weight of planted faults inside of each fold.

    Planted faults in a scenario of the scored runs are left out with it.

    Args:
        labels: of all sources, people's among them.
        units: the unit of each that no fold divides.
        recipe: of the training; its weight of planted faults is not used.
        advance: called after each of the `STEPS`.

    Raises:
        ConfigurationError: scipy is not installed.
    """
    people = {place for place, label in enumerate(labels) if label.source == PERSON}
    fitted: dict[int, Mass] = {}
    alone: dict[int, Mass] = {}
    for part in parts(units, PARTS, recipe.seed):
        rest = [place for place in range(len(labels)) if place not in part]
        scored = sorted(part & people)
        if scored:
            weight = _chosen(labels, units, rest, recipe)
            fitted.update(_predicted(labels, rest, scored, replace(recipe, of_injected=weight)))
            alone.update(_predicted(labels, rest, scored, replace(recipe, of_injected=0.0)))
        advance()
    weight = _chosen(labels, units, list(range(len(labels))), recipe)
    advance()
    return OnPeople(fitted, alone, weight)


STEPS: Final = PARTS + 1
"""Times that `nested` calls ``advance``, at most."""


def _chosen(
    labels: Sequence[Label], units: Sequence[str], known: Sequence[int], recipe: Recipe
) -> float:
    """Return the weight under which people's labels among the known ones are likeliest, held out.

    Equal weights count from the smallest on.
    """
    if not any(labels[place].source == INJECTION for place in known):
        return 0.0
    own = [units[place] for place in known]
    inner = parts(own, _INNER, recipe.seed + 1)
    losses = {}
    for weight in OF_INJECTED:
        surprise = []
        for part in inner:
            scored = [known[i] for i in sorted(part) if labels[known[i]].source == PERSON]
            rest = [known[i] for i in range(len(known)) if i not in part]
            found = _predicted(labels, rest, scored, replace(recipe, of_injected=weight))
            surprise += [
                -math.log(max(mass.get(labels[i].run.step or 0, 0.0), 1e-9))
                for i, mass in found.items()
                if labels[i].run.step is not None
            ]
        losses[weight] = sum(surprise) / len(surprise) if surprise else math.inf
    return min(OF_INJECTED, key=lambda weight: losses[weight])


def _predicted(
    labels: Sequence[Label], known: Sequence[int], scored: Sequence[int], recipe: Recipe
) -> dict[int, Mass]:
    model = trained([labels[i] for i in known], recipe) if scored and known else None
    return {} if model is None else {i: model.mass(labels[i]) for i in scored}


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
            f"{counted(count, 'failure')} (at least {FEWEST_FAILURES}), "
            f"{counted(len(scenarios[framework]), 'scenario')} (at least {FEWEST_SCENARIOS})",
        )
        for framework, count in sorted(failures.items())
    ] or [Condition("Size", "failed", "no planted faults")]


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
