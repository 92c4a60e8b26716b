"""Converts transcripts, and runs of `mast-trace export`, into spans, so that they are stored and judged like any other run."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from mast_trace import semconv
from mast_trace.content import content_hash
from mast_trace.messages import Message
from mast_trace.trajectory import Invocation, Step, StepKind, Trajectory, vocabulary
from mast_trace_judge.local.layers import TRANSCRIPTS
from mast_trace_judge.transfer.formats.foreign_spans import ForeignSpan, id_of, put_all, request_of
from mast_trace_judge.transfer.formats.observations import of_task

if TYPE_CHECKING:
    from mast_trace_judge.transfer.formats.kinds import StoredRun

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


def trace_id_of_run(run: StoredRun) -> str:
    """Return the id that a run had.

    Raises:
        ValueError: it has none.
    """
    return id_of(run.trajectory.trace_id, 16, "trace id").hex()


def to_spans(run: StoredRun) -> ExportTraceServiceRequest:
    """Return a request with the spans of a run: its root, turns, model calls and steps.

    Raises:
        ValueError: an id is missing.
    """
    return _Rebuilt(run).request()


class _Rebuilt:
    """The spans of one run, by their ids."""

    def __init__(self, run: StoredRun) -> None:
        self._run = run
        self._trajectory = run.trajectory
        self._spans: dict[str, dict[str, Any]] = {}
        self._shown: set[str] = set()

    def request(self) -> ExportTraceServiceRequest:
        trajectory = self._trajectory
        for call in trajectory.invocations:
            self._add(call, call.error, _of_call(call))
        for step in trajectory.steps:
            self._add_step(step)
        self._count_tokens()
        root = self._root()
        for call in sorted(trajectory.invocations, key=lambda each: (each.start, -each.end)):
            self._tell(call)
        self._tell_rest(root)
        whole = None
        for span in self._spans.values():
            one = request_of(self._foreign(span))
            if whole is None:
                whole = one
            else:
                spans = one.resource_spans[0].scope_spans[0].spans
                whole.resource_spans[0].scope_spans[0].spans.extend(spans)
        assert whole is not None  # the root always exists
        return whole

    def _foreign(self, span: dict[str, Any]) -> ForeignSpan:
        project = {semconv.PROJECT: self._run.project} if self._run.project else {}
        framework = {semconv.FRAMEWORK: self._trajectory.framework or None}
        return ForeignSpan(
            trace_id=self._trajectory.trace_id,
            span_id=span["id"],
            parent_id=span["parent"],
            name=span["name"],
            start=span["start"],
            end=span["end"],
            attributes={**framework, **span["attributes"]},
            error=span["error"],
            service=self._trajectory.service,
            scope=SCOPE,
            resource=project,
        )

    def _add(self, record: Step | Invocation, error: str | None, values: dict[str, Any]) -> None:
        operation = values[semconv.OPERATION_NAME]
        identity = record.span_id or f"span {len(self._spans)}"
        self._spans[identity] = {
            "id": identity,
            "parent": record.parent_span_id,
            "name": f"{operation} {record.agent}".strip(),
            "start": record.start,
            "end": record.end,
            "error": error,
            "attributes": values,
        }

    def _add_step(self, step: Step) -> None:
        known = self._spans.get(step.span_id)
        if known is None:
            self._add(step, step.error, _of_step(step))
            return
        # The step is a model's call: its text is the call's answer.
        known["attributes"] |= {
            semconv.MESSAGE_CONTENT_HASH: step.content_hash or None,
            semconv.HANDOFF_TARGET: step.handoff_to or None,
            semconv.INPUT_TOKENS: step.input_tokens or None,
            semconv.OUTPUT_TOKENS: step.output_tokens or None,
        }

    def _count_tokens(self) -> None:
        """Put the tokens that belong to no step on the first model call that is none."""
        calls = [call.span_id for call in self._trajectory.invocations if call.kind == "model"]
        steps = {step.span_id for step in self._trajectory.steps}
        first = next((each for each in calls if each not in steps), None)
        if first is None:
            return
        for name, field in (
            (semconv.INPUT_TOKENS, "input_tokens"),
            (semconv.OUTPUT_TOKENS, "output_tokens"),
        ):
            counted = sum(getattr(s, field) for s in self._trajectory.steps if s.span_id in calls)
            left = getattr(self._trajectory, field) - counted
            if first in self._spans:
                self._spans[first]["attributes"][name] = left if left > 0 else None

    def _root(self) -> dict[str, Any]:
        """Return the span of the run as a whole, with the run's attributes."""
        trajectory = self._trajectory
        above = Counter(span["parent"] for span in self._spans.values())
        missing = [each for each in above if each and each not in self._spans]
        tops = [span for span in self._spans.values() if not span["parent"]]
        about = {
            semconv.RUN_OUTCOME: trajectory.outcome or None,
            semconv.RUN_OUTCOME_REASON: trajectory.outcome_reason or None,
            semconv.RUN_EXPECTED: trajectory.expected or None,
            semconv.RUN_TERMINATION_REASON: trajectory.termination_reason or None,
            semconv.PLAN_OPEN_ITEMS: list(trajectory.open_items) or None,
            semconv.CONVERSATION_ID: trajectory.conversation_id or None,
            semconv.HUMAN_INPUTS: list(trajectory.human_inputs) or None,
            semconv.HUMAN_INPUT_SPANS: list(trajectory.human_input_spans) or None,
            semconv.FEEDBACK_TEXTS: list(trajectory.given_lessons) or None,
            semconv.RANDOM_SEED: trajectory.seed or None,
            semconv.HASH_SEED: trajectory.hash_seed or None,
            semconv.RUN_RESUMES: trajectory.resumes or None,
        }
        if tops or (self._spans and not trajectory.finished):
            root = max(
                tops or self._spans.values(), key=lambda span: int(span["end"] - span["start"])
            )
            root["name"] = trajectory.name or root["name"]
        else:
            identity = max(missing, key=lambda each: above[each], default="") or "root"
            identity = id_of(identity, 8, "root").hex()
            root = self._spans[identity] = {
                "id": identity,
                "parent": "",
                "name": f"{semconv.INVOKE_WORKFLOW} {trajectory.name}".strip(),
                "start": trajectory.start,
                "end": trajectory.end,
                "error": trajectory.error,
                "attributes": {
                    semconv.OPERATION_NAME: semconv.INVOKE_WORKFLOW,
                    semconv.WORKFLOW_NAME: trajectory.name or None,
                },
            }
            self._ask(root)
        marks = {
            semconv.CONTENT_REDACTED: list(trajectory.redacted),
            semconv.CONTENT_TRUNCATED: list(trajectory.cut),
        }
        # The span that stands for the root may have marks of its own.
        root["attributes"] |= about | {name: value for name, value in marks.items() if value}
        return root

    def _ask(self, root: dict[str, Any]) -> None:
        """Put the task on a root, where it does not follow from the steps."""
        trajectory = self._trajectory
        first = next((step.text for step in trajectory.steps if step.role == "user"), "")
        if not trajectory.task:
            return
        known = (
            identity
            for identity, text in trajectory.texts.items()
            if text.content == trajectory.task and text.role in {"user", "assistant"}
        )
        identity = next(known, "")
        if not identity and first == trajectory.task:
            return
        root["attributes"][semconv.INPUT_MESSAGE_IDS] = [identity or "task"]
        asked = trajectory.texts.get(identity) or Message(trajectory.task, role="user")
        root["attributes"][semconv.INPUT_MESSAGES] = _shapes({identity or "task": asked})
        self._shown.add(identity)

    def _tell(self, call: Invocation) -> None:
        """Put the texts that a turn or a call is the first to show on its span."""
        texts, attributes = self._trajectory.texts, self._attributes_of(call)
        shown = [each for each in call.input_ids if each in texts and each not in self._shown]
        if shown:
            attributes[semconv.INPUT_MESSAGES] = _shapes({each: texts[each] for each in shown})
        self._shown.update(shown)
        answer = texts.get(call.output_id)
        if answer is not None and answer.content == call.output_text:
            attributes[semconv.OUTPUT_MESSAGES] = _shapes({call.output_id: answer})
            self._shown.add(call.output_id)
        elif call.output_text:
            own_answer = Message(call.output_text, id=call.output_id or None)
            attributes[semconv.OUTPUT_MESSAGES] = _shapes({call.output_id: own_answer})

    def _attributes_of(self, call: Invocation) -> dict[str, Any]:
        span = self._spans.get(call.span_id)
        found: dict[str, Any] = span["attributes"] if span else {}
        return found

    def _tell_rest(self, root: dict[str, Any]) -> None:
        """Put the texts that neither a call nor a step holds on the root."""
        on_steps = {step.message_id for step in self._trajectory.steps}
        rest = {
            identity: text
            for identity, text in self._trajectory.texts.items()
            if identity not in self._shown and identity not in on_steps
        }
        if rest:
            given = root["attributes"].get(semconv.INPUT_MESSAGES)
            shapes = [*(json.loads(given) if given else []), *json.loads(_shapes(rest))]
            root["attributes"][semconv.INPUT_MESSAGES] = json.dumps(shapes, ensure_ascii=False)


