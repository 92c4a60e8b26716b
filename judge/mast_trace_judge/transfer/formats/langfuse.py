"""Langfuse's traces and observations, as exported by its API, its web view and its blob export."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mast_trace import semconv
from mast_trace.trajectory import vocabulary
from mast_trace.trajectory.sources import messages_in
from mast_trace_judge.transfer.formats.foreign_spans import ForeignSpan, loaded, request_of
from mast_trace_judge.transfer.formats.kinds import (
    Format,
    is_record,
    moment_or_zero,
    nanoseconds_of,
    objects_in,
    usage_of,
    whole_text,
    word_in,
)
from mast_trace_judge.transfer.formats.observations import (
    is_answer_of_tool,
    of_model_call,
    of_run,
    of_tool_call,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

_KINDS = frozenset(
    {"SPAN", "GENERATION", "EVENT", "AGENT", "TOOL", "CHAIN"}
    | {"RETRIEVER", "EVALUATOR", "EMBEDDING", "GUARDRAIL"}
)
_OPERATIONS = {
    "GENERATION": semconv.CHAT,
    "TOOL": semconv.EXECUTE_TOOL,
    "AGENT": semconv.INVOKE_AGENT,
}
_TOOL = f"{semconv.EXECUTE_TOOL} "
_AGENT_OF_ADK = "agent_run ["
_OPENINFERENCE = "openinference.span.kind"


def _read(value: dict[str, Any], _: str) -> Iterator[ExportTraceServiceRequest]:
    if _is_observation(value):
        yield request_of(_observation(value))
        return
    trace = value["trace"] if is_record(value.get("trace"), "id") else value
    yield request_of(_trace(trace))
    observed = objects_in(value, "observations")
    asked = _asked_of_tools(observed)
    for each in observed:
        is_tool = each.get("type") == "SPAN" and each.get("name") in asked
        known = {"traceId": trace["id"], **each, **({"type": "TOOL"} if is_tool else {})}
        yield request_of(_observation(known))


def _asked_of_tools(observed: list[dict[str, Any]]) -> set[Any]:
    """Return the tools that models asked for: a program may send their runs as spans of no kind."""
    if not any(
        each.get("type") == "SPAN" and _get(each, "parentObservationId") for each in observed
    ):
        return set()
    answers = (each.get("output") for each in observed if each.get("type") == "GENERATION")
    said = (message for each in answers for message in messages_in(loaded(each), "assistant"))
    return {call.name for message in said for call in message.tool_calls}


def _is_observation(value: Any) -> bool:
    return (
        word_in(value, "type") in _KINDS
        and bool(_get(value, "startTime"))
        and bool(_get(value, "traceId"))
    )


def _is_trace(value: Any) -> bool:
    if is_record(value, "trace", "observations"):
        value = value["trace"]
    if not is_record(value, "id", "timestamp"):
        return False
    return "observations" in value or bool(
        {"sessionId", "userId", "session_id", "user_id", "htmlPath"} & value.keys()
    )


def _get(shape: Mapping[str, Any], name: str) -> Any:
    """Return a field in the API's spelling or in the blob export's, which has underscores."""
    if name in shape:
        return shape[name]
    return shape.get("".join(f"_{c.lower()}" if c.isupper() else c for c in name))


def _trace(trace: Mapping[str, Any]) -> ForeignSpan:
    start = nanoseconds_of(trace.get("timestamp"), "timestamp")
    latency = trace.get("latency")
    lasted = latency if isinstance(latency, int | float) and 0 <= latency < 10**9 else 0
    return ForeignSpan(
        trace_id=str(trace.get("id") or ""),
        span_id=f"trace {trace.get('id')}",
        parent_id="",
        name=str(trace.get("name") or "trace"),
        start=start,
        end=start + int(lasted * 10**9),
        attributes={
            **of_run(str(trace.get("name") or "trace"), trace.get("input")),
            semconv.CONVERSATION_ID: _get(trace, "sessionId") or None,
            "user.id": _get(trace, "userId") or None,
        },
        scope="langfuse",
    )


def _observation(shape: Mapping[str, Any]) -> ForeignSpan:
    title = str(shape.get("name") or shape.get("type") or "")
    start = nanoseconds_of(_get(shape, "startTime"), "startTime")
    parent = str(_get(shape, "parentObservationId") or "")
    metadata = loaded(shape.get("metadata"))
    known = metadata if isinstance(metadata, dict) else {}
    failed = shape.get("level") == "ERROR"
    resource, scope = known.get("resourceAttributes"), word_in(known.get("scope"), "name")
    of_program = resource if isinstance(resource, dict) else {}
    if title.startswith(_TOOL) or (
        shape.get("type") == "SPAN" and is_answer_of_tool(_get(shape, "output"))
    ):
        shape = {**shape, "type": "TOOL"}
    return ForeignSpan(
        trace_id=str(_get(shape, "traceId") or ""),
        span_id=str(shape.get("id") or ""),
        parent_id=parent,
        name=title,
        start=start,
        end=moment_or_zero(_get(shape, "endTime")),
        attributes=_attributes(shape, title, known, is_root=not parent),
        error=whole_text(_get(shape, "statusMessage") or "error") if failed else None,
        service=str(of_program.get(semconv.SERVICE_NAME) or ""),
        scope=scope or "langfuse",
    )


def _attributes(
    shape: Mapping[str, Any], title: str, metadata: Mapping[str, Any], *, is_root: bool
) -> dict[str, Any]:
    """Return what the program sent, completed by Langfuse's own fields: it keeps in these what it took from there."""
    given = metadata.get("attributes")
    sent = (
        {k: v for k, v in given.items() if v not in (None, "")} if isinstance(given, dict) else {}
    )
    kind, inputs, outputs = shape.get("type"), shape.get("input"), shape.get("output")
    named = vocabulary.read(sent, "agent") if is_root else None
    operation = vocabulary.operation(sent) or _OPERATIONS.get(str(kind), "")
    if not operation and (named or title.startswith(_AGENT_OF_ADK)):
        operation = semconv.INVOKE_AGENT
    found: dict[str, Any] = {"metadata": whole_text(dict(metadata)) if metadata else None}
    if _OPENINFERENCE in sent:  # its reader knows what these names mean
        told = (("input.value", inputs), ("output.value", outputs))
        sent = {k: whole_text(v) for k, v in told if v is not None} | sent
    if operation == semconv.CHAT:
        model = shape.get("model") or _get(shape, "providedModelName")
        found |= of_model_call(inputs, outputs, model, _used(shape))
        if found[semconv.OUTPUT_TOKENS] is not None:
            for name in (
                *vocabulary.SPELLINGS["input_tokens"],
                *vocabulary.SPELLINGS["output_tokens"],
            ):
                sent.pop(name, None)  # without the tokens of reasoning, which Langfuse counts
    elif operation == semconv.EXECUTE_TOOL and _OPENINFERENCE not in sent:
        named = vocabulary.read(sent, "tool") or title.removeprefix(_TOOL)
        found |= of_tool_call(named, inputs, outputs)
    elif operation == semconv.INVOKE_AGENT:
        named = vocabulary.read(sent, "agent") or title.removeprefix(f"{semconv.INVOKE_AGENT} ")
        named = str(named).removeprefix(_AGENT_OF_ADK).removesuffix("]")
        found |= {**(of_run("", inputs) if is_root else {}), semconv.AGENT_NAME: named}
        found["output.value"] = None if outputs is None else whole_text(outputs)
    elif is_root:
        found |= of_run(title, inputs)
    if operation:
        found[semconv.OPERATION_NAME] = operation
    return {**found, **sent}


