"""Bootstrap intervals over scenarios, of a mean over runs or of a mean over operators."""

from __future__ import annotations

from math import sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Final

from mast_trace_judge.study.agreement import Interval
from mast_trace_judge.study.numeric import numpy_module, special_module

if TYPE_CHECKING:
    from collections.abc import Sequence

FEWEST: Final = 5
"""Scenarios below which there is no interval: of two, both gain by chance in a quarter of all fits."""
_RESAMPLES: Final = 2000
_TAIL: Final = 0.025


def macro(values: Sequence[float], kinds: Sequence[str]) -> float:
    """Return the mean over kinds of each kind's mean; 0 without values."""
    if not values:
        return 0.0
    sums, counts = _tables(values, kinds, [""] * len(values))
    return float((sums.sum(axis=0) / counts.sum(axis=0)).mean())


def interval(
    values: Sequence[float], kinds: Sequence[str], scenarios: Sequence[str]
) -> Interval | None:
    """Return the expanded percentile interval (95 %) of `macro`, with scenarios resampled.

    Plain percentiles of few scenarios are too narrow: of five without any gain, 7 % would lie above 0 in place of 2.5 %.
    The percentiles are those at which the interval of a mean has the width of Student's (Hesterberg 2015,
    doi:10.1080/00031305.2015.1089789). Fewer than `FEWEST` scenarios have none.

    Args:
        values: of each run.
        kinds: operator of each run, or one word for a mean over runs.
        scenarios: scenario of each run.

    Raises:
        ConfigurationError: numpy or scipy is not installed.
    """
    if len(set(scenarios)) < FEWEST:
        return None
    np = numpy_module()
    sums, counts = _tables(values, kinds, scenarios)
    # NumPy guarantees the numbers of this legacy generator, so equal labels give equal intervals.
    drawn = np.random.RandomState(0).multinomial(
        len(sums), np.full(len(sums), 1 / len(sums)), size=_RESAMPLES
    )
    own, seen = drawn @ sums, drawn @ counts
    known = seen > 0
    shares = np.divide(own, seen, out=np.zeros_like(own, dtype=float), where=known)
    means = np.sort(shares.sum(axis=1) / known.sum(axis=1))
    last = _RESAMPLES - 1
    tail = _expanded(len(sums))
    return Interval(float(means[round(tail * last)]), float(means[round((1 - tail) * last)]))


def _expanded(scenarios: int) -> float:
    """Return the share of resamples to leave out at either end."""
    student = special_module().stdtrit(scenarios - 1, _TAIL)
    return NormalDist().cdf(float(student) * sqrt(scenarios / (scenarios - 1)))


def _tables(values: Sequence[float], kinds: Sequence[str], scenarios: Sequence[str]) -> Any:
    """Return sums and counts by scenario (rows) and kind (columns)."""
    np = numpy_module()
    rows = {name: place for place, name in enumerate(dict.fromkeys(scenarios))}
    columns = {name: place for place, name in enumerate(dict.fromkeys(kinds))}
    sums, counts = np.zeros((len(rows), len(columns))), np.zeros((len(rows), len(columns)))
    for value, kind, scenario in zip(values, kinds, scenarios, strict=True):
        sums[rows[scenario], columns[kind]] += value
        counts[rows[scenario], columns[kind]] += 1
    return sums, counts
