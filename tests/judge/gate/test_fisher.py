"""The exact test, its correction, and the numbers of runs that it needs."""

from __future__ import annotations

import random
from math import comb, nextafter
from typing import Any

import pytest

from mast_trace_judge.gate.comparison import (
    FAILURES,
    MOST,
    Compared,
    Side,
    TwoCounts,
    compare,
    corrected,
    could_fail,
    new_runs_needed,
    noticed_from,
    runs_needed,
    smallest,
    worse,
)


def test_it_is_fishers_test() -> None:
    """As scipy computes it, on random tables, empty sides among them."""
    stats = pytest.importorskip("scipy.stats", reason="needs scipy")
    draw = random.Random(7)
    for _ in range(300):
        of_old, of_new = draw.randint(0, 60), draw.randint(0, 60)
        old, new = draw.randint(0, of_old), draw.randint(0, of_new)
        table = [[new, of_new - new], [old, of_old - old]]
        expected = 1.0
        if of_old and of_new:
            expected = stats.fisher_exact(table, alternative="greater")[1]
        assert worse(TwoCounts(old, of_old, new, of_new)) == pytest.approx(expected, abs=1e-9)


def test_impossible_counts_are_refused() -> None:
    for counts in ((1, 0, 0, 0), (0, 0, 2, 1), (-1, 5, 0, 5)):
        with pytest.raises(ValueError, match="no counts"):
            TwoCounts(*counts)


def test_false_alarms_stay_below_the_level() -> None:
    draw = random.Random(11)
    rates = [0.2, 0.5, *[0.02] * 6, *[0.1] * 5, 0.0, 0.9]
    rounds, alarms = 400, 0
    for _ in range(rounds):
        tests = {
            str(index): TwoCounts(
                sum(draw.random() < share for _ in range(60)),
                60,
                sum(draw.random() < share for _ in range(40)),
                40,
            )
            for index, share in enumerate(rates)
        }
        alarms += min(corrected(tests, 0.05).values()) <= 0.05
    assert alarms <= 0.05 * rounds + 2 * (0.05 * 0.95 * rounds) ** 0.5


def test_rates_that_cannot_decide_cost_the_others_nothing() -> None:
    one = TwoCounts(1, 50, 9, 50)
    alone = corrected({"a": one}, 0.05)["a"]
    idle = {str(number): TwoCounts(0, 50, 0, 50) for number in range(20)}
    found = corrected({"a": one, **idle}, 0.05)
    assert (found["a"], found["3"]) == (alone, 1.0)
    assert corrected({}, 0.05) == {}


def test_a_corrected_probability_never_falls_below_a_smaller_ones() -> None:
    tests = {
        "a": TwoCounts(0, 50, 20, 50),
        "b": TwoCounts(2, 50, 12, 50),
        "c": TwoCounts(3, 50, 12, 50),
    }
    found = corrected(tests, 0.05)
    assert found["a"] <= found["b"] <= found["c"]


@pytest.mark.parametrize(
    ("old", "new", "level", "ratio", "runs"),
    [
        (0.2, 0.4, 0.05, 1.0, 74),
        (0.05, 0.3, 0.01, 2.0, 37),
        (0.1, 0.5, 0.05, 0.5, 31),
    ],
)
def test_the_needed_runs_have_the_power(
    old: float, new: float, level: float, ratio: float, runs: int
) -> None:
    """Summed over all results of both sides; the numbers follow the formula of Fleiss, Tytun and Ury (1980)."""
    assert runs_needed(old, new, level, ratio=ratio) == runs
    baseline = round(runs * ratio)

    def chance(hits: int, of: int, share: float) -> float:
        return comb(of, hits) * share**hits * (1 - share) ** (of - hits)

    power = sum(
        chance(a, baseline, old) * chance(b, runs, new)
        for a in range(baseline + 1)
        for b in range(runs + 1)
        if worse(TwoCounts(a, baseline, b, runs)) <= level
    )
    assert 0.76 < power < 0.9


