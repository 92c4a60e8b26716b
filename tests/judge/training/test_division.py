"""Examples on both sides of a division have neither a run, nor an origin, nor a task in common."""

from __future__ import annotations

from dataclasses import replace

import pytest
import toy_training
from hypothesis import given
from hypothesis import strategies as st

from mast_trace.exceptions import ConfigurationError
from mast_trace_lab.train.examples import divide

EXAMPLES = toy_training.examples(20)


def with_task(number: int, task: str, group: str) -> toy_training.Example:
    """An example of a task and an origin."""
    each = EXAMPLES[number]
    return replace(each, group=group, run=replace(each.run, task=task))


def test_the_share_is_held_out() -> None:
    found = divide(EXAMPLES, 0.25)
    assert (len(found.train), len(found.held_out), found.by) == (15, 5, "task")
    assert divide(EXAMPLES, 0.25) == found
    assert divide(list(reversed(EXAMPLES)), 0.25).held_out != ()
    assert {each.id for each in divide(EXAMPLES, 0.25, seed=1).held_out} != {
        each.id for each in found.held_out
    }


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=4, max_size=20),
    st.sampled_from([0.1, 0.25, 0.5]),
)
def test_nothing_is_on_both_sides(pairs: list[tuple[int, int]], share: float) -> None:
    given_ = [with_task(n, f"Task {task}", f"g{group}") for n, (task, group) in enumerate(pairs)]
    try:
        found = divide(given_, share)
    except ConfigurationError:
        assert len({group for _, group in pairs}) == 1
        return
    assert found.held_out
    assert sorted(each.id for each in (*found.train, *found.held_out)) == sorted(
        each.id for each in given_
    )
    sides = (found.train, found.held_out)
    groups, tasks = ([{f(e) for e in side} for side in sides] for f in (_group, _task))
    assert not groups[0] & groups[1]
    assert found.by == "origin" or not tasks[0] & tasks[1]


def _group(each: toy_training.Example) -> str:
    return each.group


def _task(each: toy_training.Example) -> str:
    return each.run.task


def test_where_all_runs_have_one_task_origins_are_divided() -> None:
    """A run that a person labelled stays with the faults that were planted in it."""
    same = [with_task(n, "Count.", EXAMPLES[n - n % 2].id) for n in range(10)]
    people = replace(same[0], source="person", group="Count.")
    found = divide([people, *same[1:]], 0.2)
    assert found.by == "origin"
    held = {each.id for each in found.held_out}
    assert (EXAMPLES[0].id in held) == (EXAMPLES[1].id in held)


def test_one_run_cannot_be_divided() -> None:
    with pytest.raises(ConfigurationError, match="come from one run"):
        divide([with_task(n, "Count.", "g") for n in range(5)], 0.2)


def test_operators_that_are_held_out_are_not_trained_on() -> None:
    marked = [replace(each, held_out_operator=n % 2 == 0) for n, each in enumerate(EXAMPLES)]
    found = divide(marked, 0.2)
    assert found.unused > 0
    assert not any(each.held_out_operator for each in found.train)
    assert len(found.train) + len(found.held_out) + found.unused == len(EXAMPLES)
    assert divide(marked, 0.2, all_operators=True).unused == 0
    with pytest.raises(ConfigurationError, match="--all-operators"):
        divide([replace(each, held_out_operator=True) for each in EXAMPLES], 0.2)


@pytest.mark.parametrize("share", [0.0, 1.0, -1.0])
def test_a_share_that_is_none_is_refused(share: float) -> None:
    with pytest.raises(ConfigurationError, match="share"):
        divide(EXAMPLES, share)
