"""The execution of an experiment: each result is stored first, and no budget is exceeded, whatever is killed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import date
from typing import TYPE_CHECKING

import pytest
from confirmations import spent
from judge.replay.simulated import COST, PLANTED, POINTS, RECORDED, Killed, Program, confirming
from judge.store.invented_replays import run
from judge.store.verdicts import verdict

from mast_trace.exceptions import StorageError
from mast_trace_judge.arms import ArmResult, ReplayArm
from mast_trace_judge.confirmation import Confirmation
from mast_trace_judge.decision_points import DecisionPoint
from mast_trace_judge.store.confirmations import confirmation_of
from mast_trace_judge.store.replay_plans import plan_of
from mast_trace_judge.store.replays import record_result, reserve, results_of
from mast_trace_judge.verdict import Candidate
from mast_trace_lab.confirm.judged import with_judged_steps
from mast_trace_lab.confirm.preparation import FailedRun
from mast_trace_lab.confirm.statistics import ExperimentLimits
from mast_trace_lab.program.budget import Budget, DailyBudget
from mast_trace_lab.program.conducting import INTERRUPTED, CannotContinue
from mast_trace_lab.program.setup import Setup

if TYPE_CHECKING:
    from pathlib import Path

    from mast_trace_collector.storage import Store

CHECKS = 6
"""Replays and questions before the search; one of them that is killed ends the experiment."""


def test_the_planted_error_is_confirmed_and_stored(store: Store) -> None:
    program = Program()
    work = confirming(store, program)
    assert work.resume() == 0
    done = work.run()
    assert (done.confirmation.status, done.confirmation.origin) == ("confirmed", PLANTED)
    assert done.reason == ""
    assert confirmation_of(store, "shop", run().trace_id) == done.confirmation
    assert done.confirmation.live_calls == program.calls == spent(store)[1]
    assert len(results_of(store, plan_of(store, run(), ""))) == len(program.replays)
    asked = Program()
    again = confirming(store, asked)
    assert again.resume() == done.confirmation.replays
    assert (again.run(), asked.replays) == (done, [])


@pytest.mark.parametrize("every", [1, 5])
def test_a_killed_process_loses_the_running_replay_alone(store: Store, every: int) -> None:
    """Killed at each n-th replay, it goes on; a killed replay is stored once, with its reserved calls."""
    program, kills = Program(), 0

    def kill(number: int) -> None:
        if CHECKS < number < 30 and number % (every + 1) == every:
            raise Killed

    program.fault = kill
    while True:
        work = confirming(store, program)
        stored = work.resume()
        assert stored == len(program.replays)
        try:
            done = work.run()
        except Killed:
            kills += 1
            continue
        break
    results = results_of(store, plan_of(store, run(), ""))
    assert kills > 0
    assert [each.reason for each in results].count(INTERRUPTED) == kills
    assert len(results) == len(program.replays)
    assert spent(store)[1] >= program.calls
    assert done.confirmation.replays == len(results)


@pytest.mark.parametrize("unit", ["calls", "cost"])
@pytest.mark.parametrize("jobs", [1, 3])
def test_no_limit_is_exceeded(store: Store, unit: str, jobs: int) -> None:
    """Not even with a program that asks without end at an unknown cost, kills, restarts and replays at the same time."""
    program, limit = Program(greedy=True, cost_usd=None), 23
    budget = Budget(limit) if unit == "calls" else Budget(None, limit * COST.most)

    def kill(number: int) -> None:
        if number > CHECKS and number % 4 == 3:
            raise Killed

    program.fault = kill
    while True:
        work = confirming(store, program, budget, jobs=jobs)
        work.resume()
        with suppress(Killed):
            done = work.run()
            break
    assert 0 < program.calls <= spent(store)[1] <= limit
    assert ("--max-calls" if unit == "calls" else "budget.usd") in done.reason
    again = confirming(store, program, budget)
    again.resume()
    assert (again.run(), again.progress().replays) == (done, len(program.replays))


def test_replays_are_limited_and_a_larger_budget_goes_on(store: Store) -> None:
    program = Program()
    work = confirming(store, program, Budget(max_runs=3))
    work.resume()
    done = work.run()
    assert "3 of 3 replays are used" in done.reason
    assert [phase for phase, *_ in program.replays if phase != "score"] == ["verify"] + [
        "start"
    ] * 2
    more = confirming(store, program)
    more.resume()
    assert more.run().confirmation.status == "confirmed"


@pytest.mark.parametrize(("dollars", "jobs"), [(False, 3), (True, 1)])
def test_the_days_budget_holds(store: Store, tmp_path: Path, jobs: int, *, dollars: bool) -> None:
    day = [date(2026, 3, 1)]

    def budget() -> DailyBudget:
        calls, usd = (9999, 40 * COST.most) if dollars else (40, None)
        return DailyBudget(tmp_path / "days", calls, usd, today=lambda: day[0])

    program = Program(cost_usd=None) if dollars else Program()
    for _ in range(2):
        work = confirming(store, program, day=budget(), jobs=jobs)
        work.resume()
        done = work.run()
        assert (done.of_day, "midnight UTC" in done.reason) == (True, True)
    assert (0 if dollars else 20) < program.calls <= 40
    assert budget().spent().calls == program.calls
    assert budget().spent().cost_usd <= 40 * COST.most
    first, day[0] = program.calls, date(2026, 3, 2)
    work = confirming(store, program, day=budget())
    work.resume()
    work.run()
    assert first < program.calls <= first + 40


class Leaving:
    """A store that does not answer at some of its calls."""

    def __init__(self, store: Store, away: list[bool]) -> None:
        self._store = store
        self._away = away

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    def insert(self, table: str, rows: list, **options: object) -> object:
        """Store rows, and sometimes lose the answer."""
        lose = self._away.pop(0) if self._away else False
        if lose:
            if len(self._away) % 2:
                self._store.insert(table, rows, **options)
            raise StorageError("the database does not answer")
        return self._store.insert(table, rows, **options)


def test_a_store_that_goes_away_for_a_while_doubles_nothing(store: Store) -> None:
    """Rows are stored once, whether the lost attempt had reached the database or not."""
    away = [False, True, False, True, True, False] * 40
    program = Program()
    work = confirming(Leaving(store, away), program, pauses=(0.0,) * 6)
    work.resume()
    done = work.run()
    results = results_of(store, plan_of(store, run(), ""))
    assert len(results) == len(program.replays) == done.confirmation.replays
    assert sum(each.live_calls for each in results) == program.calls


def test_a_store_that_stays_away_ends_it_and_it_goes_on_later(store: Store) -> None:
    """A replay that was reserved, and has no stored result, counts with its reserved calls."""
    program = Program()
    work = confirming(Leaving(store, [False] * 21 + [True] * 1000), program)
    work.resume()
    with pytest.raises(StorageError, match="does not answer"):
        work.run()
    begun = len(program.replays)
    assert 8 < begun < 14
    later = confirming(store, program)
    assert begun <= later.resume() <= begun + 1
    assert later.run().confirmation.status == "confirmed"


@pytest.mark.timeout(60)
@pytest.mark.parametrize("jobs", [1, 2])
def test_an_interruption_waits_for_no_database(store: Store, jobs: int) -> None:
    """The pauses between attempts would take hours; what is stored stays, and the next process concludes."""
    program = Program()
    away = Leaving(store, [False] * 21 + [True] * 1000)
    work = confirming(away, program, pauses=(3600.0,) * 6, jobs=jobs)
    work.resume()
    main = threading.main_thread().ident
    threading.Timer(2.0, signal.pthread_kill, [main, signal.SIGINT]).start()
    with pytest.raises(KeyboardInterrupt):
        work.run()
    assert confirming(store, program).resume() >= 1


def test_replays_that_cannot_be_compared_confirm_nothing(store: Store) -> None:
    """The first sign ends the experiment, also after a restart."""
    program = Program(models=("m", "m-2026-07"))
    for _ in range(2):
        work = confirming(store, program)
        work.resume()
        told = work.run().confirmation
        assert (told.status, told.origin, len(program.replays)) == ("not isolated", None, 1)
        assert "m-2026-07 answered now" in told.text


def test_replays_at_the_same_time_give_the_same_conclusion(store: Store) -> None:
    """Each has a number of its own; results are told in the order in which they were asked for."""
    program = Program(rate=1.0)
    work = confirming(store, program, jobs=4)
    work.resume()
    done = work.run()
    assert (done.confirmation.status, done.confirmation.origin) == ("confirmed", PLANTED)
    alone = confirming(store, Program(rate=1.0))
    assert alone.resume() == len(program.replays)
    assert alone.run() == done


def test_another_machine_is_not_disturbed(store: Store) -> None:
    """A replay that another process has reserved in the meantime is not started."""
    program = Program()
    work = confirming(store, program)
    work.resume()
    plan = plan_of(store, run(), "")
    reserve(store, plan, 2, ReplayArm("score"), live_calls=0, cost_usd=0.0, holder="elsewhere/1")
    with pytest.raises(CannotContinue, match="another process"):
        work.run()
    assert len(program.replays) == 2


def test_a_replay_of_a_process_that_runs_is_not_taken_over(store: Store) -> None:
    """It would be stored as interrupted while it goes on, and its calls would be paid twice."""
    other = subprocess.Popen([sys.executable, "-c", _HOLDS], stdout=subprocess.PIPE, text=True)
    assert other.stdout is not None
    holder = other.stdout.readline().strip()
    plan = plan_of(store, run(), "")
    asked = ReplayArm("verify")
    reserve(store, plan, 0, asked, live_calls=0, cost_usd=0.0, phase="verify", holder=holder)
    with pytest.raises(CannotContinue, match="another process"):
        confirming(store, Program()).resume()
    assert results_of(store, plan) == ()
    other.kill()
    other.wait()
    assert confirming(store, Program()).resume() == 1
    assert [each.reason for each in results_of(store, plan)] == [INTERRUPTED]


def test_a_replay_elsewhere_is_left_alone(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its limits are those of this machine; after them it counts as interrupted."""
    plan = plan_of(store, run(), "")
    asked = ReplayArm("verify")
    reserve(store, plan, 0, asked, live_calls=0, cost_usd=0.0, phase="verify", holder="far/1/2")
    with pytest.raises(
        CannotContinue, match=r"a process on far replays run \w+; it counts as ended in"
    ):
        confirming(store, Program(), setup=Setup(("program",))).resume()
    assert results_of(store, plan) == ()
    monkeypatch.setattr("mast_trace_lab.program.conducting._MARGIN", -600.0)
    assert confirming(store, Program()).resume() == 1


