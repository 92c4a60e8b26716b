"""The choice between a new profile and the present judge, which stays unless the new one is better; and when it abstains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from mast_trace_judge.intervals import asserts
from mast_trace_judge.local.attribution import NEVER, attribute, conclude
from mast_trace_judge.local.attribution.calibration import Calibration, fit_calibration
from mast_trace_judge.local.attribution.profile import (
    Profile,
    choose_profile,
    run_hash,
    shipped_profiles,
)
from mast_trace_lab.fit.gate import LEAST_ON_PEOPLE, difference, in_few_units, points
from mast_trace_lab.fit.labels import INJECTION, PERSON, Label
from mast_trace_lab.fit.models import PARTS, HeldOutLabels, Mass, Recipe, concluded, held_out, parts
from mast_trace_lab.fit.report import Decision, PeopleGain
from mast_trace_lab.fit.scoring import Hit, hit, hits_of, macro, untrained

_STEPS: Final = tuple(0.5 + 0.05 * i for i in range(10))
"""Probabilities that may be the threshold: below a half another step is as likely."""


@dataclass(frozen=True)
class Threshold:
    """A calibration with the probability from which the likeliest step is named."""

    calibration: Calibration
    least: float


def fit_threshold(labels: Sequence[Label], masses: Mapping[int, Mass]) -> Threshold:
    """Calibrate on held-out probabilities, and choose the threshold.

    It is the lowest probability from which the likeliest step was right so often in natural failures that it is
    asserted (`asserts`); `NEVER` if there is none.

    Args:
        labels: the labelled runs.
        masses: held-out probabilities, by place.
    """
    calibration = fit_calibration([(mass, labels[i].run.step) for i, mass in masses.items()])
    first = []
    for place, mass in masses.items():
        candidates = concluded(labels[place], mass, calibration).candidates
        if candidates and labels[place].source != INJECTION:
            right = candidates[0].step == labels[place].run.step
            first.append((candidates[0].probability, right))
    for least in _STEPS:
        named = [right for probability, right in first if probability >= least]
        if asserts(sum(named), len(named)):
            return Threshold(calibration, round(least, 2))
    return Threshold(calibration, NEVER)


def cross_fitted(
    labels: Sequence[Label], masses: Mapping[int, Mass], units: Sequence[str], seed: int
) -> dict[int, Threshold]:
    """Return for each held-out run a threshold that was fitted without the runs of its unit."""
    places = sorted(masses)
    found: dict[int, Threshold] = {}
    for part in parts([units[place] for place in places], PARTS, seed):
        own = {places[i] for i in part}
        others = {place: mass for place, mass in masses.items() if place not in own}
        found.update(dict.fromkeys(own, fit_threshold(labels, others)))
    return found


AS_SHIPPED = "the judge without a profile of yours"


@dataclass(frozen=True)
class Present:
    """The present judge on labelled runs.

    Attributes:
        name: of the old profile, or `AS_SHIPPED`.
        hits: by place.
    """

    name: str
    hits: Mapping[int, Hit]


def present_judge(
    labels: Sequence[Label], old: Profile | None, found: Sequence[HeldOutLabels], recipe: Recipe
) -> Present:
    """Score the judge as it is, so that no profile is scored on runs that it was fitted to.

    Runs that the old profile has seen are judged by a stand-in: a profile of the old one's features and labels,
    fitted without the run's operator and scenario. Runs of a shipped profile's training are judged by the untrained
    cascade.

    Args:
        labels: the labelled runs.
        old: the user's profile that the new one would replace.
        found: cells that hold operator and scenario out.
        recipe: of the training.

    Raises:
        ConfigurationError: scipy is not installed.
    """
    shipped = {each for profile in shipped_profiles() for each in profile.runs}
    hashes = [run_hash(label.run.trajectory) for label in labels]
    hits = {}
    for place, label in enumerate(labels):
        if label.run.step is None:
            continue
        if old is not None and hashes[place] not in old.runs and old.fits(label.trajectory):
            run = label.trajectory
            told = conclude(run, *old.distribution(run), label.findings, old)
        elif hashes[place] not in shipped and choose_profile(label.trajectory) is not None:
            told = attribute(label.trajectory, label.findings)
        else:
            told = untrained(label)
        hits[place] = hit(label, told)
    if old is None:
        return Present(AS_SHIPPED, hits)
    seen = {place for place, digest in enumerate(hashes) if digest in old.runs}
    names = tuple(name for name in recipe.names if name in old.weights)
    if seen and names:
        stand_in = held_out(labels, found, replace(recipe, names=names), only=seen)
        hits.update({i: each for i, each in hits_of(labels, stand_in).items() if i in seen})
    return Present(f"profile {old.name}", hits)


def decide(
    labels: Sequence[Label],
    present: Present,
    new: Mapping[int, Hit],
    people: PeopleGain | None,
    units: Sequence[str] = (),
    unit: str = "task",
    constant: Mapping[int, float] = MappingProxyType({}),
) -> Decision:
    """Compare the new profile with the present judge, on people's labels and on all others.

    The new one is better if its gain on one of them is above 0 with its interval, it is right more often than one
    step that is always named, and people's labels show no loss of more than 3 points with theirs: labels in too few
    units have no interval, and hold such a gain back.

    Args:
        labels: the labelled runs.
        present: the present judge.
        new: hits of profiles that have seen neither operator nor scenario of the run.
        people: gain on people's labels; None if they are too few.
        units: the unit of each label, over which intervals are taken; its scenario if absent.
        unit: its name, see `FitReport.unit`.
        constant: where one step that is always named is right, by place.
    """
    others = sorted(
        i for i in new if i in present.hits and (people is None or labels[i].source != PERSON)
    )
    gained = people is not None and people.difference is not None and people.difference.low > 0
    if people is not None and (gained or not others):
        beaten = people.fitted > people.constant
        return Decision(
            better=gained and beaten,
            compared_with=present.name,
            on="people's labels",
            runs=people.runs,
            old=people.before,
            new=people.fitted,
            difference=people.difference,
            constant=people.constant,
            held_back=_NO_MORE if gained and not beaten else "",
        )
    if not others:
        return Decision(False, present.name, "no runs that could be held out", 0, 0.0, 0.0, None)
    _, around = difference(labels, others, present.hits, new, units)
    kinds = [labels[i].operator for i in others]
    planted = all(kinds)
    places = "scenarios" if unit == "task" else "original runs"
    gains = around is not None and around.low > 0
    right = macro([new[i].step for i in others], kinds)
    always = macro([constant.get(i, 0.0) for i in others], kinds)
    against = (_against(people, unit) or (_NO_MORE if right <= always else "")) if gains else ""
    return Decision(
        better=gains and not against,
        compared_with=present.name,
        on=f"planted faults of unseen operators in unseen {places}, operators alike"
        if planted
        else "held-out runs",
        runs=len(others),
        old=macro([present.hits[i].step for i in others], kinds),
        new=right,
        difference=around,
        constant=always,
        held_back=against,
    )


_NO_MORE: Final = "that is no more than one step, always named"


def _against(people: PeopleGain | None, unit: str) -> str:
    """Return the reason why people's labels speak against a gain on others; empty if they do not."""
    if people is None:
        return ""
    if people.difference is None:
        return f"{in_few_units(unit)}, so that a loss on them cannot be excluded"
    if people.difference.low < LEAST_ON_PEOPLE:
        around = points(people.fitted - people.before, people.difference)
        most = f"{-100 * LEAST_ON_PEOPLE:.0f} points"
        return f"on people's labels a loss of more than {most} cannot be excluded ({around})"
    return ""
