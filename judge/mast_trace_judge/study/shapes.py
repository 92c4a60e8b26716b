"""Shapes of a run: the forms in which different tools record the same run.

A labelled run is a list of steps. `SHAPES` writes it as spans of other tools and of our own manual
interface, so that a rule is measured on realistic input, and not on the tidiest shape alone.
"""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

from mast_trace.trajectory import SpanRecord, StepKind, read_trajectory

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mast_trace.trajectory import Step, Trajectory

_SECOND = 1_000_000_000


def as_labelled(run: Trajectory) -> Trajectory:
    """Return the run as its data set has it."""
    return run


def without_recipients(run: Trajectory) -> Trajectory:
    """Return the run with messages that have no recipients."""
    steps = tuple(dataclasses.replace(step, recipients=()) for step in run.steps)
    return dataclasses.replace(run, steps=steps)


def as_model_calls(run: Trajectory) -> Trajectory:
    """Return the run as another tool records it: turns, model calls with the whole history, tools."""
    return read_trajectory(_spans(run, messages=False))


def as_unnamed_calls(run: Trajectory) -> Trajectory:
    """Return the run of model calls as a client alone records it, which knows no agents."""
    spans = (
        dataclasses.replace(
            span,
            attributes={k: v for k, v in span.attributes.items() if k != "gen_ai.agent.name"},
        )
        for span in _spans(run, messages=False)
    )
    return read_trajectory(list(spans))


def as_messages(run: Trajectory) -> Trajectory:
    """Return the run as `mast_trace.message` and `mast_trace.tool` record it inside of one run."""
    return read_trajectory(_spans(run, messages=True))


SHAPES: Mapping[str, Callable[[Trajectory], Trajectory]] = {
    "labelled": as_labelled,
    "no recipients": without_recipients,
    "model calls": as_model_calls,
    "messages": as_messages,
    "no names": as_unnamed_calls,
}


def _spans(run: Trajectory, *, messages: bool) -> list[SpanRecord]:
    trace, root = "f" * 32, "e" * 16
    history: list[dict[str, Any]] = [_shape("user", run.task)]
    made = []
    for step in run.steps:
        at = (step.index + 1) * _SECOND
        attributes, name = _attributes(step, history, messages=messages)
        if attributes:
            made.append(
                SpanRecord(
                    trace_id=trace,
                    span_id=f"{step.index:016x}",
                    parent_span_id=root,
                    name=name,
                    start=at,
                    end=at + _SECOND // 2,
                    attributes=attributes,
                    status="Error" if step.error else "Unset",
                    status_message=step.error or "",
                    service="team",
                )
            )
    first = run.steps[0] if run.steps else None
    agent = next((step.agent for step in run.steps if step.role != "user"), "agent")
    whole = SpanRecord(
        trace_id=trace,
        span_id=root,
        parent_span_id="",
        name=f"invoke_agent {agent}",
        start=0 if first is None else first.start,
        end=(len(run.steps) + 2) * _SECOND,
        attributes={
            "gen_ai.operation.name": "invoke_workflow" if messages else "invoke_agent",
            **({"gen_ai.workflow.name": "team"} if messages else {"gen_ai.agent.name": agent}),
            "gen_ai.input.messages": json.dumps([{**_shape("user", run.task), "id": "task"}]),
            **({"mast.input.message_ids": ["task"]} if messages else {}),
        },
        service="team",
    )
    return [whole, *made]


def _attributes(
    step: Step, history: list[dict[str, Any]], *, messages: bool
) -> tuple[dict[str, Any], str]:
    if step.kind is StepKind.TOOL:
        history.append(_shape("tool", step.text))
        return {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": step.tool,
            "gen_ai.agent.name": step.agent,
            "gen_ai.tool.call.arguments": step.arguments,
            "gen_ai.tool.call.result": step.text,
            **({"mast.message.id": f"m{step.index}"} if messages else {}),
        }, f"execute_tool {step.tool}"
    if messages:
        return {
            "gen_ai.operation.name": "send_message",
            "mast.message.id": f"m{step.index}",
            "mast.message.sender": step.agent,
            "mast.message.recipients": list(step.recipients),
            "mast.message.content": step.text,
            "mast.message.role": step.role or "assistant",
        }, f"send_message {step.agent}"
    if step.role == "user":
        history.append(_shape("user", step.text))
        return {}, ""
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.agent.name": step.agent,
        "gen_ai.request.model": "some-model",
        "gen_ai.input.messages": json.dumps(history),
        "gen_ai.output.messages": json.dumps([_shape("assistant", step.text)]),
    }
    history.append(_shape("assistant", step.text))
    return attributes, "chat some-model"


def _shape(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": text}]}
