"""Traces that other tools made come out as trajectories with agents, messages and tools."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from mast_trace.trajectory import (
    SpanRecord,
    StepKind,
    Trajectory,
    read_trajectory,
    to_dict,
    trajectory_from_dict,
)
from mast_trace.trajectory.sources import with_events
from mast_trace_judge.local.rules import find_modes

RECORDED = Path(__file__).parent / "recorded"
TASK = "How many people live in Paris?"
ANSWER = "Paris has 2.1 million inhabitants."
RESULT = "Paris: 2.1 million"
STATUSES = {"STATUS_CODE_UNSET": "Unset", "STATUS_CODE_OK": "Ok", "STATUS_CODE_ERROR": "Error"}


def value(shape: dict[str, Any]) -> Any:
    """An attribute's value, from OTLP/JSON."""
    if not shape:
        return None
    ((kind, inner),) = shape.items()
    if kind == "arrayValue":
        return [value(item) for item in inner.get("values", [])]
    if kind == "kvlistValue":
        return {item["key"]: value(item["value"]) for item in inner.get("values", [])}
    return int(inner) if kind == "intValue" else inner


def stored(attribute: Any) -> str:
    """The spans, as a store without types keeps them."""
    return attribute if isinstance(attribute, str) else json.dumps(attribute)


def told(shape: dict[str, Any], *, as_text: bool) -> dict[str, Any]:
    """The attributes of a span or an event."""
    read = {item["key"]: value(item["value"]) for item in shape.get("attributes", [])}
    return {name: stored(each) for name, each in read.items()} if as_text else read


