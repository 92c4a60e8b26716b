"""The experiment as the runner of replays sees it: asked, told, killed, resumed, out of budget."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from judge.replay.statistics.simulated_experiments import (
    LENGTH,
    POINTS,
    RESAMPLE,
    at_random,
    conduct,
    made,
    single,
)

from mast_trace_judge.decision_points import DecisionPoint
from mast_trace_lab.confirm.statistics import Experiment, ExperimentLimits
from mast_trace_lab.program.budget import ResultMismatch, most_calls

if TYPE_CHECKING:
    from mast_trace_lab.program.budget import ReplayTrial


def test_phases_come_in_order_and_pairs_are_interleaved_in_random_order() -> None:
    experiment = made()
    told = conduct(experiment, single(6, 0.6), seed=3)
    order = ["verify", "score", "start", "screening", "pairs"]
    firsts = [
        next(place for place, each in enumerate(told) if each.phase == phase) for phase in order
    ]
    assert firsts == sorted(firsts)
    assert [each.arm.operator for each in told[:6]] == ["verify", *["score"] * 5]
    assert [each.arm.operator for each in told[6:10]] == ["start"] * 4
    pairs = [each for each in told if each.phase == "pairs"]
    operators = [
        (first.arm.operator, second.arm.operator)
        for first, second in zip(pairs[::2], pairs[1::2], strict=True)
    ]
    assert set(operators) == {("keep", "resample"), ("resample", "keep")}
    assert [each.pair for each in pairs] == [each // 2 for each in range(len(pairs))]
    searched = [each for each in told if each.phase in {"start", "screening"}]
    assert len(searched) <= 64
    assert len(pairs) <= 40


def test_the_same_seed_asks_the_same_and_another_orders_pairs_otherwise() -> None:
    first, second, third = (made(seed=seed) for seed in (5, 5, 6))
    told = [conduct(each, single(4, 0.9), seed=1) for each in (first, second, third)]
    assert told[0] == told[1]
    assert first.conclusion() == second.conclusion()
    assert [each.arm for each in told[0]] != [each.arm for each in told[2]]


def test_it_goes_on_from_every_point_at_which_it_may_be_killed() -> None:
    whole = made(seed=5)
    told = conduct(whole, single(4, 0.6), seed=2)
    for stop in range(len(told)):
        resumed = made(seed=5)
        for each in told[:stop]:
            resumed.tell(each)
        trial = resumed.ask()
        assert trial is not None
        assert (trial.arm, trial.phase, trial.pair) == (
            *(told[stop].arm, told[stop].phase),
            told[stop].pair,
        )
    resumed = made(seed=5)
    for each in told:
        resumed.tell(each)
    assert resumed.ask() is None
    assert resumed.conclusion() == whole.conclusion()


@pytest.mark.parametrize(("length", "least", "most"), [(3, 20, 20), (6, 20, 20), (12, 8, 30)])
def test_a_run_that_the_failure_cut_short_does_not_limit_its_replays(
    length: int, least: int, most: int
) -> None:
    """A replay that succeeds may go a way that the recorded run has not gone; those of long runs take no more."""
    points = POINTS[:length]
    experiment = made(points=points, sources={each.step: (RESAMPLE,) for each in points})
    asked: list[int] = []
    draw = random.Random(3)
    while (trial := experiment.ask()) is not None:
        asked += [most_calls(trial)] * bool(trial.calls)
        experiment.tell(at_random(trial, draw.random() < single(1, 0.6)(trial), draw))
    assert (min(asked), max(asked)) == (least, most)


def test_a_result_of_something_else_is_refused_in_words() -> None:
    experiment = made(limits=ExperimentLimits(verifications=0, scores=0))
    trial = experiment.ask()
    assert trial is not None
    result = at_random(trial, True, random.Random(0))
    for wrong in (
        replace(result, phase="screening"),
        replace(result, pair=3),
        replace(result, arm=replace(trial.arm, operator="keep", step=5)),
    ):
        with pytest.raises(ResultMismatch, match=r"replay 0 of the experiment is start at step -1"):
            experiment.tell(wrong)
    experiment.tell(result)
    assert experiment.evidence.runs("start") == 1


def test_nothing_is_told_after_the_end() -> None:
    experiment = made(not_isolated="the program writes to a database; give --reset")
    assert experiment.ask() is None
    assert experiment.expected_calls() == 0
    with pytest.raises(ResultMismatch, match="ended after 0 replays"):
        experiment.tell(at_random(made().waiting()[0], False, random.Random(0)))
    found = experiment.conclusion()
    assert found.status == "not isolated"
    assert found.text == "the program writes to a database; give --reset"


def test_a_run_without_answers_of_a_model_has_no_conclusion() -> None:
    experiment = Experiment((), prior={}, sources={})
    assert experiment.ask() is None
    assert experiment.conclusion().status == "inconclusive"


def test_before_the_first_replay_nothing_is_claimed() -> None:
    experiment = made()
    assert experiment.conclusion().status == "untested"
    assert 0 < experiment.expected_calls() < 64 * LENGTH


@pytest.mark.parametrize(
    ("phase", "success", "status", "words"),
    [
        ("verify", True, "unstable", "changes nothing succeeds: 1 of 1"),
        ("verify", None, "inconclusive", "no outcome: timeout killed after 60 s"),
        ("score", True, "unstable", "does not judge the recorded answer alike: 1 of 5"),
        ("score", None, "inconclusive", "no score: timeout"),
    ],
)
def test_without_a_reliable_outcome_nothing_is_searched(
    phase: str, success: bool | None, status: str, words: str
) -> None:
    experiment, draw, seen = made(), random.Random(0), 0
    while (trial := experiment.ask()) is not None:
        odd = trial.phase == phase and seen == (3 if phase == "score" else 0)
        experiment.tell(at_random(trial, success if odd else False, draw))
        seen += 1
    found = experiment.conclusion()
    assert (found.status, found.live_calls) == (status, 0)
    assert words in found.text


@pytest.mark.parametrize("most", [0, 30, 100, 250])
def test_the_budget_of_calls_is_never_exceeded_and_more_of_it_goes_on(most: int) -> None:
    limits = ExperimentLimits(max_calls=most)
    experiment = made(limits=limits)
    told = conduct(experiment, single(6, 0.9), seed=4)
    found = experiment.conclusion()
    assert found.live_calls <= most
    pairs = [each for each in told if each.phase == "pairs"]
    assert len(pairs) % 2 == 0  # no half pair is paid for
    assert experiment.expected_calls() <= most - found.live_calls
    longer = made(limits=replace(limits, max_calls=100_000))
    for each in told:
        longer.tell(each)
    conduct(longer, single(6, 0.9), seed=5)
    assert longer.conclusion().status == "confirmed"


def test_an_unknown_price_makes_the_cost_unknown() -> None:
    experiment = made()
    for _ in range(7):
        trial = experiment.ask()
        assert trial is not None
        experiment.tell(replace(at_random(trial, False, random.Random(0)), cost_usd=None))
    assert experiment.conclusion().cost_usd is None


def test_batches_may_run_together_and_are_told_in_order() -> None:
    experiment, draw, chance = (
        made(limits=ExperimentLimits(batch=4)),
        random.Random(0),
        single(6, 0.9),
    )
    while waiting := experiment.waiting():
        results = [at_random(each, draw.random() < chance(each), draw) for each in waiting]
        for each in results:
            experiment.tell(each)
    assert experiment.conclusion().origin == 13


def test_replays_without_an_outcome_end_it_with_the_reason() -> None:
    experiment, draw = made(limits=ExperimentLimits(verifications=0, scores=0)), random.Random(0)
    while (trial := experiment.ask()) is not None:
        experiment.tell(at_random(trial, None, draw))
    found = experiment.conclusion()
    assert (found.replays, found.status) == (8, "inconclusive")
    assert "no outcome, the last one: timeout killed after 60 s" in found.text


@pytest.mark.parametrize("length", [1, 2, 3, 400])
def test_short_and_long_runs_end(length: int) -> None:
    points = [DecisionPoint(each, "", "0", "") for each in range(length)]
    sources = dict.fromkeys(range(length), (RESAMPLE,))
    error = length // 2

    def chance(trial: ReplayTrial) -> float:
        arm = trial.arm
        if arm.operator in {"verify", "score"}:
            return 0.0
        kept = arm.step - (arm.operator == "resample")
        return 0.95 if arm.operator == "start" or kept < error else 0.0

    experiment = Experiment(points, prior={0: float("nan")}, sources=sources)
    conduct(experiment, chance, seed=8)
    found = experiment.conclusion()
    assert (found.status, found.origin) == ("confirmed", error)
    assert f"step {error} decided" in found.text


@pytest.mark.parametrize("sizes", [{"batch": 0}, {"pairs": -1}, {"scores": -5}])
def test_sizes_with_which_it_would_never_end_are_refused(sizes: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="not negative"):
        ExperimentLimits(**sizes)


def test_everything_may_be_left_out() -> None:
    nothing = ExperimentLimits(
        verifications=0, scores=0, start_runs=0, screening_runs=0, pair_runs=0
    )
    experiment = made(limits=nothing)
    assert experiment.ask() is None
    assert experiment.conclusion().status == "untested"
