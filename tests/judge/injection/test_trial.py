"""A fault is kept as a label only where it causes the failure, and the experiment ends for any results."""

from __future__ import annotations

import dataclasses
from itertools import product
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from planted_trials import FAULT, STARTS_ALIKE, decided, result

from mast_trace.trajectory import Trajectory
from mast_trace_judge.arms import ArmResult, ReplayArm
from mast_trace_lab.inject import injecting
from mast_trace_lab.inject.experiment import STARTS, InjectionExperiment
from mast_trace_lab.inject.trial import Recovery, Trial
from mast_trace_lab.program.budget import ReplayAllowance, ResultMismatch, most_calls
from mast_trace_lab.program.setup import Setup


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
        # Ten replays show at most one success in 15 %.
        assert sum(trial.is_decisive for trial in trials) <= 20


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
    kept = sum(decided(rate, rate, seed).verdict == "kept" for seed in range(200))
    assert kept <= 0.05 * 200


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


def told(faulty: list[ArmResult], restored: list[ArmResult], **more: object) -> Trial:
    return Trial(FAULT, faulty=faulty, restored=restored, **more)  # type: ignore[arg-type]


def outcomes(arm: ReplayArm, successes: int, count: int) -> list[ArmResult]:
    """Return so many replays, no two of which made the same requests."""
    return [result(arm, number < successes, str(number)) for number in range(count)]


FAULTY, KEPT = FAULT.change.arm, ReplayArm("keep", FAULT.kept_until)


@pytest.mark.parametrize(
    "status", ["timeout", "over budget", "blocked", "diverged", "error", "crashed"]
)
def test_a_replay_without_an_outcome_counts_against_the_fault(status: str) -> None:
    """A faulty one counts as a success and a restored one as a failure; a crash after the fault is a failure."""

    def evidence(faulty: ArmResult, restored: ArmResult) -> float:
        return told([*outcomes(FAULTY, 0, 2), faulty], [*outcomes(KEPT, 2, 2), restored]).e_value

    fails, succeeds = outcomes(FAULTY, 0, 1)[0], result(FAULTY, True)
    lost, found = result(KEPT, False), result(KEPT, True)
    ended = ArmResult(FAULTY, status)  # type: ignore[arg-type]
    best = evidence(fails, found)
    assert evidence(succeeds, found) < best > evidence(fails, lost)
    assert evidence(ended, found) == (best if status == "crashed" else evidence(succeeds, found))
    assert evidence(fails, dataclasses.replace(ended, arm=KEPT)) == evidence(fails, lost)
    trial = told([ended] * 3, [result(KEPT, None)])
    assert trial.censored == (1 if status == "crashed" else 4)


def test_a_fault_is_kept_from_an_e_value_of_twenty() -> None:
    """Successes after the fault and failures of restored replays, of which some lie close to either side."""
    near = []
    for count, repaired, lost in product(range(3, 20), range(6), range(6)):
        if repaired <= count and lost <= count:
            trial = told(outcomes(FAULTY, repaired, count), outcomes(KEPT, count - lost, count))
            near.append(trial.e_value)
            kept = trial._of_pairs == "kept"
            assert kept == (trial.e_value >= 20), (count, repaired, lost)
    assert max(each for each in near if each < 20) > 18.5
    assert min(each for each in near if each >= 20) < 21.5


@pytest.mark.parametrize(
    ("faulty", "restored", "verdict"),
    [
        ((20, 10), (20, 10), "unproved"),
        ((20, 10), (19, 10), "open"),
        ((3, 3), (0, 0), "survived"),
        ((2, 2), (0, 0), "open"),
        ((3, 2), (0, 0), "open"),
        ((3, 0), (1, 1), "open"),
    ],
)
def test_a_fault_is_decided_after_enough_replays(
    faulty: tuple[int, int], restored: tuple[int, int], verdict: str
) -> None:
    trial = told(outcomes(FAULTY, faulty[1], faulty[0]), outcomes(KEPT, restored[1], restored[0]))
    assert trial.verdict == verdict


@pytest.mark.parametrize("of_restored", [0, 1, 2])
@pytest.mark.parametrize("unknown", [3, 4])
def test_four_replays_without_an_outcome_decide_nothing(unknown: int, of_restored: int) -> None:
    faulty = [ArmResult(FAULTY, "blocked")] * (unknown - of_restored)
    trial = told([*faulty, *outcomes(FAULTY, 0, 1)], [ArmResult(KEPT, "blocked")] * of_restored)
    assert trial.verdict == ("censored" if unknown > 3 else "open")


@pytest.mark.parametrize(
    ("count", "successes", "decisive"),
    [
        (10, 0, True),
        (10, 1, True),
        (10, 2, False),
        (9, 0, False),
        (9, 1, False),
        (9, 2, False),
        (20, 2, True),
        (20, 3, False),
    ],
)
def test_a_decisive_step_is_repaired_in_a_tenth(count: int, successes: int, decisive: bool) -> None:
    """More replays are asked for while one success more could still be too many."""
    recovery = Recovery((4,), results=[result(ReplayArm("keep", 4), False)])
    trial = told(outcomes(FAULTY, successes, count), outcomes(KEPT, 20, 20), recovery=recovery)
    assert (trial.verdict, trial.is_decisive) == ("kept", decisive)
    assert (trial.point_of_no_return == FAULT.change.step) == decisive
    assert (trial.ask() == FAULTY) == (count == 9 and successes < 2)