def test_a_result_that_another_process_has_stored_ends_the_experiment(store: Store) -> None:
    """The other process took this one for ended; going on would build on a result that is not stored."""
    program = Program()
    plan = plan_of(store, run(), "{}")

    def overtaken(number: int) -> None:
        if number == 3:
            lost = ArmResult(ReplayArm("score"), "error", reason=INTERRUPTED, phase="score")
            assert record_result(store, plan, number, lost, holder="far/1/2")

    program.fault = overtaken
    work = confirming(store, program)
    work.resume()
    with pytest.raises(CannotContinue, match="another process"):
        work.run()
    assert len(program.replays) == 4
    assert [each.reason for each in results_of(store, plan)] == ["", "", "", INTERRUPTED]


def test_another_plan_that_came_first_ends_the_experiment(store: Store) -> None:
    """The earlier of two plans at the same moment stays; results of the later would not fit it."""
    work = confirming(store, Program())
    later = replace(work._plan, text="other")
    work._plan = later
    with pytest.raises(CannotContinue, match="another process"):
        work.resume()


def test_two_machines_at_once_double_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each replay that was started has a number of its own, whoever goes on."""
    own = threading.local()
    name = "mast_trace_judge.store.replays.holder_of_this_process"
    monkeypatch.setattr(name, lambda: own.name)
    monkeypatch.setattr("mast_trace_lab.program.conducting._MARGIN", -600.0)
    programs: list[Program] = []
    for _ in range(6):
        both = [Program(), Program()]
        programs += both
        together = threading.Barrier(2)

        def work(
            number: int, both: list[Program] = both, together: threading.Barrier = together
        ) -> None:
            own.name = f"machine-{number}/1/{id(both)}"
            made = confirming(store, both[number])
            together.wait(30)
            with suppress(CannotContinue):
                made.resume()
                made.run()

        threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
    rows = store.query("SELECT Sequence FROM mast_replays FINAL WHERE Status != 'reserved'")
    numbers = sorted(row["Sequence"] for row in rows)
    assert numbers == [*range(len(numbers))]
    started = sum(len(program.replays) for program in programs)
    interrupted = [
        each for each in results_of(store, plan_of(store, run(), "")) if each.reason == INTERRUPTED
    ]
    assert started + len(interrupted) >= len(numbers)
    assert started <= len(numbers)


_HOLDS = (
    "import time; from mast_trace_judge.store.replays import holder_of_this_process as name;"
    "print(name(), flush=True); time.sleep(600)"
)


def test_a_refuted_answer_refutes_the_candidates_that_it_made() -> None:
    """A candidate may be the second tool call of an answer whose first step is the decision point."""
    points = [
        DecisionPoint(2, "ann", "a", ""),
        DecisionPoint(5, "bob", "b", ""),
        DecisionPoint(9, "ann", "c", ""),
    ]
    judged = verdict(
        candidates=(
            Candidate(step=3, agent="ann", probability=0.5),
            Candidate(step=6, agent="ann", probability=0.2),
            Candidate(step=5, agent="bob", probability=0.1),
        ),
        decisive=None,
    )
    told = Confirmation(status="refuted", refuted=(2,))
    assert with_judged_steps(told, judged, points).refuted == (2, 3, 6)
    assert with_judged_steps(told, None, points) == told
    nothing = Confirmation(status="inconclusive")
    assert with_judged_steps(nothing, judged, points) == nothing


def test_results_of_another_experiment_are_not_taken(store: Store) -> None:
    plan = plan_of(store, run(), "")
    reserve(store, plan, 0, ReplayArm("keep", 3), live_calls=2, cost_usd=0.0, phase="screening")
    with pytest.raises(CannotContinue, match="do not belong"):
        confirming(store, Program()).resume()


def test_experiments_that_try_fixes_in_another_order_are_not_continued(store: Store) -> None:
    setup = Setup(("program",))
    empty = {
        "prior": {},
        "sources": {},
        "limits": asdict(ExperimentLimits()),
        "refused": [],
        "earlier": None,
    }
    for name, version in (("confirm", setup.to_plain()["version"]), ("confirm 2", 1)):
        shape = {**empty, "setup": {**setup.to_plain(), "version": version}, "planned": 3}
        plan_of(store, run(), json.dumps(shape), name=name)
        found = FailedRun(store, run(), RECORDED, setup, POINTS).stored()
        assert (found is not None) == (version != 1)


def test_a_program_that_fails_from_the_start_may_have_failed_earlier(store: Store) -> None:
    work = confirming(store, Program(0.0), setup=Setup(("program",), earlier=(RECORDED,)))
    work.resume()
    found = work.run().confirmation
    assert found.status == "systematic"
    assert found.text.endswith(
        "; the interrupted runs that it continues were kept, and the error may lie in them"
    )
