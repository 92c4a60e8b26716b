"""The conclusions of experiments on runs whose truth is known."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from invented_records import contrast
from judge.replay.statistics.simulated_experiments import (
    EVERYWHERE,
    JUDGE,
    POINTS,
    RESAMPLE,
    alike,
    at_random,
    conduct,
    determined,
    index,
    made,
    single,
)

from mast_trace_judge.arms import Fix
from mast_trace_judge.confirmation import Confirmation
from mast_trace_lab.confirm.statistics import Experiment, ExperimentLimits

if TYPE_CHECKING:
    from mast_trace_lab.program.budget import ReplayTrial


def test_an_error_is_located_proved_and_named_with_its_agent() -> None:
    experiment = made(prior={3: 0.5, 13: 0.4})
    conduct(experiment, single(6, 0.9))
    found = experiment.conclusion()
    assert (found.status, found.origin, found.origin_agent) == ("confirmed", 13, "agent 6")
    assert (found.point_of_no_return, found.point_agent) == (13, "agent 6")
    assert "step 13 (agent 6)" in found.text
    assert found.likely[0][0] == 13
    assert found.likely[0][1] > 0.9
    (proof,) = [each for each in found.contrasts if each.step == 13]
    assert proof.e_value >= proof.threshold == 20 * (3 + 1)
    assert proof.effect >= 0.2
    assert proof.source == "resample"
    assert found.curve[0].step == -1
    assert found.live_calls <= 12 * found.replays
    assert 3 in found.refuted


def test_a_deterministic_program_needs_two_pairs_and_the_conclusion_says_so() -> None:
    experiment = made()
    replays = determined(experiment, single(6, 1.0))
    found = experiment.conclusion()
    assert (found.status, found.origin) == ("confirmed", 13)
    assert "behaved alike" in found.text
    assert found.contrasts[-1].pairs == 2
    assert replays <= 6 + 34


def test_a_deterministic_fix_that_fails_is_given_up_after_two_pairs() -> None:
    experiment = made(sources={13: (JUDGE,)}, prior={13: 1.0})
    determined(experiment, lambda trial: 0.0)
    found = experiment.conclusion()
    assert found.status == "systematic"
    assert [each.pairs for each in found.contrasts] == [2]
    start = found.curve[0]
    assert (start.step, start.successes) == (-1, 0)
    assert f"fails from the start: 0 of {start.runs} replays" in found.text
    assert found.refuted == ()


def test_a_program_that_fails_from_the_start_has_no_point_of_no_return() -> None:
    sources = {**EVERYWHERE, 13: (RESAMPLE, JUDGE)}
    experiment = made(sources=sources, prior={13: 0.6, 5: 0.3})
    told = conduct(experiment, lambda trial: 0.9 if trial.arm.fix == JUDGE else 0.0)
    found = experiment.conclusion()
    assert (found.status, found.origin, found.point_of_no_return) == ("systematic", 13, None)
    assert "correcting step 13 (agent 6) helps" in found.text
    assert f"fails from the start: 0 of {found.curve[0].runs} replays" in found.text
    assert found.refuted == ()
    drawn_again = [each for each in told if each.arm.operator == "resample"]
    assert drawn_again == []  # it would succeed as seldom as what keeps everything before


def test_two_errors_that_are_each_enough_need_a_joint_fix() -> None:
    sources = {5: (Fix("judge", "a"),), 13: (Fix("person", "b"),), 17: (Fix("judge", "c"),)}
    experiment = made(sources=sources, prior={5: 0.4, 13: 0.3, 17: 0.3})

    def chance(trial: ReplayTrial) -> float:
        fixed = {trial.arm.step, *(step for step, _ in trial.arm.also)}
        return 0.95 if {5, 13} <= fixed else 0.0

    conduct(experiment, chance)
    found = experiment.conclusion()
    assert (found.status, found.origin) == ("overdetermined", None)
    assert "those of step 5 (agent 2) and step 13 (agent 6)" in found.text
    assert [each.fix_successes for each in found.contrasts if not each.also] == [0] * 3
    (joint,) = [each for each in found.contrasts if each.also]
    assert joint.sources == "judge, person at step 13, judge at step 17"
    assert found.text.endswith("; whether each of these is needed is not known")
    assert joint.e_value >= joint.threshold == 20 * (3 + 1 + 1)
    assert found.planned_contrasts == 4
    prior = {5: 0.4, 13: 0.3, 17: 0.3}
    plain = made(sources=sources, prior=prior, limits=ExperimentLimits(joint=False))
    conduct(plain, chance)
    assert plain.conclusion().status == "systematic"


@pytest.mark.parametrize(
    ("needed", "named"),
    [
        ({5, 13}, "those of step 5 (agent 2) and step 13 (agent 6) together do: "),
        ({13, 17}, "those of step 13 (agent 6) and step 17 (agent 8) together do: "),
        ({5, 13, 17}, "and step 17 (agent 8) together do: "),
    ],
)
def test_a_deterministic_program_shows_the_needed_fixes(needed: set[int], named: str) -> None:
    sources = {5: (Fix("judge", "a"),), 13: (Fix("person", "b"),), 17: (Fix("judge", "c"),)}
    experiment = made(sources=sources, prior={5: 0.4, 13: 0.3, 17: 0.3})

    def chance(trial: ReplayTrial) -> float:
        fixed = {trial.arm.step, *(step for step, _ in trial.arm.also)}
        return 1.0 if trial.arm.operator == "fix" and needed <= fixed else 0.0

    determined(experiment, chance)
    found = experiment.conclusion()
    assert found.status == "overdetermined"
    assert named in found.text
    assert ("; without any one of these it does not" in found.text) == (len(needed) == 3)
    assert found.planned_contrasts == 4


def test_the_evidence_of_a_joint_fix_goes_on_in_a_later_plan() -> None:
    sources = {5: (Fix("judge", "a"),), 13: (Fix("person", "b"),)}
    prior = {5: 0.5, 13: 0.5}

    def chance(trial: ReplayTrial) -> float:
        return 0.5 if trial.arm.also else 0.0

    first = made(
        sources=sources, prior=prior, limits=ExperimentLimits(screening_runs=10, pair_runs=20)
    )
    conduct(first, chance, seed=3)
    before = first.conclusion()
    (joint,) = [each for each in before.contrasts if each.also]
    assert joint.e_value < joint.threshold
    again = made(sources=sources, prior=prior, earlier=before)
    conduct(again, chance, seed=4)
    found = again.conclusion()
    (after,) = [each for each in found.contrasts if each.also]
    assert after.pairs > joint.pairs
    assert after.threshold == joint.threshold
    assert after.e_value >= after.threshold
    assert found.status == "overdetermined"
    assert found.planned_contrasts == 2 * before.planned_contrasts == 6


def test_a_joint_fix_needs_fixes_that_never_helped_alone() -> None:
    sources = {5: (Fix("judge", "a"),), 13: (Fix("person", "b"),), 17: (RESAMPLE,)}

    def chance(trial: ReplayTrial) -> float:
        return 0.3 if trial.arm.fix == sources[13][0] else 0.0

    experiment = made(sources=sources, prior={5: 0.4, 13: 0.3, 17: 0.3})
    told = conduct(experiment, chance, seed=1)
    assert any(each.success for each in told)
    assert not any(each.arm.also for each in told)
    assert experiment.evidence.plan.planned == 3 + 1


def test_a_joint_fix_by_a_shared_draw_proves_nothing() -> None:
    sources = {5: (Fix("judge", "a"),), 13: (Fix("person", "b"),)}
    experiment = made(sources=sources, prior={5: 0.5, 13: 0.5})
    while (trial := experiment.ask()) is not None:
        late = trial.arm.operator == "keep" and trial.arm.step not in {5, 13, 23}
        experiment.tell(alike(trial, bool(trial.arm.also) or late))
    found = experiment.conclusion()
    assert found.status == "inconclusive"
    assert found.text.endswith("fixed seed: nothing is proved")


def test_a_repairable_error_has_an_origin_and_a_point_of_no_return() -> None:
    def chance(trial: ReplayTrial) -> float:
        arm = trial.arm
        if arm.operator in {"verify", "score"}:
            return 0.0
        kept = -1 if arm.operator == "start" else index(arm.step)
        kept -= arm.operator == "resample"
        return 0.98 if kept < 3 else 0.25 if kept < 8 else 0.0

    experiment = made(limits=ExperimentLimits(screening_runs=200, pair_runs=80, pairs=40))
    conduct(experiment, chance, seed=2)
    found = experiment.conclusion()
    assert (found.status, found.origin, found.point_of_no_return) == ("repairable", 7, 17)
    assert "step 7 (agent 3); after step 17 (agent 8)" in found.text


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


def test_an_answer_and_its_tools_share_the_order_of_origins() -> None:
    resample, big = RESAMPLE, Fix("stronger model", model="big")
    person, known = Fix("person", "79.0", result=True), Fix("reference", "79", result=True)
    answers = (resample, big, Fix("reference", "It costs 79."))
    experiment = made(sources={13: answers, 14: (person, known)}, prior={13: 1.0})
    told = conduct(experiment, lambda trial: 0.2 * (trial.arm.operator in {"start", "keep"}))
    asked = [
        (each.arm.step, each.arm.fix)
        for each in told
        if each.phase == "pairs" and each.arm.fix is not None
    ]
    order = [(14, person), (13, resample), (13, big), (13, answers[2]), (14, known)]
    assert list(dict.fromkeys(asked)) == [each for each in order if each in asked]
    assert asked[0] == (14, person)
    assert experiment.evidence.plan.fixes[6] == order


def test_results_that_go_together_stand_in_the_order_of_their_steps() -> None:
    first, second = Fix("reference", "3", result=True), Fix("person", "4", result=True)
    plan = Experiment(POINTS[:7], prior={}, sources={14: (first,), 15: (second,)}).evidence.plan
    assert plan.fixes[6] == [(15, second), (14, first)]
    assert plan.joined(6) == ((14, first), (15, second))


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
    counts = {"fix_successes": 5, "keep_successes": 1, "e_value": 4.0, "effect": 0.5}
    counts |= {"censored": 2}
    before = contrast(13, "", agent="agent 6", source="resample", threshold=80.0, **counts)
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
    assert (again.keep_successes, again.censored) == (1, 2)  # none of its own
    assert (found.status, found.origin, found.planned_contrasts) == ("confirmed", 13, 6)


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

        def chance(trial: ReplayTrial) -> float:
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
