"""Predictions that count as right by each measure, and the shares of runs that they make."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judge.builders import RunBuilder

from mast_trace_judge.study.agreement import wilson
from mast_trace_judge.study.bench.scoring import MEASURES, Prediction, score
from mast_trace_judge.study.labelled import LabelledRun

RUN = LabelledRun(
    subset="made-up",
    name="1",
    trajectory=RunBuilder().says("Coder", "Hm.").build(),
    step=5,
    agent="Coder",
    marked=frozenset({5, 9}),
)
NEAR = {"within 1", "within 3"}
MARKED = {"marked in 1", "marked in 3"}
EXACT = {"step", "top 3", "official step"} | NEAR | MARKED
"""Measures by which the labelled step itself is right."""

CASES = [
    ((5,), "coder", EXACT | {"agent"}),
    ((6,), "Coder (thought)", NEAR | {"agent", "official agent"}),
    ((4,), "Coders", NEAR | {"official agent"}),
    ((7,), "Planner", {"within 3"}),
    ((2,), "", {"within 3"}),
    ((1,), "Planner", set()),
    ((15,), "Planner", {"official step"}),
    ((1, 2, 5), "Planner", {"top 3", "marked in 3"}),
    ((1, 2, 3, 5), "Planner", set()),
    ((9, 1, 2), "Planner", MARKED),
    ((1, 2, 9), "Planner", {"marked in 3"}),
    ((), "Coder", {"agent", "official agent"}),
    ((), "", set()),
]


@pytest.mark.parametrize(("steps", "agent", "right"), CASES)
def test_by_which_measures_a_prediction_is_right(steps, agent, right):
    shares = score("judge", "made-up", [RUN], [[Prediction(steps, agent)]]).shares
    assert shares.keys() == set(MEASURES)
    assert {measure for measure, share in shares.items() if share.value == 1} == right
    assert {share.value for share in shares.values()} <= {0, 1}


def test_a_measure_that_needs_a_label_which_no_run_has_is_missing():
    by_step = {measure for measure in MEASURES if "agent" not in measure} - MARKED
    for missing, measures in (
        ({"agent": ""}, {"agent", "official agent"}),
        ({"step": None}, by_step),
        ({"marked": frozenset()}, MARKED),
    ):
        run = LabelledRun(**{**vars(RUN), **missing})
        shares = score("judge", "made-up", [run], [[Prediction((5,), "Coder")]]).shares
        assert shares.keys() == set(MEASURES) - measures


DRAWN = st.lists(
    st.lists(st.tuples(st.sampled_from(CASES), st.integers(1, 4)), min_size=1, max_size=3),
    min_size=1,
    max_size=12,
)


@given(DRAWN)
@settings(deadline=None)
def test_shares_of_runs(drawn):
    predictions = [
        [Prediction(steps, agent, weight=weight) for (steps, agent, _), weight in of_run]
        for of_run in drawn
    ]
    found = score("judge", "made-up", [RUN] * len(drawn), predictions)
    assert (found.runs, found.method, found.subset) == (len(drawn), "judge", "made-up")
    for measure in MEASURES:
        right = sum(
            sum(weight for (_, _, hits), weight in of_run if measure in hits)
            / sum(weight for _, weight in of_run)
            for of_run in drawn
        )
        share = found.shares[measure]
        assert share.value == pytest.approx(right / len(drawn))
        # At a half the number of runs may be rounded either way.
        near = {round(right - 1e-6), round(right + 1e-6)}
        assert share.interval in [wilson(runs, len(drawn)) for runs in near]


def test_predictions_of_other_runs_are_refused():
    for count in (1, 3):
        with pytest.raises(ValueError, match="argument"):
            score("judge", "made-up", [RUN] * 2, [[Prediction((5,), "Coder")]] * count)


def test_of_no_runs_nothing_is_said():
    found = score("judge", "made-up", [], [])
    assert (found.shares, found.calibration_error, found.error_by_chance) == ({}, None, None)
