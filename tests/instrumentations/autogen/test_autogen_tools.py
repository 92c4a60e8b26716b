"""Tools and code that AG2 classic agents run, and hand-offs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("autogen.agentchat.group", reason="needs AG2 classic (`import autogen`)")

import autogen_programs as programs
from scripted_llm import ScriptedLLM, last_text

from mast_trace import semconv

if TYPE_CHECKING:
    from pathlib import Path

    from recorded_spans import RecordedSpans

pytestmark = pytest.mark.framework("autogen")


@pytest.mark.parametrize("program", [programs.tools, programs.a_tools])
def test_tools(spans: RecordedSpans, program: Any) -> None:
    """Parallel, raising, unknown, async and malformed calls: spans below the executing agent."""
    programs.serve(program, programs.tools_script)
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


@pytest.mark.parametrize("program", [programs.pattern, programs.a_pattern])
def test_hand_offs(spans: RecordedSpans, program: Any) -> None:
    """A model's hand-off, one that a tool's result asks for, one after the work."""
    programs.serve(program, programs.pattern_script)
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


def test_a_hand_off_by_a_condition(spans: RecordedSpans) -> None:
    """AutoGen writes a line in the agent's name: it is marked so, and carries the hand-off."""
    programs.serve(programs.by_condition, lambda request: f"reply to {last_text(request)}")
    spans.check_shape()
    (handoff,) = [s for s in spans.all if semconv.HANDOFF_TARGET in s.attributes]
    assert handoff.name == "send_message first"
    assert handoff.attributes[semconv.HANDOFF_SOURCE] == "first"
    assert handoff.attributes[semconv.HANDOFF_TARGET] == "second"
    assert handoff.attributes[semconv.MESSAGE_SYNTHETIC] is True