@pytest.mark.parametrize(
    ("faulty", "restored", "odd", "alike"),
    [
        (3, 2, "", True),
        (2, 2, "", False),
        (3, 1, "", False),
        *[
            (3, 2, odd, False)
            for odd in ("faulty", "restored", "whole", "success", "failure", "lost")
        ],
    ],
)
def test_equal_replays_are_deterministic(faulty: int, restored: int, odd: str, alike: bool) -> None:
    """Replays of the whole program, the fault and the restored step are equal; one that differs takes it back."""
    fails = [result(FAULTY, False, "x")] * faulty
    helps = [result(KEPT, True, "y")] * restored
    clean = [*STARTS_ALIKE, ArmResult(ReplayArm("verify"), "ok", True, calls_hash="")]
    if odd in {"faulty", "success", "lost"}:
        fails[-1] = result(
            FAULTY, {"success": True, "lost": None}.get(odd, False), "z" if odd == "faulty" else "x"
        )
    elif odd in {"restored", "failure"}:
        helps[-1] = result(KEPT, odd != "failure", "z" if odd == "restored" else "y")
    elif odd == "whole":
        clean[1] = dataclasses.replace(clean[1], calls_hash="other")
    assert told(fails, helps, clean=clean).is_deterministic == alike


class TestExperiment:
    """The order of replays on one run."""

    def ran(
        self, starts: list[bool], verified: bool = True, at_once: int = 1, asked: str = ""
    ) -> InjectionExperiment:
        experiment = InjectionExperiment([FAULT] * 3, 5, {3: 2}, at_once=at_once)
        rest = iter([verified, *starts])
        while (waiting := experiment.waiting()) and waiting[0].phase != "injection":
            told = {"phase": waiting[0].phase, "calls_hash": asked}
            experiment.tell(ArmResult(waiting[0].arm, "ok", next(rest), **told))
        return experiment

    def decided(self, experiment: InjectionExperiment, rng: Random | None) -> list[ArmResult]:
        """Run replays until the end; without a source of chance, all of one arm are alike."""
        told = []
        while waiting := experiment.waiting():
            for trial in waiting:
                wrong = trial.arm == FAULT.change.arm
                success = not wrong if rng is None else rng.random() < (0.1 if wrong else 0.9)
                told.append(
                    ArmResult(
                        trial.arm,
                        "ok",
                        success,
                        phase=trial.phase,
                        pair=trial.pair,
                        calls_hash="" if rng else trial.arm.operator,
                    )
                )
                experiment.tell(told[-1])
        return told

    def test_refuses_a_run_that_does_not_replay(self) -> None:
        experiment = self.ran([], verified=False)
        assert "does not replay" in experiment.refused
        assert experiment.waiting() == ()

    @pytest.mark.parametrize("successes", [0, 1, 2, 4])
    def test_refuses_a_system_that_fails_by_itself(self, successes: int) -> None:
        """Half of the live replays succeed at least, or no fault is tried."""
        experiment = self.ran([place < successes for place in range(STARTS)])
        assert bool(experiment.refused) == (successes < 2)
        assert (experiment.waiting() == ()) == (successes < 2)

    @pytest.mark.parametrize("alike", [False, True])
    @pytest.mark.parametrize("at_once", [1, 2, 4])
    def test_tries_faults_and_resumes_with_any_number_at_a_time(
        self, at_once: int, alike: bool
    ) -> None:
        """In a program that repeats itself the faults of one step share two restored replays, and one that ran meanwhile."""
        given = [True] * STARTS
        asked = "x" if alike else ""
        experiment = self.ran(given, at_once=at_once, asked=asked)
        told = self.decided(experiment, None if alike else Random(5))
        verdicts = [each.verdict for each in experiment.trials]
        assert len(verdicts) == 3
        assert "open" not in verdicts
        if alike:
            restored = sum(each.arm == experiment.trials[0].restore for each in told)
            assert verdicts == ["kept"] * 3
            assert (len(told) - restored, restored) == (9, 2 if at_once < 4 else 3)
        again = self.ran(given, asked=asked)
        for each in told:
            again.tell(each)
        assert [(t.verdict, t.e_value) for t in again.trials] == [
            (t.verdict, t.e_value) for t in experiment.trials
        ]
        assert again.waiting() == ()
        with pytest.raises(ResultMismatch):
            again.tell(dataclasses.replace(told[0], arm=ReplayArm("keep", 1)))

    def test_a_late_fault_may_send_the_team_back_to_its_start(self) -> None:
        """The replay that is expected to make 2 calls is not ended while it does all of the 5 again."""
        (trial,) = self.ran([True] * STARTS).waiting()
        assert trial.calls == 2
        assert most_calls(trial) >= 2 + 2 * 5

    def test_refuses_a_result_that_was_not_asked_for(self) -> None:
        experiment = self.ran([True] * STARTS)
        with pytest.raises(ResultMismatch, match="the next replay is fix at step 3 of fault 0"):
            experiment.tell(ArmResult(ReplayArm("keep", 1), "ok", True, phase="injection", pair=0))


def test_a_replay_whose_run_was_not_recorded_leaves_none_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An oracle judges it all the same."""
    failed = result(FAULT.change.arm, False)
    monkeypatch.setattr(injecting, "executing", lambda *_: lambda *_: failed)
    kept: list[int] = []
    experiment: Any = SimpleNamespace(trials=[Trial(FAULT, clean=STARTS_ALIKE)])
    trial: Any = SimpleNamespace(phase="injection", arm=FAULT.change.arm, pair=0)
    execute = injecting._executing(
        Trajectory("t", ()), Setup(("p",)), experiment, {}, kept.append, lambda _: None
    )
    assert (execute(trial, ReplayAllowance(1, None)), kept) == (failed, [])
