"""Converts a transcript into spans, so that it is stored and judged like any other run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from mast_trace import semconv
from mast_trace.content import content_hash
from mast_trace.trajectory import Step, StepKind, Trajectory, vocabulary
from mast_trace_judge.local.layers import TRANSCRIPTS
from mast_trace_judge.transfer.formats.foreign_spans import put_all
from mast_trace_judge.transfer.formats.observations import of_task

SCOPE = "mast_trace.import"
"""With a scope of ours the spans are not translated: names of agents are the file's own."""
_APART = 1_000_000
"""Nanoseconds between steps that have no times of their own."""
_OPERATIONS = {
    StepKind.MESSAGE: semconv.SEND_MESSAGE,
    StepKind.TOOL: semconv.EXECUTE_TOOL,
    StepKind.MODEL: semconv.CHAT,
}


def trace_id_of(trajectory: Trajectory) -> str:
    """Return an id derived from the content, so that the same run gets it again."""
    contents = [
        [s.kind.value, s.agent, s.text, s.tool, s.arguments, list(s.recipients)]
        for s in trajectory.steps
    ]
    # Runs of equal texts are one, unless their files state different things of them.
    spent = sum(step.input_tokens + step.output_tokens for step in trajectory.steps)
    stated = [trajectory.outcome, spent] if trajectory.outcome or spent else []
    digest = hashlib.sha256(json.dumps([trajectory.task, contents, *stated]).encode())
    return digest.hexdigest()[:32]


def to_request(
    trajectory: Trajectory, *, name: str, start: int, model: str = ""
) -> ExportTraceServiceRequest:
    """Return a transcript as one run: a root, and a span for each step, in their order.

    The call of a model that made a message or asked for a tool is a span with its tokens and is no step.

    Args:
        trajectory: the transcript.
        name: of the run.
        start: of the run, in nanoseconds since the epoch.
        model: that its calls name.
    """
    trace_id = trace_id_of(trajectory)
    request = ExportTraceServiceRequest()
    resource = request.resource_spans.add()
    put_all(resource.resource.attributes, {semconv.SERVICE_NAME: TRANSCRIPTS})
    scope = resource.scope_spans.add()
    scope.scope.name = SCOPE
    key, root = bytes.fromhex(trace_id), _span_id(trace_id, -1)

    def add(number: int, title: str, begin: int, end: int, values: Mapping[str, Any]) -> Span:
        span = scope.spans.add(
            trace_id=key,
            span_id=_span_id(trace_id, number),
            parent_span_id=b"" if number == -1 else root,
            name=title.strip(),
            start_time_unix_nano=begin,
            end_time_unix_nano=end,
        )
        told = {k: v for k, v in values.items() if v is not False and v not in ("", [])}
        put_all(span.attributes, told)
        return span

    begins = _begins(trajectory, start)
    start = min(start, begins[0]) if begins else start
    end = (begins[-1] if begins else start) + _APART
    of_run = {
        semconv.OPERATION_NAME: semconv.INVOKE_WORKFLOW,
        semconv.WORKFLOW_NAME: name,
        semconv.FRAMEWORK: trajectory.framework,
        semconv.RUN_OUTCOME: trajectory.outcome,
        semconv.RUN_OUTCOME_REASON: trajectory.outcome_reason,
        semconv.RUN_EXPECTED: trajectory.expected,
        semconv.RUN_TERMINATION_REASON: trajectory.termination_reason,
        **of_task(trajectory.task),
    }
    add(-1, f"{semconv.INVOKE_WORKFLOW} {name}", start, end, of_run)
    for step in trajectory.steps:
        begin = begins[step.index]
        operation = _OPERATIONS[step.kind]
        last = max(begin + 1, min(step.end or begin + _APART // 2, end))
        title = f"{operation} {step.tool or step.agent}"
        span = add(step.index, title, begin, last, _values(step, operation))
        if step.error is not None:
            span.status.code = Status.STATUS_CODE_ERROR
            span.status.message = step.error
        if (step.input_tokens or step.output_tokens) and operation != semconv.CHAT:
            spent = {**_values_of_call(step), **_tokens(step), semconv.REQUEST_MODEL: model}
            add(-2 - step.index, f"{semconv.CHAT} {model}", begin, begin + 1, spent)
    return request


def _tokens(step: Step) -> dict[str, int]:
    return {semconv.INPUT_TOKENS: step.input_tokens, semconv.OUTPUT_TOKENS: step.output_tokens}


def _values_of_call(step: Step) -> dict[str, Any]:
    """Return the attributes of the model's call that a step came of, by which it is no step itself."""
    shared = {semconv.OPERATION_NAME: semconv.CHAT, semconv.AGENT_NAME: step.agent}
    if step.kind is StepKind.MESSAGE:
        return shared | {semconv.MESSAGE_ID: f"step-{step.index}"}
    identity = f"call-{step.index}"
    asked = {"type": "tool_call", "id": step.call_id or None, "name": step.tool}
    said = {"role": "assistant", "id": identity, "parts": [asked]}
    return shared | {semconv.MESSAGE_ID: identity, semconv.OUTPUT_MESSAGES: json.dumps([said])}


def _begins(trajectory: Trajectory, start: int) -> list[int]:
    """Return the start of each step: its own time, else soon after the step before, and never before that."""
    begins: list[int] = []
    first = next((step.start for step in trajectory.steps if step.start), start + _APART)
    for step in trajectory.steps:
        begin = step.start or (begins[-1] + _APART if begins else first)
        begins.append(max(begin, begins[-1] + 1) if begins else begin)
    return begins


def _values(step: Step, operation: str) -> dict[str, Any]:
    shared = {
        semconv.OPERATION_NAME: operation,
        semconv.AGENT_NAME: step.agent,
        semconv.HANDOFF_TARGET: step.handoff_to,
    }
    if operation == semconv.CHAT:
        spent = _tokens(step) if step.input_tokens or step.output_tokens else {}
        return shared | spent | {semconv.OUTPUT_MESSAGES: _asked(step)}
    if operation == semconv.EXECUTE_TOOL:
        return shared | {
            semconv.TOOL_NAME: step.tool,
            semconv.TOOL_CALL_ARGUMENTS: step.arguments,
            semconv.TOOL_CALL_RESULT: step.text,
            semconv.TOOL_CALL_ID: step.call_id,
            semconv.ERROR_TYPE: "error" if step.error is not None else "",
        }
    return shared | {
        semconv.MESSAGE_ID: f"step-{step.index}",
        semconv.MESSAGE_SENDER: step.agent,
        semconv.MESSAGE_RECIPIENTS: list(step.recipients),
        semconv.MESSAGE_ROLE: step.role,
        semconv.MESSAGE_CONTENT: step.text,
        semconv.MESSAGE_CONTENT_HASH: content_hash(step.text) if step.text else "",
        semconv.MESSAGE_SYNTHETIC: step.synthetic,
        semconv.MESSAGE_TOOL_CALLS: step.arguments,
    }


def _asked(step: Step) -> str:
    """Return a model's answer that asks for tools, as JSON text."""
    calls = [{"type": "tool_call", **call} for call in vocabulary.loaded(step.arguments) or ()]
    parts = [*([{"type": "text", "content": step.text}] if step.text else []), *calls]
    return json.dumps([{"role": "assistant", "parts": parts}], ensure_ascii=False)


def _span_id(trace_id: str, index: int) -> bytes:
    return hashlib.sha256(f"{trace_id}:{index}".encode()).digest()[:8]
