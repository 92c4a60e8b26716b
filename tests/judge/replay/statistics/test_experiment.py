"""The experiment as whoever runs the replays sees it: asked, told, killed, resumed, out of budget."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from mast_trace_judge.replay.arms import ArmResult, Fix
from mast_trace_judge.replay.confirmation import Confirmation, Contrast
from mast_trace_judge.replay.points import Point
from mast_trace_judge.replay.statistics import Experiment, Limits, ResultMismatch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mast_trace_judge.replay.statistics import Trial

LENGTH = 12
RESAMPLE, JUDGE = Fix("resample"), Fix("judge", "the price is 79")
POINTS = [Point(2 * each + 1, f"agent {each}", f"{each:016x}", "text") for each in range(LENGTH)]
"""Decisions are the odd steps: those between them are tool calls."""

EVERYWHERE: Mapping[int, Sequence[Fix]] = {each.step: (RESAMPLE,) for each in POINTS}
Rate = "Callable[[Trial], float]"


def index(step: int) -> int:
    return (step - 1) // 2


def at_random(trial: Trial, success: bool | None, draw: random.Random) -> ArmResult:
    return ArmResult(
        arm=trial.arm,
        status="ok" if success is not None else "timeout",
        success=success,
        reason="" if success is not None else "killed after 60 s",
        phase=trial.phase,
        pair=trial.pair,
        live_calls=trial.calls,
        cost_usd=0.01 * trial.calls,
        calls_hash=str(draw.random()),
        answer=str(draw.random()),
    )


def alike(trial: Trial, success: bool | None) -> ArmResult:
    found = at_random(trial, success, random.Random(1))
    return replace(found, calls_hash=str(trial.arm), answer=str(success))


def single(error: int, rate: float) -> Callable[[Trial], float]:
    """V is a rate before a position and 0 from there on; each fix draws the answer again."""

    def chance(trial: Trial) -> float:
        arm = trial.arm
        if arm.operator in {"verify", "score"}:
            return 0.0
        kept = index(arm.step) if arm.operator in {"start", "keep"} else index(arm.step) - 1
        return rate if arm.operator == "start" or kept < error else 0.0

    return chance


def made(**options: object) -> Experiment:
    return Experiment(POINTS, **{"prior": {}, "sources": EVERYWHERE, **options})  # type: ignore[arg-type]


def conduct(
    experiment: Experiment, chance: Callable[[Trial], float], seed: int = 0
) -> list[ArmResult]:
    draw, told = random.Random(seed), []
    while (trial := experiment.ask()) is not None:
        assert experiment.ask() == trial
        told.append(at_random(trial, draw.random() < chance(trial), draw))
        experiment.tell(told[-1])
    return told


def determined(experiment: Experiment, chance: Callable[[Trial], float]) -> int:
    """Conduct an experiment on a deterministic program."""
    while (trial := experiment.ask()) is not None:
        experiment.tell(alike(trial, chance(trial) > 0.5))
    return experiment.conclusion().replays


def test_an_error_is_located_proved_and_named_with_its_agent() -> None:
    experiment = made(prior={3: 0.5, 13: 0.4})
    conduct(experiment, single(6, 0.9))
    found = experiment.conclusion()
    assert found.status == "confirmed"
    assert (found.origin, found.origin_agent) == (13, "agent 6")
    assert (found.point_of_no_return, found.point_agent) == (13, "agent 6")
    assert "origin step 13 (agent 6)" in found.text
    assert found.likely[0][0] == 13
    assert found.likely[0][1] > 0.9
    (proof,) = [each for each in found.contrasts if each.step == 13]
    assert proof.e_value >= proof.threshold == 20 * (3 + 1)
    assert proof.effect >= 0.2
    assert proof.source == "resample"
    assert found.curve[0].step == -1
    assert found.live_calls <= 12 * found.replays
    assert 3 in found.refuted


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


def test_a_result_of_something_else_is_refused_in_words() -> None:
    experiment = made(limits=Limits(verifications=0, scores=0))
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
    limits = Limits(max_calls=most)
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


def test_the_budget_of_dollars_ends_it() -> None:
    experiment = made(limits=Limits(max_cost_usd=0.5))
    conduct(experiment, single(6, 0.9))
    found = experiment.conclusion()
    assert found.cost_usd is not None
    assert 0.5 <= found.cost_usd <= 0.5 + 0.12  # the replay that reached it


def test_an_unknown_price_makes_the_cost_unknown() -> None:
    experiment = made()
    for _ in range(7):
        trial = experiment.ask()
        assert trial is not None
        experiment.tell(replace(at_random(trial, False, random.Random(0)), cost_usd=None))
    assert experiment.conclusion().cost_usd is None


def test_a_deterministic_program_needs_two_pairs_and_the_conclusion_says_so() -> None:
    experiment = made()
    replays = determined(experiment, single(6, 1.0))
    found = experiment.conclusion()
    assert (found.status, found.origin) == ("confirmed", 13)
    assert "deterministic" in found.text
    assert found.contrasts[-1].pairs == 2
    assert replays <= 6 + 34


def test_equal_outcomes_alone_are_not_deterministic() -> None:
    experiment = made()
    draw = random.Random(0)
    chance = single(6, 1.0)
    while (trial := experiment.ask()) is not None:
        experiment.tell(at_random(trial, chance(trial) > 0.5, draw))
    found = experiment.conclusion()
    assert found.status == "confirmed"
    assert "deterministic" not in found.text
    assert found.contrasts[-1].pairs > 2


def test_one_replay_that_differs_takes_back_that_a_program_is_deterministic() -> None:
    experiment, chance, odd = made(), single(6, 1.0), True
    while (trial := experiment.ask()) is not None:
        result = alike(trial, chance(trial) > 0.5)
        if trial.phase == "screening" and odd:
            result, odd = replace(result, calls_hash="another"), False
        experiment.tell(result)
    assert "deterministic" not in experiment.conclusion().text


def test_a_deterministic_fix_that_fails_is_given_up_after_two_pairs() -> None:
    experiment = made(sources={13: (JUDGE,)}, prior={13: 1.0})
    determined(experiment, lambda trial: 0.0)
    found = experiment.conclusion()
    assert found.status == "systematic"
    assert [each.pairs for each in found.contrasts] == [2]
    assert "fails from the start: 0 of " in found.text


def test_a_program_that_fails_from_the_start_has_no_point_of_no_return() -> None:
    sources = {**EVERYWHERE, 13: (RESAMPLE, JUDGE)}
    experiment = made(sources=sources, prior={13: 0.6, 5: 0.3})
    told = conduct(experiment, lambda trial: 0.9 if trial.arm.fix == JUDGE else 0.0)
    found = experiment.conclusion()
    assert (found.status, found.origin, found.point_of_no_return) == ("systematic", 13, None)
    assert "a fix of step 13 (agent 6) helps" in found.text
    drawn_again = [each for each in told if each.arm.operator == "resample"]
    assert drawn_again == []  # it would succeed as seldom as what keeps everything before


def test_two_errors_that_are_each_enough_need_a_joint_fix() -> None:
    sources = {5: (Fix("judge", "a"),), 13: (Fix("person", "b"),), 17: (Fix("judge", "c"),)}
    experiment = made(sources=sources, prior={5: 0.4, 13: 0.3, 17: 0.3}, limits=Limits(joint=True))

    def chance(trial: Trial) -> float:
        fixed = {trial.arm.step, *(step for step, _ in trial.arm.also)}
        return 0.95 if {5, 13} <= fixed else 0.0

    conduct(experiment, chance)
    found = experiment.conclusion()
    assert (found.status, found.origin) == ("overdetermined", None)
    assert "a joint one of step 5 (agent 2) and step 13 (agent 6)" in found.text
    assert [each.fix_successes for each in found.contrasts if "at step" not in each.source] == [
        0
    ] * 3
    plain = made(sources=sources, prior={5: 0.4, 13: 0.3, 17: 0.3})
    conduct(plain, chance)
    assert plain.conclusion().status == "systematic"


def test_a_repairable_error_has_an_origin_and_a_last_missed_chance() -> None:
    def chance(trial: Trial) -> float:
        arm = trial.arm
        if arm.operator in {"verify", "score"}:
            return 0.0
        kept = -1 if arm.operator == "start" else index(arm.step)
        kept -= arm.operator == "resample"
        return 0.98 if kept < 3 else 0.25 if kept < 8 else 0.0

    experiment = made(limits=Limits(screening_runs=200, pair_runs=80, pairs=40))
    conduct(experiment, chance, seed=2)
    found = experiment.conclusion()
    assert (found.status, found.origin, found.point_of_no_return) == ("repairable", 7, 17)
    assert "origin step 7 (agent 3); last missed chance step 17 (agent 8)" in found.text


def test_the_point_of_no_return_alone_is_never_the_origin() -> None:
    experiment = made(sources={})
    conduct(experiment, single(6, 0.6))
    found = experiment.conclusion()
    assert (found.status, found.origin, found.point_of_no_return) == ("inconclusive", None, 13)
    assert "an earlier, repairable error is not excluded" in found.text
    assert found.contrasts == ()


def test_censored_replays_count_against_the_fix() -> None:
    experiment, chance, draw = made(), single(6, 0.9), random.Random(2)
    while (trial := experiment.ask()) is not None:
        success = draw.random() < chance(trial)
        lost = trial.phase == "pairs" and trial.arm.operator == "keep"
        experiment.tell(at_random(trial, None if lost else success, draw))
    found = experiment.conclusion()
    assert found.origin is None
    assert all(each.keep_successes == each.pairs == each.censored for each in found.contrasts)


def test_fixes_of_a_step_are_tried_in_order_until_one_helps() -> None:
    fixes = (Fix("person", "no help"), RESAMPLE, Fix("stronger model", model="big"), JUDGE)
    experiment = made(sources={13: fixes}, prior={13: 1.0})
    told = conduct(
        experiment, lambda trial: single(6, 0.9)(trial) if trial.arm.fix != fixes[0] else 0
    )
    arms = list(dict.fromkeys(each.arm.operator for each in told if each.phase == "pairs"))
    assert sorted(arms) == ["fix", "keep", "resample"]
    found = experiment.conclusion()
    assert [(each.source, each.e_value >= each.threshold) for each in found.contrasts] == [
        ("person", False),
        ("resample", True),
    ]
    assert found.planned_contrasts == 4


def test_a_fix_of_a_tool_result_is_compared_with_the_answer_that_made_the_call() -> None:
    experiment = made(sources={14: (Fix("reference", "79.0"),)}, prior={14: 1.0})
    told = conduct(
        experiment, lambda trial: 0.9 if trial.arm.operator in {"start", "result"} else 0
    )
    arms = {(each.arm.operator, each.arm.step) for each in told if each.phase == "pairs"}
    assert arms == {("result", 14), ("keep", 13)}
    assert {each.step for each in experiment.conclusion().contrasts} == {14}


def test_the_chances_of_a_false_proof_add_up_to_less_than_a_twentieth_over_a_lifetime() -> None:
    spent, risk, earlier = 0, 0.0, None
    for _ in range(200):
        experiment = made(earlier=earlier)
        plan = experiment.evidence.plan
        risk += plan.planned / plan.threshold
        earlier = experiment.conclusion()
        assert earlier.planned_contrasts == spent + 3
        spent = earlier.planned_contrasts
    assert 0.04 < risk < 0.05


def test_evidence_of_an_earlier_plan_is_multiplied_and_shown() -> None:
    before = Contrast(
        step=13,
        agent="agent 6",
        source="resample",
        fix_successes=5,
        keep_successes=1,
        pairs=8,
        e_value=4.0,
        threshold=80.0,
        effect=0.5,
    )
    other = before.model_copy(update={"step": 3, "source": "person", "fix_text": "gone"})
    earlier = Confirmation(status="inconclusive", contrasts=(before, other), planned_contrasts=3)
    experiment = made(prior={13: 0.9}, earlier=earlier)
    conduct(experiment, single(6, 0.9))
    found = experiment.conclusion()
    assert other in found.contrasts
    (again,) = [each for each in found.contrasts if each.step == 13]
    assert again.threshold == 80.0
    assert again.pairs > 8
    assert again.fix_successes > 5
    assert (found.status, found.origin) == ("confirmed", 13)
    assert found.planned_contrasts == 6


def test_batches_may_run_together_and_are_told_in_order() -> None:
    experiment, draw, chance = made(limits=Limits(batch=4)), random.Random(0), single(6, 0.9)
    while waiting := experiment.waiting():
        results = [at_random(each, draw.random() < chance(each), draw) for each in waiting]
        for each in results:
            experiment.tell(each)
    assert experiment.conclusion().origin == 13


def test_the_search_leaves_calls_for_the_proof_where_it_is_told_to() -> None:
    experiment = made(limits=Limits(search_calls=60))
    told = conduct(experiment, single(6, 0.5))
    searched = [each.live_calls for each in told if each.phase in {"start", "screening"}]
    assert sum(searched[:-2]) < 60
    assert any(each.phase == "pairs" for each in told)


def test_replays_without_an_outcome_end_it_with_the_reason() -> None:
    experiment, draw = made(limits=Limits(verifications=0, scores=0)), random.Random(0)
    while (trial := experiment.ask()) is not None:
        experiment.tell(at_random(trial, None, draw))
    found = experiment.conclusion()
    assert found.replays == 8
    assert found.status == "inconclusive"
    assert "no outcome, the last one: timeout killed after 60 s" in found.text


@pytest.mark.parametrize("length", [1, 2, 3, 400])
def test_short_and_long_runs_end(length: int) -> None:
    points = [Point(each, "", "0", "") for each in range(length)]
    sources = dict.fromkeys(range(length), (RESAMPLE,))
    error = length // 2

    def chance(trial: Trial) -> float:
        arm = trial.arm
        if arm.operator in {"verify", "score"}:
            return 0.0
        kept = arm.step - (arm.operator == "resample")
        return 0.95 if arm.operator == "start" or kept < error else 0.0

    experiment = Experiment(points, prior={0: float("nan")}, sources=sources)
    conduct(experiment, chance, seed=8)
    found = experiment.conclusion()
    assert (found.status, found.origin) == ("confirmed", error)
    assert f"origin step {error}:" in found.text


@pytest.mark.parametrize("sizes", [{"batch": 0}, {"pairs": -1}, {"scores": -5}])
def test_sizes_with_which_it_would_never_end_are_refused(sizes: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="not negative"):
        Limits(**sizes)


def test_everything_may_be_left_out() -> None:
    nothing = Limits(verifications=0, scores=0, start_runs=0, screening_runs=0, pair_runs=0)
    experiment = made(limits=nothing)
    assert experiment.ask() is None
    assert experiment.conclusion().status == "untested"


def test_replays_that_share_a_draw_prove_nothing() -> None:
    drawn: dict[object, bool] = {}
    for seed in range(30):
        experiment, draw = made(seed=seed), random.Random(seed)
        drawn.clear()
        while (trial := experiment.ask()) is not None:
            is_check = trial.arm.operator in {"verify", "score"}
            success = not is_check and drawn.setdefault(trial.arm, draw.random() < 0.5)
            experiment.tell(alike(trial, success))
        if experiment.conclusion().text.endswith("fixed seed: nothing is proved"):
            return
    pytest.fail("no experiment told the shared draw from a deterministic program")


def test_a_fix_that_helps_anywhere_makes_no_harmless_step_the_origin() -> None:
    sources = {each.step: (JUDGE,) for each in POINTS}
    named = []
    for seed in range(6):
        experiment = made(prior={7: 1.0}, sources=sources, seed=seed)

        def chance(trial: Trial) -> float:
            return 1.0 if trial.arm.operator == "fix" else single(6, 0.5)(trial)

        conduct(experiment, chance, seed)
        found = experiment.conclusion()
        named.append(found.origin)
        proved = {each.step for each in found.contrasts if each.e_value >= each.threshold}
        assert not proved & set(found.refuted)
    assert set(named) <= {None, 13}
    assert 13 in named


def test_a_judge_that_is_wrong_is_refuted_and_no_step_without_a_fix_is_named() -> None:
    experiment = made(prior={3: 1.0}, sources={3: (RESAMPLE,)})
    conduct(experiment, single(6, 0.9))
    found = experiment.conclusion()
    assert (found.status, found.origin, found.refuted) == ("refuted", None, (3,))
    assert found.text == "success does not fall at step 3 (agent 1); no other step is proved"
    assert found.point_of_no_return == 13