def _of_call(call: Invocation) -> dict[str, Any]:
    of_agent = call.kind == "agent"
    return {
        semconv.OPERATION_NAME: semconv.INVOKE_AGENT if of_agent else semconv.CHAT,
        semconv.AGENT_NAME: call.agent or None,
        semconv.INPUT_MESSAGE_IDS: list(call.input_ids) or None,
        semconv.INPUT_MESSAGE_ROLES: list(call.input_roles) or None,
        semconv.INPUT_LENGTH: call.input_length,
        semconv.MESSAGE_ID: call.output_id or None,
        semconv.RESPONSE_MODEL: call.model or None,
        semconv.FINISH_REASONS: [call.finish_reason] if call.finish_reason else None,
        semconv.PROVIDER_NAME: call.provider or None,
        semconv.REQUEST_MODEL: call.requested_model or None,
        semconv.REQUEST_PARAMETERS: list(call.parameters) or None,
        semconv.RESPONSE_EXTRA: call.extra or None,
        semconv.CONTENT_REDACTED: list(call.redacted) or None,
        semconv.CONTENT_TRUNCATED: list(call.cut) or None,
        semconv.BRANCH_PATH: call.branch or None,
    }


def _of_step(step: Step) -> dict[str, Any]:
    shared = {
        semconv.AGENT_NAME: step.agent or None,
        semconv.MESSAGE_ID: step.message_id or None,
        semconv.MESSAGE_CONTENT_HASH: step.content_hash or None,
        semconv.HANDOFF_TARGET: step.handoff_to or None,
        semconv.INPUT_TOKENS: step.input_tokens or None,
        semconv.OUTPUT_TOKENS: step.output_tokens or None,
        semconv.BRANCH_PATH: step.branch or None,
        semconv.CONTENT_REDACTED: list(step.redacted) or None,
        semconv.CONTENT_TRUNCATED: list(step.cut) or None,
    }
    if step.kind is StepKind.TOOL:
        return shared | {
            semconv.OPERATION_NAME: semconv.EXECUTE_TOOL,
            semconv.TOOL_NAME: step.tool or None,
            semconv.TOOL_CALL_ARGUMENTS: step.arguments or None,
            semconv.TOOL_CALL_RESULT: step.text,
            semconv.TOOL_CALL_ID: step.call_id or None,
            semconv.TOOL_REQUESTED_BY: step.requested_by or None,
            semconv.TOOL_RESULT_TYPE: step.result_type or None,
        }
    if step.kind is StepKind.MODEL:
        parts = [{"type": "text", "content": step.text}, *_calls(step.arguments)]
        answer = [{"role": "assistant", "id": step.message_id or None, "parts": parts}]
        return shared | {
            semconv.OPERATION_NAME: semconv.CHAT,
            semconv.OUTPUT_MESSAGES: json.dumps(answer, ensure_ascii=False),
        }
    return shared | {
        semconv.OPERATION_NAME: semconv.SEND_MESSAGE,
        semconv.MESSAGE_SENDER: step.agent or None,
        semconv.MESSAGE_RECIPIENTS: list(step.recipients) or None,
        semconv.MESSAGE_ROLE: step.role or None,
        semconv.MESSAGE_CONTENT: step.text,
        semconv.MESSAGE_IN_REPLY_TO: step.in_reply_to or None,
        semconv.MESSAGE_SYNTHETIC: step.synthetic or None,
        semconv.MESSAGE_TOOL_CALLS: step.arguments or None,
    }


def _calls(arguments: str) -> list[dict[str, Any]]:
    try:
        calls = json.loads(arguments) if arguments else []
    except ValueError:
        return []
    return [{"type": "tool_call", **call} for call in calls if isinstance(call, dict)]


def _shapes(texts: dict[str, Message]) -> str:
    """Return messages as JSON text that reads as the same messages."""
    shapes = []
    for identity, text in texts.items():
        parts: list[dict[str, Any]] = []
        if text.role == "tool" or text.tool_call_id:
            response = {"id": text.tool_call_id, "response": text.content}
            parts.append({"type": "tool_call_response", **response})
        elif text.content:
            parts.append({"type": "text", "content": text.content})
        parts += [
            {"type": "tool_call", "id": call.id, "name": call.name, "arguments": call.arguments}
            for call in text.tool_calls
        ]
        named = {"name": text.name} if text.name else {}
        shapes.append({"role": text.role, "id": identity, "parts": parts, **named})
    return json.dumps(shapes, ensure_ascii=False)
