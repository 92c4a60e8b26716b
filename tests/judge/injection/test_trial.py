"""A fault is kept as a label only where it causes the failure, and the experiment ends for any results."""

from __future__ import annotations

import dataclasses
from random import Random

import pytest
from planted_trials import FAULT, STARTS_ALIKE, decided, result

from mast_trace_judge.arms import Arm, ArmResult
from mast_trace_judge.injection.experiment import STARTS, InjectionExperiment
from mast_trace_judge.injection.trial import Trial
from mast_trace_judge.replay.bounds import most_calls
from mast_trace_judge.replay.statistics import ResultMismatch


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
