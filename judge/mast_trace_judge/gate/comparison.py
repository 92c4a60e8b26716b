"""Comparison of the rates of new runs with those of a baseline: worse, not worse, or undecided.

Fisher's exact test of two shares, and Holm's correction for many tests.

Sources: R. A. Fisher, "The logic of inductive inference", J. R. Stat. Soc. 98 (1935); S. Holm, "A simple
sequentially rejective multiple test procedure", Scand. J. Stat. 6 (1979); R. E. Tarone, "A modified
Bonferroni method for discrete data", Biometrics 46 (1990).

Numbers of runs that a comparison of two shares needs.

Source: J. T. Casagrande, M. C. Pike, P. G. Smith, "An improved approximate formula for calculating sample
sizes for comparing two binomial distributions", Biometrics 34 (1978), for unequal sizes in the form of J. L.
Fleiss, A. Tytun, H. K. Ury, Biometrics 36 (1980). It approximates Fisher's exact test.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, exp, inf, lgamma, sqrt
from statistics import NormalDist
from typing import Final, Literal

from mast_trace.taxonomy import FAILURE_MODES

POWER: Final = 0.8
"""Probability with which a difference shall be noticed."""
MOST: Final = 1_000_000

Compared = Literal["all", "failures", "modes"]
Status = Literal["not worse", "worse", "undecided"]
Finding = Literal["worse", "not worse", "too few", "not compared"]
FAILURES: Final = "failures"
"""Key of the failure rate; other measures have the code of their failure mode."""


def runs_needed(old: float, new: float, level: float, *, ratio: float = 1.0) -> int | None:
    """Return about how many new runs show a rise from one share to another.

    Args:
        old: share of the baseline.
        new: share of the new runs; above ``old``.
        level: probability of a false alarm, one-sided.
        ratio: runs of the baseline for each new run.

    Returns:
        The number of new runs; None where it is above `MOST` or the shares do not rise.
    """
    rise = new - old
    if rise <= 0 or ratio <= 0:
        return None
    normal = NormalDist()
    mean = (new + ratio * old) / (ratio + 1)
    spread = normal.inv_cdf(1 - level) * sqrt((ratio + 1) * mean * (1 - mean)) + normal.inv_cdf(
        POWER
    ) * sqrt(ratio * new * (1 - new) + old * (1 - old))
    plain = spread**2 / (ratio * rise**2)
    exact = (
        plain / 4 * (1 + sqrt(1 + 2 * (ratio + 1) / (plain * ratio * rise))) ** 2 if plain else 1
    )
    return ceil(exact) if exact <= MOST else None


def new_runs_needed(old: float, new: float, level: float, baseline: int) -> int | None:
    """Return about how many new runs show such a rise beside a baseline of so many runs.

    None where no number of new runs is enough, or more than `MOST`.
    """
    low, high = 1, MOST
    if not baseline or not _is_enough(old, new, level, baseline, high):
        return None
    while low < high:
        middle = (low + high) // 2
        if _is_enough(old, new, level, baseline, middle):
            high = middle
        else:
            low = middle + 1
    return low


def noticed_from(old: float, level: float, baseline: int, runs: int) -> float | None:
    """Return about the smallest share of new runs that would be noticed; None if not even 1 would be.

    Args:
        old: share of the baseline.
        level: probability of a false alarm.
        baseline: runs of the baseline.
        runs: new runs.
    """
    if not runs or not baseline or not _is_enough(old, 1.0, level, baseline, runs):
        return None
    low, high = old, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        if _is_enough(old, middle, level, baseline, runs):
            high = middle
        else:
            low = middle
    return high


def _is_enough(old: float, new: float, level: float, baseline: int, runs: int) -> bool:
    needed = runs_needed(old, new, level, ratio=baseline / runs)
    return needed is not None and needed <= runs


@dataclass(frozen=True)
class TwoCounts:
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


def worse(counts: TwoCounts) -> float:
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


def smallest(counts: TwoCounts) -> float:
    """Return the smallest probability that `worse` can have with these margins."""
    shown = counts.old + counts.new
    new = min(shown, counts.of_new)
    return worse(TwoCounts(shown - new, counts.of_old, new, counts.of_new))


def could_fail(counts: TwoCounts, level: float) -> bool:
    """Return whether so many new runs could be worse than this baseline at all: if every one showed it."""
    return worse(TwoCounts(counts.old, counts.of_old, counts.of_new, counts.of_new)) <= level


def corrected(tests: Mapping[str, TwoCounts], level: float) -> dict[str, float]:
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


@dataclass(frozen=True)
class Side:
    """The runs of one side, in counts.

    Attributes:
        runs: all of them.
        states: of these the number in each state; only those that are ``judged`` have a verdict on their
            present content.
        known: runs whose outcome is known.
        failures: of these those that failed.
        examined: runs that were examined for a failure mode, by code.
        shown: of these those that show it.
        other_judge: judged runs whose verdict is of another version of the judge, and counts in no rate.
        examples: ids of some runs of a measure, by key.
    """

    runs: int = 0
    states: Mapping[str, int] = field(default_factory=dict)
    known: int = 0
    failures: int = 0
    examined: Mapping[str, int] = field(default_factory=dict)
    shown: Mapping[str, int] = field(default_factory=dict)
    other_judge: int = 0
    examples: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def judged(self) -> int:
        """Runs with a verdict on their present content, of the judge's version that is compared."""
        return self.states.get("judged", 0) - self.other_judge


