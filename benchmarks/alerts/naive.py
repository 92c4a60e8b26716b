"""Simple alert rules, as people write them first, on the same counts and with the shipped waiting times.

Each compares the last half hour with the week before it. The last rule takes two hours and skips
the hour before them: it is the best rule that PromQL can express on counters alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from mast_trace_dashboards.alerts.rules import Rule

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray
    from simulate import Services

    Numbers = NDArray[np.float64]

_WEEK = 7 * 24 * 60


@dataclass(frozen=True)
class Counts:
    """The input of a rule, one number for each service.

    Attributes:
        n: judged runs of the window.
        k: those with a violation.
        base_n: judged runs of the week before.
        base_k: those with a violation.
        windows: number of windows in that week.
    """

    n: Numbers
    k: Numbers
    base_n: Numbers
    base_k: Numbers
    windows: float


def _z(counts: Counts, rate: Numbers) -> Numbers:
    spread = np.sqrt(np.maximum(counts.n * rate * (1 - rate), 1e-9))
    return np.where(counts.n > 0, (counts.k - counts.n * rate) / spread, 0.0)


def count(counts: Counts) -> Numbers:
    """Hits, in multiples of what such a window had on the average of the week."""
    return counts.k / np.maximum(counts.base_k / counts.windows, 1e-9)


def ratio(counts: Counts) -> Numbers:
    """The rate, in multiples of the week's."""
    usual = counts.base_k / np.maximum(counts.base_n, 1)
    return counts.k / np.maximum(counts.n, 1) / np.maximum(usual, 1e-9)


def z_score(counts: Counts) -> Numbers:
    """Standard deviations above the week's rate, by the normal approximation."""
    return _z(counts, counts.base_k / np.maximum(counts.base_n, 1))


def gated_z_score(counts: Counts) -> Numbers:
    """The same with the shipped gates and smoothing."""
    rate = (counts.base_k + 1) / (counts.base_n + 10)
    enough = (counts.n >= 20) & (counts.k >= 5) & (counts.k >= 2 * counts.n * rate)
    return np.where(enough, _z(counts, rate), 0.0)


@dataclass(frozen=True)
class Naive:
    """A rule: its threshold, the length of its window, and the gap before its baseline."""

    title: str
    statistic: Callable[[Counts], Numbers]
    above: float
    window: int = 30
    gap: int = 0

    def rule(self) -> Rule:
        """Return the rule with the waiting times of the shipped rules."""
        return Rule(
            uid=self.title,
            title=self.title,
            query="",
            metric="",
            above=self.above,
            recover=self.above,
            severity="page",
            summary="",
            advice="",
        )

    def values(self, services: Services, minute: int) -> list[dict[str, object]]:
        """Return the rows of a query: one for each service, at ``minute``."""
        begin = minute - self.window
        base = begin - self.gap
        counts = Counts(
            n=_between(services.judged, begin, minute),
            k=_between(services.hits, begin, minute),
            base_n=_between(services.judged, base - _WEEK, base),
            base_k=_between(services.hits, base - _WEEK, base),
            windows=_WEEK / self.window,
        )
        return [
            {"service": name, "value": float(value)}
            for name, value in zip(services.names, self.statistic(counts), strict=True)
        ]


def _between(counted: NDArray[np.int64], begin: int, end: int) -> Numbers:
    return counted[:, max(begin, 0) : end].sum(axis=1).astype(np.float64)


NAIVE: Final = (
    Naive("count > 3 x the mean", count, 3.0),
    Naive("rate > 2 x the week's", ratio, 2.0),
    Naive("z > 3", z_score, 3.0),
    Naive("z > 3, with gates", gated_z_score, 3.0),
    Naive("z > 3 in 2 h, with gates", gated_z_score, 3.0, 120, 60),
)
