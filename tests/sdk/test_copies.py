"""Two instrumentations in one trace: what both recorded counts once, as ours."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from mast_trace import semconv
from mast_trace.trajectory import SpanRecord, Trajectory, read_trajectory
from mast_trace.trajectory.copies import without_copies

OURS = {semconv.FRAMEWORK: "crewai"}


def trace(*rows: tuple[str, str, dict[str, Any]]) -> Trajectory:
    """A trajectory of spans given as id, parent and attributes, in order of their beginning."""
    clock = itertools.count(1)
    return read_trajectory(
        SpanRecord("t", span, parent, span, next(clock), 100 - len(span), attributes)
        for span, parent, attributes in rows
    )


def ours(operation: str, **more: Any) -> dict[str, Any]:
    return {semconv.OPERATION_NAME: operation, **OURS, **more}


KIND = "openinference.span.kind"
OPERATION = semconv.OPERATION_NAME
AGENT = {semconv.AGENT_NAME: "writer"}
TOOL = {semconv.TOOL_NAME: "look_up"}
TOKENS = {semconv.INPUT_TOKENS: 7}


def test_a_copy_inside_of_ours() -> None:
    run = trace(
        ("root", "", ours("invoke_workflow")),
        ("turn", "root", ours("invoke_agent", **AGENT)),
        ("call", "turn", ours("chat", **TOKENS)),
        ("theirs", "call", {KIND: "LLM", "llm.token_count.prompt": 7}),
        ("tool", "turn", ours("execute_tool", **TOOL)),
        ("their tool", "tool", {KIND: "TOOL", "tool.name": "look_up"}),
    )
    assert run.input_tokens == 7
    assert [step.span_id for step in run.steps if step.kind.value == "tool"] == ["tool"]


def test_a_copy_around_ours_leaves_what_is_below_in_place() -> None:
    run = trace(
        ("root", "", ours("invoke_workflow")),
        ("their turn", "root", {KIND: "AGENT", "graph.node.id": "writer"}),
        ("turn", "their turn", ours("invoke_agent", **AGENT)),
        ("tool", "turn", ours("execute_tool", **TOOL)),
    )
    assert [(i.span_id, i.parent_span_id) for i in run.invocations] == [("turn", "root")]
    assert [step.agent for step in run.steps] == ["writer"]


def test_a_run_that_they_take_for_a_turn() -> None:
    run = trace(
        ("user", "", {KIND: "AGENT", "graph.node.id": "user"}),
        ("root", "user", ours("invoke_workflow")),
        ("turn", "root", ours("invoke_agent", **AGENT)),
    )
    assert [i.span_id for i in run.invocations] == ["turn"]


@pytest.mark.parametrize(
    ("around", "operation"),
    [
        *(("agent", each) for each in ("chat", "execute_tool", "invoke_agent", "send_message")),
        *((each, "invoke_workflow") for each in ("chain", "llm", "tool")),
    ],
)
def test_other_work_of_theirs_around_ours_is_kept(around: str, operation: str) -> None:
    """Only a turn that holds a run of ours is taken for that run."""
    theirs = {KIND: around.upper(), "graph.node.id": "user", "tool.name": "fetch"}
    spans = [
        SpanRecord("t", "theirs", "", "theirs", 1, 90, theirs),
        SpanRecord("t", "mine", "theirs", "mine", 2, 80, ours(operation, **AGENT)),
    ]
    assert [each.span_id for each in without_copies(spans)] == ["theirs", "mine"]


def test_another_agent_or_tool_inside_of_ours_is_no_copy() -> None:
    run = trace(
        ("root", "", ours("invoke_workflow")),
        ("tool", "root", ours("execute_tool", **TOOL)),
        ("theirs", "tool", {semconv.OPERATION_NAME: "execute_tool", semconv.TOOL_NAME: "fetch"}),
        ("helper", "tool", {semconv.OPERATION_NAME: "invoke_agent", semconv.AGENT_NAME: "helper"}),
    )
    assert [step.span_id for step in run.steps] == ["tool", "theirs"]
    assert [i.agent for i in run.invocations] == ["helper"]


def test_copies_that_lie_in_each_other_end() -> None:
    """A sender may name any parent; the search for one that is kept does not go round."""
    run = trace(
        ("tool", "theirs", ours("execute_tool", **TOOL)),
        ("theirs", "other", {KIND: "TOOL", "tool.name": "look_up"}),
        ("other", "theirs", {KIND: "TOOL", "tool.name": "look_up"}),
    )
    assert [(step.span_id, step.parent_span_id) for step in run.steps] == [("tool", "")]


def test_a_trace_of_theirs_alone_is_read_whole() -> None:
    run = trace(
        ("tool", "", {KIND: "TOOL", "tool.name": "look_up"}),
        ("inner", "tool", {KIND: "TOOL", "tool.name": "look_up"}),
    )
    assert len(run.steps) == 2


def beside(*rows: tuple[str, str, int, int, dict[str, Any]]) -> Trajectory:
    """A run of ours with a call, and what others recorded: id, parent, start, end, attributes."""
    mine: list[tuple[str, str, int, int, dict[str, Any]]] = [
        ("root", "", 0, 1000, ours("invoke_workflow", **{semconv.WORKFLOW_NAME: "team"})),
        ("turn", "root", 10, 900, ours("invoke_agent", **AGENT)),
        ("call", "turn", 100, 300, ours("chat", **TOKENS)),
        ("tool", "turn", 400, 500, ours("execute_tool", **TOOL)),
    ]
    return read_trajectory(
        SpanRecord("t", span, parent, span, start, end, attributes)
        for span, parent, start, end, attributes in (*mine, *rows)
    )


def test_a_tree_of_theirs_beside_ours() -> None:
    """Handlers of callbacks have a tree of their own, a little earlier or later than ours."""
    run = beside(
        ("graph", "root", 2, 998, {OPERATION: "invoke_agent", semconv.AGENT_NAME: "team"}),
        ("node", "graph", 5, 905, {KIND: "AGENT"}),
        ("llm", "node", 95, 295, {KIND: "LLM", "llm.token_count.prompt": 7}),
        ("used", "node", 410, 505, {KIND: "TOOL", "tool.name": "look_up"}),
    )
    assert [i.span_id for i in run.invocations] == ["turn", "call"]
    assert [step.span_id for step in run.steps if step.kind.value == "tool"] == ["tool"]
    assert run.input_tokens == 7


def test_what_only_they_saw_is_kept() -> None:
    """At another time, of another size or name: other work, which ours does not know."""
    run = beside(
        ("later", "root", 600, 800, {KIND: "LLM", "llm.token_count.prompt": 7}),
        ("other", "root", 120, 280, {KIND: "LLM", "llm.token_count.prompt": 9}),
        ("named", "root", 410, 490, {KIND: "TOOL", "tool.name": "search"}),
    )
    assert {"later", "other"} < {i.span_id for i in run.invocations}
    assert run.input_tokens == 7 + 7 + 9
    assert {s.span_id for s in run.steps if s.kind.value == "tool"} == {"tool", "named"}


def test_what_comes_right_after_ours_is_no_copy() -> None:
    """With a coarse clock, one work ends in the same moment in which the next begins."""
    run = beside(
        ("next", "root", 300, 380, {KIND: "LLM"}),
        ("then", "root", 500, 600, {KIND: "TOOL", "tool.name": "look_up"}),
    )
    assert "next" in {i.span_id for i in run.invocations}
    assert "then" in {s.span_id for s in run.steps}


def test_two_instrumentations_that_listen_to_one_framework_tell_each_work_once() -> None:
    """Each has a tree of its own; what one of them alone tells is kept."""
    city, said = '{"city": "Oslo"}', '[{"role": "assistant", "content": "It is sunny."}]'
    standard = [
        ("turn", "", 0, 90, {OPERATION: "invoke_agent", **AGENT, "output.value": "It is sunny."}),
        ("tool", "turn", 10, 20, {OPERATION: "execute_tool", **TOOL, "gen_ai.tool.call.arguments": city}),
        ("call", "turn", 30, 80, {OPERATION: "chat", "gen_ai.output.messages": said}),
    ]  # fmt: skip
    theirs = [
        ("t", "", 1, 91, {KIND: "AGENT", "agent.name": "writer", "output.value": "It is sunny."}),
        ("u", "t", 11, 21, {KIND: "TOOL", "tool.name": "look_up", "input.value": city, "output.value": "sun"}),
        ("c", "t", 31, 81, {KIND: "LLM", "llm.token_count.prompt": 7, "output.value": "It is sunny."}),
        ("d", "t", 82, 88, {KIND: "LLM", "llm.token_count.prompt": 9, "output.value": "So is Bergen."}),
    ]  # fmt: skip
    rows = [(*row, scope) for scope, tree in (("a", standard), ("b", theirs)) for row in tree]
    run = read_trajectory(
        SpanRecord("t", span, parent, span, start, end, attributes, scope=scope)
        for span, parent, start, end, attributes, scope in rows
    )
    assert [(s.agent, s.tool, s.text) for s in run.steps] == [
        ("writer", "look_up", "sun"),
        ("writer", "", "It is sunny."),
        ("writer", "", "So is Bergen."),
    ]
    assert run.input_tokens == 16
    assert [each.span_id for each in run.invocations] == ["turn", "call", "d"]