@dataclass(frozen=True)
class ComparedRate:
    """One rate on both sides.

    Attributes:
        key: `FAILURES`, or the code of a failure mode.
        counts: on both sides.
        p: probability of so high a rate without a change; None where nothing could be compared.
        corrected: likewise, corrected for the number of rates; None where no result could have been worse.
        finding: what it shows.
        noticed: about the share from which a rise would have been noticed in four of five cases.
        needed: about the number of new runs that notice a rise by ``rise``; None if none does beside this
            baseline.
        examples: ids of new runs that show it.
    """

    key: str
    counts: TwoCounts
    p: float | None
    corrected: float | None
    finding: Finding
    noticed: float | None = None
    needed: int | None = None
    examples: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name for people."""
        return (
            "failed runs" if self.key == FAILURES else f"{self.key} {FAILURE_MODES[self.key].name}"
        )


@dataclass(frozen=True)
class RateComparison:
    """The result.

    Attributes:
        status: ``undecided`` where nothing could have been found worse.
        reasons: why it is worse or undecided.
        measures: the failure rate first, then failure modes by code.
        old: the baseline.
        new: the new runs.
        level: probability of calling any unchanged rate worse, at most.
        rise: the rise of a share that ``needed`` is about.
    """

    status: Status
    reasons: tuple[str, ...]
    measures: tuple[ComparedRate, ...]
    old: Side
    new: Side
    level: float
    rise: float


def compare(
    old: Side,
    new: Side,
    *,
    compared: Compared = "all",
    modes: Sequence[str] = (),
    level: float = 0.05,
    rise: float = 0.1,
) -> RateComparison:
    """Compare new runs with a baseline by exact tests.

    Args:
        old: the baseline.
        new: the new runs.
        compared: the rates: of failures, of failure modes, or both.
        modes: codes of the failure modes; all without any.
        level: probability of calling any unchanged rate worse, at most.
        rise: the rise of a share, from 0 to 1, for which the needed number of runs is said.
    """
    tests = dict(_tests(old, new, compared, modes or tuple(FAILURE_MODES)))
    able = corrected(tests, level)
    family = sum(smallest(counts) <= level for counts in tests.values()) or 1
    measures = tuple(
        _measure(key, counts, able[key], level=level, share=level / family, rise=rise, new=new)
        for key, counts in tests.items()
    )
    bad = [each for each in measures if each.finding == "worse"]
    if bad:
        status: Status = "worse"
        reasons = tuple(f"the share of {each.name} is higher" for each in bad)
    else:
        reasons = tuple(_undecided(old, new, measures, compared))
        status = "undecided" if reasons else "not worse"
    return RateComparison(status, reasons, measures, old, new, level, rise)


def _tests(
    old: Side, new: Side, compared: Compared, modes: Sequence[str]
) -> Iterator[tuple[str, TwoCounts]]:
    if compared != "modes":
        yield FAILURES, TwoCounts(old.failures, old.known, new.failures, new.known)
    if compared != "failures":
        for code in FAILURE_MODES:
            if code in modes:
                yield (
                    code,
                    TwoCounts(
                        old.shown.get(code, 0),
                        old.examined.get(code, 0),
                        new.shown.get(code, 0),
                        new.examined.get(code, 0),
                    ),
                )


def _measure(
    key: str,
    counts: TwoCounts,
    adjusted: float,
    *,
    level: float,
    share: float,
    rise: float,
    new: Side,
) -> ComparedRate:
    """Return one rate with its finding.

    Args:
        key: of the measure.
        counts: on both sides.
        adjusted: its corrected probability.
        level: of the comparison.
        share: the part of the level that one test has at least.
        rise: see `compare`.
        new: the new runs.
    """
    if not counts.of_old or not counts.of_new:
        return ComparedRate(key, counts, None, None, "not compared")
    before = counts.old / counts.of_old
    needed = new_runs_needed(before, min(1.0, before + rise), share, counts.of_old)
    noticed = noticed_from(before, share, counts.of_old, counts.of_new)
    able = could_fail(counts, share)
    finding: Finding = "worse" if adjusted <= level else "not worse" if able else "too few"
    return ComparedRate(
        key,
        counts,
        worse(counts),
        adjusted if able or adjusted < 1 else None,
        finding,
        noticed,
        needed,
        tuple(new.examples.get(key, ())) if finding == "worse" else (),
    )


def _undecided(
    old: Side, new: Side, measures: Sequence[ComparedRate], compared: Compared
) -> Iterator[str]:
    """Yield the reasons for which this comparison could not have found anything worse."""
    if not new.runs:
        yield "there are no new runs"
        return
    if not new.judged:
        yield f"none of the {new.runs:,} new runs was judged" + _other_judge(new)
        return
    if not old.runs:
        yield "the baseline has no runs"
        return
    failures = next((each for each in measures if each.key == FAILURES), None)
    if failures is not None and failures.finding == "not compared":
        side = "new runs" if not new.known else "runs of the baseline"
        yield f"no outcome is known of the {side}, so that failures cannot be compared"
    elif failures is not None and failures.finding == "too few":
        yield "even if every new run had failed, so few runs would not show a rise of failures"
    if compared == "modes" and not any(each.finding == "not worse" for each in measures):
        yield "no failure mode was examined in enough runs of both sides"


def _other_judge(side: Side) -> str:
    if not side.other_judge:
        return ""
    return f" by the version of the judge that judged the others ({side.other_judge:,} were by another)"
