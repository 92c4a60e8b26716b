"""MetaGPT: every message and every execution exactly once, in one trace, under the right role."""

from __future__ import annotations

import asyncio

import pytest
from installed import installed

if not installed("metagpt.team"):
    pytest.skip("needs MetaGPT; `nox -s framework` has an environment", allow_module_level=True)

import metagpt_programs  # noqa: F401  # sets MetaGPT's surroundings before it is imported
from metagpt.schema import Message
from metagpt_programs import TASK, Coder, Runner, TwoSteps, run, script, team
from scripted_llm import Reply

pytestmark = pytest.mark.framework("metagpt")


def root(recorded):
    """The root of the one run that the test has made."""
    (only,) = [span for span in recorded.all if span.parent is None]
    return only


async def test_a_message_answers_the_one_that_its_role_observed(recorded, server) -> None:
    server.follow(script)
    await run(team())
    callers = [s.attributes["gen_ai.agent.name"] for s in recorded.named("chat")]
    assert callers == ["Coder", "Reviewer"]
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
    assert root(recorded).attributes["error.type"] == "BadRequestError"
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
