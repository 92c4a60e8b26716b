"""Interventions in runs of a team without a framework: operators, planted errors, random arms."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import openai
import pytest
import stock
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from interventions import Stage, check_operators, check_planted, check_tools, reference
from scripted_llm import ScriptedLLM

import mast_trace
from mast_trace.replay.tape import Exchange
from mast_trace_judge.replay.arms import Arm, Fix
from mast_trace_judge.replay.changes import NotAnArm

if TYPE_CHECKING:
    from collections.abc import Iterator

    from interventions import Failure

TOOLS = {
    "Storekeeper": mast_trace.tool(stock.count_stock),
    "Analyst": mast_trace.tool(stock.weekly_sales),
}
OPERATORS = ("start", "keep", "fix", "resample", "drop", "result", "arguments", "model")


def turn(client: openai.OpenAI, name: str, said: list[str]) -> str:
    """Let an agent call its tool as long as it asks for it, and return its answer."""
    messages: list[dict] = [{"role": "system", "content": f"You are {name}."}]
    messages += [{"role": "user", "content": text} for text in said]
    while True:
        answer = client.chat.completions.create(model="gpt-small", messages=messages)
        message = answer.choices[0].message
        if not message.tool_calls:
            return message.content or ""
        messages.append(message.model_dump(exclude_none=True))
        for call in message.tool_calls:
            result = TOOLS[name](**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})


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


def test_operators(stage: Stage) -> None:
    """Each operator serves, changes and asks what it says."""
    check_operators(stage)


def test_tools(stage: Stage) -> None:
    """A tool call's result and arguments are changed, and the call is dropped."""
    check_tools(stage)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    operator=st.sampled_from(OPERATORS),
    step=st.integers(-2, 8),
    text=st.sampled_from(
        ["", "x", "There are 5 kettles in stock.", '{"item": "pot"}', '{"tool_calls": []}', "{"]
    ),
    hold=st.booleans(),
)
def test_nothing_is_live_before_the_change(
    stage: Stage, failure: Failure, operator: str, step: int, text: str, *, hold: bool
) -> None:
    """No arm asks a model or executes a tool before its change; one that changes nothing is refused.

    `Stage.replay` asserts that the server has received the live calls of the report, and no more.
    """
    given_fix = None if operator in {"start", "keep", "resample"} else Fix("person", text, "large")
    arm = Arm(operator, step, given_fix, hold=hold)
    try:
        done = stage.replay(failure.run, arm)
    except NotAnArm:
        return
    points = {point.step: place for place, point in enumerate(failure.points)}
    # Every request before the change is one of the recorded ones, in their order.
    served = done.report.served_exchanges
    place = points.get(step, 0)
    expected = {"start": 0, "resample": place, "model": place}.get(operator, place + 1)
    if operator in {"start", "keep", "fix", "drop", "resample", "model"} and not hold:
        assert served == expected
    assert done.executed == ()
    for number, request in enumerate(done.live):
        assert request != failure.requests[number] or served <= number or operator == "start"


@settings(max_examples=10, deadline=None)
@given(st.sampled_from(stock.ERRORS), st.integers(0, 4))
def test_the_recorded_answer_is_no_fix(
    stage: Stage, failure: Failure, _error: stock.Error, place: int
) -> None:
    """A fix that is the recorded answer is refused, in each form in which it can be given."""
    point = failure.points[place]
    exchange: Exchange | None = None
    del exchange
    fix = Fix("person", point.text) if place in {1, 3, 4} else reference(failure.requests[place])
    with pytest.raises(NotAnArm, match="already"):
        stage.replay(failure.run, Arm("fix", point.step, fix))
