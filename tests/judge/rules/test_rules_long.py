"""The judge's work on a run grows with its length, and no faster."""

from __future__ import annotations

import dataclasses
import json
from functools import partial

import pytest
from long_runs import SHAPES, operations, root, thinks, turn

from mast_trace.trajectory import Trajectory, read_trajectory
from mast_trace_judge.local.attribution import attribute
from mast_trace_judge.local.rules import RULES, find_modes

SHORT, TIMES = 120, 4
_MOST = 2.4 * TIMES
"""Four times the spans take four times the work and some more, but not sixteen times as much."""


def run_of(shape: str, spans: int) -> Trajectory:
    found = read_trajectory(SHAPES[shape](spans))
    return dataclasses.replace(found, outcome="failure", task="Find 118.")


@pytest.mark.parametrize("shape", SHAPES)
def test_reading_grows_with_the_run(shape: str) -> None:
    short, long = SHAPES[shape](SHORT), SHAPES[shape](SHORT * TIMES)
    less = operations(lambda: read_trajectory(short))
    assert operations(lambda: read_trajectory(long)) < _MOST * less


@pytest.mark.parametrize("shape", SHAPES)
def test_rules_and_attribution_grow_with_the_run(shape: str) -> None:
    short, long = run_of(shape, SHORT), run_of(shape, SHORT * TIMES)
    grown = {}
    for rule in RULES:
        less, more = operations(partial(rule, short)), operations(partial(rule, long))
        if more > _MOST * (less + 2000):
            grown[rule.__name__] = (less, more)
    assert grown == {}
    less = operations(partial(attribute, short, find_modes(short)))
    assert operations(partial(attribute, long, find_modes(long))) < _MOST * less


def test_a_turn_that_holds_calls_of_another_agent() -> None:
    """A message shown to one agent is not lost by another one that was never shown it."""
    spans = [
        root(9),
        turn(2, "writer", ["m1"]),
        thinks(3, "writer", ["a", "b"], "One.", parent=2),
        thinks(4, "critic", ["c"], "Two.", parent=2),
        dataclasses.replace(
            turn(5, "writer", ["m4"]),
            attributes={**turn(5, "writer", ["m4"]).attributes, "mast.message.id": "m5"},
        ),
        thinks(6, "critic", ["m4"], "What is the price?", parent=5),
    ]
    answered = {**spans[1].attributes, "mast.message.id": "m4", "x": json.dumps([])}
    spans[1] = dataclasses.replace(spans[1], attributes=answered)
    run = read_trajectory(spans)
    assert [mode.code for mode in find_modes(run)] == []
