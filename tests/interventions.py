"""Replays arms of an experiment in the test's own process, and searches the decisive error by them."""

from __future__ import annotations

import json
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import stock
from scripted_llm import Reply, ScriptedLLM

import mast_trace
from mast_trace._session import current_session, paused
from mast_trace.replay.live import LiveCalls
from mast_trace.replay.player import Player
from mast_trace.replay.program import interception
from mast_trace.replay.recording import tape_of
from mast_trace.testing import capture_spans
from mast_trace_judge.arms import Fix, ReplayArm
from mast_trace_judge.decision_points import decision_points
from mast_trace_lab.replay.changes import NoChange, NotAnArm, intervention_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from mast_trace.replay.player import ReplayReport
    from mast_trace.testing import CapturedSpans
    from mast_trace.trajectory import Trajectory
    from mast_trace_judge.decision_points import DecisionPoint


@contextmanager
def playing(player: Player) -> Iterator[CapturedSpans]:
    """Answer the calls of a code block by a player, and hold its spans."""
    patches = interception(player)
    with paused():
        patches.start()
        try:
            with capture_spans() as captured:
                session = current_session()
                assert session is not None
                session.provider.add_span_processor(player.branches)
                yield captured
        finally:
            patches.stop()


@dataclass(frozen=True)
class Replay:
    """One replay of an arm.

    Attributes:
        answer: what the program returned.
        report: the player's.
        run: the replayed run.
        live: requests that the server received.
        executed: names of the tools that were executed.
    """

    answer: str
    report: ReplayReport
    run: Trajectory
    live: Sequence[dict]
    executed: Sequence[str]

    @property
    def success(self) -> bool:
        """True if the answer is right."""
        return stock.is_right(self.answer)


@dataclass(frozen=True, repr=False)
class Failure:
    """A recorded run with a planted error.

    Attributes:
        run: the run.
        requests: the body of each model request, in order.
        planted: index of the wrong answer among the decision points.
        points: the decision points.
    """

    run: Trajectory
    requests: Sequence[dict]
    planted: int
    points: Sequence[DecisionPoint]

    def __repr__(self) -> str:
        """Return a short text; whole trajectories hide the cause of a failed test."""
        return f"Failure(planted={self.planted}, points={len(self.points)})"


class Stage:
    """A team of a framework in this process, with its model's server.

    Args:
        program: runs the team once and returns its answer.
        server: the model's server.
    """

    def __init__(self, program: Callable[[], str], server: ScriptedLLM) -> None:
        self._team = program
        self._server = server
        self.model = stock.Model()
        server.script = self.model

    def program(self) -> str:
        """Run the team once, record whether its answer is right, and return it."""
        answer = self._team()
        mast_trace.record_outcome(stock.is_right(answer), "compared with what is missing")
        return answer

    def record(self, error: stock.Error | None) -> Failure:
        """Record a run with a planted error, and cure the model."""
        self.model.error = error
        before = len(self._server.requests)
        with capture_spans() as captured:
            answer = self.program()
        requests = self._server.requests[before:]
        wrong = [
            number
            for number, request in enumerate(requests)
            if error
            and stock.agent_of(request) == error.agent
            and error.answer(request) is not None
        ]
        self.model.error = None
        run = captured.trajectory()
        points = decision_points(run)
        assert stock.is_right(answer) == (error is None)
        assert len(points) == len(requests)
        assert len(wrong) == (error is not None)
        return Failure(run, requests, wrong[0] if wrong else -1, points)

    def replay(
        self, recorded: Trajectory, arm: ReplayArm, live_tools: Sequence[str] = ()
    ) -> Replay:
        """Replay an arm, and assert that the player and the server count the same live calls."""
        tape = tape_of(recorded)
        before = len(self._server.requests)
        stock.executed.clear()
        with tempfile.TemporaryDirectory() as folder:
            live = LiveCalls(Path(folder) / "live.jsonl")
            change = intervention_of(recorded, tape, arm)
            player = Player(tape, live_tools, intervention=change, live=live)
            with playing(player) as captured:
                answer = self.program()
        asked = self._server.requests[before:]
        report = player.report()
        assert report.divergence is None, report.divergence
        assert report.changed
        assert report.live_exchanges == len(asked)
        run = captured.trajectory()
        paid = [
            each for each in captured.records if each.attributes.get("gen_ai.usage.input_tokens")
        ]
        assert len([each for each in paid if each.operation == "chat"]) == len(asked)
        return Replay(answer, report, run, asked, tuple(stock.executed))


def reference(request: dict) -> Fix:
    """Return the correction of an answer: the one that a model without errors gives to the request."""
    right = stock.policy(request)
    if isinstance(right, str):
        return Fix("reference", right)
    assert isinstance(right, Reply)
    calls = [{"name": call.name, "arguments": call.arguments} for call in right.calls]
    return Fix("reference", json.dumps({"tool_calls": calls}))


