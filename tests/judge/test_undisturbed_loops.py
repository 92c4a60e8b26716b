"""The judge's findings in undisturbed loops agree with the readings of people."""

import pytest
from judge.data import labelled_runs
from test_figures import BENCHMARKS, program

loops = program(BENCHMARKS / "judge" / "loops.py")


@pytest.fixture(scope="module")
def runs():
    return loops.undisturbed(labelled_runs())


def test_the_runs_that_are_drawn_have_been_read(runs):
    read = loops.readings()
    chosen = loops.drawn(runs)
    assert len(chosen) == 40
    assert {run.name for run in chosen} <= set(read)
    for run in runs:
        reading = read.get(run.name, {"end": "right", "what": "unread"})
        assert reading["end"] in {"right", "wrong", "incomplete", "doubtful"}
        assert 0 <= reading.get("step", 0) < max(1, len(run.trajectory.steps))


def test_what_is_found_in_them_was_read(runs):
    read = loops.readings()
    found = {run.name: loops.judged(run) for run in runs}
    wrong = [name for name in read if not all(loops.right(read[name], found[name]))]
    unread = [name for name, each in found.items() if each.steps and name not in read]
    assert (wrong, unread) == ([], [])