def spans_of(name: str, *, as_text: bool) -> list[SpanRecord]:
    request = json.loads((RECORDED / f"{name}.json").read_text())
    return [
        SpanRecord(
            trace_id=span["traceId"],
            span_id=span["spanId"],
            parent_span_id=span.get("parentSpanId", ""),
            name=span["name"],
            start=int(span["startTimeUnixNano"]),
            end=int(span["endTimeUnixNano"]),
            attributes=with_events(
                told(span, as_text=as_text),
                [(event["name"], told(event, as_text=as_text)) for event in span.get("events", [])],
            ),
            status=STATUSES[span.get("status", {}).get("code", "STATUS_CODE_UNSET")],
            status_message=span.get("status", {}).get("message", ""),
            scope=scope["scope"]["name"],
        )
        for resource in request["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    ]


def largest_trace(name: str, *, as_text: bool = False) -> list[SpanRecord]:
    """The spans of a recording, without what the framework traced before the agents ran."""
    traces: dict[str, list[SpanRecord]] = {}
    for span in spans_of(name, as_text=as_text):
        traces.setdefault(span.trace_id, []).append(span)
    return max(traces.values(), key=len)


@pytest.fixture(params=[False, True], ids=["as sent", "as stored"])
def read(request):
    """Read a recording's largest trace, from typed attributes and from text."""

    def trajectory(name: str) -> Trajectory:
        return read_trajectory(largest_trace(name, as_text=request.param))

    return trajectory


def shown(run: Trajectory) -> list[tuple[str, str, str]]:
    return [(step.kind.value, step.agent, step.tool or step.text) for step in run.steps]


@pytest.mark.parametrize("name", ["openinference-langchain", "openllmetry-langchain"])
def test_a_supervisor_team_seen_by_a_langchain_instrumentation(read, name: str) -> None:
    run = read(name)
    assert shown(run) == [
        ("tool", "supervisor", "transfer_to_researcher"),
        ("tool", "researcher", "lookup"),
        ("message", "researcher", ANSWER),
        ("message", "supervisor", ANSWER),
    ]
    assert run.task == TASK
    assert run.steps[0].handoff_to == "researcher"
    assert run.steps[1].text == RESULT
    assert (run.input_tokens, run.output_tokens) == (502, 24)


def test_openlit_names_no_agents_but_its_steps_are_read(read) -> None:
    run = read("openlit-langchain")
    assert [(kind, what) for kind, _, what in shown(run)] == [
        ("tool", "transfer_to_researcher"),
        ("tool", "lookup"),
        ("message", ANSWER),
        ("message", ANSWER),
    ]
    assert run.steps[1].text == RESULT
    assert run.task == TASK


@pytest.mark.parametrize("name", ["openinference-crewai", "agent-framework", "ag2"])
def test_one_agent_with_a_tool(read, name: str) -> None:
    run = read(name)
    assert shown(run) == [("tool", "researcher", "lookup"), ("message", "researcher", ANSWER)]
    assert run.steps[0].text == RESULT
    assert json.loads(run.steps[0].arguments) == {"city": "Paris"}
    assert TASK in run.task
    assert run.final_answer == ANSWER
    assert run.input_tokens > 0


def test_a_call_through_an_mcp_server_is_one_call(read) -> None:
    """The framework, the protocol's client and its server each say that they execute the tool."""
    run = read("agent-framework-mcp")
    spans = spans_of("agent-framework-mcp", as_text=False)
    tools = [s for s in spans if s.attributes.get("gen_ai.operation.name") == "execute_tool"]
    assert [span.name for span in tools] == [
        "execute_tool lookup",
        "tools/call lookup",
        "tools/call lookup",
    ]
    assert shown(run) == [("tool", "researcher", "lookup"), ("message", "researcher", ANSWER)]
    assert run.steps[0].span_id == tools[0].span_id
    assert json.loads(run.steps[0].text) == {"result": RESULT}
    assert json.loads(run.steps[0].arguments) == {"city": "Paris"}
    assert run.steps[0].error is None


def test_autogen_messages_come_from_its_runtime_once_each(read) -> None:
    run = read("autogen-agentchat")
    assert [(s.agent, s.text) for s in run.steps if s.kind is StepKind.MESSAGE] == [
        ("researcher", ANSWER),
        ("writer", ANSWER),
        ("researcher", ANSWER),
        ("writer", ANSWER),
    ]
    assert [step.tool for step in run.steps if step.kind is StepKind.TOOL] == ["lookup"]


def test_a_trace_without_content_still_has_agents_tools_and_tokens(read) -> None:
    run = read("google-adk")
    assert [step.kind.value for step in run.steps] == ["model", "tool", "model"]
    assert set(run.agents) == {"researcher"}
    assert (run.input_tokens, run.output_tokens) == (145, 14)


# The roles of what each model call was shown, by their first letters: system, user, assistant, tool.
INPUTS = {
    "ag2": ["u", "uat"],
    "agent-framework": ["su", "suat"],
    "agent-framework-mcp": ["su", "suat"],
    "autogen-agentchat": [],  # records what agents say, and no call of a model
    "google-adk": ["", ""],  # records no content
    "openinference-crewai": ["su", "suat"],
    "openinference-langchain": ["su", "suat", "suatat", "suataat"],
    "openlit-langchain": ["su", "suat", "suatat", "suataat"],
    "openllmetry-langchain": ["su", "suat", "suatat", "suataat"],
}


def test_every_recording_is_known() -> None:
    assert {path.stem for path in RECORDED.glob("*.json")} == set(INPUTS)


@pytest.mark.parametrize("name", INPUTS)
def test_every_input_of_a_model_is_rebuilt(read, name: str) -> None:
    """Message by message; also no system prompt twice, which some tools write in two places."""
    run = read(name)
    seen = [run.seen_by(call) for call in run.invocations if call.kind == "model"]
    assert ["".join(message.role[0] for message in given) for given in seen] == INPUTS[name]
    for given in filter(None, seen):
        texts = [message.content for message in given]
        assert TASK in next(m.content for m in given if m.role == "user")
        assert all(text for m, text in zip(given, texts, strict=True) if m.role != "assistant")
        # Its own answer ends with the tool's result.
        assert any(RESULT in text for text in texts) == (given is seen[{2: 1, 4: 2}[len(seen)]])
    for call in run.invocations:
        assert len(run.seen_by(call)) == len(call.input_ids)


@pytest.mark.parametrize(
    "result",
    [
        '{"type": "tool", "data": {"content": "no page 3", "name": "read", "status": "error"}}',
        '{"output": {"lc": 1, "kwargs": {"content": "no page 3", "status": "error"}}, "kwargs": {}}',
        "content='no page 3' name='read' tool_call_id='call_2_2' status='error'",
    ],
    ids=["OpenInference", "OpenLLMetry", "OpenLIT"],
)
def test_an_error_that_langchain_handled_is_only_in_the_result(result: str) -> None:
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "read",
        "gen_ai.tool.call.result": result,
    }
    span = SpanRecord("0" * 32, "1" * 16, "", "read", 0, 1, attributes, status="Ok")
    (step,) = read_trajectory([span]).steps
    assert step.text == "no page 3"
    assert step.error is not None
    fine = {**attributes, "gen_ai.tool.call.result": result.replace("error", "success")}
    (step,) = read_trajectory([dataclasses.replace(span, attributes=fine)]).steps
    assert (step.text, step.error) == ("no page 3", None)


def test_the_type_of_an_error_says_that_a_tool_failed() -> None:
    """AG2's own telemetry leaves the status unset."""
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "read",
        "error.type": "ExecutionError",
    }
    span = SpanRecord("0" * 32, "1" * 16, "", "execute_tool read", 0, 1, attributes)
    (step,) = read_trajectory([span]).steps
    assert step.error == "ExecutionError"


def test_a_tool_call_as_openinference_writes_it_for_ag2() -> None:
    attributes = {
        "openinference.span.kind": "TOOL",
        "agent.name": "executor",
        "tool.name": "read",
        "tool_call.function.arguments": '{"page": 1}',
        "input.value": '{"arguments": "{\\"page\\": 1}", "name": "read"}',
        "output.value": "page 1: 20",
    }
    span = SpanRecord("0" * 32, "1" * 16, "", "read", 0, 1, attributes)
    (step,) = read_trajectory([span]).steps
    assert (step.agent, step.tool, step.text) == ("executor", "read", "page 1: 20")
    assert json.loads(step.arguments) == {"page": 1}


