"""A fault is kept as a label only where it causes the failure, and the experiment ends for any results."""

from __future__ import annotations

import dataclasses
from random import Random
from typing import TYPE_CHECKING

import pytest

from mast_trace.trajectory import Invocation, Step, StepKind, Trajectory
from mast_trace_judge.arms import RECOVERY, Arm, ArmResult
from mast_trace_judge.injection.changes import Change
from mast_trace_judge.injection.experiment import STARTS, InjectionExperiment
from mast_trace_judge.injection.faults import Fault
from mast_trace_judge.injection.limits import with_readable_run
from mast_trace_judge.injection.recovery import MOST_STEPS, Recovery, later_steps
from mast_trace_judge.injection.trial import Trial
from mast_trace_judge.replay.bounds import most_calls
from mast_trace_judge.replay.statistics import ResultMismatch

if TYPE_CHECKING:
    from collections.abc import Callable

FAULT = Fault("a" * 32, "2.6-number", Change(3, "answer", "There are 21."), "reader", 3)


def result(arm: Arm, success: bool | None, calls_hash: str = "", **more: object) -> ArmResult:
    return ArmResult(
        arm, "ok" if success is not None else "timeout", success, calls_hash=calls_hash, **more
    )


STARTS_ALIKE = tuple(
    ArmResult(Arm("start"), "ok", True, phase="start", calls_hash="whole", live_calls=5)
    for _ in range(STARTS)
)
"""Live replays of a whole program that makes the same requests each time."""


def decided(
    faulty: float,
    restored: float,
    seed: int,
    hashes: int = 1000,
    clean: tuple[ArmResult, ...] = STARTS_ALIKE,
) -> Trial:
    """Return the decided trial of a program with these success rates."""
    rng, trial = Random(seed), Trial(FAULT, clean=clean)
    while arm := trial.ask():
        rate = restored if arm == trial.restore else faulty
        trial.tell(result(arm, rng.random() < rate, str(rng.randrange(hashes))))
    return trial


def test_a_deterministic_fault_takes_five_replays() -> None:
    trial = decided(0, 1, 1, hashes=1)
    assert trial.verdict == "kept"
    assert (len(trial.faulty), len(trial.restored)) == (3, 2)
    assert trial.is_decisive
    assert trial.point_of_no_return == FAULT.change.step


@pytest.mark.parametrize("differs", ["calls_hash", "answer"])
def test_a_program_that_answers_at_random_is_not_deterministic_near_its_end(differs: str) -> None:
    """The next request is fixed by what is kept: after such a fault nearly one run in three succeeds."""
    clean = tuple(
        dataclasses.replace(each, **{differs: str(number)})
        for number, each in enumerate(STARTS_ALIKE)
    )
    for starts in (clean, ()):
        trials = [decided(0.3, 0.9, seed, hashes=1, clean=starts) for seed in range(100)]
        assert not any(trial.is_deterministic for trial in trials)
        assert (
            sum(trial.is_decisive for trial in trials) <= 20
        )  # ten replays show at most one success in 15 %


def test_equal_outcomes_of_different_requests_prove_nothing() -> None:
    """Three failures and two successes happen by chance; only equal requests show a deterministic program."""
    trial = decided(0, 1, 1)
    assert not trial.is_deterministic
    assert trial.e_value >= 20
    assert trial.pairs >= 3
    assert len(trial.faulty) == 10


def test_requests_without_an_answer_are_not_known_to_be_alike() -> None:
    trial = Trial(FAULT, clean=STARTS_ALIKE)
    while arm := trial.ask():
        fails = arm == FAULT.change.arm
        trial.tell(result(arm, not fails, "" if fails else "y", live_calls=1))
    assert not trial.is_deterministic
    assert len(trial.faulty) == 10


def test_a_run_that_succeeds_all_the_same_is_a_negative() -> None:
    assert decided(1, 1, 1).verdict == "survived"
    assert not decided(1, 1, 1).is_decisive
    assert decided(1, 1, 1).point_of_no_return is None


@pytest.mark.parametrize("rate", [0.5, 0.6, 0.9])
def test_a_harmless_fault_is_hardly_ever_kept(rate: float) -> None:
    """Among 600 harmless faults at most 5 % are kept."""
    kept = sum(decided(rate, rate, seed).verdict == "kept" for seed in range(600))
    assert kept <= 0.05 * 600


def test_a_real_fault_is_mostly_kept() -> None:
    kept = [decided(0.05, 0.9, seed).verdict == "kept" for seed in range(200)]
    assert sum(kept) >= 180


