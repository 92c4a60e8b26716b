"""An agent's answer that stands on its span alone is a step, whatever the operation is called."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from mast_trace.trajectory import SpanRecord, Trajectory, read_trajectory
from mast_trace.trajectory.outlining import OutlineBuilder
from mast_trace_judge.local.rules import find_modes

ANSWER = "The capital of Australia is Canberra."
MESSAGES = json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": ANSWER}]}])
STATE = json.dumps({"messages": [{"type": "human", "content": "?"}, {"content": ANSWER}]})
OUTPUTS: dict[str, tuple[str, str]] = {
    "messages of the convention": ("gen_ai.output.messages", MESSAGES),
    "OpenInference": ("output.value", ANSWER),
    "OpenInference, a state": ("output.value", STATE),
    "OpenInference, an object": ("output.value", json.dumps({"output": ANSWER, "n": 3})),
    "OpenLLMetry": ("traceloop.entity.output", json.dumps({"outputs": {"answer": ANSWER}})),
    "old OpenLLMetry": ("gen_ai.completion.0.content", ANSWER),
    "Langfuse": ("langfuse.observation.output", ANSWER),
    "MLflow": ("mlflow.spanOutputs", json.dumps(ANSWER)),
    "pydantic-ai": ("final_result", ANSWER),
    "plain": ("output", ANSWER),
    "a response": ("response", ANSWER),
}
OPERATIONS = ["agent.act", "langchain.agent", "node", "invoke_agent", ""]
AGENTS = ["gen_ai.agent.name", "agent.name", "crewai.agent.role"]


def read(*rows: tuple[str, str, str, dict[str, Any]], times: dict[str, tuple[int, int]] | None = None) -> Trajectory:  # fmt: skip
    """A run of spans given as id, parent, operation and attributes; a span lasts as long as what is in it."""
    clock = itertools.count(1)
    spans = []
    for identity, parent, operation, given in rows:
        start = next(clock)
        begin, end = (times or {}).get(identity, (start, 100 - start))
        attributes = {"gen_ai.operation.name": operation, **given} if operation else given
        spans.append(SpanRecord("t", identity, parent, identity, begin, end, attributes))
    return read_trajectory(spans)


def answers(run: Trajectory) -> list[tuple[str, str, str]]:
    return [(step.kind.value, step.agent, step.text) for step in run.steps]


def act(agent: str, answer: str, **more: Any) -> dict[str, Any]:
    return {"agent.name": agent, "output.value": answer, **more}


def message(agent: str, text: str) -> dict[str, Any]:
    return {
        "mast.message.sender": agent,
        "mast.message.content": text,
        "mast.message.id": text,
        "mast.message.role": "assistant",
    }


def model(text: str) -> dict[str, Any]:
    parts = [{"type": "text", "content": text}]
    return {"gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": parts}])}


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("named", AGENTS)
def test_an_answer_is_a_step(named: str, operation: str, output: str) -> None:
    name, value = OUTPUTS[output]
    run = read(("s", "", operation, {named: "clerk", name: value}))
    assert answers(run) == [("message", "clerk", ANSWER)]
    assert run.final_answer == ANSWER
    assert run.agents == ("clerk",)


@pytest.mark.parametrize("output", OUTPUTS)
def test_an_answer_that_a_model_s_call_carries_is_that_step(output: str) -> None:
    name, value = OUTPUTS[output]
    run = read(
        ("s", "", "node", {"agent.name": "clerk", name: value}), ("c", "s", "chat", model(ANSWER))
    )
    assert [step.span_id for step in run.steps] == ["c"]


def test_nothing_is_a_step_without_an_agent_or_an_answer() -> None:
    run = read(
        ("a", "", "node", {"output.value": ANSWER}),
        ("b", "", "node", {"agent.name": "clerk"}),
        ("c", "", "node", {"agent.name": "clerk", "output.value": " "}),
        ("d", "", "invoke_workflow", {"gen_ai.agent.name": "team", "output.value": ANSWER}),
        ("e", "", "create_agent", {"agent.name": "clerk", "output.value": "asst_1"}),
    )
    assert run.steps == ()


def test_an_agent_around_an_agent_that_gives_its_answer() -> None:
    run = read(
        ("outer", "", "run", act("boss", ANSWER)),
        ("node", "outer", "node", {}),
        ("inner", "node", "act", act("clerk", ANSWER)),
    )
    assert answers(run) == [("message", "clerk", ANSWER)]


def test_an_agent_around_agents_that_says_something_of_its_own() -> None:
    run = read(
        ("outer", "", "run", act("boss", "Canberra and Wellington.")),
        ("one", "outer", "act", act("clerk", "Canberra.")),
        ("two", "outer", "act", act("clerk", "Wellington.")),
        times={"outer": (1, 100), "one": (2, 20), "two": (30, 60)},
    )
    assert [step.text for step in run.steps] == [
        "Canberra.",
        "Wellington.",
        "Canberra and Wellington.",
    ]
    assert [(step.start, step.end) for step in run.steps] == [(20, 20), (60, 60), (100, 100)]


def test_the_agent_of_a_tool_whose_result_is_its_answer() -> None:
    run = read(
        ("tool", "", "execute_tool", {"tool.name": "ask", "gen_ai.tool.call.result": ANSWER}),
        ("clerk", "tool", "act", act("clerk", ANSWER)),
    )
    assert [step.span_id for step in run.steps] == ["tool"]


def test_an_answer_comes_after_the_tools_that_it_is_made_of() -> None:
    run = read(
        ("clerk", "", "act", act("clerk", ANSWER)),
        ("tool", "clerk", "execute_tool", {"tool.name": "look", "output.value": "Canberra"}),
    )
    assert [(step.kind.value, step.agent) for step in run.steps] == [
        ("tool", "clerk"),
        ("message", "clerk"),
    ]


@pytest.mark.parametrize("parent", ["clerk", ""])
def test_an_answer_that_is_sent_as_a_message_too(parent: str) -> None:
    run = read(
        ("clerk", "", "act", act("clerk", ANSWER)),
        ("message", parent, "send_message", message("clerk", ANSWER)),
    )
    assert [step.span_id for step in run.steps] == ["message"]


def test_the_same_words_of_another_agent_are_another_answer() -> None:
    run = read(
        ("clerk", "", "act", act("clerk", "approved")),
        ("boss", "", "act", act("boss", "approved")),
        ("message", "", "send_message", message("boss", "approved")),
    )
    assert sorted(step.agent for step in run.steps) == ["boss", "clerk"]


def test_each_message_is_one_answer() -> None:
    """Equal texts, one of which was sent."""
    run = read(
        ("one", "", "act", act("clerk", "done")),
        ("two", "", "act", act("clerk", "done")),
        ("message", "", "send_message", message("clerk", "done")),
    )
    assert [step.agent for step in run.steps] == ["clerk", "clerk"]


def test_a_healthy_run_with_operations_of_its_own_is_read_and_shows_nothing() -> None:
    rows: list[tuple[str, str, str, dict[str, Any]]] = [("root", "", "", {"task": "Which?"})]
    for n, agent in enumerate(["planner", "researcher", "writer"]):
        rows.append((agent, "root", "agent.act", act(agent, f"{agent} has finished part {n}.")))
    run = read(
        *rows, times={agent: (n, n + 1) for n, (agent, *_) in enumerate(rows)} | {"root": (0, 99)}
    )
    assert run.agents == ("planner", "researcher", "writer")
    assert [found for found in find_modes(run) if found.evidence.value == "exact"] == []


def test_a_long_run_has_the_same_steps() -> None:
    spans = [
        SpanRecord("t", f"{n:016x}", f"{n // 3:016x}" if n > 2 else "", "s", n, 10_000 - 7 * n, given)
        for n in range(1, 400)
        for given in [
            [
                act(f"a{n % 4}", f"text {n % 9}"),
                {"gen_ai.operation.name": "send_message", **message(f"a{n % 4}", f"text {n % 5}")},
                {"gen_ai.operation.name": "chat", **model(f"text {n % 7}")},
                {"agent.name": "x", "response": json.dumps({"answer": f"text {n % 6}", "n": n})},
                {"tool.name": "t", "openinference.span.kind": "TOOL", "output.value": f"text {n % 8}"},
            ][n % 5]
        ]
    ]  # fmt: skip
    by_id = {span.span_id: span for span in spans}
    builder = OutlineBuilder(foreign=True)
    builder.add(spans)
    outline = builder.build(lambda ids, _: [by_id[each] for each in ids])

    def fetch(ids: Any, between: tuple[int, int] | None) -> list[SpanRecord]:
        found = [by_id[each] for each in ids]
        assert between is None or all(between[0] <= each.start <= between[1] for each in found)
        return found

    steps = sorted(outline.steps(range(len(outline)), fetch), key=lambda step: step.index)
    whole = read_trajectory(spans)
    assert tuple(steps) == whole.steps
    assert sum(step.span_id in outline.begun for step in whole.steps) > 20
    assert list(outline.starts) == sorted(outline.starts)
