r"""Evidence that a treatment raises success, which may be looked at at any time.

A task's mean outcome m lies between 0 and 1. In the design ``hash`` a fair coin, the hash of its key, gives the
task the treatment (s = 1) or the control (s = -1). For any centre c that is fixed beforehand, x = s (m - c)
has the expectation (E[m | treatment] - E[m | control]) / 2, which is at most 0 if the treatment does not help,
whatever the tasks are, in whatever order, and however the runs of a task depend on each other. In the design
``pairs`` x is the difference of the two means of one task; it is at most 0 on average as well.

With x >= -b and u = the value of E[x] that is to be rejected, the factor 1 + f (x - u) / (b + u) is not negative
for 0 <= f < 1 and is at most 1 on average if E[x] <= u. Products of factors over tasks are an e-process, and so is
their mean over f and c: the chance that it ever reaches 1 / alpha is at most alpha (Ville's inequality), with
any rule of stopping. Neither f nor c depends on outcomes, so the order of the tasks does not matter, and an
outcome that comes late changes no bet. Waudby-Smith and Ramdas (2024) call it betting on bounded means.

The bet of `mast_trace_lab.confirm.statistics.comparison` is another one, because neither serves both. In simulations
with a threshold of 20, that one shows the effect of a fix (success 0.1 to 0.5, at most 20 pairs) in 61 %, this one in
43 %; at 0.6 to 0.7 over 400 pairs it is 22 % and 63 %. That one is made for large effects, and for outcomes that are success or failure.

A missing outcome counts against the claim that is tested. Evidence can only grow when it arrives, so
looking before all outcomes are there costs power and no validity.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

FRACTIONS: Final = (0.03, 0.06, 0.1, 0.15, 0.22, 0.32, 0.45, 0.65, 0.9)
"""The stakes f; a small effect needs a small one."""
CENTRES: Final = (0.1, 0.3, 0.5, 0.7, 0.9)
PLANNED_WEIGHT: Final = 0.6
"""Weight of the centre that the plan expects; the other centres share the rest."""


@dataclass(frozen=True)
class Centres:
    """The centres c of a design, with their weights."""

    values: tuple[float, ...]
    weights: tuple[float, ...]


def centres_of(expected: float | None) -> Centres:
    """Return the centres for an expected success rate; all alike without one."""
    share = 1.0 / len(CENTRES)
    if expected is None:
        return Centres(CENTRES, (share,) * len(CENTRES))
    rest = (1.0 - PLANNED_WEIGHT) * share
    return Centres((expected, *CENTRES), (PLANNED_WEIGHT, *(rest,) * len(CENTRES)))


PAIRED: Final = Centres((0.0,), (1.0,))
"""Differences within a task need no centre."""


def path(
    signs: Sequence[int], means: Sequence[float], centres: Centres, null: float = 0.0
) -> NDArray[np.float64]:
    """Return the logarithm of the e-value after each task.

    Args:
        signs: 1 for the treatment, -1 for the control; all 1 for differences.
        means: mean outcome of each task, or difference of the means.
        centres: `PAIRED` for differences.
        null: the difference of success rates that is to be rejected.

    Returns:
        One number for each task; empty without tasks.
    """
    import numpy as np  # a collector lacks the extra `judge`

    s, m = np.asarray(signs, float), np.asarray(means, float)
    paired = centres == PAIRED
    limit = null if paired else null / 2
    fractions = np.asarray(FRACTIONS)
    logs, weights = [], []
    for centre, weight in zip(centres.values, centres.weights, strict=True):
        bound = 1.0 if paired else max(centre, 1.0 - centre)
        room = bound + limit
        if room <= 0:  # a null that no outcome can contradict
            return np.zeros(len(m))
        gain = (s * (m - centre) - limit) / room
        logs.append(np.log1p(np.outer(gain, fractions)))
        weights += [weight / len(fractions)] * len(fractions)
    if not len(m):
        return np.zeros(0)
    total = np.cumsum(np.concatenate(logs, axis=1), axis=0) + np.log(weights)
    top = total.max(axis=1)
    return np.asarray(top + np.log(np.exp(total - top[:, None]).sum(axis=1)))


def log_evidence(
    signs: Sequence[int], means: Sequence[float], centres: Centres, null: float = 0.0
) -> float:
    """Return the logarithm of the e-value after all tasks; see `path`."""
    found = path(signs, means, centres, null)
    return float(found[-1]) if len(found) else 0.0


def lower_bound(
    signs: Sequence[int], means: Sequence[float], centres: Centres, threshold: float
) -> float:
    """Return the greatest difference below which everything is rejected at a threshold.

    It holds at every look together with the word "better": it is above 0 exactly if the e-value of
    the null 0 has reached the threshold.
    """
    wanted = math.log(threshold)
    if log_evidence(signs, means, centres, -0.999) < wanted:
        return -1.0
    low, high = -0.999, 0.999
    for _ in range(30):
        middle = (low + high) / 2
        if log_evidence(signs, means, centres, middle) >= wanted:
            low = middle
        else:
            high = middle
    return low
