"""Tool calls of AG2 agents: each is one span, with what was asked, what came back and what failed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("ag2.network", reason="needs AG2 1.x (`import ag2`)")

import ag2_programs as programs
from scripted_llm import ScriptedLLM

from mast_trace import semconv
from mast_trace.trajectory import StepKind

if TYPE_CHECKING:
    from recorded_spans import RecordedSpans

pytestmark = pytest.mark.framework("ag2")


@pytest.mark.parametrize("streaming", [False, True])
async def test_each_call_is_one_span_below_its_agent(spans: RecordedSpans, streaming: bool) -> None:
    """Parallel, raising, unknown, sync and async tools: one span each, with what was asked and told."""
    with ScriptedLLM(programs.tools_script) as server:
        assert await programs.tools(server.url, streaming=streaming) == "The sum is 5."
    spans.check_shape()
    assert spans.counts() == {
        "invoke_workflow": 1,
        "send_message": 2,
        "invoke_agent": 1,
        "chat": 2,
        "execute_tool": 4,
    }
    tools = {span.attributes[semconv.TOOL_NAME]: span for span in spans.named("execute_tool")}
    assert set(tools) == {"add", "boom", "no_such_tool", "look_up"}
    assert {spans.parent(span).name for span in tools.values()} == {"invoke_agent solver"}
    assert {span.attributes[semconv.AGENT_NAME] for span in tools.values()} == {"solver"}
    told = [m for m in server.requests[1]["messages"] if m["role"] == "tool"]
    assert {m["tool_call_id"]: m["content"] for m in told} == {
        span.attributes[semconv.TOOL_CALL_ID]: span.attributes[semconv.TOOL_CALL_RESULT]
        for span in tools.values()
    }
    add = tools["add"]
    assert json.loads(add.attributes[semconv.TOOL_CALL_ARGUMENTS]) == {"a": 2, "b": 3}
    assert add.attributes[semconv.TOOL_CALL_RESULT] == "5"
    assert add.status.is_ok


async def test_calls_that_fail_say_so(spans: RecordedSpans) -> None:
    """A raising and an unknown tool are errors with their type, though AG2 goes on with a text."""
    await programs.serve(programs.tools, programs.tools_script)
    failed = {
        str(s.attributes[semconv.TOOL_NAME]): s
        for s in spans.named("execute_tool")
        if not s.status.is_ok
    }
    assert {name: s.attributes[semconv.ERROR_TYPE] for name, s in failed.items()} == {
        "boom": "ValueError",
        "no_such_tool": "ToolNotFoundError",
    }
    assert failed["boom"].status.description == "out of order"
    assert "out of order" in str(failed["boom"].attributes[semconv.TOOL_CALL_RESULT])
    assert spans.trajectory().error is None


async def test_malformed_arguments_are_kept_as_they_came(spans: RecordedSpans) -> None:
    """Arguments that are no JSON: the call is a span with them, and the failed turn says why."""
    outcome = await programs.serve(programs.bad_json, programs.bad_json_script)
    spans.check_shape()
    (call,) = spans.named("execute_tool")
    assert call.attributes[semconv.TOOL_CALL_ARGUMENTS] == '{"a": 2, '
    assert not call.status.is_ok
    if outcome.startswith("failed"):
        (turn,) = spans.named("invoke_agent")
        assert turn.attributes[semconv.ERROR_TYPE] == "JSONDecodeError"


async def test_an_agent_as_a_tool_works_below_the_call(spans: RecordedSpans) -> None:
    """A delegated agent's turn, model calls and tools are inside the call that asked for it."""
    assert (
        await programs.serve(programs.as_tool, programs.as_tool_script) == "The researcher says 5."
    )
    spans.check_shape()
    assert spans.counts() == {
        "invoke_workflow": 1,
        "send_message": 4,
        "invoke_agent": 2,
        "chat": 4,
        "execute_tool": 2,
    }
    helper = next(s for s in spans.named("invoke_agent") if s.name.endswith("researcher"))
    assert spans.parent(helper).name == "execute_tool task_researcher"
    add = next(s for s in spans.named("execute_tool") if s.name.endswith("add"))
    assert spans.parent(add) == helper
    assert [(s.kind, s.agent) for s in spans.trajectory().steps] == [
        (StepKind.MESSAGE, "user"),
        (StepKind.TOOL, "lead"),
        (StepKind.MESSAGE, "lead"),
        (StepKind.TOOL, "researcher"),
        (StepKind.MESSAGE, "researcher"),
        (StepKind.MESSAGE, "lead"),
    ]


async def test_sub_tasks_work_below_the_call(spans: RecordedSpans) -> None:
    """Sub-tasks that run at the same time are two turns below one call."""
    assert await programs.serve(programs.subtasks, programs.subtasks_script) == "Both are done."
    spans.check_shape()
    workers = [s for s in spans.named("invoke_agent") if not s.name.endswith("planner")]
    assert len(workers) == 2
    assert {spans.parent(worker).name for worker in workers} == {"execute_tool run_subtasks"}
    assert len(spans.named("execute_tool")) == 1


async def test_a_human_is_asked_and_answers_in_two_messages(spans: RecordedSpans) -> None:
    """A question to a human and the answer are messages inside the tool that asked."""
    assert await programs.serve(programs.human, programs.human_script) == "Done: yes"
    spans.check_shape()
    assert spans.sent_messages() == [
        ("user", ("careful",), "Delete the file"),
        ("careful", ("user",), "May I delete?"),
        ("user", ("careful",), "yes"),
        ("careful", ("user",), "Done: yes"),
    ]
    _, question, answer, _ = spans.named("send_message")
    assert {spans.parent(span).name for span in (question, answer)} == {"execute_tool confirm"}
    assert answer.attributes[semconv.MESSAGE_IN_REPLY_TO] == question.attributes[semconv.MESSAGE_ID]