def test_ids_of_setup_spans_make_no_steps() -> None:
    spans = [s for s in spans_of("openlit-langchain", as_text=False) if "create_agent" in s.name]
    assert spans
    assert read_trajectory(spans[:1]).steps == ()


def _message_shapes(odd: Any) -> str:
    """Messages of which each part is something else than it should be."""
    call = {"id": odd, "function": {"name": odd, "arguments": odd}}
    parts = [
        {"type": "tool_call", "id": odd, "name": odd, "arguments": odd},
        {"type": "tool_call_response", "id": odd, "response": odd},
        {"type": odd, "content": odd},
    ]
    return json.dumps(
        [
            odd,
            {"role": odd, "parts": odd, "content": odd, "tool_calls": odd},
            {"role": "user", "name": odd, "tool_call_id": odd, "parts": [odd, *parts]},
            {"role": "assistant", "tool_calls": [odd, call, {"id": odd, "function": odd}]},
        ]
    )


ODD_ATTRIBUTES = [
    *(
        {f"gen_ai.{side}.messages": _message_shapes(odd)}
        for side in ("input", "output")
        for odd in (5, 1.5, True, None, "\ud83d", [1], {"a": "\ud83d"}, [[]], float("nan"))
    ),
    *(
        {f"gen_ai.{side}.messages": _message_shapes("1e999").replace('"1e999"', "1e999")}
        for side in ("input", "output")
    ),
    *(
        {
            "llm.input_messages.0.message.role": "user",
            f"{prefix}.{number}.{inner}role": "user",
            f"{prefix}.{number}.{inner}content": "x",
            f"{prefix}.0.{inner}tool_calls.{number}.name": "x",
            f"{prefix}.0.{inner}tool_calls.{number}.id": 5,
        }
        for prefix, inner in (("gen_ai.completion", ""), ("llm.input_messages", "message."))
        for number in ("\u00b2", "\u0663", "9" * 5000, "-1", "")
    ),
    {"gen_ai.tool.call.result": r'{"content": "\ud83d", "status": []}'},
    {"gen_ai.tool.call.arguments": r'{"input_str": {"a": "\ud83d"}}'},
    {"metadata": r'{"lc_agent_name": ["\ud83d"], "__handoff_destination": "\ud83d"}'},
]


@pytest.mark.parametrize("attributes", ODD_ATTRIBUTES)
def test_a_run_with_odd_attributes_can_be_read_and_written(attributes: dict[str, Any]) -> None:
    """A sender may write anything: the rest of its run, and all other runs, are read all the same."""
    spans = [
        SpanRecord(
            *("0" * 32, f"{number:016x}", "", operation, number, number + 1),
            {"gen_ai.operation.name": operation, **attributes},
        )
        for number, operation in enumerate(("invoke_agent", "chat", "execute_tool", "chat"))
    ]
    trajectory = read_trajectory(spans)
    assert trajectory.steps
    for message in trajectory.texts.values():
        assert isinstance(message.calls, str)
    strict = json.dumps(to_dict(trajectory), ensure_ascii=False, allow_nan=False)
    assert trajectory_from_dict(json.loads(strict.encode())) == trajectory


def test_a_call_that_each_side_recorded_whole_is_no_repetition() -> None:
    """Client and server may write what they were given, too; the server's name may be a prefix."""
    spans = spans_of("agent-framework-mcp", as_text=True)
    whole = next(s.attributes for s in spans if s.name == "execute_tool lookup")
    content = {f"gen_ai.tool.call.{name}" for name in ("arguments", "result")}
    copied = {name: value for name, value in whole.items() if name in content}
    written = [
        dataclasses.replace(span, attributes={**span.attributes, **copied})
        if span.name == "tools/call lookup"
        else span
        for span in spans
    ]
    prefixed = [
        dataclasses.replace(
            span, attributes={**span.attributes, "gen_ai.tool.name": "population_lookup"}
        )
        if span.name == "execute_tool lookup"
        else span
        for span in written
    ]
    trace = next(span.trace_id for span in spans if span.name == "execute_tool lookup")
    for given in (spans, written, prefixed):
        run = read_trajectory([span for span in given if span.trace_id == trace])
        assert [step.kind.value for step in run.steps] == ["tool", "message"]
        assert [found.code for found in find_modes(run) if found.code == "1.3"] == []
    # The same without the spans around them: as many as the instrumentation saw that saw most.
    apart = [
        dataclasses.replace(span, parent_span_id="")
        for span in written
        if span.name.endswith(" lookup") and span.name != "MCP send tools/call lookup"
    ]
    kinds = [step.kind.value for step in read_trajectory(apart).steps]
    assert kinds.count("tool") == max(Counter(span.scope for span in apart).values()) == 2
