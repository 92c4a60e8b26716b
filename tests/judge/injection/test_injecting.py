"""Faults in a recorded run of a real program: real processes, a scripted model that reads its input."""

from __future__ import annotations

import json
import os
import signal
import sys
from dataclasses import replace
from datetime import datetime, timezone
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from judge.store.invented_replays import run as summary
from policies import shop
from replays import record
from scripted_llm import ScriptedLLM

from mast_trace.exceptions import ConfigurationError
from mast_trace.trajectory import Step, StepKind, Trajectory
from mast_trace_judge.arms import ArmResult, ReplayArm
from mast_trace_judge.decision_points import decision_points
from mast_trace_judge.store.injections import Injection, injections, take_over
from mast_trace_judge.store.labels import labels_of
from mast_trace_judge.study.labelled import labelled_runs, read_injected, shapes_of, write_set
from mast_trace_judge.transfer.importing import take_set
from mast_trace_lab.inject import injecting
from mast_trace_lab.inject.dataset import build
from mast_trace_lab.inject.injecting import STOPPED, Injected, NotInjectable, inject
from mast_trace_lab.program.budget import Budget, ReplayAllowance, ReplayTrial
from mast_trace_lab.program.forking import LazyParent
from mast_trace_lab.program.setup import Setup
from mast_trace_lab.replay.arm_runner import executing, run_arm

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stores import Tables

    from mast_trace_collector.storage import Store

pytestmark = pytest.mark.end_to_end

SHOP = Path(__file__).parents[1] / "replay" / "shop.py"
CHOICE, COUNTED, REPORT, PLAN, ORDER = range(5)


@pytest.mark.parametrize("count", [2, 64, 65, 129])
def test_other_line_ends_in_texts_divide_no_row(tmp_path: Path, count: int) -> None:
    """JSON leaves U+2028 and NEL as they are; Parquet has 64 rows in a group, and the rest in a last one."""
    shape = {"format": 1, "id": "a\u2028b\x85c", "run": {"text": "one\u2029two"}}
    given = [shape, *({**shape, "id": str(number)} for number in range(1, count))]
    write_set(tmp_path, given)
    assert [row for _, row in shapes_of(tmp_path)] == given
    (tmp_path / "runs.jsonl").unlink()
    rows = [(row["id"], row["run"]) for _, row in shapes_of(tmp_path)]
    assert rows == [(each["id"], each["run"]) for each in given]


class Team:
    """A recorded success of the team, and its model's server."""

    def __init__(self, recorded: Trajectory, server: ScriptedLLM) -> None:
        self.recorded = recorded
        self.server = server

    def inject(self, store: Store, budget: Budget | None = None, **given: Any) -> Injected:
        command = (sys.executable, str(SHOP), *given.pop("way", ()))
        run = summary(trace_id=self.recorded.trace_id, outcome="success")
        with LazyParent(("openai",), 2, warn=print) as parent:
            oracle = given.pop("oracle", ())
            setup = Setup(command, oracle, timeout=given.pop("timeout", 60), parent=parent)
            return inject(
                store,
                run,
                given.pop("recorded", self.recorded),
                setup,
                budget or Budget(),
                **{"seed": 1, "count": 4, **given},
            )

    def replays_later(self, made: Injection) -> None:
        """Assert that a stored faulty run can be kept from after a later answer, and ends as it did."""
        assert made.run is not None
        later = [each.step for each in decision_points(made.run) if each.step > made.step][:1]
        for step in later:
            done = run_arm(made.run, Setup((sys.executable, str(SHOP))), ReplayArm("keep", step))
            assert (done.status, done.success) == ("ok", made.run.outcome == "success")


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    folder = tmp_path_factory.mktemp("shop")
    with ScriptedLLM(shop) as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_BASE_URL", server.url)
        patch.setenv("OPENAI_API_KEY", "scripted")
        patch.setenv("EXECUTED", str(folder / "executed"))
        recorded = record(SHOP, folder=folder, keep="OPENAI_")
        assert (recorded.outcome, recorded.final_answer) == ("success", "Order 210 pieces.")
        yield Team(recorded, server)


@pytest.fixture(scope="module")
def planted(team: Team, tables: tuple[Store, Tables]) -> tuple[Injection, ...]:
    """Decided faults: a number that an agent has computed, and the result of a tool."""
    store, made = tables
    made.renew()
    done = team.inject(store, only=["2.6-computed", "tool-wrong"], count=3)
    assert done.refused == done.limit == ""
    stored = {each.fault_id: each for each in injections(store)}
    assert [stored[each.fault_id] for each in done.injections] == list(done.injections)
    assert {each.mode for each in done.injections if each.verdict == "kept"} == {"2.6", ""}
    return done.injections


