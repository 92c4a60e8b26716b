"""Requests of the Agent2Agent Protocol: an exact hand-off, and an exact failure."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mast_trace.trajectory import SpanRecord, read_trajectory
from mast_trace.trajectory.outlining import OutlineBuilder


def spans(*, state: str = "TASK_STATE_WORKING", polled: str = "") -> list[SpanRecord]:
    """A planner asks a remote clerk; both sides record the request, and one that asks for the task."""
    sent: dict[str, Any] = {
        "a2a.method.name": "SendMessage",
        "a2a.message.id": "m1",
        "a2a.task.id": "t1",
        "a2a.task.state": state,
        "gen_ai.agent.name": "clerk",
    }
    asked = {"a2a.method.name": "GetTask", "a2a.task.id": "t1", "gen_ai.agent.name": "clerk"}
    turn = {"gen_ai.operation.name": "invoke_agent"}
    rows: list[tuple[str, str, int, int, dict[str, Any]]] = [
        ("planner", "", 0, 100, {**turn, "gen_ai.agent.name": "planner"}),
        ("client", "planner", 10, 40, sent),
        ("post", "client", 11, 39, {"http.request.method": "POST"}),
        ("server", "post", 12, 38, sent),
        ("clerk", "server", 13, 37, {**turn, "gen_ai.agent.name": "clerk", "output.value": "7"}),
        ("poll", "planner", 50, 60, {**asked, **({"a2a.task.state": polled} if polled else {})}),
    ]
    return [SpanRecord("t", i, p, i, start, end, given) for i, p, start, end, given in rows]


def test_a_request_is_a_hand_off() -> None:
    request, answer = read_trajectory(spans()).steps
    assert (request.span_id, request.agent, request.handoff_to) == ("client", "planner", "clerk")
    assert (request.tool, request.call_id, request.error) == ("SendMessage", "m1", None)
    assert (answer.agent, answer.text) == ("clerk", "7")


def test_a_request_without_an_id_of_its_message_is_one_too() -> None:
    run = [
        replace(span, attributes={**span.attributes, "a2a.message.id": ""})
        for span in spans()
        if span.span_id not in {"server", "post"}
    ]
    request, *_ = read_trajectory(run).steps
    assert (request.agent, request.handoff_to, request.call_id) == ("planner", "clerk", "")


@pytest.mark.parametrize("state", ["TASK_STATE_FAILED", "TASK_STATE_REJECTED"])
def test_a_task_that_fails_makes_a_failed_request(state: str) -> None:
    """Return whether the answer says so, or a later question."""
    for run in (spans(state=state), spans(polled=state)):
        assert read_trajectory(run).steps[0].error == state


def test_a_task_that_is_mended_is_none() -> None:
    run = spans(state="TASK_STATE_FAILED", polled="TASK_STATE_COMPLETED")
    assert read_trajectory(run).steps[0].error is None


def test_a_request_that_nobody_is_known_to_send_is_no_hand_off() -> None:
    alone = [span for span in spans() if span.span_id in {"server", "clerk"}]
    assert [step.agent for step in read_trajectory(alone).steps] == ["clerk"]


def test_a_long_run_has_the_same_steps() -> None:
    run = spans(polled="TASK_STATE_FAILED")
    by_id = {span.span_id: span for span in run}
    builder = OutlineBuilder(foreign=True)
    builder.add(run)
    outline = builder.build(lambda ids, _: [by_id[each] for each in ids])
    steps = outline.steps(range(len(outline)), lambda ids, _: [by_id[each] for each in ids])
    assert tuple(sorted(steps, key=lambda step: step.index)) == read_trajectory(run).steps
