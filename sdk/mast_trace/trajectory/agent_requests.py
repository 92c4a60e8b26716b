"""Requests of the Agent2Agent Protocol: an agent hands a task to another one and reads its state.

A request that sends a message names the other agent; the agent that acts around it hands over. Both
sides record the request under the message's id; the outer one of the two spans counts. The request
has failed if the last known state of its task is a failure.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from mast_trace import semconv
from mast_trace.trajectory import vocabulary
from mast_trace.trajectory.span_tree import LEVELS, above
from mast_trace.trajectory.vocabulary import text

if TYPE_CHECKING:
    from mast_trace.trajectory.model import SpanRecord

METHOD = "a2a.method.name"
MESSAGE = "a2a.message.id"
TASK = "a2a.task.id"
STATE = "a2a.task.state"
_SENDS = frozenset({"SendMessage", "SendStreamingMessage"})
_FAILURES = frozenset({"TASK_STATE_FAILED", "TASK_STATE_REJECTED", "TASK_STATE_CANCELED"})


@dataclasses.dataclass(frozen=True, slots=True)
class HandOff:
    """A request of an agent to another one.

    Attributes:
        source: the agent that asks.
        target: the agent that is asked.
        failure: the state in which the task ended, if that is a failure.
    """

    source: str
    target: str
    failure: str


def hand_offs(spans: Sequence[SpanRecord]) -> dict[str, HandOff]:
    """Return the requests that are hand-offs, by their spans' ids.

    Args:
        spans: of a run, by start time.
    """
    requests = [span for span in spans if text(span.attributes, METHOD) and span.span_id]
    if not requests:
        return {}
    by_id = {span.span_id: span for span in spans if span.span_id}
    states: dict[str, str] = {}
    for span in sorted(requests, key=lambda span: span.end):
        if text(span.attributes, STATE):
            states[text(span.attributes, TASK)] = text(span.attributes, STATE)
    found: dict[str, HandOff] = {}
    for span in requests:
        target = vocabulary.agent(span.attributes)
        source = _source(span, by_id)
        if text(span.attributes, METHOD) in _SENDS and source and target and source != target:
            task = text(span.attributes, TASK)
            state = states.get(task, "") if task else text(span.attributes, STATE)
            found[span.span_id] = HandOff(source, target, state if state in _FAILURES else "")
    return found


def as_call(span: SpanRecord, request: HandOff | None) -> SpanRecord:
    """Return a request as the call of a tool that hands over; any other span as it is."""
    if request is None:
        return span
    attributes = {
        **span.attributes,
        semconv.OPERATION_NAME: semconv.EXECUTE_TOOL,
        semconv.AGENT_NAME: request.source,
        semconv.TOOL_NAME: text(span.attributes, METHOD),
        semconv.TOOL_CALL_ID: text(span.attributes, MESSAGE),
        semconv.HANDOFF_TARGET: request.target,
    }
    if not request.failure or span.status == "Error":
        return dataclasses.replace(span, attributes=attributes)
    return dataclasses.replace(
        span, attributes=attributes, status="Error", status_message=request.failure
    )


def _source(span: SpanRecord, by_id: Mapping[str, SpanRecord]) -> str:
    """Return the agent that acts around a request; none around the record of the other side."""
    message = text(span.attributes, MESSAGE)
    for around in islice(above(span, by_id), LEVELS):
        if message and text(around.attributes, MESSAGE) == message:
            return ""
        if agent := vocabulary.agent(around.attributes):
            return agent
    return ""
