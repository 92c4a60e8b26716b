"""Healthy runs of others: nobody is accused, in whichever shape they are recorded."""

import pytest
from judge.builders import RunBuilder
from judge.data import labelled_runs
from published.healthy import SHAPES, accused, healthy_runs
from test_figures import BENCHMARKS, program

loops = program(BENCHMARKS / "judge" / "loops.py")
KNOWN_TO_BE_FINE = (
    *("tau-retail, succeeded", "agent-loops, succeeded", "ag2-mathchat, correct"),
    *("mast-v0, solved", "ag2-coding, no mode"),
)


LOOPS = "agent-loops, undisturbed"


def test_shapes_leave_out_what_such_tools_do_not_record():
    run = RunBuilder().says("ann", "Look.", to="bob").calls("bob", "look", {}, "1").build()
    found = {
        name: " ".join(f"{step.agent}-{','.join(step.recipients)}" for step in shape(run).steps)
        for name, shape in SHAPES.items()
    }
    unsaid = dict.fromkeys(("no recipients", "model calls"), "ann- bob-")
    assert (
        found
        == {"labelled": "ann-bob bob-", "messages": "ann-bob bob-", "no names": "- -"} | unsaid
    )


@pytest.fixture(scope="module")
def rates():
    sets = healthy_runs(labelled_runs())
    ends = {name: read["end"] for name, read in loops.readings().items()}
    sets[LOOPS] = [run for run in sets[LOOPS] if ends.get(run.name) != "wrong"]
    return accused(sets)


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
    """Small models do go wrong by themselves; those whose answer was read as wrong are left out.

    The readings are in `benchmarks/judge/loops.toml`, and `test_undisturbed_loops` holds the findings
    against them.
    """
    found = [each for each in rates if each.subset == LOOPS]
    assert len(found) == len(SHAPES)
    assert all(each.runs > 300 for each in found)
    assert all((each.shown, each.exact, each.decisive) == (0, 0, 0) for each in found)


@pytest.mark.parametrize("shape", SHAPES)
def test_hardly_any_of_all_is_accused(rates, shape):
    """With the undisturbed ones, too, a mode is shown in at most 2 % of the runs."""
    found = [each for each in rates if each.shape == shape]
    assert sum(each.shown for each in found) <= 0.02 * sum(each.runs for each in found)
