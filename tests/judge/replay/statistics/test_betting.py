"""Evidence by bets on pairs: its expectation, its chance to be wrong, and its growth."""

from __future__ import annotations

import math
import random
from itertools import product

import pytest

from mast_trace_lab.confirm.statistics.comparison import ALTERNATIVES, Bet

RATES = [each / 20 for each in range(21)]


def value_of(pairs: list[tuple[bool, bool]]) -> float:
    bet = Bet()
    for fix, keep in pairs:
        bet.add(fix=fix, keep=keep)
    return bet.e_value


def test_no_pair_is_no_evidence() -> None:
    assert Bet().e_value == pytest.approx(1.0)


@pytest.mark.parametrize("pairs", [1, 2, 3])
def test_the_expectation_is_at_most_one_where_the_fix_does_not_help(pairs: int) -> None:
    values = {
        outcome: value_of(list(zip(outcome[::2], outcome[1::2], strict=True)))
        for outcome in product([False, True], repeat=2 * pairs)
    }
    for keep, fix in product(RATES, RATES):
        expected = sum(
            value
            * math.prod(fix if hit else 1 - fix for hit in outcome[::2])
            * math.prod(keep if hit else 1 - keep for hit in outcome[1::2])
            for outcome, value in values.items()
        )
        if fix <= keep:
            assert expected <= 1 + 1e-9
        elif fix - keep >= 0.5:
            assert expected > 1.1  # the test can succeed


def test_the_expectation_is_at_most_one_where_rates_drift_between_pairs() -> None:
    pairs = list(product([False, True], repeat=2))
    for first, second in product(RATES, RATES):
        expected = sum(
            value_of([one, two])
            * math.prod(first if hit else 1 - first for hit in one)
            * math.prod(second if hit else 1 - second for hit in two)
            for one, two in product(pairs, pairs)
        )
        assert expected <= 1 + 1e-9


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5, 0.8])
def test_the_threshold_is_seldom_reached_by_chance_however_long_one_goes_on(rate: float) -> None:
    draw = random.Random(7)
    reached = 0
    for _ in range(400):
        bet = Bet()
        for _ in range(100):
            bet.add(fix=draw.random() < rate, keep=draw.random() < rate)
            if bet.e_value >= 20:
                reached += 1
                break
    assert reached / 400 <= 0.05


@pytest.mark.parametrize(
    ("keep", "fix", "least"),
    [(0.0, 0.9, 0.99), (0.0, 0.6, 0.93), (0.1, 0.9, 0.93), (0.2, 0.8, 0.7)],
)
def test_a_fix_that_helps_is_proved_in_twenty_pairs(keep: float, fix: float, least: float) -> None:
    draw = random.Random(3)
    proved = 0
    for _ in range(300):
        bet = Bet()
        while bet.pairs < 20 and bet.e_value < 80:
            bet.add(fix=draw.random() < fix, keep=draw.random() < keep)
        proved += bet.e_value >= 80
    assert proved / 300 >= least


def test_evidence_of_earlier_pairs_is_multiplied() -> None:
    before = value_of([(True, False), (True, False)])
    bet = Bet(before)
    assert bet.e_value == pytest.approx(before)
    bet.add(fix=False, keep=True)
    assert bet.e_value == pytest.approx(before * value_of([(False, True)]))
    assert Bet(0.0).e_value == 0.0


def test_very_much_evidence_is_a_number() -> None:
    assert math.isfinite(value_of([(True, False)] * 5000))


def test_weights_belong_to_alternatives_in_which_the_fix_helps() -> None:
    assert all(0 < keep < fix < 1 and weight > 0 for keep, fix, weight in ALTERNATIVES)
