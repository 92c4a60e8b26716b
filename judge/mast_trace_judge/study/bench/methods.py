"""Methods of the benchmark: trivial baselines and the local layers."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from mast_trace_judge.local.attribution import UNTRAINED, attribute, summarise
from mast_trace_judge.local.attribution.cascade import cascade
from mast_trace_judge.local.attribution.profile import choose_profile
from mast_trace_judge.local.rules import find_modes
from mast_trace_judge.study.bench.scoring import Prediction

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mast_trace_judge.local.attribution.profile import Profile
    from mast_trace_judge.study.datasets.labelled import LabelledRun


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