def _used(shape: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """Return the tokens of input and output; None where the file does not tell.

    Where the parts make the total, those of the cache and of reasoning stand beside ``input`` and ``output``.
    """
    usage = loaded(_get(shape, "usageDetails")) or loaded(shape.get("usage"))
    told = usage if isinstance(usage, dict) else {}
    used = {k: n for k, v in told.items() if (n := vocabulary.integer(v)) is not None}
    parts = {key: value for key, value in used.items() if key != "total"}
    if sum(parts.values()) != used.get("total"):
        parts = {key: value for key, value in parts.items() if key in {"input", "output"}}
    answer = loaded(shape.get("output"))
    beside = usage_of(answer.get("usage_metadata")) if isinstance(answer, dict) else None
    if beside and beside[1] > sum(v for k, v in parts.items() if k.startswith("output")):
        return beside  # with the tokens of reasoning of Google's models, which Langfuse leaves out
    sums = [[v for k, v in parts.items() if k.startswith(side)] for side in ("input", "output")]
    spent, made = (sum(each) if each else None for each in sums)
    if spent or made:
        return spent, made
    older = {key: shape.get(key) for key in ("promptTokens", "completionTokens")}
    return usage_of(told) or usage_of(older) or (None, None)


LANGFUSE = Format(
    name="langfuse",
    title="Langfuse traces and observations",
    recognised="`traceId`, `type` and `startTime`, or a trace with `timestamp` and `observations`",
    read=_read,
    keys=("traceId", "type", "startTime", "id"),
    record=lambda value: _is_observation(value) or _is_trace(value),
)