def test_a_baseline_can_be_too_small_for_any_number_of_new_runs() -> None:
    assert new_runs_needed(0.2, 0.3, 0.05, 50) is None
    enough = new_runs_needed(0.2, 0.3, 0.05, 500)
    assert enough is not None
    assert 100 < enough < MOST
    assert runs_needed(0.3, 0.3, 0.05) is None
    assert noticed_from(0.2, 0.05, 5, 1) is None
    assert noticed_from(0.2, 0.05, 0, 50) is None


def test_one_run_can_fail_a_gate_only_beside_a_good_baseline() -> None:
    assert could_fail(TwoCounts(0, 50, 0, 1), 0.05)
    assert not could_fail(TwoCounts(5, 20, 0, 1), 0.05)
    assert smallest(TwoCounts(0, 50, 0, 50)) == 1.0


def test_a_side_with_ten_thousand_runs_is_quick_and_exact() -> None:
    old = Side(10_000, {"judged": 10_000}, 10_000, 1000)
    new = Side(10_000, {"judged": 10_000}, 10_000, 1100)
    (measure,) = compare(old, new, compared="failures").measures
    assert (measure.key, measure.corrected) == (FAILURES, pytest.approx(0.0111894, abs=1e-6))
    assert measure.finding == "worse"


def side(known: int, failures: int = 0, **more: Any) -> Side:
    """Return as many judged runs with a known outcome."""
    given: dict[str, Any] = {"runs": known, "states": {"judged": known}, **more}
    return Side(known=known, failures=failures, **given)


EXAMINED = {"examined": {"1.3": 50}, "shown": {"1.3": 1}}
TWO = {"examined": {"1.3": 50, "2.1": 50}, "shown": {"1.3": 5, "2.1": 5}}
"""Two modes that take their share of the level."""


@pytest.mark.parametrize(
    ("old", "new", "compared", "status"),
    [
        (Side(), Side(), "all", "undecided"),
        (side(50), side(50), "all", "not worse"),
        (side(50), side(50, 20), "all", "worse"),
        (side(50), side(50, 20), "modes", "undecided"),
        (side(50, **EXAMINED), side(50, 20, **EXAMINED), "modes", "not worse"),
        (side(50, **EXAMINED), side(50, 20, examined={"1.3": 50}, shown={"1.3": 30}), "modes", "worse"),
        (side(50, **EXAMINED), side(50, examined={"1.3": 50}, shown={"1.3": 30}), "failures", "not worse"),
        (side(50), side(0), "all", "undecided"),
        (side(0), side(50), "all", "undecided"),
        (side(50), side(50, states={"waiting": 50}), "all", "undecided"),
        (side(50), side(50, other_judge=50), "all", "undecided"),
        (side(50), side(50, other_judge=49), "all", "not worse"),
        (side(50), side(0, runs=50, states={"judged": 50}), "all", "undecided"),
        (side(0, runs=50, states={"judged": 50}), side(50), "all", "undecided"),
        (side(20, 5), side(1), "all", "undecided"),
        (side(25, **EXAMINED), side(1, **EXAMINED), "all", "not worse"),
        (side(25, **TWO), side(1, **TWO), "all", "undecided"),
        (side(50), side(1), "all", "not worse"),
        (side(20, 5, **EXAMINED), side(1, **EXAMINED), "modes", "not worse"),
    ],
)  # fmt: skip
def test_a_comparison_that_could_find_nothing_worse_is_undecided(
    old: Side, new: Side, compared: Compared, status: str
) -> None:
    """Each rate that is compared counts: one that is worse decides, and one that could not be is no pass."""
    assert compare(old, new, compared=compared).status == status


def test_a_rate_is_worse_from_the_level_on() -> None:
    old, new = side(50, 1), side(50, 9)
    p = worse(TwoCounts(1, 50, 9, 50))
    for level, status in ((p, "worse"), (nextafter(p, 0.0), "not worse")):
        found = compare(old, new, compared="failures", level=level)
        assert found.status == status
        assert could_fail(TwoCounts(1, 50, 9, 50), level)
    highest = worse(TwoCounts(1, 50, 50, 50))
    assert could_fail(TwoCounts(1, 50, 9, 50), highest)
    assert not could_fail(TwoCounts(1, 50, 9, 50), nextafter(highest, 0.0))
