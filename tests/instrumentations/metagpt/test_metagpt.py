"""MetaGPT: every message and every execution exactly once, in one trace, under the right role."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from installed import installed

if not installed("metagpt.team"):
    pytest.skip("needs MetaGPT; `nox -s framework` has an environment", allow_module_level=True)

import metagpt_programs  # noqa: F401  # sets MetaGPT's surroundings before it is imported
from metagpt.schema import Message
from metagpt_programs import Coder, Runner, TwoSteps, script, team
from scripted_llm import Reply

if TYPE_CHECKING:
    from metagpt.team import Team

pytestmark = pytest.mark.framework("metagpt")
TASK = "an adder"
CODE = "def add(a, b): return a + b"


def root(recorded):
    """The root of the one run that the test has made."""
    (only,) = [span for span in recorded.all if span.parent is None]
    return only


async def run(made: Team, rounds: int = 4) -> object:
    made.run_project(TASK)
    return await made.run(n_round=rounds)


async def test_a_team_gives_each_message_and_model_call_once(recorded, server) -> None:
    server.follow(script)
    await run(team())
    recorded.check_shape()
    assert recorded.sent_messages() == [
        ("Human", ("Coder",), TASK),
        ("Coder", ("Reviewer",), CODE),
        ("Reviewer", (), "LGTM"),
    ]
    assert len(recorded.named("chat")) == len(server.requests) == 2
    assert [s.attributes["gen_ai.agent.name"] for s in recorded.named("chat")] == [
        "Coder",
        "Reviewer",
    ]
    assert len(recorded.named("invoke_agent")) == 2
    assert root(recorded).attributes["mast.run.termination_reason"] == "completed"


async def test_a_message_answers_the_one_that_its_role_observed(recorded, server) -> None:
    server.follow(script)
    await run(team())
    asked, written, reviewed = recorded.named("send_message")
    assert written.attributes["mast.message.in_reply_to"] == asked.attributes["mast.message.id"]
    assert reviewed.attributes["mast.message.in_reply_to"] == written.attributes["mast.message.id"]
    turn = next(t for t in recorded.trajectory().invocations if t.agent == "Reviewer")
    assert turn.input_ids == (written.attributes["mast.message.id"],)


async def test_the_task_published_before_the_run_is_its_first_message(recorded, server) -> None:
    server.follow(script)
    made = team()
    made.run_project(TASK)
    await asyncio.sleep(0.05)
    await made.run(n_round=2)
    first = recorded.named("send_message")[0]
    assert first.start_time == root(recorded).start_time
    assert recorded.trajectory().task == TASK


async def test_executed_code_is_a_tool_call_with_its_output(recorded, server) -> None:
    await run(team(Runner()))
    (call,) = recorded.named("execute_tool")
    assert call.attributes["gen_ai.tool.name"] == "ExecuteNbCode"
    assert "6 * 7" in call.attributes["gen_ai.tool.call.arguments"]
    assert "42" in call.attributes["gen_ai.tool.call.result"]
    assert call.attributes["gen_ai.agent.name"] == "Runner"
    assert call.status.status_code.name == "UNSET"


async def test_code_that_raises_is_a_failed_tool_call(recorded, server) -> None:
    await run(team(Runner(code="1 / 0")))
    (call,) = recorded.named("execute_tool")
    assert call.status.status_code.name == "ERROR"
    assert "ZeroDivisionError" in call.attributes["gen_ai.tool.call.result"]


async def test_an_error_that_the_team_swallows_is_on_the_root(recorded, server) -> None:
    server.follow(lambda _request: Reply(status=400, text="no such model"))
    assert await run(team()) is None
    recorded.check_shape()
    assert root(recorded).status.status_code.name == "ERROR"
    assert root(recorded).attributes["error.type"] == "BadRequestError"
    assert root(recorded).attributes["mast.run.termination_reason"] == "error"
    (call,) = recorded.named("chat")
    assert call.attributes["error.type"] == "BadRequestError"


async def test_an_exhausted_budget_is_the_termination_reason(recorded, server) -> None:
    server.follow(script)
    made = team()
    made.invest(0.0)
    await run(made)
    assert root(recorded).attributes["mast.run.termination_reason"] == "budget"


async def test_exhausted_rounds_are_the_termination_reason(recorded, server) -> None:
    server.follow(script)
    await run(team(), rounds=1)
    assert root(recorded).attributes["mast.run.termination_reason"] == "max_turns"


async def test_a_message_that_reaches_nobody_has_no_recipients(recorded, server) -> None:
    server.follow(script)
    made = team()
    made.run_project(TASK, send_to="Nobody")
    await made.run(n_round=1)
    assert recorded.sent_messages() == [("Human", (), TASK)]


async def test_actions_in_order_are_model_steps_and_one_message(recorded, server) -> None:
    server.follow(script)
    await run(team(TwoSteps()))
    recorded.check_shape()
    assert len(recorded.named("chat")) == 2
    assert [sender for sender, _, _ in recorded.sent_messages()] == ["Human", "Stepper"]
    assert [step.kind.value for step in recorded.trajectory().steps] == [
        "message",
        "model",
        "message",
    ]


async def test_a_role_by_itself_is_a_run(recorded, server) -> None:
    server.follow(script)
    await Coder().run(Message(content=TASK))
    recorded.check_shape()
    assert root(recorded).name == "invoke_workflow Coder"
    assert len(recorded.named("chat")) == 1
