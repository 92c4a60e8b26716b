"""Methods of the benchmark, trivial baselines and the local layers; and the parts of its sets of planted faults."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mast_trace_judge.local.attribution import UNTRAINED, attribute, summarise
from mast_trace_judge.local.attribution.cascade import cascade
from mast_trace_judge.local.attribution.profile import Profile, choose_profile
from mast_trace_judge.local.rules import find_modes
from mast_trace_judge.planted import certain
from mast_trace_judge.study.bench.scoring import Prediction
from mast_trace_judge.study.labelled import LabelledRun, is_set, operator_of, read_injected
from mast_trace_judge.verdict import SHOWN_FROM

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
