"""Calibration of distributions over steps, and what ships of it."""

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mast_trace_judge.layer_fusion import pool
from mast_trace_judge.local.attribution import calibration
from mast_trace_judge.local.attribution.calibration import Calibration, fit_calibration, ranked

PROBABILITIES = st.lists(st.floats(1e-6, 1.0), min_size=1, max_size=40).map(
    lambda weights: {step: weight / sum(weights) for step, weight in enumerate(weights)}
)


@given(PROBABILITIES, st.floats(0.0, 1.0), st.floats(0.05, 0.95))
def test_probabilities_stay_probabilities_in_the_same_order(given_ones, share, first):
    """Probabilities add up to 1, and no step overtakes another."""
    found = Calibration(share, first).apply(given_ones)
    assert sum(found.values()) == pytest.approx(1)
    assert found.keys() == given_ones.keys()
    values = [found[step] for step in ranked(given_ones)]
    assert all(a >= b - 1e-12 for a, b in itertools.pairwise(values))


def test_by_hand():
    """Half of (0.8, 0.1, 0.1), half of 4:2:1 in sevenths."""
    found = Calibration(0.5, 0.5).apply({4: 0.1, 7: 0.8, 9: 0.1})
    assert found == pytest.approx({7: 0.4 + 2 / 7, 4: 0.05 + 1 / 7, 9: 0.05 + 1 / 14})
    assert Calibration().apply({}) == {}


def test_a_boastful_method_is_taught_modesty():
    """A method that claims 0.9 and is right in four of ten runs is calibrated close to that."""
    drawing = random.Random(1)
    distribution = {0: 0.9, 1: 0.04, 2: 0.03, 3: 0.03}
    samples = [
        (distribution, 0 if drawing.random() < 0.4 else drawing.randrange(1, 4)) for _ in range(400)
    ]
    found = fit_calibration(samples)
    assert found.apply(distribution)[0] == pytest.approx(0.4, abs=0.06)


def test_an_honest_method_is_left_alone():
    """Labels drawn from the distributions themselves need no correction."""
    drawing = random.Random(2)
    samples = []
    for _ in range(400):
        weights = [drawing.random() ** 3 for _ in range(6)]
        distribution = {step: weight / sum(weights) for step, weight in enumerate(weights)}
        samples.append((distribution, drawing.choices(range(6), weights)[0]))
    assert fit_calibration(samples).share <= 0.2


def test_runs_without_a_usable_label_say_nothing():
    """Runs without a label, or with one at a step without a probability, are ignored."""
    assert fit_calibration([({0: 1.0}, None), ({0: 1.0}, 5)]) == Calibration()


def test_what_ships_is_modest():
    """Each kind of run has one."""
    for found in (
        calibration.cascade_calibration(),
        *(calibration.fused_calibration(name) for name in ("ag2-captain", "magentic-one", "own")),
    ):
        assert 0 < found.share < 0.8
    assert calibration.fused_calibration("own") == calibration.fused_calibration("cascade")


def test_pooling_lifts_what_the_model_would_correct():
    """Pooling raises the step even where each local probability is small.

    With nothing tried, nothing changes.
    """
    local = dict.fromkeys(range(200), 0.005)
    assert pool(local, {}) == pytest.approx(local)
    assert pool({}, {3: 0.9}) == {}
    found = pool(local, {3: 0.9, 4: 0.3})
    assert found[3] > found[4] > 10 * found[5]
    assert sum(found.values()) == pytest.approx(1)
