"""The e-process holds its level at every look, in any order, and for any tasks; the interval agrees with it."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from mast_trace_lab.feedback.statistics.betting import (
    CENTRES,
    FRACTIONS,
    PAIRED,
    centres_of,
    log_evidence,
    lower_bound,
    path,
)
from mast_trace_lab.feedback.statistics.conclusion import _t_quantile, clustered_rate
from mast_trace_lab.feedback.statistics.plan import planned_size

EXPECTED = [None, 0.05, 0.65, 0.99]


@pytest.mark.parametrize("expected", EXPECTED)
@pytest.mark.parametrize("rate", [0.0, 0.1, 0.6, 0.97, 1.0])
def test_one_task_gains_nothing_without_an_effect(expected: float | None, rate: float) -> None:
    """The exact expectation of the e-value after one task, over arm and outcome."""
    centres = centres_of(expected)
    mean = sum(
        0.5 * chance * math.exp(log_evidence([sign], [outcome], centres))
        for sign in (1, -1)
        for outcome, chance in ((1.0, rate), (0.0, 1 - rate))
    )
    assert mean == pytest.approx(1.0)


def test_a_harmful_treatment_loses_on_average() -> None:
    centres = centres_of(0.6)
    mean = sum(
        0.5 * chance * math.exp(log_evidence([sign], [outcome], centres))
        for sign, rate in ((1, 0.5), (-1, 0.7))
        for outcome, chance in ((1.0, rate), (0.0, 1 - rate))
    )
    assert mean < 1


def test_the_expectation_is_one_after_several_tasks_as_well() -> None:
    """All assignments of four tasks whose outcomes are fixed: the sharpest case of no effect."""
    means = [1.0, 0.0, 0.25, 1.0]
    signs = itertools.product([1, -1], repeat=4)
    found = [math.exp(log_evidence(each, means, centres_of(0.4))) for each in signs]
    assert np.mean(found) == pytest.approx(1.0)


def test_the_order_of_the_tasks_does_not_matter() -> None:
    """So an outcome that comes late changes no bet on the others."""
    random = np.random.default_rng(1)
    signs, means = random.choice([1, -1], 60), random.random(60)
    whole = log_evidence(list(signs), list(means), centres_of(0.5))
    for _ in range(5):
        order = random.permutation(60)
        again = log_evidence(list(signs[order]), list(means[order]), centres_of(0.5))
        assert again == pytest.approx(whole)


def test_an_outcome_against_the_claim_is_the_worst_a_missing_one_can_be() -> None:
    """Evidence with missing outcomes is never more than with any outcomes in their place."""
    random = np.random.default_rng(2)
    for centres in (centres_of(0.7), PAIRED):
        signs = [1] * 30 if centres == PAIRED else list(random.choice([1, -1], 30))
        worst = [-1.0] * 30 if centres == PAIRED else [0.0 if s > 0 else 1.0 for s in signs]
        low = path(signs, worst, centres)
        for _ in range(20):
            drawn = random.random(30) * (2 if centres == PAIRED else 1) - (centres == PAIRED)
            assert (path(signs, list(drawn), centres) >= low - 1e-9).all()


@pytest.mark.parametrize("centres", [centres_of(0.6), centres_of(None), PAIRED])
def test_the_interval_is_above_zero_exactly_when_it_is_decided(centres: object) -> None:
    random = np.random.default_rng(3)
    seen = set()
    for number in range(40):
        count = 30 + 10 * number
        if centres == PAIRED:
            signs = [1] * count
            means = list(random.choice([-1.0, 0.0, 1.0], count, p=[0.2, 0.4, 0.4]))
        else:
            signs = list(random.choice([1, -1], count))
            means = [float(random.random() < (0.7 if s > 0 else 0.5)) for s in signs]
        decided = log_evidence(signs, means, centres) >= math.log(20)
        assert (lower_bound(signs, means, centres, 20.0) > 1e-6) == decided
        seen.add(decided)
    assert seen == {True, False}


def test_the_interval_holds_the_truth_at_every_look() -> None:
    """Its lower end passes the true difference of .1 in at most 5 % of the experiments."""
    random = np.random.default_rng(4)
    passed = 0
    for _ in range(200):
        signs = random.choice([1, -1], 400)
        means = (random.random(400) < np.where(signs > 0, 0.7, 0.6)).astype(float)
        passed += bool((path(signs, means, centres_of(0.65), 0.1) >= math.log(20)).any())
    assert passed <= 14  # 5 % of 200, and two standard deviations


def test_without_tasks_nothing_is_known() -> None:
    assert log_evidence([], [], PAIRED) == 0.0
    assert lower_bound([], [], centres_of(None), 20.0) == -1.0
    assert all(0 < fraction < 1 for fraction in FRACTIONS)
    assert sum(centres_of(0.3).weights) == pytest.approx(1)
    assert len(CENTRES) == 5


@pytest.mark.parametrize(
    ("baseline", "effect", "single"), [(0.6, 0.1, 354), (0.6, 0.05, 1468), (0.2, 0.1, 291)]
)
def test_a_single_look_needs_a_smaller_size(baseline: float, effect: float, single: int) -> None:
    size = planned_size(baseline, effect)
    assert size.single_look == single
    assert single < size.tasks < 2 * single
    assert size.runs == 3 * size.tasks


@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize(("baseline", "effect"), [(0.6, 0.2), (0.8, -0.3)])
def test_the_planned_size_has_its_power(pairs: bool, baseline: float, effect: float) -> None:
    """With 300 experiments of that size: between .72 and .92."""
    random = np.random.default_rng(5)
    tasks = planned_size(baseline, effect, pairs=pairs).tasks
    better, worse = max(baseline, baseline + effect), min(baseline, baseline + effect)
    found = 0
    for _ in range(300):
        if pairs:
            treated, control = random.random(tasks) < better, random.random(tasks) < worse
            logs = path([1] * tasks, list(treated.astype(float) - control), PAIRED)
        else:
            signs = random.choice([1, -1], 2 * tasks)
            means = (random.random(2 * tasks) < np.where(signs > 0, better, worse)).astype(float)
            logs = path(signs, means, centres_of((better + worse) / 2))
        found += bool(logs.max() >= math.log(20))
    assert 0.72 < found / 300 < 0.92


@pytest.mark.parametrize(("baseline", "effect"), [(0.6, 0.4), (0.0, 0.1), (0.5, 0.0), (0.2, -0.3)])
def test_rates_that_do_not_exist_are_not_planned(baseline: float, effect: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        planned_size(baseline, effect)


@pytest.mark.parametrize(("tasks", "runs", "alike"), [(20, 10, 1.0), (8, 4, 1.0), (60, 1, 100.0)])
def test_the_clustered_interval_covers_the_truth(tasks: int, runs: int, alike: float) -> None:
    """In at least 93 % of 1,000 draws, where runs of a task are alike; a plain interval does not."""
    random = np.random.default_rng(6)
    covered = plain = 0
    for _ in range(1000):
        rates = random.beta(0.6 * alike, 0.4 * alike, tasks)
        successes = [int(each) for each in random.binomial(runs, rates)]
        found = clustered_rate([(each, runs) for each in successes])
        covered += found.low <= 0.6 <= found.high
        one = clustered_rate([(int(n < each), 1) for each in successes for n in range(runs)])
        plain += one.low <= 0.6 <= one.high
    assert covered >= 930
    if (tasks, runs) == (20, 10):
        assert plain < 700


@pytest.mark.parametrize(
    ("freedom", "quantile"), [(3, 3.182), (10, 2.228), (30, 2.042), (120, 1.980), (10**6, 1.960)]
)
def test_the_quantile_is_students(freedom: int, quantile: float) -> None:
    """As tables have it, to 1 %."""
    assert _t_quantile(0.975, freedom) == pytest.approx(quantile, rel=0.01)


@pytest.mark.parametrize(
    ("tasks", "effective", "freedom"),
    [
        # rate .75; the variance of the means' mean is .0625, and .75 x .25 / .0625 = 3.
        ([(1, 2), (2, 2)], 3.0, 1),
        ([(0, 2), (2, 2)], 1.0, 1),
        ([(2, 4), (3, 4), (2, 4), (3, 4)], 16.0, 3),
        ([(1, 2), (1, 2), (0, 0)], 2.0, 1),
        ([(1, 4)], 1.0, 0),
    ],
)
def test_the_interval_of_a_rate_by_hand(
    tasks: list[tuple[int, int]], effective: float, freedom: int
) -> None:
    found = clustered_rate(tasks)
    rate = sum(successes / runs for successes, runs in tasks if runs)
    rate /= sum(runs > 0 for _, runs in tasks)
    z = _t_quantile(0.975, freedom)
    centre = (rate + z * z / (2 * effective)) / (1 + z * z / effective)
    half = math.sqrt(rate * (1 - rate) / effective + z * z / (4 * effective**2))
    half *= z / (1 + z * z / effective)
    assert found.value == pytest.approx(rate)
    assert (found.low, found.high) == (pytest.approx(centre - half), pytest.approx(centre + half))


def test_a_rate_without_spread_is_not_certain() -> None:
    assert clustered_rate([]).value is None
    assert clustered_rate([(0, 0)]).value is None
    all_right = clustered_rate([(10, 10)] * 5)
    assert all_right.value == 1.0
    assert all_right.low < 0.6
    assert clustered_rate([(1, 1)]).low < 0.3
