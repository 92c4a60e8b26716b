"""Healthy runs of others: nobody is accused, in whichever shape they are recorded."""

import pytest
from judge.data import labelled_runs

from mast_trace_judge.study.healthy import accused, healthy_runs
from mast_trace_judge.study.shapes import SHAPES

KNOWN_TO_BE_FINE = (
    "tau-retail, succeeded",
    "agent-loops, succeeded",
    "ag2-mathchat, correct",
    "mast-v0, solved",
    "ag2-coding, no mode",
)


@pytest.fixture(scope="module")
def rates():
    return accused(healthy_runs(labelled_runs()))


@pytest.mark.parametrize("shape", SHAPES)
def test_hardly_any_is_accused(rates, shape):
    """Pooled, a mode is shown in at most 2 %, possible in at most 5 %, nothing is exact or decisive."""
    found = [each for each in rates if each.shape == shape and each.subset in KNOWN_TO_BE_FINE]
    assert [each.subset for each in found] == list(KNOWN_TO_BE_FINE)
    runs = sum(each.runs for each in found)
    assert runs > 400
    assert sum(each.shown for each in found) <= 0.02 * runs
    assert sum(each.possible for each in found) <= 0.05 * runs
    assert all((each.exact, each.decisive) == (0, 0) for each in found)


def test_loops_that_nobody_disturbed(rates):
    """Small models do go wrong by themselves, but nobody knows that they failed.

    Eight of the ten that are shown end in a sum that is false, and two in another price than the tool
    gave: read by hand.
    """
    found = [each for each in rates if each.subset == "agent-loops, undisturbed"]
    assert len(found) == len(SHAPES)
    assert all((each.exact, each.decisive) == (0, 0) for each in found)
    assert all(each.shown <= 0.03 * each.runs for each in found)


@pytest.mark.parametrize("shape", SHAPES)
def test_hardly_any_of_all_is_accused(rates, shape):
    """With the undisturbed ones, too, a mode is shown in at most 2 % of the runs."""
    found = [each for each in rates if each.shape == shape]
    assert sum(each.shown for each in found) <= 0.02 * sum(each.runs for each in found)
