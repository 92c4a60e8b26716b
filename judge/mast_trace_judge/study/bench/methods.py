"""Methods of the benchmark: trivial baselines, the local layers, profiles on held-out runs; and the parts of its sets.

For each partition of the runs into folds, a fold's runs get their probabilities from a profile that
was trained on the others.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from mast_trace_judge.local.attribution import UNTRAINED, attribute, summarise
from mast_trace_judge.local.attribution.cascade import cascade
from mast_trace_judge.local.attribution.profile import (
    Profile,
    choose_profile,
    run_hash,
    shipped_profiles,
)
from mast_trace_judge.local.rules import find_modes
from mast_trace_judge.planted import certain
from mast_trace_judge.study.bench.scoring import Prediction, Score, score
from mast_trace_judge.study.labelled import LabelledRun, is_set, operator_of, read_injected
from mast_trace_judge.study.training import cross_fit, to_example
from mast_trace_judge.verdict import SHOWN_FROM

if TYPE_CHECKING:
    from mast_trace_judge.study.labelled import LabelledRun

    Predictions = Sequence[Sequence[Prediction]]

REPLAYED = "proved by replay"
PLANTED = "planted faults"
RESERVED = "planted faults of reserved operators"
ENVIRONMENT = "planted faults of the environment"


@dataclass(frozen=True)
class RuleRecall:
    """Planted faults of a failure mode, and those whose mode the rules find.

    Attributes:
        code: of the failure mode.
        runs: with such a fault, failed or not: the fault is in both.
        shown: those in which the rules show the mode.
        possible: those in which they name it at all.
        at_step: those in which a finding of the mode names the planted step.
    """

    code: str
    runs: int
    shown: int
    possible: int
    at_step: int


def planted_runs(folder: Path, *, uncertain: bool = False) -> dict[str, list[LabelledRun]]:
    """Read the failures of a set by part; empty if the folder holds none.

    Operators that the set reserves are a part of their own. So are faults of the environment, for which no agent is to
    blame.

    Args:
        folder: of the set.
        uncertain: whether labels of uncertain operators are read as well.

    Raises:
        ConfigurationError: the set is of another version, or cannot be read.
    """
    if not is_set(folder):
        return {}
    found: dict[str, list[LabelledRun]] = defaultdict(list)
    for held_out in (False, True):
        for run in _read(folder, uncertain=uncertain, held_out=held_out):
            part = (
                REPLAYED
                if run.subset == "replay"
                else ENVIRONMENT
                if not run.modes
                else RESERVED
                if held_out
                else PLANTED
            )
            found[part].append(replace(run, subset=part))
    return dict(found)


def left_out_of(folder: Path) -> Counter[str]:
    """Count the labels of a set that `planted_runs` and `rule_recall` leave out as uncertain, by operator."""
    runs = read_injected(folder, survivors=True) if is_set(folder) else []
    return certain(runs, operator_of)[1]


def rule_recall(folder: Path, *, uncertain: bool = False) -> list[RuleRecall]:
    """Return by failure mode the planted faults that the rules find; the outcome of the runs is known to them.

    Args:
        folder: of the set.
        uncertain: whether labels of uncertain operators are read as well.
    """
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for run in _read(folder, uncertain=uncertain, survivors=True) if is_set(folder) else ():
        for code in run.modes:
            own = [found for found in find_modes(run.trajectory) if found.code == code]
            shown = any(found.probability >= SHOWN_FROM for found in own)
            named = any(run.step in found.steps for found in own)
            seen = (1, shown, bool(own), named)
            counts[code] = [a + b for a, b in zip(counts[code], seen, strict=True)]
    return [RuleRecall(code, *each) for code, each in sorted(counts.items())]


def _read(
    folder: Path, *, uncertain: bool, held_out: bool | None = None, survivors: bool = False
) -> list[LabelledRun]:
    runs = read_injected(folder, held_out=held_out, survivors=survivors)
    return runs if uncertain else certain(runs, operator_of)[0]


def random_step(runs: Sequence[LabelledRun]) -> list[list[Prediction]]:
    """Predict every step alike; scored as an expectation, not drawn."""
    result = []
    for run in runs:
        steps = run.trajectory.steps
        chance = min(1.0, 3 / len(steps)) if steps else 0.0
        result.append([Prediction((step.index,), step.agent, top_3=chance) for step in steps])
    return result


def fixed_step(runs: Sequence[LabelledRun], place: int) -> list[list[Prediction]]:
    """Predict the same step in every run, or the last where a run is shorter."""
    return [[_at(run, place)] for run in runs]


def best_fixed_step(runs: Sequence[LabelledRun]) -> list[list[Prediction]]:
    """Predict the steps that are labelled most often in the runs of all other questions."""
    result = []
    for run in runs:
        seen = Counter(other.step for other in runs if other.group != run.group)
        places = [place for place, _ in seen.most_common(3) if place is not None]
        predictions = _at(run, places[0] if places else 0)
        last = len(run.trajectory.steps) - 1
        steps = tuple(dict.fromkeys(min(place, last) for place in places))
        result.append([Prediction(steps or predictions.steps, predictions.agent)])
    return result


def untrained(runs: Sequence[LabelledRun]) -> list[list[Prediction]]:
    """Predict by the cascade alone, without findings and profiles."""
    return [[predict(run, *cascade(run.trajectory), name="cascade")] for run in runs]


def shipped(runs: Sequence[LabelledRun]) -> list[list[Prediction]]:
    """Predict as the product does: rules, and a shipped profile where one applies to the run."""
    return with_profiles(runs, ())


def with_profiles(
    runs: Sequence[LabelledRun], profiles: Sequence[Profile]
) -> list[list[Prediction]]:
    """Predict by rules, and by the first profile that applies to the run, the user's own before the shipped ones."""
    result = []
    for run in runs:
        found = attribute(run.trajectory, find_modes(run.trajectory), profiles)
        best = found.candidates[0] if found.candidates else None
        result.append(
            [
                Prediction(
                    tuple(candidate.step for candidate in found.candidates),
                    best.agent if best else "",
                    best.probability if best else None,
                )
            ]
        )
    return result