def test_labels_the_planted_step(team: Team, planted: tuple[Injection, ...]) -> None:
    """A misread number decides the run, in a program that is deterministic."""
    for each in planted:
        team.replays_later(each)
    for each in (each for each in planted if each.verdict == "kept"):
        assert each.deterministic
        assert each.decisive
        assert each.point_of_no_return == each.step
        assert (each.faulty, each.faulty_failures) == (3, 3)
        assert (each.restored, each.restored_successes) == (2, 2)
        assert each.run
        assert each.run.outcome == "failure"
        texts = [[step.text for step in run.steps] for run in (each.run, team.recorded)]
        assert each.run.steps[each.step].agent == each.agent
        assert texts[0][each.step] != texts[1][each.step]
        assert texts[0][: each.step] == texts[1][: each.step]


def test_builds_a_set_that_is_read_again(
    planted: tuple[Injection, ...], store: Store, tmp_path: Path
) -> None:
    """The set holds the kept and the surviving runs, and names no agent for the environment."""
    take_over(store, [(each, datetime.now(timezone.utc)) for each in planted])
    written = build(store, tmp_path / "set", licence="CC0-1.0")
    labelled = [each for each in planted if each.verdict in {"kept", "survived"}]
    assert {each.id for each in written} == {each.fault_id for each in labelled}
    read = {each.name: each for each in read_injected(tmp_path / "set")}
    assert read.keys() == {each.fault_id for each in labelled if each.verdict == "kept"}
    for each in labelled:
        if each.verdict == "kept":
            run = read[each.fault_id]
            assert run.trajectory == each.run
            assert (run.step, run.group) == (each.step, each.original)
            assert run.agent == (each.agent if each.mode else "")
    card = (tmp_path / "set" / "card.md").read_text()
    for text in ("CC0-1.0", "2.6-computed", "share kept"):
        assert text in card
    points = {row["id"]: row["point_of_no_return"] for _, row in shapes_of(tmp_path / "set")}
    assert points == {each.fault_id: each.point_of_no_return for each in labelled}
    known = sum(point is not None for point in points.values())
    assert known
    assert f"The point of no return is known in {known} of {len(read)} failures" in card
    lines = (tmp_path / "set" / "runs.jsonl").read_bytes()
    # Parquet holds the same, and is read where it is alone.
    (tmp_path / "set" / "runs.jsonl").unlink()
    assert {each.name: each for each in read_injected(tmp_path / "set")} == read
    rows = {row["id"]: row["point_of_no_return"] for _, row in shapes_of(tmp_path / "set")}
    assert rows == points
    (tmp_path / "set" / "runs.jsonl").write_bytes(lines)
    # A store that has none of them takes them over, once.
    store.command("TRUNCATE TABLE mast_injections")
    taken = take_set(store, tmp_path / "set")
    assert (taken.faults, taken.new_faults, taken.failures) == (len(labelled), len(labelled), 0)
    assert take_set(store, tmp_path / "set").new_faults == 0
    again = {each.fault_id: each for each in injections(store)}
    for each in labelled:
        there = again[each.fault_id]
        assert (there.run, there.step, there.agent) == (each.run, each.step, each.agent)
        assert (there.verdict, there.decisive) == (each.verdict, each.decisive)
        assert there.point_of_no_return == each.point_of_no_return
    assert labels_of(store) == []
    assert store.query("SELECT count() AS n FROM mast_runs") == [{"n": 0}]
    assert labelled_runs(store) == []
    (tmp_path / "set" / "runs.jsonl").write_text('{"format": 1}\n')
    with pytest.raises(ConfigurationError, match=r"runs\.jsonl:1 is no labelled run"):
        read_injected(tmp_path / "set")


