"""Evidence against "the fix does not help", by a bet on pairs of replays.

A pair is one replay with the fix (outcome x) and one that keeps the recorded answer (outcome y). For an
alternative with success rates k (keep) < f (fix) and z = (k + f) / 2, the factor of a pair is
``P_f(x) P_k(y) / (P_z(x) P_z(y))``. Its expectation is at most 1 if the fix does not help, whatever the
two rates are: with d = f - z = z - k it is, at equal rates q, ``1 - ((q - z) d / (z (1 - z)))**2``, and
smaller where the fix is worse. Products of factors are therefore an e-process, and so is their mean over
alternatives: the chance that it ever reaches 1 / alpha is at most alpha (Ville's inequality), with any rule
of stopping, and with rates that drift between pairs.
"""

from __future__ import annotations

import math
from typing import Final

_KEEP: Final = ((0.01, 0.5), (0.1, 0.25), (0.25, 0.15), (0.45, 0.1))
_FIX: Final = (0.3, 0.5, 0.7, 0.85, 0.97)
ALTERNATIVES: Final = tuple((k, f, w) for k, w in _KEEP for f in _FIX if f - k >= 0.2)
"""Triples of keep, fix and weight. A difference below 0.2 is not looked for; most weight has a step that
fails whenever it is kept, as the error is one that cannot be repaired."""

_TOTAL: Final = sum(weight for _, _, weight in ALTERNATIVES)


class Bet:
    """An e-process over the pairs of one fix at one step.

    Attributes:
        pairs: pairs so far.
    """

    def __init__(self, evidence: float = 1.0) -> None:
        """Start with `evidence`, the e-value of earlier pairs of the same fix."""
        self.pairs = 0
        self._earlier = math.log(evidence) if evidence > 0 else -math.inf
        self._logs = [math.log(weight / _TOTAL) for _, _, weight in ALTERNATIVES]

    def add(self, *, fix: bool, keep: bool) -> None:
        """Take the outcomes of one pair; a replay without outcome counts as its caller decides."""
        self.pairs += 1
        for index, (k, f, _) in enumerate(ALTERNATIVES):
            z = (k + f) / 2
            factor = (f / z if fix else (1 - f) / (1 - z)) * (k / z if keep else (1 - k) / (1 - z))
            self._logs[index] += math.log(factor)

    @property
    def e_value(self) -> float:
        """The weighted mean of the products, times the evidence of earlier pairs."""
        top = max(self._logs)
        mean = top + math.log(sum(math.exp(each - top) for each in self._logs))
        return math.exp(min(700.0, mean + self._earlier))
