"""The expected calibration error against a second implementation, and what chance makes of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mast_trace_judge.study.bench.scoring import (
    Confidence,
    calibration_error,
    error_by_chance,
    reliability,
)

CONFIDENCES = st.lists(
    st.builds(
        Confidence,
        run=st.integers(0, 20),
        probability=st.one_of(
            st.floats(0, 1), st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.999999, 1.0])
        ),
        right=st.booleans(),
        weight=st.floats(0.01, 1),
    ),
    min_size=1,
    max_size=80,
)


def expected_error(given_ones):
    """Sum over ten bins of |weight claimed - weight right|, by the weight of all."""
    error = 0.0
    for place in range(10):
        inside = [
            each
            for each in given_ones
            if place <= 10 * each.probability < place + 1 or (place == 9 and each.probability == 1)
        ]
        claimed = sum(each.probability * each.weight for each in inside)
        right = sum(each.weight for each in inside if each.right)
        error += abs(claimed - right)
    return error / sum(each.weight for each in given_ones)


@given(CONFIDENCES)
def test_the_calibration_error(given_ones):
    """Bins are closed below, the last at both ends."""
    bins = reliability(given_ones)
    assert calibration_error(bins) == pytest.approx(expected_error(given_ones))
    assert sum(weight for _, _, weight in bins) == pytest.approx(
        sum(each.weight for each in given_ones)
    )


def test_the_error_by_chance_falls_with_the_number_of_runs():
    for runs in (25, 400):
        same = [Confidence(run, 0.5, right=False, weight=1.0) for run in range(runs)]
        found = error_by_chance(same)
        assert found == pytest.approx((0.25 * 2 / 3.14159 / runs) ** 0.5, rel=0.2)
    certain = [Confidence(run, 1.0, right=False, weight=1.0) for run in range(25)]
    assert error_by_chance(certain) == 0.0


def test_predictions_of_one_run_are_right_or_wrong_together():
    """A hundred halves of one run are one coin: off by one half, always."""
    same = [Confidence(0, 0.5, right=False, weight=0.5) for _ in range(100)]
    assert error_by_chance(same) == pytest.approx(0.5)


def test_the_error_by_chance_is_the_same_everywhere():
    """The draws are the same everywhere, so a published figure can be reproduced."""
    twenty = [Confidence(run, run / 20, right=False, weight=1.0) for run in range(20)]
    assert error_by_chance(twenty) == pytest.approx(0.22545)
