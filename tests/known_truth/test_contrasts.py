"""Contrasts with five good runs of drawn teams: most point at the step of the error, few at another one.

The teams are those whose frameworks are installed here; ``contrasts.py`` takes the Pythons of other environments.
"""

from __future__ import annotations

import pytest

pytest.importorskip("openai")

from known_truth.contrasts import GOAL, measured, pythons_of
from known_truth.drawn_stories import VARIANTS, Refund, Stock, Story
from known_truth.drawn_teams import record


@pytest.mark.parametrize("kind", [Stock, Refund])
def test_each_error_has_its_step(kind: type[Story]) -> None:
    """No other run has it, and a healthy one none."""
    told = set()
    for error in range(VARIANTS):
        run, (step,) = record(kind, "by_hand", 1, error)
        told.add(f"{run.steps[step].text} {run.steps[step].arguments}")
    assert len(told) == VARIANTS
    assert not record(kind, "by_hand", 1)[1]


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_the_step_of_the_error_is_found_and_healthy_runs_are_spared() -> None:
    counts = measured(pythons_of({}))
    count, alone = counts[GOAL], counts[0]
    assert alone["wrong"] == alone["accused"] == 0
    assert alone["right"] >= 0.35 * (alone["right"] + alone["silent"])
    failing = count["right"] + count["wrong"] + count["silent"]
    assert count["right"] >= 0.6 * failing
    assert count["wrong"] <= 0.1 * failing
    assert count["accused"] <= 0.02 * (count["accused"] + count["spared"])
    assert count["right"] > count["constant"]
