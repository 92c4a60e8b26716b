"""MetaGPT: every message and every execution exactly once, in one trace, under the right role."""

from __future__ import annotations

import asyncio
import threading

import pytest
from installed import installed

if not installed("metagpt.team"):
    pytest.skip("needs MetaGPT; `nox -s framework` has an environment", allow_module_level=True)

import metagpt_programs  # noqa: F401  # sets MetaGPT's surroundings before it is imported
from metagpt.environment.base_env import Environment
from metagpt.roles.role import Role
from metagpt.schema import Message
from metagpt.team import Team
from metagpt_programs import Coder, Runner, TwoSteps, script, team
from scripted_llm import Reply

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


async def test_every_model_input_can_be_rebuilt_from_the_spans(recorded, server) -> None:
    server.follow(script)
    await run(team())
    trajectory = recorded.trajectory()
    rebuilt = [
        [(message.role, message.content) for message in trajectory.seen_by(call)]
        for call in trajectory.invocations
        if call.kind == "model"
    ]
    assert len(rebuilt) == 2
    assert rebuilt == [
        [(m["role"], m["content"]) for m in request["messages"]] for request in server.requests
    ]


async def test_model_calls_carry_tokens(recorded, server) -> None:
    server.follow(script)
    await run(team())
    assert len(recorded.named("chat")) == 2
    for span in recorded.named("chat"):
        assert span.attributes["gen_ai.usage.input_tokens"] > 0
        assert span.attributes["gen_ai.usage.output_tokens"] > 0


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


async def test_three_runs_in_one_event_loop_do_not_mix(recorded, server) -> None:
    server.follow(script)
    await asyncio.gather(*(run(team()) for _ in range(3)))
    recorded.check_shape(runs=3)
    assert len(recorded.sent_messages()) == 9


def test_three_runs_in_threads_do_not_mix(recorded, server) -> None:
    server.follow(script)
    threads = [threading.Thread(target=lambda: asyncio.run(run(team()))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    recorded.check_shape(runs=3)
    assert len(recorded.sent_messages()) == 9


async def test_a_team_built_before_instrumenting_is_recorded(recorded, server) -> None:
    server.follow(script)
    recorded.instrumentor.uninstrument()
    made = team()
    recorded.instrumentor.instrument(tracer_provider=recorded.provider)
    await run(made)
    recorded.check_shape()
    assert len(recorded.sent_messages()) == 3


async def test_the_program_gets_the_same_result_with_and_without_us(recorded, server) -> None:
    async def outcome() -> tuple[object, list[object]]:
        server.follow(script)
        history = await run(team())
        return history, [request["messages"] for request in server.requests]

    traced = await outcome()
    recorded.instrumentor.uninstrument()
    assert await outcome() == traced


def test_uninstrument_restores_every_attribute(recorded) -> None:
    recorded.instrumentor.uninstrument()
    targets = [(Team, "run"), (Environment, "publish_message"), (Role, "run"), (Role, "_observe")]
    before = [vars(owner)[name] for owner, name in targets]
    recorded.instrumentor.instrument(tracer_provider=recorded.provider)
    assert all(vars(o)[n] is not old for (o, n), old in zip(targets, before, strict=True))
    recorded.instrumentor.uninstrument()
    assert [vars(owner)[name] for owner, name in targets] == before