def test_a_set_of_before_has_no_point_of_no_return(store: Store, tmp_path: Path) -> None:
    """A point outside the run is none."""
    steps = (Step(0, StepKind.MESSAGE, "a", "21"), Step(1, StepKind.MESSAGE, "b", "22"))
    made = Injection(
        project="",
        original="a" * 32,
        fault_id="f",
        operator="2.6-number",
        mode="2.6",
        level="answer",
        step=1,
        agent="b",
        verdict="kept",
        decisive=True,
        success_after=0.0,
        point_of_no_return=1,
        run=Trajectory("a" * 32, steps, outcome="failure"),
    )
    take_over(store, [(made, datetime.now(timezone.utc))])
    assert [each.point_of_no_return for each in injections(store)] == [1]
    build(store, tmp_path)
    (written,) = [row for _, row in shapes_of(tmp_path)]
    store.command("TRUNCATE TABLE mast_injections")
    del written["point_of_no_return"]
    (tmp_path / "runs.jsonl").write_text(json.dumps(written))
    assert take_set(store, tmp_path).new_faults == 1
    assert [each.point_of_no_return for each in injections(store)] == [None]
    (tmp_path / "runs.jsonl").write_text(json.dumps(written | {"point_of_no_return": 2}))
    with pytest.raises(ConfigurationError, match="the run has no step 2"):
        take_set(store, tmp_path)


def test_blames_nobody_for_the_environment(planted: tuple[Injection, ...]) -> None:
    """A wrong result of a tool makes the run fail; the label names its step, and no failure mode."""
    of_tools = [each for each in planted if each.operator == "tool-wrong"]
    assert {(each.mode, each.step, each.verdict) for each in of_tools} == {("", COUNTED, "kept")}
    for each in of_tools:
        # Those who acted after it in the faulty run, not those of the recorded one.
        assert each.run
        later = [step.agent for step in each.run.steps[each.step + 1 :]]
        assert each.missed_by == tuple(dict.fromkeys(later))


def test_an_injection_goes_on_after_its_stored_results(team: Team, store: Store) -> None:
    """The budget ends it; with a larger one it goes on, and nothing is replayed or stored twice."""
    given: dict[str, Any] = {"only": ["2.6-computed"], "count": 1}
    first = team.inject(store, Budget(max_calls=12), **given)
    assert "live calls are used" in first.limit
    assert first.live_calls <= 12
    before = len(team.server.requests)
    whole = team.inject(store, **given)
    assert whole.limit == ""
    again = team.inject(store, **given)
    assert len(team.server.requests) - before == whole.live_calls - first.live_calls
    assert [each.fault_id for each in again.injections] == [
        each.fault_id for each in whole.injections
    ]
    assert len(list(injections(store))) == len(whole.injections) == 1


