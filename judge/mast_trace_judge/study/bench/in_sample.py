"""Tells the runs that profiles were trained on from those that they have not seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mast_trace_judge.local.attribution.likeness import run_hash
from mast_trace_judge.local.attribution.profile import shipped_profiles
from mast_trace_judge.study.bench.scoring import score

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from mast_trace_judge.local.attribution.profile import Profile
    from mast_trace_judge.study.bench.scoring import Prediction, Score
    from mast_trace_judge.study.datasets.labelled import LabelledRun

    Predictions = Sequence[Sequence[Prediction]]


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
