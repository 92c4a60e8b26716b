"""Tools and code that AG2 classic agents run, and hand-offs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("autogen.agentchat.group", reason="needs AG2 classic (`import autogen`)")

import autogen_programs as programs
from scripted_llm import ScriptedLLM, last_text

from mast_trace import semconv

if TYPE_CHECKING:
    from pathlib import Path

    from recorded_spans import RecordedSpans

pytestmark = pytest.mark.framework("autogen")


def check_tools(spans: RecordedSpans) -> None:
    """Five calls at once: five spans below the executing agent, with who asked for them."""
    spans.check_shape()
    assert spans.counts() == {
        "invoke_workflow": 1,
        "send_message": 4,
        "invoke_agent": 4,
        "chat": 2,
        "execute_tool": 5,
    }
    calls = {s.attributes[semconv.TOOL_CALL_ID]: s for s in spans.named("execute_tool")}
    assert [calls[f"c{n}"].attributes[semconv.TOOL_NAME] for n in range(1, 6)] == [
        "add",
        "boom",
        "no_such_tool",
        "look_up",
        "add",
    ]
    assert {spans.parent(s).name for s in calls.values()} == {"invoke_agent user"}
    assert {s.attributes[semconv.AGENT_NAME] for s in calls.values()} == {"user"}
    assert {s.attributes[semconv.TOOL_REQUESTED_BY] for s in calls.values()} == {"solver"}
    assert json.loads(calls["c1"].attributes[semconv.TOOL_CALL_ARGUMENTS]) == {"a": 2, "b": 3}
    assert calls["c1"].attributes[semconv.TOOL_CALL_RESULT] == "5"
    assert calls["c4"].attributes[semconv.TOOL_CALL_RESULT] == "value of k"
    assert calls["c5"].attributes[semconv.TOOL_CALL_ARGUMENTS] == '{"a": 2, '
    failed = {i: s for i, s in calls.items() if not s.status.is_ok}
    assert set(failed) == {"c2", "c3", "c5"}
    assert failed["c2"].status.description == "out of order"
    assert failed["c3"].attributes[semconv.ERROR_TYPE] == "FunctionNotFound"
    assert failed["c5"].attributes[semconv.ERROR_TYPE] == "JSONDecodeError"
    roles = [s.attributes[semconv.MESSAGE_ROLE] for s in spans.named("send_message")]
    assert roles == ["user", "assistant", "tool", "assistant"]


def test_tools(spans: RecordedSpans) -> None:
    """Parallel, raising, unknown, async and malformed calls; the async one in a sync chat."""
    with ScriptedLLM(programs.tools_script) as server:
        programs.tools(server.url)
    check_tools(spans)


async def test_tools_awaited(spans: RecordedSpans) -> None:
    """Awaited tools give the same spans."""
    with ScriptedLLM(programs.tools_script) as server:
        await programs.a_tools(server.url)
    check_tools(spans)


def test_code(spans: RecordedSpans, tmp_path: Path) -> None:
    """Code that an agent writes is a tool call of the agent that runs it, failed ones too."""
    with ScriptedLLM(programs.code_script) as server:
        programs.code(server.url, str(tmp_path))
    spans.check_shape()
    works, fails = spans.named("execute_tool")
    assert works.name == "execute_tool execute_code"
    assert works.attributes[semconv.AGENT_NAME] == "user"
    assert json.loads(works.attributes[semconv.TOOL_CALL_ARGUMENTS]) == [
        {"language": "python", "code": "print(2 + 3)"}
    ]
    assert works.attributes[semconv.TOOL_CALL_RESULT] == "5\n"
    assert works.status.is_ok
    assert fails.status.description == "exit code 3"


def check_pattern(spans: RecordedSpans) -> None:
    """A model's hand-off, one that a tool's result asks for, one after the work."""
    spans.check_shape()
    assert [sender for sender, _, _ in spans.sent_messages()] == [
        "_User",
        "triage",
        "_Group_Tool_Executor",
        "coder",
        "_Group_Tool_Executor",
        "tester",
        "boss",
    ]
    handoffs = [
        (
            s.attributes[semconv.OPERATION_NAME],
            s.attributes[semconv.HANDOFF_SOURCE],
            s.attributes[semconv.HANDOFF_TARGET],
        )
        for s in spans.all
        if semconv.HANDOFF_TARGET in s.attributes
    ]
    assert handoffs == [
        ("execute_tool", "triage", "coder"),
        ("execute_tool", "coder", "tester"),
        ("invoke_agent", "tester", "boss"),
    ]
    requested = [s.attributes[semconv.TOOL_REQUESTED_BY] for s in spans.named("execute_tool")]
    assert requested == ["triage", "coder"]
    turns = spans.named("invoke_agent")[1:]
    assert [
        (t.attributes[semconv.AGENT_NAME], t.attributes[semconv.SELECTED_BY]) for t in turns
    ] == [
        ("triage", "code"),
        ("_Group_Tool_Executor", "code"),
        ("coder", "agent"),
        ("_Group_Tool_Executor", "code"),
        ("tester", "agent"),
        ("boss", "code"),
    ]
    assert spans.trajectory().termination_reason == "no_speaker"


def test_hand_offs(spans: RecordedSpans) -> None:
    """Each hand-off is on one span, with source and target."""
    with ScriptedLLM(programs.pattern_script) as server:
        programs.pattern(server.url)
    check_pattern(spans)


async def test_hand_offs_awaited(spans: RecordedSpans) -> None:
    """Awaited hand-offs give the same spans."""
    with ScriptedLLM(programs.pattern_script) as server:
        await programs.a_pattern(server.url)
    check_pattern(spans)


def test_a_hand_off_by_a_condition(spans: RecordedSpans) -> None:
    """AutoGen writes a line in the agent's name: it is marked so, and carries the hand-off."""
    with ScriptedLLM(lambda request: f"reply to {last_text(request)}") as server:
        programs.by_condition(server.url)
    spans.check_shape()
    (handoff,) = [s for s in spans.all if semconv.HANDOFF_TARGET in s.attributes]
    assert handoff.name == "send_message first"
    assert handoff.attributes[semconv.HANDOFF_SOURCE] == "first"
    assert handoff.attributes[semconv.HANDOFF_TARGET] == "second"
    assert handoff.attributes[semconv.MESSAGE_SYNTHETIC] is True