def test_a_fault_that_others_repair_is_not_decisive() -> None:
    trials = [decided(0.35, 0.95, seed) for seed in range(200)]
    kept = [trial for trial in trials if trial.verdict == "kept"]
    assert len(kept) > 50
    assert sum(trial.is_decisive for trial in kept) < 0.1 * len(kept)
    unknown = [trial for trial in kept if trial.point_of_no_return is None]
    assert unknown == [trial for trial in kept if not trial.is_decisive]


def test_replays_without_an_outcome_end_it() -> None:
    trial = Trial(FAULT)
    while arm := trial.ask():
        trial.tell(result(arm, None))
    assert trial.verdict == "censored"


def test_a_censored_replay_counts_against_the_fault() -> None:
    """A faulty replay without outcome counts as a success, a restored one as a failure."""
    with_censored, without = Trial(FAULT), Trial(FAULT)
    for trial, faulty in ((with_censored, None), (without, False)):
        for _ in range(3):
            trial.tell(result(FAULT.change.arm, False, "x"))
            trial.tell(result(trial.restore, True, "y"))
        trial.tell(result(FAULT.change.arm, faulty, "x"))
        trial.tell(result(trial.restore, True, "y"))
    assert with_censored.e_value < without.e_value


class TestLimits:
    """A faulty replay that a limit has ended is a failure where the limit is far from what the run needs."""

    CLEAN = tuple(dataclasses.replace(STARTS_ALIKE[0], seconds=seconds) for seconds in (8.0, 10.0))

    def decided(
        self,
        faulty: Callable[[int], ArmResult],
        *,
        restored: bool | None = True,
        clean: tuple[ArmResult, ...] = CLEAN,
    ) -> Trial:
        """Return the decided trial of faulty replays by their number."""
        trial = Trial(FAULT, clean=clean)
        while arm := trial.ask():
            if arm == trial.restore:
                trial.tell(result(arm, restored, "y", seconds=6.0))
            else:
                trial.tell(faulty(len(trial.faulty)))
        return trial

    def hangs(self, seconds: float, calls_hash: str = "x") -> ArmResult:
        return result(FAULT.change.arm, None, calls_hash, seconds=seconds)

    def test_a_team_that_hangs_has_failed(self) -> None:
        trial = self.decided(lambda _: self.hangs(30.1))
        assert (trial.verdict, trial.censored, trial.success_after) == ("kept", 0, 0.0)
        assert (len(trial.faulty), len(trial.restored)) == (3, 2)
        assert trial.is_decisive

    def test_a_team_that_hangs_at_random_is_judged_by_pairs(self) -> None:
        """Some faulty replays end and succeed; those that hang count as failures."""
        trial = self.decided(
            lambda number: (
                result(FAULT.change.arm, True, str(number))
                if number == 1
                else self.hangs(31.0, str(number))
            )
        )
        assert (trial.verdict, trial.is_deterministic) == ("kept", False)
        assert 0 < (trial.success_after or 0) < 0.2

    def test_a_limit_that_the_run_nearly_reaches_itself_says_nothing(self) -> None:
        trial = self.decided(lambda _: self.hangs(29.9))
        assert trial.verdict == "censored"

    def test_a_slow_restored_replay_counts_as_well(self) -> None:
        trial = Trial(FAULT, clean=self.CLEAN)
        for _ in range(3):
            trial.tell(self.hangs(31.0))
        assert trial.censored == 0
        trial.tell(result(trial.restore, True, "y", seconds=11.0))
        assert trial.censored == 3

    def test_without_a_replay_that_ended_nothing_is_known(self) -> None:
        trial = Trial(FAULT)
        for _ in range(4):
            trial.tell(self.hangs(1000.0))
        assert trial.verdict == "censored"

    def test_a_program_that_hangs_by_itself_gives_no_label(self) -> None:
        hanging = result(Arm("start"), None, seconds=31.0)
        trial = self.decided(lambda _: self.hangs(31.0), clean=(*self.CLEAN, hanging))
        assert trial.verdict == "censored"
        # Restoring must end: what hangs with and without the fault is no label of it.
        assert self.decided(lambda _: self.hangs(31.0), restored=None).verdict == "censored"

    @pytest.mark.parametrize(
        ("seconds", "calls", "verdict"), [(31.0, 10, "censored"), (61.0, 10, "kept")]
    )
    def test_a_team_that_does_its_work_again_has_more_time(
        self, seconds: float, calls: int, verdict: str
    ) -> None:
        """It may succeed at last: twice the calls of any replay without the fault, twice the time."""
        slow = result(FAULT.change.arm, None, "x", seconds=seconds, live_calls=calls)
        assert self.decided(lambda _: slow).verdict == verdict

    def test_a_time_out_is_followed_by_a_restored_replay(self) -> None:
        """A machine that has become slow shows in it, before more replays of the fault are ended."""
        trial, asked = Trial(FAULT, clean=self.CLEAN), []
        while (arm := trial.ask()) and len(asked) < 5:
            asked.append(arm.operator)
            restored = result(arm, True, "y", seconds=6.0)
            trial.tell(restored if arm == trial.restore else self.hangs(31.0))
        assert asked == ["fix", "keep", "fix", "keep", "fix"]
        assert trial.verdict == "kept"

    def becomes_slow(self, whole: int, *, restored_hangs: bool, later: tuple[int, ...]) -> Trial:
        """Return the trial of a program that answers at random, whose replays all hang after so many failures."""
        trial, asked = Trial(FAULT, clean=self.CLEAN, later=lambda: later), 0
        while arm := trial.ask():
            asked += 1
            assert asked < 60
            of_original = trial.recovery is None or trial.is_checking
            if of_original and arm == trial.restore:
                hangs = restored_hangs and (trial.is_checking or len(trial.faulty) > whole)
                trial.tell(result(arm, None if hangs else True, str(asked), seconds=8.0))
            elif trial.recovery is None and len(trial.faulty) < whole:
                trial.tell(result(arm, False, str(asked)))
            else:
                trial.tell(result(arm, None, str(asked), seconds=31.0))
        return trial

    @pytest.mark.parametrize("whole", [3, 4, 6, 9, 10])
    def test_a_machine_that_becomes_slow_after_the_pairs_makes_no_label(self, whole: int) -> None:
        """Neither the replays for a decisive step nor those of the stored failure are failures then."""
        trial = self.becomes_slow(whole, restored_hangs=True, later=(4, 6, 8))
        assert (trial.verdict, trial.is_decisive) == ("censored", False)
        assert trial.success_after == 0.0  # only whole replays count
        assert len(trial.checks) <= 1

    @pytest.mark.parametrize("whole", [3, 4, 6, 9, 10])
    def test_a_team_that_hangs_after_the_pairs_has_failed(self, whole: int) -> None:
        """A restored replay that ends in time follows each time-out, and the machine is not slow."""
        trial = self.becomes_slow(whole, restored_hangs=False, later=(4, 6, 8))
        assert (trial.verdict, trial.is_decisive, trial.success_after) == ("kept", True, 0.0)
        assert (len(trial.faulty), len(trial.checks)) == (10, 10 - max(whole, trial.pairs) + 3)

    def test_a_failure_that_is_taken_back_is_looked_for_again(self) -> None:
        """The restored replay after the second time-out takes longer, so that neither says anything."""
        trial, asked = Trial(FAULT, clean=self.CLEAN, later=lambda: (4, 6)), []
        while arm := trial.ask():
            if trial.recovery is None:
                trial.tell(result(arm, arm == trial.restore, str(len(trial.faulty))))
                continue
            asked.append(arm.step)
            if trial.is_checking:
                trial.tell(result(arm, True, seconds=10.0 + len(trial.checks)))
            elif len(asked) < 4:
                trial.tell(result(arm, None, seconds=31.0))
            else:
                trial.tell(result(arm, False))
        assert asked == [4, 3, 6, 3, 4, 4, 6, 6]
        assert trial.verdict == "kept"

    def test_the_first_failure_that_no_limit_has_ended_is_surer_than_those_before(self) -> None:
        """Time-outs that are taken back later must not be the stored run of a label."""
        trial = Trial(FAULT, clean=self.CLEAN)
        trial.tell(self.hangs(31.0))
        trial.tell(result(FAULT.change.arm, True, "y"))
        fails = result(FAULT.change.arm, False, "x")
        crashes = ArmResult(FAULT.change.arm, "crashed")
        assert trial.is_surer(fails)
        assert trial.is_surer(crashes)
        assert not trial.is_surer(self.hangs(31.0))
        trial.tell(crashes)
        assert not trial.is_surer(fails)

    @pytest.mark.parametrize(("calls", "verdict"), [(15, "kept"), (14, "censored")])
    def test_a_team_that_goes_round_in_circles_has_failed(self, calls: int, verdict: str) -> None:
        """Three times the calls of any replay without the fault; fewer may be the limit's fault, or the budget's."""
        ended = ArmResult(
            FAULT.change.arm, "over budget", None, calls_hash="x", live_calls=calls, seconds=1.0
        )
        assert self.decided(lambda _: ended).verdict == verdict

    def test_the_limit_of_calls_is_far_enough_for_that(self) -> None:
        for places in (1, 5, 7, 50):
            experiment = InjectionExperiment([FAULT], places, {})
            for _ in range(1 + STARTS):
                (trial,) = experiment.waiting()
                experiment.tell(
                    ArmResult(trial.arm, "ok", True, phase=trial.phase, live_calls=places)
                )
            (trial,) = experiment.waiting()
            assert trial.phase == "injection"
            assert 3 * places <= most_calls(trial) <= 3 * places + 7

    def test_a_killed_run_without_the_planted_step_has_no_outcome(self) -> None:
        """No label could point at its step, and the program may have stopped before the fault."""
        steps = tuple(Step(place, StepKind.MESSAGE, "reader", "Yes.") for place in range(4))
        whole = Trajectory("a" * 32, steps)
        short = Trajectory("a" * 32, steps[:3])
        hangs = self.hangs(31.0)
        assert with_readable_run(hangs, whole, 3) == hangs
        for made in (short, None):
            told = with_readable_run(hangs, made, 3)
            assert (told.status, told.success) == ("error", None)
            assert told.reason.endswith("the planted step 3 was not recorded.")
            assert self.decided(lambda _, told=told: told).verdict == "censored"
        fine = result(FAULT.change.arm, True)
        assert with_readable_run(fine, short, 3) == fine


