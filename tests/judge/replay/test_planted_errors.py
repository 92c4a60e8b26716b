"""Interventions in runs of a team without a framework: operators, planted errors, random arms."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import openai
import pytest
import stock
from confirmed_planted import LIMITS, check_confirmed, setup_of
from hypothesis import given, settings
from hypothesis import strategies as st
from interventions import Stage, check_operators, check_planted, check_tools, reference
from judge.store.invented_replays import run as stored_run
from scripted_llm import ScriptedLLM

import mast_trace
from mast_trace.replay.player import Blocked
from mast_trace_judge.arms import Fix, ReplayArm
from mast_trace_judge.store.confirmations import confirmation_of
from mast_trace_lab.confirm.confirm import confirming
from mast_trace_lab.confirm.preparation import FailedRun, check
from mast_trace_lab.program.budget import Budget
from mast_trace_lab.replay.changes import NoChange, NotAnArm

if TYPE_CHECKING:
    from collections.abc import Iterator

    from interventions import Failure

    from mast_trace.trajectory import Trajectory
    from mast_trace_collector.storage import Store
    from mast_trace_judge.arms import Operator
    from mast_trace_judge.confirmation import Confirmation
    from mast_trace_judge.decision_points import DecisionPoint
    from mast_trace_lab.program.setup import Setup

TOOLS = {
    "count_stock": mast_trace.tool(stock.count_stock),
    "weekly_sales": mast_trace.tool(stock.weekly_sales),
}
OPERATORS: tuple[Operator, ...] = (
    "start",
    "keep",
    "fix",
    "resample",
    "drop",
    "result",
    "arguments",
    "model",
)
WITHOUT_FIX = {"start", "keep", "resample"}
TEXTS = (
    "",
    "x",
    "There are 5 kettles in stock.",
    "kettle: 7 pieces in stock",
    '{"item": "pot"}',
    '{"item": "kettle"}',
    '{"tool_calls": []}',
    '{"text": "There are 130 kettles in stock.", "tool_calls": []}',
    '{"tool_calls": [{"name": "count_stock", "arguments": {"item": "pot"}}]}',
    "{",
)
"""Texts of fixes; most do not suit most steps."""


def turn(client: openai.OpenAI, name: str, said: list[str]) -> str:
    """Let an agent call its tool until it answers, and return the answer; empty after five calls."""
    messages: list[dict] = [{"role": "system", "content": f"You are {name}."}]
    messages += [{"role": "user", "content": text} for text in said]
    for _ in range(5):
        answer = client.chat.completions.create(model="gpt-small", messages=messages)
        message = answer.choices[0].message
        if not message.tool_calls:
            return message.content or ""
        messages.append(message.model_dump(exclude_none=True))
        for call in message.tool_calls:
            result = TOOLS[call.function.name](**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
    return ""


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    """Three agents in sequence; each is shown what all before it have said."""
    with ScriptedLLM(stock.policy) as server:
        client = openai.OpenAI(base_url=server.url, api_key="scripted", max_retries=0)

        def program() -> str:
            said = [stock.TASK]
            with mast_trace.run("stock", input=stock.TASK):
                for name in stock.AGENTS:
                    with mast_trace.agent(name) as agent:
                        said.append(turn(client, name, said))
                        agent.reply(said[-1])
            return said[-1]

        yield Stage(program, server)


@pytest.fixture(scope="module")
def failure(stage: Stage) -> Failure:
    """A run in which the storekeeper misreads the count."""
    return stage.record(stock.ERRORS[1])


@pytest.mark.parametrize("error", stock.ERRORS, ids=lambda error: error.name)
def test_a_planted_error_is_the_earliest_that_flips(stage: Stage, error: stock.Error) -> None:
    """Held replays flip at the planted error alone; naive ones at the first answer, wherever it is."""
    check_planted(stage, error)


@pytest.mark.parametrize("error", stock.ERRORS, ids=lambda error: error.name)
def test_a_planted_error_is_confirmed(stage: Stage, error: stock.Error) -> None:
    """The experiment of `mast-trace confirm` proves the planted step, and no earlier one."""
    check_confirmed(stage, error, frameworks=["openai"])


def test_a_confirmed_error_is_stored(stage: Stage, store: Store) -> None:
    def confirm(run: Trajectory, points: tuple[DecisionPoint, ...], setup: Setup) -> Confirmation:
        stored = stored_run()
        failed = FailedRun(store, stored, run, setup, points)
        work = confirming(failed, failed.plan(LIMITS), Budget())
        assert work.resume() == 0
        told = work.run().confirmation
        assert confirmation_of(store, stored.project, stored.trace_id) == told
        return told

    check_confirmed(stage, stock.ERRORS[4], confirm, ["openai"])


def test_a_run_is_verified_once_before_its_plan(
    stage: Stage, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`mast-trace prove` verifies before it asks; the plan replays again only where nothing was verified."""
    failure = stage.record(stock.ERRORS[4])
    setup, replays = setup_of(stage, ["openai"]), []
    run = setup.parent.run
    monkeypatch.setattr(setup.parent, "run", lambda *given: replays.append(1) or run(*given))
    failed = FailedRun(store, stored_run(), failure.run, setup, check(failure.run, setup))
    verified, masks = failed.verified()
    assert (len(replays), masks) == (1, ())
    verified.plan(LIMITS)
    assert len(replays) == 1
    failed.plan(LIMITS)
    assert len(replays) == 2