def profile_of(runs: Sequence[LabelledRun]) -> str:
    """Return the names of the shipped profiles, or the cascade, that apply to these runs, with counts."""
    chosen = (choose_profile(run.trajectory) for run in runs)
    counts = Counter(profile.name if profile else UNTRAINED for profile in chosen)
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))


def predict(
    run: LabelledRun,
    probabilities: Mapping[int, float],
    reasons: Mapping[int, str],
    *,
    name: str,
) -> Prediction:
    """Predict the likeliest steps of a distribution, and the first one's agent."""
    found = summarise(run.trajectory, probabilities, reasons, profile=name)
    if not found.candidates:
        return Prediction((), "")
    best = found.candidates[0]
    steps = tuple(candidate.step for candidate in found.candidates)
    return Prediction(steps, best.agent, best.probability)


def _at(run: LabelledRun, place: int) -> Prediction:
    steps = run.trajectory.steps
    if not steps:
        return Prediction((), "")
    step = steps[min(place, len(steps) - 1)]
    return Prediction((step.index,), step.agent)


Distribution = dict[int, float]
"""Probabilities by step."""


def places_seen(runs: Sequence[LabelledRun], own: Sequence[Profile] = ()) -> frozenset[int]:
    """Return the places of the runs that a shipped profile, or one of one's own, was trained on.

    A run is known by its task and its texts (`run_hash`), wherever it is read from.
    """
    seen = {each for profile in (*shipped_profiles(), *own) for each in profile.runs}
    return frozenset(i for i, run in enumerate(runs) if run_hash(run.trajectory) in seen)


def scores_by_sample(
    method: str,
    runs: Sequence[LabelledRun],
    predictions: Predictions,
    seen: Collection[int],
    *,
    of: Callable[[Sequence[LabelledRun]], str] = lambda _: "",
) -> Iterator[Score]:
    """Score a method that uses profiles: once on the runs that they have seen, once on the others.

    Args:
        method: its name.
        runs: of one set.
        predictions: for each of them.
        seen: places of the runs that are in sample.
        of: names the profiles that speak for some of the runs.
    """
    for sample in ("in sample", "out of sample"):
        places = [i for i in range(len(runs)) if (i in seen) == (sample == "in sample")]
        if places:
            part = [runs[i] for i in places]
            by = f" ({named})" if (named := of(part)) else ""
            share = f"all {len(runs)}" if len(part) == len(runs) else f"{len(part)} of {len(runs)}"
            yield score(
                f"{method}, {sample}{by}: {share} runs",
                part[0].subset,
                part,
                [predictions[i] for i in places],
                in_sample=len(part) if sample == "in sample" else 0,
            )


@dataclass(frozen=True)
class HeldOut:
    """A fold: distributions of its runs, and of the runs from which it was learned, by place."""

    own: Mapping[int, Distribution]
    others: Mapping[int, Distribution]


def held_out(runs: Sequence[LabelledRun], repeats: int) -> list[HeldOut]:
    """Return the folds of all partitions; together they hold each run once in each partition."""
    examples = {place: e for place, run in enumerate(runs) if (e := to_example(run)) is not None}
    places, usable = list(examples), list(examples.values())

    def by_step(found: Mapping[int, Sequence[float]]) -> dict[int, Distribution]:
        return {
            places[i]: dict(zip(usable[i].steps, values, strict=True))
            for i, values in found.items()
        }

    return [
        HeldOut(by_step(fold.own), by_step(fold.others))
        for repeat in range(repeats)
        for fold in cross_fit(usable, repeat)
    ]


def trained(runs: Sequence[LabelledRun], folds: Sequence[HeldOut]) -> list[list[Prediction]]:
    """Predict by cross-validated profiles."""
    return predicted(runs, ((place, p) for fold in folds for place, p in fold.own.items()))


def predicted(
    runs: Sequence[LabelledRun], found: Iterable[tuple[int, Distribution]]
) -> list[list[Prediction]]:
    """Predict by distributions, each with the place of its run."""
    result: dict[int, list[Prediction]] = defaultdict(list)
    for place, probabilities in found:
        result[place].append(predict(runs[place], probabilities, {}, name="held out"))
    return [result[place] for place in range(len(runs))]