class TestExperiment:
    """The order of replays on one run."""

    def ran(self, starts: list[bool], verified: bool = True) -> InjectionExperiment:
        experiment = InjectionExperiment([FAULT, FAULT], 5, {3: 2})
        rest = iter([verified, *starts])
        while (waiting := experiment.waiting()) and waiting[0].phase != "injection":
            experiment.tell(
                ArmResult(waiting[0].arm, "ok", next(rest), phase=waiting[0].phase, pair=-1)
            )
        return experiment

    def test_refuses_a_run_that_does_not_replay(self) -> None:
        experiment = self.ran([], verified=False)
        assert "does not replay" in experiment.refused
        assert experiment.waiting() == ()

    def test_refuses_a_system_that_fails_by_itself(self) -> None:
        experiment = self.ran([True, False, False, False])
        assert f"1 of {STARTS}" in experiment.refused
        assert experiment.waiting() == ()

    def test_tries_one_fault_after_the_other_and_resumes(self) -> None:
        """The stored results, told again, lead to the same place."""
        experiment, told = self.ran([True] * STARTS), []
        rng = Random(5)
        while waiting := experiment.waiting():
            (trial,) = waiting
            success = rng.random() < (0.1 if trial.arm == FAULT.change.arm else 0.9)
            done = ArmResult(trial.arm, "ok", success, phase=trial.phase, pair=trial.pair)
            told.append(done)
            experiment.tell(done)
        assert [each.verdict for each in experiment.trials] != ["open", "open"]
        again = self.ran([True] * STARTS)
        for each in told:
            again.tell(each)
        assert [(t.verdict, t.e_value) for t in again.trials] == [
            (t.verdict, t.e_value) for t in experiment.trials
        ]
        assert again.waiting() == ()
        with pytest.raises(ResultMismatch):
            again.tell(told[0])

    def test_a_late_fault_may_send_the_team_back_to_its_start(self) -> None:
        """The replay that is expected to make 2 calls is not ended while it does all of the 5 again."""
        (trial,) = self.ran([True] * STARTS).waiting()
        assert trial.calls == 2
        assert most_calls(trial) >= 2 + 2 * 5

    def test_refuses_a_result_that_was_not_asked_for(self) -> None:
        experiment = self.ran([True] * STARTS)
        with pytest.raises(ResultMismatch, match="the next replay is fix at step 3 of fault 0"):
            experiment.tell(ArmResult(Arm("keep", 1), "ok", True, phase="injection", pair=0))


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
        fails, trial = (
            [False] * 4 + [True] + [False] * 4 + [True],
            Trial(FAULT, later=lambda: self.STEPS),
        )
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
        three = self.told(None, None, None, None)
        assert (three.ask(), three.is_repaired, three.is_unknown) == (None, False, True)

    @pytest.mark.parametrize(("answers", "asked"), [(13, 8), (20, MOST_STEPS), (200, MOST_STEPS)])
    def test_a_repair_right_after_the_fault_of_a_long_run_is_seen(
        self, answers: int, asked: int
    ) -> None:
        """Each of the first answers is looked at; the others that are lie apart, up to the end."""
        spans = [f"{place:016x}" for place in range(answers)]
        steps = [
            Step(place, StepKind.MESSAGE, "reader", "Yes.", span)
            for place, span in enumerate(spans)
        ]
        calls = [Invocation("model", "reader", span, "", 0, 0) for span in spans]
        later = later_steps(Trajectory("a" * 32, tuple(steps), tuple(calls)), FAULT)
        near = FAULT.change.step + 1
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
    def test_blocked_replays_do_not_keep_a_fault_that_was_made_good(
        self, blocked: float, of_repairs: bool
    ) -> None:
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