def test_an_interruption_returns_what_is_known(
    team: Team, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The replay that it hits is not taken for one that crashed, and the next call goes on."""
    given: dict[str, Any] = {"only": ["2.6-computed", "tool-wrong"], "count": 2, "jobs": 2}
    number = count(1)  # two threads take no number twice, and none is left out

    def interrupted(recorded: Trajectory, setup: Setup, *others: Any) -> Any:
        execute = executing(recorded, setup, *others)

        def counted(trial: ReplayTrial, allowance: ReplayAllowance) -> ArmResult:
            # There are about fifteen. An interpreter that is in a finalizer drops an interruption.
            if next(number) % 5 == 0:
                os.kill(os.getpid(), signal.SIGINT)
            return execute(trial, allowance)

        return counted

    monkeypatch.setattr(injecting, "executing", interrupted)
    first = team.inject(store, **given)
    assert first.limit == STOPPED
    monkeypatch.undo()
    whole = team.inject(store, **given)
    assert (whole.limit, [each.verdict for each in whole.injections]) == ("", ["kept"] * 2)
    crashed = store.query("SELECT count() AS n FROM mast_replays FINAL WHERE Status = 'crashed'")
    assert crashed == [{"n": 0}]


def test_a_message_is_changed_on_its_way(team: Team, store: Store) -> None:
    given: dict[str, Any] = {"only": ["message-number"], "count": 1}
    team.inject(store, Budget(max_runs=6), **given)
    (made,) = injections(store)
    assert (made.level, made.mode, made.step) == ("message", "", PLAN)
    assert made.change["request"]["sent"] == team.recorded.steps[REPORT].text
    assert made.run is not None
    assert made.run.outcome == "failure"
    texts = [[step.text for step in run.steps] for run in (team.recorded, made.run)]
    assert texts[0][: REPORT + 1] == texts[1][: REPORT + 1]
    assert texts[0][PLAN] != texts[1][PLAN]


def test_a_team_that_waits_for_ever_has_failed(team: Team, store: Store) -> None:
    """Its run up to the kill is stored; the limit is far from what the replays without a fault took."""
    given: dict[str, Any] = {"way": ["waits"], "only": ["2.6-computed"], "count": 1}
    clean = team.inject(store, Budget(max_runs=5), **given)
    assert (clean.refused, clean.injections) == ("", ())
    seconds = store.query("SELECT max(Seconds) AS longest FROM mast_replays FINAL")[0]["longest"]
    team.inject(store, Budget(max_runs=6), timeout=4 * seconds, **given)
    rows = store.query("SELECT Status FROM mast_replays FINAL WHERE Phase = 'injection'")
    assert [row["Status"] for row in rows] == ["timeout"]
    (stored,) = injections(store)
    assert stored.run is not None
    assert (stored.run.outcome, stored.run.task) == ("failure", team.recorded.task)
    step = stored.run.steps[PLAN]
    assert (step.agent, stored.step, len(stored.run.steps)) == ("planner", PLAN, PLAN + 1)
    assert step.text != team.recorded.steps[PLAN].text


def test_a_team_that_asks_again_and_again_has_failed(team: Team, store: Store) -> None:
    done = team.inject(store, way=["asks-again"], only=["2.6-computed"], count=1)
    (made,) = done.injections
    assert (made.verdict, made.step, made.deterministic) == ("kept", PLAN, True)
    assert (made.faulty_failures, made.restored_successes) == (3, 2)
    assert made.run is not None
    assert made.run.outcome == "failure"
    rows = store.query("SELECT LiveCalls FROM mast_replays FINAL WHERE Status = 'over budget'")
    assert len(rows) == 3
    calls = sum(call.kind == "model" for call in team.recorded.invocations)
    assert all(row["LiveCalls"] >= 3 * calls for row in rows)


def test_a_decided_fault_is_not_replayed_under_another_plan(team: Team, store: Store) -> None:
    """Its evidence is not begun anew: a larger count tries the new faults alone, and another seed none of the known ones."""
    given: dict[str, Any] = {"only": ["tool-timeout"], "seed": 2}  # there are two such faults
    first = team.inject(store, **given, count=1)
    (one,) = first.injections
    assert (one.verdict, first.skipped) == ("kept", 0)
    more = team.inject(store, **given, count=2)
    assert (more.skipped, more.limit, len(more.injections)) == (1, "", 2)
    assert more.injections[0] == one
    two = more.injections[1]
    assert (two.verdict, two.fault_id != one.fault_id) == ("kept", True)
    pairs = store.query("SELECT DISTINCT Pair FROM mast_replays FINAL WHERE Phase = 'injection'")
    assert sorted(row["Pair"] for row in pairs) == [0, 1]
    asked = len(team.server.requests)
    other_seed = team.inject(store, **{**given, "seed": 3}, count=2)
    # Nothing is replayed, not even the clean run, and the labels stay as they are.
    assert (other_seed.skipped, other_seed.replays, other_seed.refused) == (2, 0, "")
    assert {each.fault_id: each for each in other_seed.injections} == {
        each.fault_id: each for each in more.injections
    }
    assert {each.seed for each in injections(store)} == {2}
    # The plan that decided it has its own replays.
    assert (team.inject(store, **given, count=1).skipped, len(team.server.requests)) == (0, asked)
    # No other program's verdict is taken for it.
    other = team.inject(store, Budget(max_runs=1), way=["other"], **given, count=1)
    assert (other.skipped, other.replays) == (0, 1)


def test_a_stored_run_of_another_oracle_is_not_taken_over(team: Team, store: Store) -> None:
    """The outcome of a run is that of its setup: a fault that survives has a run that succeeds."""
    given: dict[str, Any] = {"only": ["2.6-computed"], "count": 1}
    (strict,) = team.inject(store, **given).injections
    assert strict.run is not None
    assert (strict.verdict, strict.run.outcome) == ("kept", "failure")
    (lax,) = team.inject(store, oracle=("true",), **given).injections
    assert lax.run is not None
    assert (lax.verdict, lax.run.outcome, lax.fault_id) == ("survived", "success", strict.fault_id)
    assert [*injections(store)] == [lax]
    # Its own run is gone: it says so, and displaces no label that has one.
    asked = len(team.server.requests)
    (again,) = team.inject(store, **given).injections
    assert (again.verdict, again.run, len(team.server.requests)) == ("kept", None, asked)
    assert [*injections(store)] == [lax]


def test_refuses_what_has_not_succeeded(team: Team, store: Store) -> None:
    with pytest.raises(NotInjectable, match="has not succeeded"):
        team.inject(store, recorded=replace(team.recorded, outcome="failure"))
    with pytest.raises(NotInjectable, match="no operator applies"):
        team.inject(store, only=["3.3"])