def test_operators(stage: Stage) -> None:
    check_operators(stage)


def test_tools(stage: Stage) -> None:
    check_tools(stage)


def point_of(failure: Failure, step: int) -> DecisionPoint:
    """Return the decision point that made a step."""
    return next(point for point in reversed(failure.points) if point.step <= step)


@settings(max_examples=60, deadline=None)
@given(
    operator=st.sampled_from(OPERATORS),
    step=st.integers(-2, 8),
    text=st.sampled_from(TEXTS),
    hold=st.booleans(),
)
def test_nothing_is_live_before_the_change(
    stage: Stage, failure: Failure, operator: Operator, step: int, text: str, *, hold: bool
) -> None:
    """No arm asks a model or executes a tool before its change; one that changes nothing is refused.

    `Stage.replay` asserts that the server has received the live calls of the report, and no more.
    """
    given_fix = None if operator in WITHOUT_FIX else Fix("person", text, "large")
    try:
        done = stage.replay(failure.run, ReplayArm(operator, step, given_fix, hold=hold))
    except NotAnArm:
        return
    except Blocked:
        if operator not in {"arguments", "fix", "result"}:
            raise
        return  # the changed program calls a tool that was not recorded
    if operator == "start":
        asked = 0
    elif operator == "result":
        asked = sum(point.step <= step for point in failure.points)
    else:
        asking = failure.points.index(point_of(failure, step))
        asked = asking + (operator not in {"resample", "model"})
    served = done.report.served_exchanges
    assert served >= asked if hold else served == asked
    assert done.executed == ()
    # The first requests of the program are the recorded ones, of which none has reached the server.
    assert not any(request in failure.requests[:asked] for request in done.live)


@given(place=st.integers(0, 4), margin=st.sampled_from(["\n", " ", ""]), hold=st.booleans())
def test_the_recorded_answer_is_no_fix(
    stage: Stage, failure: Failure, place: int, margin: str, *, hold: bool
) -> None:
    point = failure.points[place]
    fix = reference(failure.requests[place]) if place in {0, 2} else Fix("person", point.text)
    fix = Fix("person", f"{margin}{fix.text}{margin}")
    with pytest.raises(NoChange, match="already"):
        stage.replay(failure.run, ReplayArm("fix", point.step, fix, hold=hold))
