"""The reward of an answer, from the format gate to the agent."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
import toy_training
from hypothesis import given
from hypothesis import strategies as st

from mast_trace.exceptions import ConfigurationError
from mast_trace_lab.train.examples import Reward, named_step

EXAMPLE = toy_training.examples(1)[0]
READ = toy_training.examples(1, "read")[0]


def reading(*points: dict[str, Any], **more: Any) -> str:
    """An answer to the judge's first question, which puts the first of its errors first."""
    first = points[0] if points else {}
    shape = {"solution": "s", "outcome": "failure", "failure_probability": 1.0}
    ranking = [point["step"] for point in points]
    told = {**shape, "errors": points, "decisive": first, "ranking": ranking, **more}
    return json.dumps(told)


def test_the_right_step_has_the_whole_reward() -> None:
    assert Reward().of_text('{"step": 2}', EXAMPLE) == 1.0
    assert Reward(0.3, 2.0).of_text('It is this one: {"step": 2}', EXAMPLE) == pytest.approx(1.0)


def test_a_step_beside_it_has_what_the_formula_says() -> None:
    assert Reward(0.5).of_step(1, EXAMPLE) == pytest.approx(0.5 * math.exp(-0.5))
    assert Reward(0.5, 2.0).of_step(0, EXAMPLE) == pytest.approx(0.5 * math.exp(-4 / 8))
    assert Reward(0.0).of_step(1, EXAMPLE) == 0.0


def test_the_agent_is_derived_from_the_step() -> None:
    """A wrong step of the right agent has the agent's share; names in the answer count nothing."""
    doubled = toy_training.renamed(EXAMPLE, {3: "Tester (thought)"})
    assert Reward(0.5).of_step(3, doubled) == pytest.approx(0.5 * math.exp(-0.5) + 0.5)
    assert Reward().of_text('{"step": 1, "agent": "tester"}', EXAMPLE) == 0.0


def test_without_an_agent_to_blame_the_distance_alone_counts() -> None:
    nobody = toy_training.changed(EXAMPLE, agent="")
    assert Reward(0.2).of_step(2, nobody) == 1.0
    assert Reward(0.2).of_step(1, nobody) == pytest.approx(math.exp(-0.5))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2",
        "step 2",
        '{"step": 4}',
        '{"step": -1}',
        '{"step": "2"}',
        '{"step": true}',
        '{"step": 2.0}',
        '{"step": [2]}',
        '{"step": 2',
        '{"step": NaN}',
        '<think>{"step": 2}</think>',
        "{" * 5000,
        '{"step": 1' + "0" * 5000 + "}",
    ],
)
def test_the_gate_is_closed(text: str) -> None:
    assert Reward().of_text(text, EXAMPLE) == 0.0


def test_of_several_answers_the_last_counts() -> None:
    """A list of all steps is no way to the reward."""
    every = "".join(f'{{"step": {step}}}' for step in (0, 1, 2, 3))
    assert named_step(every, EXAMPLE) == 3


def test_the_judges_question_needs_a_quote_of_the_run() -> None:
    right = {"step": 2, "quotes": ["Part 0 of the tester."]}
    invented = {"step": 2, "quotes": ["I made a mistake."]}
    assert Reward().of_text(reading(right), READ) == 1.0
    assert Reward().of_text(reading(invented), READ) == 0.0
    assert Reward().of_text(reading({**right, "quotes": []}), READ) == 0.0
    assert Reward().of_text(reading(), READ) == 0.0
    assert Reward().of_text('{"step": 2}', READ) == 0.0


def test_the_first_step_with_a_true_quote_counts_and_harmless_ones_do_not() -> None:
    points = [
        {"step": step, "quotes": [f"Part 0 of the {agent}."]}
        for step, agent in enumerate(toy_training.AGENTS)
    ]
    assert named_step(reading(*points), READ) == 0
    assert named_step(reading(*points[::-1]), READ) == len(points) - 1
    assert named_step(reading({**points[0], "quotes": ["no"]}, points[1]), READ) == 1
    harmless = {**points[0], "harmless": True}
    assert named_step(reading(harmless, points[1], decisive={"step": None}), READ) == 1


@pytest.mark.parametrize("wrong", [(-0.1, None), (1.1, None), (0.5, 0.0), (0.5, math.inf)])
def test_settings_that_make_no_reward_are_refused(wrong: tuple[float, float | None]) -> None:
    with pytest.raises(ConfigurationError):
        Reward(*wrong)


@given(st.text(), st.floats(0, 1), st.none() | st.floats(0.1, 50))
def test_every_text_has_a_reward_from_0_to_1(text: str, weight: float, sigma: float | None) -> None:
    for example in (EXAMPLE, READ):
        assert 0.0 <= Reward(weight, sigma).of_text(text, example) <= 1.0


@given(st.integers(0, 3), st.floats(0, 1), st.floats(0.1, 50))
def test_no_step_is_better_than_the_labelled_one(step: int, weight: float, sigma: float) -> None:
    reward = Reward(weight, sigma)
    assert reward.of_step(step, EXAMPLE) <= reward.of_step(2, EXAMPLE)
