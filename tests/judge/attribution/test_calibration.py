"""Calibration of distributions over steps, and what ships of it."""

import pytest

from mast_trace_judge.local.attribution import calibration
from mast_trace_judge.local.attribution.calibration import Calibration, fit_calibration, ranked


def test_by_hand():
    """Half of (0.8, 0.1, 0.1), half of 4:2:1 in sevenths."""
    found = Calibration(0.5, 0.5).apply({4: 0.1, 7: 0.8, 9: 0.1})
    assert found == pytest.approx({7: 0.4 + 2 / 7, 4: 0.05 + 1 / 7, 9: 0.05 + 1 / 14})
    assert Calibration().apply({}) == {}
    assert ranked({4: 0.1, 7: 0.8, 9: 0.1}) == [7, 4, 9]


def test_runs_without_a_usable_label_say_nothing():
    """Runs without a label, or with one at a step without a probability, are ignored."""
    assert fit_calibration([({0: 1.0}, None), ({0: 1.0}, 5)]) == Calibration()


def test_what_ships_is_modest():
    assert 0 < calibration.cascade_calibration().share < 0.8
