"""Features of words that recognise a single operator by its phrases, and no other failure.

An operator plants one of a few phrases, so a class of words may point at its step in every run. A fit would take that
for knowledge of failures. Such a feature is refused, and named with the operator.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING, Final

from mast_trace_lab.fit.labels import INJECTION
from mast_trace_lab.fit.schemes import PLAIN, cells, held_out

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mast_trace_lab.fit.labels import Label
    from mast_trace_lab.fit.models import Mass, Recipe

WORDS: Final = (
    "conclusion_words",
    "verification_words",
    "trouble_words",
    "plan_words",
    "log_new_words",
    "relative_length",
)
"""Features that see an agent's wording and length."""
_ONE_ALONE: Final = 0.8
"""Share of all gains from which one operator has them alone."""
_NOTICED: Final = 0.01
"""Mean gain, in units of log probability, below which a feature makes no difference."""


@dataclass(frozen=True)
class Fingerprint:
    """A refused feature.

    Attributes:
        feature: its name.
        operator: the operator that it recognises.
        gain: mean gain of the log probability of that operator's steps by the feature.
        elsewhere: mean gain over all other operators.
    """

    feature: str
    operator: str
    gain: float
    elsewhere: float


def fingerprints(
    labels: Sequence[Label],
    units: Sequence[str],
    recipe: Recipe,
    advance: Callable[[], None] = lambda: None,
) -> list[Fingerprint]:
    """Return the features of words whose gain comes from one operator alone.

    Each feature is left out of a cross-validated fit in turn. With fewer than three operators nothing can be
    compared, and nothing is refused.

    Args:
        labels: the labelled runs.
        units: the unit of each that no fold divides.
        recipe: of the training, with all features.
        advance: called after each cell.

    Raises:
        ConfigurationError: scipy is not installed.
    """
    planted = [i for i, label in enumerate(labels) if label.source == INJECTION]
    own = [labels[i] for i in planted]
    if len({label.operator for label in own}) < 3:
        return []
    found = cells(own, [units[i] for i in planted], PLAIN, recipe.seed)
    if not found:
        return []
    with_all = held_out(own, found, recipe, advance=advance)
    result = []
    for feature in WORDS:
        if feature not in recipe.names:
            continue
        fewer = replace(recipe, names=tuple(each for each in recipe.names if each != feature))
        without = held_out(own, found, fewer, advance=advance)
        told = _fingerprint(feature, own, with_all, without)
        if told is not None:
            result.append(told)
    return result


def _fingerprint(
    feature: str, labels: Sequence[Label], more: dict[int, Mass], fewer: dict[int, Mass]
) -> Fingerprint | None:
    by_operator: dict[str, list[float]] = defaultdict(list)
    for place in more.keys() & fewer.keys():
        label = labels[place]
        if label.example.gold is not None and label.run.step is not None:
            step = label.run.step
            gain = _log(more[place][step]) - _log(fewer[place][step])
            by_operator[label.operator].append(gain)
    gains = {operator: fmean(each) for operator, each in by_operator.items()}
    if len(gains) < 3:
        return None
    first = max(gains, key=lambda operator: (gains[operator], operator))
    others = [gain for operator, gain in gains.items() if operator != first]
    rises = sum(gain for gain in gains.values() if gain > 0)
    alone = gains[first] >= _ONE_ALONE * rises or fmean(others) <= 0 < gains[first] - _NOTICED
    if gains[first] < _NOTICED or not alone:
        return None
    return Fingerprint(feature, first, round(gains[first], 3), round(fmean(others), 3))


def _log(probability: float) -> float:
    return math.log(max(probability, 1e-9))
