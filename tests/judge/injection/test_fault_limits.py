"""A faulty replay that a limit has ended is a failure where the limit is far from what the run needs."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest
from planted_trials import FAULT, STARTS_ALIKE, result

from mast_trace.trajectory import Step, StepKind, Trajectory
from mast_trace_judge.arms import ArmResult, ReplayArm
from mast_trace_lab.inject.experiment import STARTS, InjectionExperiment
from mast_trace_lab.inject.trial import Trial, has_failed, with_readable_run
from mast_trace_lab.program.budget import most_calls

if TYPE_CHECKING:
    from collections.abc import Callable


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
        trial = self.decided(lambda _: self.hangs(30.0))
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
        hanging = result(ReplayArm("start"), None, seconds=31.0)
        trial = self.decided(lambda _: self.hangs(31.0), clean=(*self.CLEAN, hanging))
        assert trial.verdict == "censored"
        # Restoring must end: what hangs with and without the fault is no label of it.
        assert self.decided(lambda _: self.hangs(31.0), restored=None).verdict == "censored"

    @pytest.mark.parametrize(
        ("seconds", "calls", "verdict"), [(59.9, 10, "censored"), (60.0, 10, "kept")]
    )
    def test_a_team_has_time_for_its_work(self, seconds: float, calls: int, verdict: str) -> None:
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

    @pytest.mark.parametrize(
        ("calls", "seconds", "failed"),
        [(0, 0.0, False), (1, 0.1, True), (2, 0.2, True), (2, 0.3, False)],
    )
    def test_small_runs_are_compared_as_large_ones(
        self, calls: int, seconds: float, failed: bool
    ) -> None:
        """A clean replay of a call and a tenth of a second; nothing is known without any."""
        clean = [dataclasses.replace(self.CLEAN[0], live_calls=calls, seconds=seconds)]
        for ended in (
            self.hangs(0.7),
            dataclasses.replace(
                self.hangs(0.7),
                status="over budget",
                live_calls=5 if calls > 1 and not failed else 6,
            ),
        ):
            assert has_failed(ended, clean) is failed
            assert not has_failed(ended, [])
            assert not has_failed(ended, [*clean, ended])

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
