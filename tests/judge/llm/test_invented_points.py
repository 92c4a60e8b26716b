"""Readers that point at steps: with quotes of the run, or with invented ones."""

import pytest
from judge.data import labelled_runs
from judge.llm.scripted_judge import (
    GOOD,
    JudgeScript,
    judged,
    point,
    reading,
    trip,
    what_if,
    with_answers,
)
from published.who_and_when import read_who_and_when

LIE = "the moon is made of green cheese and of nothing else"


async def test_a_point_with_invented_quotes_names_no_step():
    script = with_answers(
        read=reading(point(5, LIE, severity="decisive")), counterfactual=what_if(0.9)
    )
    verdict = (await judged(script, trip(outcome="failure"))).verdict
    alone = (await judged(with_answers(read="no JSON"), trip(outcome="failure"))).verdict
    assert "counterfactual" not in script.asked
    assert (verdict.decisive, verdict.candidates) == (alone.decisive, alone.candidates)
    assert "dropped, for no quote of theirs is in the run: steps 5" in verdict.status_reason


async def test_a_true_point_beside_an_invented_one_stands():
    script = with_answers(
        read=reading(point(5, LIE, severity="decisive"), point(3, "costs 181 EUR a night")),
        counterfactual=what_if(0.9),
    )
    verdict = (await judged(script, trip(outcome="failure"))).verdict
    assert verdict.decisive.step == 3
    assert "steps 5" in verdict.status_reason


async def test_a_failure_without_a_true_quote_is_no_more_than_an_opinion():
    """Nobody recorded an outcome, and the model shows nothing that is in the run."""
    script = with_answers(read=reading(point(5, LIE), p=1.0), map={"modes": []})
    verdict = (await judged(script)).verdict
    assert verdict.outcome == "unknown"
    assert verdict.failure_probability < 1.0
    assert "failure, and quotes nothing of it that went wrong" in verdict.status_reason


def reader(step, quote):
    """A model that blames one step, whatever it is asked."""
    return JudgeScript(
        {
            **GOOD,
            "read": reading(point(step, quote, severity="decisive")),
            "counterfactual": lambda tried: what_if(0.9 if int(tried) == step else 0.0),
            "map": {"modes": []},
        }
    )


def passage(text):
    """The longest line of a text, shortened to some words."""
    line = max(text.split("\n"), key=len)
    return " ".join(line.split()[:20])[:200]


@pytest.mark.long
async def test_a_perfect_readers_steps_are_decisive_and_a_liars_are_not():
    """Over the labelled runs that were made by hand: nine in ten, and none."""
    runs = [
        run for run in read_who_and_when(labelled_runs(), "hand-crafted") if run.step is not None
    ]
    shown = lied = 0
    for run in runs:
        trajectory = run.trajectory
        quote = passage(trajectory.steps[run.step].text)
        verdict = (await judged(reader(run.step, quote), trajectory)).verdict
        shown += verdict.decisive is not None and verdict.decisive.step == run.step
        wrong = (run.step + 2) % len(trajectory.steps)
        alone = (await judged(with_answers(read="no JSON"), trajectory)).verdict
        verdict = (await judged(reader(wrong, LIE), trajectory)).verdict
        assert verdict.decisive == alone.decisive
        lied += verdict.decisive is not None and verdict.decisive.step == wrong
    assert shown >= 0.9 * len(runs), f"{shown} of {len(runs)}"
    assert lied == 0
