"""Scores profiles on held-out runs, and apart on runs that they have seen.

For each partition of the runs into folds, a fold's runs get their probabilities from a profile that
was trained on the others.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mast_trace_judge.local.attribution.profile import Profile, run_hash, shipped_profiles
from mast_trace_judge.study.bench.methods import predict
from mast_trace_judge.study.bench.scoring import Prediction, Score, score
from mast_trace_judge.study.training import cross_fit, to_example

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from mast_trace_judge.study.labelled import LabelledRun

    Predictions = Sequence[Sequence[Prediction]]

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
