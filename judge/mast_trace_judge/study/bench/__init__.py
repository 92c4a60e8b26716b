"""Scores the judge on a labelled set of one's own, beside baselines that any judge has to beat."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from statistics import median
from typing import TYPE_CHECKING

from mast_trace.exceptions import ConfigurationError
from mast_trace_judge.local.attribution import attribute
from mast_trace_judge.local.rules import find_modes
from mast_trace_judge.planted import left_out_words
from mast_trace_judge.study.bench import methods
from mast_trace_judge.study.bench.methods import (
    HeldOut,
    RuleRecall,
    left_out_of,
    places_seen,
    planted_runs,
    rule_recall,
    scores_by_sample,
)
from mast_trace_judge.study.bench.scoring import Prediction, Score, score
from mast_trace_judge.study.training import FEWEST_LABELS, REPEATS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from pathlib import Path

    from mast_trace_judge.local.attribution.profile import Profile
    from mast_trace_judge.study.bench.methods import Predictions
    from mast_trace_judge.study.labelled import LabelledRun

    Judges = Mapping[str, Callable[[LabelledRun], Prediction]]

LAYERS = ("rules", "local")
"""The layers that can be measured without a model: rules and attribution."""
_NOTES = (
    "Cross-validated rows: five folds, grouped by question, averaged over many partitions.",
    (
        "Profiles keep a hash of each run that they were trained on. Rows that use them are parted by it: "
        "in sample are the runs that a profile has seen, out of sample those that none has, another run "
        "of a seen task included. Such a row names what spoke for its runs, each with how many. Other "
        "rows learn nothing from the runs that they are scored on."
    ),
    (
        "Calibration error: ten bins. The figure in brackets is what probabilities that are exactly "
        "right would show by chance on so few runs: below it, the error proves nothing against a method."
    ),
    (
        "Strict scoring compares step numbers; official scoring, as in the script published with "
        "Who&When, looks for the gold step's digits anywhere in the predicted step's."
    ),
)


@dataclass(frozen=True)
class Report:
    """The results of a benchmark.

    Attributes:
        scores: of every method on every subset, baselines first.
        in_sample: number of runs of a subset that a shipped profile was trained on, by subset.
        planted: planted faults that the rules find, by failure mode.
        left_out: number of labels that were left out because their operator is uncertain, by operator.
        milliseconds: median processor time per run, by layer; it depends on the machine.
        notes: remarks for the reader.
    """

    scores: tuple[Score, ...] = ()
    in_sample: Mapping[str, int] = field(default_factory=dict)
    planted: tuple[RuleRecall, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)
    milliseconds: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = _NOTES


def run_bench(
    data: Path,
    layers: Collection[str] = LAYERS,
    judges: Judges | None = None,
    repeats: int = REPEATS,
    profiles: Sequence[Profile] = (),
    *,
    uncertain: bool = False,
) -> Report:
    """Score the layers on a set that `mast-trace dataset build` has written.

    Args:
        data: the set's folder.
        layers: some of `LAYERS`.
        judges: further methods by name, such as a judge on a language model.
        repeats: partitions into folds over which cross-validated figures are averaged.
        profiles: the user's own; they are scored beside the shipped ones, and the further methods use them.
        uncertain: whether planted faults of uncertain operators are scored as well.

    Raises:
        ConfigurationError: a layer is unknown, or the folder holds no set with failures.
    """
    unknown = set(layers) - set(LAYERS)
    if unknown:
        raise ConfigurationError(f"unknown layers {sorted(unknown)}; there are {list(LAYERS)}")
    parts = planted_runs(data, uncertain=uncertain)
    left_out = {} if uncertain else left_out_of(data)
    told = left_out_words(left_out)
    if not parts:
        raise ConfigurationError(
            f"{data} holds no failures of `mast-trace dataset build`"
            + (f": {told}" if told else "")
        )
    report = score_parts(parts, layers, judges, repeats, profiles)
    return replace(
        report,
        planted=tuple(rule_recall(data, uncertain=uncertain)) if "rules" in layers else (),
        left_out=dict(left_out),
        notes=(*report.notes, *filter(None, (told,))),
    )


def score_parts(
    parts: Mapping[str, Sequence[LabelledRun]],
    layers: Collection[str] = LAYERS,
    judges: Judges | None = None,
    repeats: int = REPEATS,
    profiles: Sequence[Profile] = (),
    more: Callable[[Sequence[LabelledRun], Sequence[HeldOut]], Mapping[str, Predictions]]
    | None = None,
) -> Report:
    """Score the methods on labelled runs, part by part.

    Args:
        parts: the runs by name of the part.
        layers: some of `LAYERS`.
        judges: further methods by name, of one run at a time.
        repeats: partitions into folds over which cross-validated figures are averaged.
        profiles: the user's own.
        more: makes the predictions of further methods from a part and its folds.
    """
    scores: list[Score] = []
    for runs in parts.values():
        folds = (
            methods.held_out(runs, repeats)
            if "local" in layers and len(runs) >= FEWEST_LABELS
            else []
        )
        scores += _scores(runs, folds, layers, profiles)
        if more is not None:
            scores += _scored(runs, more(runs, folds))
        seen = places_seen(runs, profiles)
        for name, judge in (judges or {}).items():
            scores += scores_by_sample(name, runs, [[judge(run)] for run in runs], seen)
    return Report(
        scores=tuple(scores),
        in_sample={part: len(places_seen(runs)) for part, runs in parts.items()},
        milliseconds=_milliseconds([run for runs in parts.values() for run in runs]),
    )


def _scores(
    runs: Sequence[LabelledRun],
    folds: Sequence[HeldOut],
    layers: Collection[str],
    profiles: Sequence[Profile],
) -> list[Score]:
    rows = {
        "random step": methods.random_step(runs),
        "always step 0": methods.fixed_step(runs, 0),
        "always step 1": methods.fixed_step(runs, 1),
        "most frequent step, cross-validated": methods.best_fixed_step(runs),
    }
    if "local" not in layers:
        return _scored(runs, rows)
    rows["cascade, untrained"] = methods.untrained(runs)
    if folds:
        rows["profile, cross-validated"] = methods.trained(runs, folds)
    found = _scored(runs, rows)
    shipped, seen = methods.shipped(runs), places_seen(runs)
    found += scores_by_sample("as shipped", runs, shipped, seen, of=methods.profile_of)
    if profiles:
        own, seen = methods.with_profiles(runs, profiles), places_seen(runs, profiles)
        found += scores_by_sample("with profiles of your own", runs, own, seen)
    return found


def _scored(runs: Sequence[LabelledRun], rows: Mapping[str, Predictions]) -> list[Score]:
    return [score(method, runs[0].subset, runs, given) for method, given in rows.items()]


def _milliseconds(runs: Sequence[LabelledRun]) -> dict[str, float]:
    """Measure the processor time of the local layers, run by run."""
    rules, attribution = [], []
    for run in runs:
        begin = time.process_time()
        modes = find_modes(run.trajectory)
        middle = time.process_time()
        attribute(run.trajectory, modes)
        attribution.append(1000 * (time.process_time() - middle))
        rules.append(1000 * (middle - begin))
    if not runs:
        return {}
    return {"rules": median(rules), "attribution": median(attribution)}
