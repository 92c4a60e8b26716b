"""Fisher's exact test of two shares, and Holm's correction for many tests.

Sources: R. A. Fisher, "The logic of inductive inference", J. R. Stat. Soc. 98 (1935); S. Holm, "A simple
sequentially rejective multiple test procedure", Scand. J. Stat. 6 (1979); R. E. Tarone, "A modified
Bonferroni method for discrete data", Biometrics 46 (1990).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, inf, lgamma, log
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Counts:
    """Numbers of runs that show something, on both sides.

    Attributes:
        old: runs of the baseline that show it.
        of_old: runs of the baseline.
        new: of the new runs those that show it.
        of_new: new runs.
    """

    old: int
    of_old: int
    new: int
    of_new: int

    def __post_init__(self) -> None:
        """Check the counts.

        Raises:
            ValueError: more runs show it than there are.
        """
        if not (0 <= self.old <= self.of_old and 0 <= self.new <= self.of_new):
            raise ValueError(f"no counts of runs: {self}")


def worse(counts: Counts) -> float:
    """Return the probability of so many new runs or more, if both sides had the same share.

    One-sided, by the hypergeometric distribution with all four margins fixed; 1 where a side is empty.
    """
    shown, total = counts.old + counts.new, counts.of_old + counts.of_new
    last = min(shown, counts.of_new)
    if not counts.of_old or not counts.of_new or not shown:
        return 1.0
    logs = [_log_term(k, shown, counts.of_new, total) for k in range(counts.new, last + 1)]
    top = max(logs, default=-inf)
    return min(1.0, exp(top) * sum(exp(each - top) for each in logs)) if logs else 1.0


def smallest(counts: Counts) -> float:
    """Return the smallest probability that `worse` can have with these margins."""
    shown = counts.old + counts.new
    new = min(shown, counts.of_new)
    return worse(Counts(shown - new, counts.of_old, new, counts.of_new))


def could_fail(counts: Counts, level: float) -> bool:
    """Return whether so many new runs could be worse than this baseline at all: if every one showed it."""
    return worse(Counts(counts.old, counts.of_old, counts.of_new, counts.of_new)) <= level


def corrected(tests: Mapping[str, Counts], level: float) -> dict[str, float]:
    """Return the probability of each test after correction for the others; 1 for one that cannot decide.

    Tests that no result could decide are left out of the correction, by Tarone's rule: whether they could
    follows from the margins alone, on which Fisher's test is conditioned. Holm's correction applies to the
    rest. The probability that any unchanged share is called worse is at most ``level``.
    """
    least = {name: smallest(counts) for name, counts in tests.items()}
    number = next(
        (k for k in range(1, len(tests) + 1) if sum(p <= level / k for p in least.values()) <= k),
        len(tests),
    )
    able = {name: worse(tests[name]) for name, p in least.items() if p <= level / max(number, 1)}
    found = dict.fromkeys(tests, 1.0)
    highest = 0.0
    for rank, (name, p) in enumerate(sorted(able.items(), key=lambda item: (item[1], item[0]))):
        highest = max(highest, min(1.0, p * (len(able) - rank)))
        found[name] = highest
    return found


def _log_term(k: int, shown: int, drawn: int, total: int) -> float:
    return _log_choose(shown, k) + _log_choose(total - shown, drawn - k) - _log_choose(total, drawn)


def _log_choose(n: int, k: int) -> float:
    if not 0 <= k <= n:
        return -inf
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)


def log_binomial(k: int, n: int, share: float) -> float:
    """Return the logarithm of the probability of ``k`` of ``n`` at a share."""
    if share in {0.0, 1.0}:
        return 0.0 if k == n * share else -inf
    return _log_choose(n, k) + k * log(share) + (n - k) * log(1 - share)
