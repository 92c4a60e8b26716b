"""The vote of several readings of one run: by several models, or by one model several times."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from statistics import fmean
from typing import TYPE_CHECKING

from mast_trace_judge.llm.verification import Flip, ModelReading

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mast_trace_judge.local.outcome import Outcome
    from mast_trace_judge.verdict import ModeFinding


def vote(
    readings: Sequence[ModelReading], problems: Iterable[str] = (), *, of_one_model: bool = False
) -> ModelReading:
    """Return the reading on which the others agree.

    The outcome is that of more than half of them, else unknown. A failure mode is reported if at
    least half report it, with the mean of all probabilities, a silent reading counting as 0. The
    weight of a step's correction is a mean as well: over the models that tried it, or over all readings
    of one model, which tries again where it sees an error again.

    Args:
        readings: those that succeeded; at least one.
        problems: errors of the others.
        of_one_model: whether one model has made all of them.
    """
    if len(readings) == 1 and not problems:
        return readings[0]
    strongest = max(readings, key=lambda reading: abs(reading.failure_probability - 0.5))
    return ModelReading(
        outcome=_majority([reading.outcome for reading in readings]),
        failure_probability=round(fmean(r.failure_probability for r in readings), 4),
        reason=strongest.reason,
        flips=_mean_flips(readings, len(readings) if of_one_model else 0),
        modes=_common_modes(readings),
        problems=tuple(
            dict.fromkeys([*problems, *(each for r in readings for each in r.problems)])
        ),
        dropped=sum(reading.dropped for reading in readings),
        models=tuple(dict.fromkeys(model for reading in readings for model in reading.models)),
        grounded=frozenset().union(*(reading.grounded for reading in readings)),
        addressed=any(reading.addressed for reading in readings),
        voters=tuple(single for reading in readings for single in reading.readings),
    )


def _majority(outcomes: Sequence[Outcome]) -> Outcome:
    outcome, votes = Counter(outcomes).most_common(1)[0]
    return outcome if 2 * votes > len(outcomes) else "unknown"


def _mean_flips(readings: Sequence[ModelReading], voters: int) -> dict[int, Flip]:
    """Return the mean of each step's flips, over so many readings if more than have tried it."""
    tried: dict[int, list[Flip]] = defaultdict(list)
    for reading in readings:
        for step, flip in reading.flips.items():
            tried[step].append(flip)
    means = {}
    for step, flips in tried.items():
        best = max(flips, key=lambda flip: flip.weight)
        weight = sum(flip.weight for flip in flips) / max(len(flips), voters)
        means[step] = replace(best, weight=weight)
    return means


def _common_modes(readings: Sequence[ModelReading]) -> tuple[ModeFinding, ...]:
    reported: dict[str, list[ModeFinding]] = defaultdict(list)
    for reading in readings:
        for mode in reading.modes:
            reported[mode.code].append(mode)
    common = []
    for modes in reported.values():
        if 2 * len(modes) < len(readings):
            continue
        best = max(modes, key=lambda mode: mode.probability)
        probability = sum(mode.probability for mode in modes) / len(readings)
        common.append(best.model_copy(update={"probability": round(probability, 4)}))
    return tuple(sorted(common, key=lambda mode: (-mode.probability, mode.code)))
