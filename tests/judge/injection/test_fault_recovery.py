"""A stored failure that had made its fault good is no label of it."""

from __future__ import annotations

import dataclasses
from random import Random

import pytest
from planted_trials import FAULT, STARTS_ALIKE, result

from mast_trace.trajectory import Invocation, Step, StepKind, Trajectory
from mast_trace_judge.arms import RECOVERY, ArmResult, ReplayArm
from mast_trace_lab.inject.experiment import InjectionExperiment
from mast_trace_lab.inject.trial import Recovery, Trial, later_steps
from mast_trace_lab.program.budget import ResultMismatch


class TestRecovery:
    """A stored failure that had made its fault good is no label of it."""

    STEPS = (4, 6, 8)

    def checked(self, rates: dict[int, float], seed: int = 1) -> tuple[Trial, list[int]]:
        """Decide a fault whose stored failure succeeds from after its steps at these rates."""
        rng, trial, asked = Random(seed), Trial(FAULT, later=lambda: self.STEPS), []
        while arm := trial.ask():
            if trial.recovery is not None:
                assert trial.verdict == "open"
                asked.append(arm.step)
                trial.tell(result(arm, rng.random() < rates[arm.step]))
            else:
                trial.tell(result(arm, arm == trial.restore, str(rng.random())))
        return trial, asked

    def test_each_later_step_is_kept_once_where_the_failure_stays(self) -> None:
        trial, asked = self.checked(dict.fromkeys(self.STEPS, 0.0))
        assert asked == [4, 6, 8]
        assert (trial.verdict, trial.is_decisive) == ("kept", True)

    def test_two_successes_after_a_later_step_show_a_later_error(self) -> None:
        trial, asked = self.checked({4: 0.0, 6: 1.0, 8: 0.0})
        assert asked == [4, 6, 6]
        assert (trial.verdict, trial.is_decisive) == ("repaired", False)
        assert trial.point_of_no_return is None

    def test_one_failure_after_each_later_step_locates_no_point_of_no_return(self) -> None:
        """The fault is the origin alone, at V .2; the stored failure is replayed to the end."""
        fails = [False] * 4 + [True] + [False] * 4 + [True]
        trial = Trial(FAULT, later=lambda: self.STEPS)
        while arm := trial.ask():
            ended = arm == trial.restore or (trial.recovery is None and fails[len(trial.faulty)])
            trial.tell(result(arm, ended, str(len(trial.faulty))))
        assert trial.recovery is not None
        assert [each.success for each in trial.recovery.results] == [False] * 3
        assert (trial.verdict, trial.is_decisive) == ("kept", False)
        assert trial.point_of_no_return is None

    def test_chance_successes_of_a_failure_that_stays_are_seldom_taken_for_a_repair(self) -> None:
        found = [self.checked(dict.fromkeys(self.STEPS, 0.1), seed)[0] for seed in range(300)]
        assert sum(trial.verdict == "repaired" for trial in found) <= 0.06 * len(found)

    def told(self, *outcomes: bool | None) -> Recovery:
        """Return a check that has got these outcomes."""
        recovery = Recovery((4, 6))
        for success in outcomes:
            arm = recovery.ask()
            assert arm is not None
            recovery.results.append(result(arm, success))
        return recovery

    def test_a_replay_without_outcome_is_asked_for_again(self) -> None:
        """It is neither a failure that stays nor a success; a failure beside it counts only if there are more."""
        one = self.told(True, None, True)
        assert [each.arm.step for each in one.results] == [4, 4, 4]
        assert (one.ask(), one.is_repaired, one.is_unknown) == (None, True, False)
        two = self.told(None, False, False, False)
        assert [each.arm.step for each in two.results] == [4, 4, 4, 6]
        assert (two.ask(), two.is_repaired, two.is_unknown) == (None, False, False)
        apart = self.told(None, True, False, True)  # two successes, and not in a row
        assert (apart.ask(), apart.is_repaired) == (ReplayArm("keep", 4), False)
        assert not self.told(None, None, None).is_unknown
        three = self.told(None, None, None, None)
        assert (three.ask(), three.is_repaired, three.is_unknown) == (None, False, True)

    @pytest.mark.parametrize(("answers", "asked"), [(13, 8), (17, 12), (18, 12), (200, 12)])
    def test_a_repair_right_after_the_fault_is_seen(self, answers: int, asked: int) -> None:
        """Each of the first answers is looked at; the others that are lie apart, up to the end."""
        spans = [f"{place:016x}" for place in range(answers)]
        steps = [
            Step(place, StepKind.MESSAGE, "reader", "Yes.", span)
            for place, span in enumerate(spans)
        ]
        calls = [Invocation("model", "reader", span, "", 0, 0) for span in spans]
        failed, near = Trajectory("a" * 32, tuple(steps), tuple(calls)), FAULT.change.step + 1
        later = later_steps(failed, FAULT)
        for level in ("request", "message"):  # an agent may answer them rightly all the same
            change = dataclasses.replace(FAULT.change, level=level)
            assert later_steps(failed, dataclasses.replace(FAULT, change=change))[0] == near - 1
        assert later[:6] == tuple(range(near, near + 6))
        assert (len(later), len(set(later)), sorted(later)) == (asked, asked, list(later))
        assert later[-1] >= 0.8 * (answers - 2)

    def test_a_crash_is_a_failure_that_stays(self) -> None:
        trial = Trial(FAULT, later=lambda: (4,))
        while arm := trial.ask():
            if trial.recovery is not None:
                trial.tell(ArmResult(arm, "crashed"))
            else:
                trial.tell(result(arm, arm == trial.restore, str(len(trial.faulty))))
        assert trial.recovery is not None
        assert (trial.verdict, len(trial.recovery.results)) == ("kept", 1)

    def test_a_stored_failure_that_cannot_be_replayed_is_no_label(self) -> None:
        trial = Trial(FAULT, later=lambda: None)
        while arm := trial.ask():
            trial.tell(result(arm, arm == trial.restore, str(len(trial.faulty))))
        assert (trial.verdict, trial.is_decisive) == ("censored", False)

    @pytest.mark.parametrize("of_repairs", [False, True])
    @pytest.mark.parametrize("blocked", [0.3, 1.0])
    def test_blocked_replays_keep_no_repaired_fault(self, blocked: float, of_repairs: bool) -> None:
        """The fault is always repaired at step 6; a repair needs a result that the record does not hold."""
        rates = {5: 0.3, 6: 0.9, 8: 0.9, 10: 0.05, 12: 0.05}
        rng, kept, known = Random(2), 0, 0
        for _ in range(150):
            trial = Trial(FAULT, later=lambda: tuple(rates))
            while arm := trial.ask():
                if trial.recovery is None:
                    rate = 0.9 if arm == trial.restore else 0.25
                    trial.tell(result(arm, rng.random() < rate, str(rng.random())))
                    continue
                success = rng.random() < rates[arm.step]
                if rng.random() < blocked and (success or not of_repairs):
                    trial.tell(ArmResult(arm, "blocked"))
                else:
                    trial.tell(result(arm, success))
            if trial.recovery is not None:
                known += 1
                kept += trial.verdict == "kept"
        assert known > 100
        assert kept <= 0.08 * known

    def test_a_deterministic_program_needs_no_check(self) -> None:
        trial = Trial(FAULT, later=lambda: self.STEPS, clean=STARTS_ALIKE)
        while arm := trial.ask():
            trial.tell(result(arm, arm == trial.restore, "alike"))
        assert (trial.verdict, trial.recovery) == ("kept", None)

    def test_the_experiment_names_the_phase_and_resumes(self) -> None:
        """Its steps are those of the stored failure, so that no reader takes them for the recorded run's."""
        rng, told = Random(2), []
        for _ in ("first", "again"):
            experiment = InjectionExperiment([FAULT], 5, {}, lambda _: self.STEPS)
            for each in told:
                experiment.tell(each)
            while waiting := experiment.waiting():
                (trial,) = waiting
                fails = trial.phase == RECOVERY or trial.arm == FAULT.change.arm
                about = {"phase": trial.phase, "pair": trial.pair, "calls_hash": str(rng.random())}
                told.append(ArmResult(trial.arm, "ok", not fails, **about))
                experiment.tell(told[-1])
            assert [each.verdict for each in experiment.trials] == ["kept"]
            assert [each.arm.step for each in told if each.phase == RECOVERY] == [4, 6, 8]

    def test_the_restored_replay_after_a_time_out_is_one_of_the_original(self) -> None:
        """It is no replay of the stored failure, and its stored result leads to the same place."""
        told: list[ArmResult] = []
        later: list[tuple[int, ...] | None] = [self.STEPS]
        for _ in ("first", "again"):
            experiment = InjectionExperiment([FAULT], 5, {}, lambda _: later[0])
            for each in told:
                experiment.tell(each)
            while waiting := experiment.waiting():
                (trial,) = waiting
                about = {"phase": trial.phase, "pair": trial.pair, "calls_hash": str(len(told))}
                if trial.phase == RECOVERY:
                    told.append(ArmResult(trial.arm, "timeout", seconds=31.0, **about))
                else:
                    fails = trial.arm == FAULT.change.arm
                    told.append(ArmResult(trial.arm, "ok", not fails, seconds=8.0, **about))
                experiment.tell(told[-1])
            assert [each.verdict for each in experiment.trials] == ["kept"]
        first = next(place for place, each in enumerate(told) if each.phase == RECOVERY)
        assert [(each.phase, each.arm.step) for each in told[first:]] == [
            (RECOVERY, 4), ("injection", 3), (RECOVERY, 6), ("injection", 3), (RECOVERY, 8), ("injection", 3)
        ]  # fmt: skip
        later[0] = None
        lost = InjectionExperiment([FAULT], 5, {}, lambda _: later[0])
        for each in told:
            lost.tell(each)
        assert ([each.verdict for each in lost.trials], lost.waiting()) == (["censored"], ())

    def test_goes_on_where_another_injection_has_replaced_the_stored_failure(self) -> None:
        """Its results stay readable: the fault is censored, and the next one is tried."""
        later: list[tuple[int, ...] | None] = [self.STEPS]
        faults = [FAULT, dataclasses.replace(FAULT, operator="2.6-computed")]
        experiment = InjectionExperiment(faults, 5, {}, lambda _: later[0])
        told: list[ArmResult] = []
        while not any(each.phase == RECOVERY for each in told):  # then the budget ends
            (trial,) = experiment.waiting()
            fails = trial.phase == RECOVERY or trial.arm == FAULT.change.arm
            about = {"phase": trial.phase, "pair": trial.pair, "calls_hash": str(len(told))}
            told.append(ArmResult(trial.arm, "ok", not fails, **about))
            experiment.tell(told[-1])
        later[0] = None
        again = InjectionExperiment(faults, 5, {}, lambda _: later[0])
        for each in told:
            again.tell(each)
            again.waiting()
        assert again.trials[0].verdict == "censored"
        (trial,) = again.waiting()
        assert (trial.phase, trial.pair) == ("injection", 1)
        with pytest.raises(ResultMismatch):  # the other fault has no such replays
            again.tell(dataclasses.replace(told[-1], pair=1))
