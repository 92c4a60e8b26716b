"""Peculiarities of single tools, where the recordings do not show them."""

from __future__ import annotations

import json

import pytest
from expected_examples import ANSWER, FOUND, TASK, says, told, tool
from test_foreign import largest_trace

from mast_trace.trajectory import SpanRecord, read_trajectory, to_dict, trajectory_from_dict
from mast_trace.trajectory.dialects import DIALECTS


def test_a_sum_of_parallel_calls_is_no_call() -> None:
    """Google ADK closes calls that were made at once with a span of its own."""
    spans = [
        SpanRecord(
            *("0" * 32, f"{number:016x}", "", "execute_tool", number, number + 1),
            {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool},
            scope="gcp.vertex.agent",
        )
        for number, tool in enumerate(("find_order", "postage", "(merged tools)"), 1)
    ]
    assert [step.tool for step in read_trajectory(spans).steps] == ["find_order", "postage"]


def test_the_wrapper_of_a_models_call_is_no_call() -> None:
    """LlamaIndex makes a span of a model that calls another, and says the words on the inner one."""
    about = {"openinference.span.kind": "LLM", "input.value": '{"messages": ["..."]}'}
    chat_attributes = {
        **about,
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": TASK,
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": ANSWER,
    }
    turn = {
        "openinference.span.kind": "CHAIN",
        "input.value": '{"ev": "AgentSetup(input=[2 items], current_agent_name=\'desk\')"}',
    }
    spans = [
        SpanRecord(
            *("0" * 32, f"{number:016x}", f"{number - 1:016x}" if number > 1 else "", span),
            *(number, 10 - number, attributes),
            scope="openinference.instrumentation.llama_index",
        )
        for number, (span, attributes) in enumerate(
            [
                ("AgentWorkflow.run_agent_step", turn),
                ("OpenAILike.astream_chat", about),
                ("OpenAILike.astream_chat", chat_attributes),
            ],
            1,
        )
    ]
    run = read_trajectory(spans)
    assert told(run) == [says("desk", ANSWER)]
    assert [call.kind for call in run.invocations] == ["agent", "model"]


def test_arguments_by_their_place_are_kept() -> None:
    """A smolagents CodeAgent calls tools from code."""
    attributes = {
        "openinference.span.kind": "TOOL",
        "tool.name": "postage",
        "input.value": '{"args": ["Lisbon", 3], "sanitize_inputs_outputs": false, "kwargs": {}}',
        "output.value": "24.90 EUR",
    }
    scope = "openinference.instrumentation.smolagents"
    span = SpanRecord("0" * 32, "1" * 16, "", "SimpleTool", 0, 1, attributes, scope=scope)
    (step,) = read_trajectory([span]).steps
    assert json.loads(step.arguments) == {"args": ["Lisbon", 3]}


ODD = [5, True, "", "x", "{", "[]", "{}", '{"kwargs": 5}', '{"kwargs": {"ctx": [1]}, "args": 0}']
ODD += ['{"raw_output": null, "blocks": [5, {"text": {}}]}', '{"task": {"a": "\\ud83d"}}', [1], {}]


@pytest.mark.parametrize("scope", DIALECTS)
@pytest.mark.parametrize("kind", ["AGENT", "CHAIN", "LLM", "TOOL", "execute_tool", "chat"])
def test_odd_values_in_a_dialect_are_read_all_the_same(scope: str, kind: str) -> None:
    tools = ("final_answer", "handoff", "transfer_to_agent")
    call = "llm.output_messages.0.message.tool_calls.0.tool_call.function."
    spans = [
        SpanRecord(
            *("0" * 32, f"{number:016x}", "", f"{name}.run_agent_step", number, number + 1),
            {
                "openinference.span.kind": kind,
                "tool.name": name,
                "gen_ai.tool.name": name,
                "input.value": odd,
                "output.value": odd,
                "gen_ai.tool.call.arguments": odd,
                "gen_ai.output.messages": odd,
                f"{call}name": name,
                f"{call}arguments": odd,
                "llm.input_messages.0.message.contents.0.message_content.text": odd,
            },
            scope=scope,
        )
        for number, (odd, name) in enumerate(((o, t) for o in ODD for t in tools), 1)
    ]
    run = read_trajectory(spans)
    written = json.dumps(to_dict(run), ensure_ascii=False).encode()
    assert trajectory_from_dict(json.loads(written)) == run


def test_mastra_before_its_first_release_is_read() -> None:
    run = read_trajectory(largest_trace("other/mastra-0"))
    assert told(run) == [FOUND, says("desk", ANSWER)]
    assert (run.task, run.input_tokens, run.output_tokens) == (TASK, 152, 17)


def test_a_session_of_the_claude_agent_sdk_is_read_with_its_sub_agent() -> None:
    run = read_trajectory(largest_trace("other/claude-agent-sdk"))
    main, inner = run.agents
    asked = {"command": "echo A-17: 3 kg, to Lisbon", "description": "Look up"}
    steps = told(run)
    assert main == "claude"
    assert steps[:2] == [
        says("claude", "I look the order up."),
        tool("claude", "Bash", "A-17: 3 kg, to Lisbon", **asked),
    ]
    assert tool(inner, "Bash", "24.90 EUR", command="echo 24.90 EUR", description="Price") in steps
    assert steps[-1] == says(inner, ANSWER)
    assert (run.task, run.input_tokens, run.output_tokens) == (TASK, 500, 100)


def test_the_span_of_a_call_that_stays_is_completed_by_the_one_around_it() -> None:
    """A framework knows what a model was shown, and its client the tokens."""
    shown = json.dumps([{"role": "user", "content": TASK}])
    said = json.dumps([{"role": "assistant", "content": ANSWER}])
    call = {"gen_ai.operation.name": "chat", "gen_ai.output.messages": said}
    spans = [
        SpanRecord(
            *("0" * 32, "1" * 16, "", "call", 1, 9), {**call, "gen_ai.input.messages": shown}
        ),
        SpanRecord(
            *("0" * 32, "2" * 16, "1" * 16, "call", 2, 8), {**call, "gen_ai.usage.input_tokens": 7}
        ),
    ]
    run = read_trajectory(spans)
    (only,) = run.invocations
    assert (run.input_tokens, [each.content for each in run.seen_by(only)]) == (7, [TASK])