def flips(stage: Stage, failure: Failure, *, hold: bool) -> list[int]:
    """Return the decision points whose correction makes the run succeed; a correction that changes nothing is none."""
    found = []
    for place, (point, request) in enumerate(zip(failure.points, failure.requests, strict=True)):
        arm = ReplayArm("fix", point.step, reference(request), hold=hold)
        try:
            done = stage.replay(failure.run, arm, live_tools=["*"])
        except NoChange:
            continue
        if done.success:
            found.append(place)
    return found


def earliest_naive_flip(stage: Stage, failure: Failure) -> int:
    """Return the first decision point from which a live rest succeeds, its answer corrected or equal."""
    for place, (point, request) in enumerate(zip(failure.points, failure.requests, strict=True)):
        try:
            done = stage.replay(
                failure.run, ReplayArm("fix", point.step, reference(request)), ["*"]
            )
        except NoChange:
            done = stage.replay(failure.run, ReplayArm("keep", point.step), ["*"])
        if done.success:
            return place
    raise AssertionError("no correction makes the run succeed")


def check_planted(stage: Stage, error: stock.Error) -> None:
    """Assert that the earliest held flip is the planted error, and that the naive one is the first point.

    Both searches correct each answer as a model without errors would. The naive search runs the rest
    anew, so that the corrected model repairs the run from its first answer on, wherever the error is.
    """
    failure = stage.record(error)
    assert flips(stage, failure, hold=True) == [failure.planted]
    assert earliest_naive_flip(stage, failure) == 0
    # The error is not repairable: kept, it decides the run; before it nothing is decided.
    planted = failure.points[failure.planted]
    assert planted.agent == error.agent
    assert not stage.replay(failure.run, ReplayArm("keep", planted.step), ["*"]).success
    if failure.planted:
        before = failure.points[failure.planted - 1]
        assert stage.replay(failure.run, ReplayArm("keep", before.step), ["*"]).success


def check_operators(stage: Stage) -> None:
    """Assert the effects of the operators on a run in which the analyst forgets the weeks."""
    failure = stage.record(stock.ERRORS[3])
    run, points, wrong = failure.run, failure.points, failure.planted
    report, total = points[wrong].step, len(points)
    assert wrong > 0

    start = stage.replay(run, ReplayArm("start"))
    assert start.success
    assert (start.report.served_exchanges, len(start.live), start.executed) == (0, total, ())

    for place, point in enumerate(points):
        kept = stage.replay(run, ReplayArm("keep", point.step))
        assert (kept.report.served_exchanges, len(kept.live)) == (place + 1, total - place - 1)
        assert kept.success == (place < wrong)
        assert kept.executed == ()
    held = stage.replay(run, ReplayArm("keep", points[0].step, hold=True))
    assert (held.success, len(held.live)) == (False, 0)

    resampled = stage.replay(run, ReplayArm("resample", report))
    assert (resampled.success, len(resampled.live)) == (True, total - wrong)

    fix = Fix("person", "We shall sell 340 kettles.")
    fixed = stage.replay(run, ReplayArm("fix", report, fix))
    assert (fixed.success, fixed.report.served_exchanges) == (True, wrong + 1)

    other = stage.replay(run, ReplayArm("model", report, Fix("stronger model", model="gpt-large")))
    assert other.success
    asked = [request["model"] == "gpt-large" for request in other.live]
    assert asked == [True] + [False] * (total - wrong - 1)


def check_tools(stage: Stage) -> None:
    """Assert the operators that change a tool call: its result, its arguments, and its absence."""
    failure = stage.record(None)
    run = failure.run
    counted = next(step for step in run.steps if step.tool == "count_stock")

    changed = stage.replay(
        run, ReplayArm("result", counted.index, Fix("reference", "kettle: 140 pieces in stock"))
    )
    assert (changed.success, changed.executed) == (False, ())
    assert "200" in changed.answer

    arguments = ReplayArm("arguments", counted.index, Fix("person", '{"item": "pot"}'))
    executed = stage.replay(run, arguments, live_tools=["count_stock"])
    assert executed.executed == ("count_stock",)
    assert "300" in executed.answer

    guessed = Fix("person", "There are 99 kettles in stock.")
    for operator in ("drop", "fix"):
        said = stage.replay(run, ReplayArm(operator, failure.points[0].step, guessed))
        assert (said.executed, said.success) == ((), False)
        assert said.report.served_executions == 1
        assert "241" in said.answer
    with pytest.raises(NotAnArm, match="tool calls alone"):
        stage.replay(run, ReplayArm("drop", failure.points[0].step))
