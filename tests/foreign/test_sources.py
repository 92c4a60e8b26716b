"""Texts are found wherever an emitter puts them, each source asked for what those before it lack."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mast_trace.trajectory import SpanRecord, Trajectory, read_trajectory, with_events

QUESTION, ANSWER = "Which pens are left?", "Twelve blue pens."
ASKED = [{"role": "user", "content": QUESTION}]
SAID = {"role": "assistant", "content": ANSWER}
PARTS = [{"role": "user", "parts": [{"text": QUESTION}]}]
CALL: dict[str, tuple[dict[str, Any], list[tuple[str, dict[str, Any]]]]] = {
    "the convention": (
        {"gen_ai.input.messages": ASKED, "gen_ai.output.messages": [SAID]},
        [],
    ),
    "an empty list before numbered ones": (
        {
            "gen_ai.input.messages": [],
            "gen_ai.prompt.0.role": "user",
            "gen_ai.prompt.0.content": QUESTION,
            "gen_ai.completion.0.content": ANSWER,
        },
        [],
    ),
    "roles alone before the whole": (
        {
            "gen_ai.prompt.0.role": "user",
            "gen_ai.completion.0.role": "assistant",
            "input.value": QUESTION,
            "output.value": ANSWER,
        },
        [],
    ),
    "OpenLLMetry's first releases": (
        {
            "llm.prompts.0.role": "user",
            "llm.prompts.0.content": QUESTION,
            "llm.completions.0.content": ANSWER,
        },
        [],
    ),
    "events of the convention": (
        {},
        [
            ("gen_ai.system.message", {"content": "You count."}),
            ("gen_ai.user.message", {"content": QUESTION}),
            ("gen_ai.choice", {"message": SAID, "index": 0}),
        ],
    ),
    "events of Strands": (
        {},
        [
            ("gen_ai.user.message", {"content": [{"text": QUESTION}]}),
            ("gen_ai.choice", {"message": [{"text": ANSWER}], "finish_reason": "end_turn"}),
        ],
    ),
    "one event with everything": (
        {},
        [
            (
                "gen_ai.client.inference.operation.details",
                {"gen_ai.input.messages": ASKED, "gen_ai.output.messages": [SAID]},
            )
        ],
    ),
    "events of prompts": (
        {},
        [
            ("gen_ai.content.prompt", {"gen_ai.prompt": ASKED}),
            ("gen_ai.content.completion", {"gen_ai.completion": [SAID]}),
        ],
    ),
    "Google ADK": (
        {
            "gcp.vertex.agent.llm_request": {
                "contents": PARTS,
                "config": {"system_instruction": "s"},
            },
            "gcp.vertex.agent.llm_response": {
                "content": {"role": "model", "parts": [{"text": ANSWER}]}
            },
        },
        [],
    ),
    "texts alone": ({"input.value": QUESTION, "output.value": ANSWER}, []),
    "MLflow": (
        {
            "mlflow.spanInputs": {"messages": ASKED},
            "mlflow.spanOutputs": {"choices": [{"message": SAID}]},
        },
        [],
    ),
    "Vercel's SDK": ({"ai.prompt.messages": ASKED, "ai.response.text": ANSWER}, []),
    "Claude Code": ({"user_prompt": QUESTION, "output.value": ANSWER}, []),
    "texts as JSON": (
        {
            "traceloop.entity.input": json.dumps(QUESTION),
            "traceloop.entity.output": json.dumps(ANSWER),
        },
        [],
    ),
    "reasoning beside the answer": (
        {
            "gen_ai.input.messages": ASKED,
            "gen_ai.output.messages": [
                {
                    "role": "assistant",
                    "parts": [
                        {"type": "reasoning", "content": "They count pens."},
                        {"text": "Pens it is.", "thought": True},
                        {"type": "text", "content": ANSWER},
                    ],
                }
            ],
        },
        [],
    ),
}
"""Emitter -> attributes and events of the call of a model."""


def stored(attributes: dict[str, Any]) -> dict[str, str]:
    """Return values as a store keeps them."""
    return {k: v if isinstance(v, str) else json.dumps(v) for k, v in attributes.items()}


def read(
    *spans: tuple[dict[str, Any], list[tuple[str, dict[str, Any]]]], scope: str = ""
) -> Trajectory:
    return read_trajectory(
        SpanRecord(
            *("a" * 32, f"{number:016x}", "", "span", number, number + 1),
            with_events(stored(attributes), [(name, stored(told)) for name, told in events]),
            scope=scope,
        )
        for number, (attributes, events) in enumerate(spans, 1)
    )


@pytest.mark.parametrize("emitter", CALL)
def test_what_a_model_was_shown_and_what_it_said_is_found(emitter: str) -> None:
    attributes, events = CALL[emitter]
    run = read(({"gen_ai.operation.name": "chat", **attributes}, events))
    (call,) = run.invocations
    shown = [message.content for message in run.seen_by(call) if message.role == "user"]
    assert ([step.text for step in run.steps], shown, run.task) == ([ANSWER], [QUESTION], QUESTION)


@pytest.mark.parametrize(
    ("attributes", "events"),
    [
        (
            {"gcp.vertex.agent.tool_call_args": {"a": 1}, "gcp.vertex.agent.tool_response": "two"},
            [],
        ),
        (
            {},
            [
                ("gen_ai.tool.message", {"role": "tool", "content": {"a": 1}, "id": "t"}),
                ("gen_ai.choice", {"message": [{"text": "two"}], "id": "t"}),
            ],
        ),
        ({"input.value": {"a": 1}}, [("tool.output", {"output": "two"})]),
    ],
)
def test_arguments_and_result_of_a_tool_are_found(
    attributes: dict[str, Any], events: list[tuple[str, dict[str, Any]]]
) -> None:
    (step,) = read(({"gen_ai.tool.name": "count", **attributes}, events)).steps
    assert (step.tool, json.loads(step.arguments), step.text) == ("count", {"a": 1}, "two")


def test_an_answer_in_a_form_of_the_programs_own_is_its_text() -> None:
    call = {"gen_ai.operation.name": "chat", "output.value": {"left": {"blue": 12}}}
    (step,) = read((call, [])).steps
    assert json.loads(step.text) == {"left": {"blue": 12}}


def test_a_tool_of_mlflow_has_the_name_of_its_span() -> None:
    """The typed column says the same."""
    (step,) = read(({"mlflow.spanType": '"TOOL"', "mlflow.spanOutputs": '"two"'}, [])).steps
    assert (step.tool, step.text) == ("span", "two")


def test_parts_of_other_providers_are_calls_and_their_answers() -> None:
    asked = [
        {"role": "model", "parts": [{"functionCall": {"name": "count", "args": {"a": 1}}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "count", "response": {"n": 2}}}]},
        {
            "role": "assistant",
            "content": [{"toolUse": {"name": "count", "toolUseId": "u", "input": {}}}],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "v", "content": "two"}],
        },
    ]
    run = read(({"gen_ai.operation.name": "chat", "input.value": asked, "output.value": "2"}, []))
    first, second, third, fourth = run.seen_by(run.invocations[0])
    assert (first.tool_calls[0].name, first.tool_calls[0].arguments) == ("count", {"a": 1})
    assert (second.role, json.loads(second.content)) == ("tool", {"n": 2})
    assert (third.role, third.tool_calls[0].id) == ("assistant", "u")
    assert (fourth.role, fourth.content, fourth.tool_call_id) == ("tool", "two", "v")


@pytest.mark.parametrize("inner", [{"output.value": ANSWER, "llm.token_count.prompt": 3}, {}])
def test_a_call_that_a_client_and_a_framework_recorded_counts_once(inner: dict[str, Any]) -> None:
    outer = {"output.value": ANSWER, "llm.token_count.prompt": 3}
    spans = [
        SpanRecord(
            *(
                "a" * 32,
                f"{number:016x}",
                f"{number - 1:016x}" if number > 1 else "",
                "call",
                number,
                9,
            ),
            stored({"openinference.span.kind": "LLM", **attributes}),
            scope=f"openinference.instrumentation.{number}",
        )
        for number, attributes in enumerate((outer, inner), 1)
    ]
    run = read_trajectory(spans)
    assert ([step.text for step in run.steps], run.input_tokens) == ([ANSWER], 3)
