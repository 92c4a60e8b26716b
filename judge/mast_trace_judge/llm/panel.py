"""Several models read the same run and vote."""

from __future__ import annotations

from collections import Counter, defaultdict
from statistics import fmean
from typing import TYPE_CHECKING

from mast_trace_judge.llm.verification import Flip, ModelReading

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mast_trace_judge.local.outcome import Outcome
    from mast_trace_judge.verdict import ModeFinding


def vote(readings: Sequence[ModelReading], problems: Iterable[str] = ()) -> ModelReading:
    """Return the reading on which the models agree.

    The outcome is that of more than half of them, else unknown. A failure mode is reported if at
    least half report it, with the mean of all probabilities, a silent model counting as 0; so is
    the weight of a step's correction, over the models that tried it.

    Args:
        readings: of the models that could be read; at least one.
        problems: errors of the others.
    """
    if len(readings) == 1 and not problems:
        return readings[0]
    strongest = max(readings, key=lambda reading: abs(reading.failure_probability - 0.5))
    return ModelReading(
        outcome=_majority([reading.outcome for reading in readings]),
        failure_probability=round(fmean(r.failure_probability for r in readings), 4),
        reason=strongest.reason,
        flips=_mean_flips(readings),
        modes=_common_modes(readings),
        problems=(*problems, *(problem for r in readings for problem in r.problems)),
        dropped=sum(reading.dropped for reading in readings),
        models=tuple(model for reading in readings for model in reading.models),
        grounded=frozenset().union(*(reading.grounded for reading in readings)),
        addressed=any(reading.addressed for reading in readings),
    )


def _majority(outcomes: Sequence[Outcome]) -> Outcome:
    outcome, votes = Counter(outcomes).most_common(1)[0]
    return outcome if 2 * votes > len(outcomes) else "unknown"


def _mean_flips(readings: Sequence[ModelReading]) -> dict[int, Flip]:
    tried: dict[int, list[Flip]] = defaultdict(list)
    for reading in readings:
        for step, flip in reading.flips.items():
            tried[step].append(flip)
    means = {}
    for step, flips in tried.items():
        best = max(flips, key=lambda flip: flip.weight)
        weight = fmean(flip.weight for flip in flips)
        means[step] = Flip(weight, best.reason, best.minimal_fix)
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
