"""Langfuse's traces and observations, as exported by its API, its web view and its blob export."""

from __future__ import annotations

import re
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
    object_in,
    objects_in,
    total_alone,
    underscored,
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
_GAP = re.compile(r"[^a-zA-Z0-9]+")
_LONGEST_TITLE = 200
_AGENT = re.compile(r"agent_run \[(.+)\]|invoke_agent (.+)")
_NAMED_AGENT = re.compile(
    r"(?!(?i:call|create|execute|get|init|invoke|new|run|start|the)[ _-]?agent$)"
    r"(.*(?:[a-z0-9]Agent|[ _-][aA]gent))"
)
"""Titles of spans that name an agent, and those by which programs do."""
_OPENINFERENCE = "openinference.span.kind"


def _read(value: dict[str, Any], _: str) -> Iterator[ExportTraceServiceRequest]:
    if _is_observation(value):
        yield request_of(_observation(value))
        return
    trace = value["trace"] if is_record(value.get("trace"), "id") else value
    yield request_of(_trace(trace))
    observed = objects_in(value, "observations")
    asked: set[str] = set()
    for each in observed:
        _settled(each, asked, is_last=False)
    for each in observed:
        known = _settled(each, asked, is_last=True) or each
        yield request_of(_observation({"traceId": trace["id"], **known}))


def _settled(shape: dict[str, Any], asked: set[str], *, is_last: bool) -> dict[str, Any] | None:
    """Return an observation, and add the tools that it asks for: programs send their runs as spans of no kind.

    Args:
        shape: the observation.
        asked: tools that models have asked for.
        is_last: whether nothing else will be told; until then a span that may be a tool's is None.
    """
    if not is_record(shape, "type"):
        return shape
    if shape["type"] == "GENERATION" and not is_last:
        said = messages_in(loaded(shape.get("output")), "assistant")
        asked.update(call.name for message in said for call in message.tool_calls)
    if shape["type"] != "SPAN" or not _get(shape, "parentObservationId"):
        return shape
    title = str(shape.get("name") or "")[:_LONGEST_TITLE]
    for begin in (0, *(gap.end() for gap in _GAP.finditer(title))):
        # Some write what they do before the tool's name: "tool_execution_...".
        if title[begin:] in asked and (not begin or "tool" in title[:begin].lower()):
            return {**shape, "type": "TOOL", "name": title[begin:]}
    return shape if is_last else None


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
    return shape.get(underscored(name))


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
    of_program, scope = object_in(known, "resourceAttributes"), word_in(known.get("scope"), "name")
    if title.startswith(_TOOL) or (
        shape.get("type") == "SPAN" and is_answer_of_tool(_get(shape, "output"))
    ):
        shape = {**shape, "type": "TOOL"}
    return ForeignSpan(
        trace_id=str(_get(shape, "traceId") or ""),
        span_id=str(shape["id"]),
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
    given = object_in(metadata, "attributes")
    sent = {k: v for k, v in given.items() if v not in (None, "")}
    kind, inputs, outputs = shape.get("type"), shape.get("input"), shape.get("output")
    named = vocabulary.read(sent, "agent") if is_root else None
    operation = vocabulary.operation(sent) or _OPERATIONS.get(str(kind), "")
    if not operation and (named or _is_title_of_agent(title, kind)):
        operation = semconv.INVOKE_AGENT
    found: dict[str, Any] = {
        "metadata": whole_text(dict(metadata)) if metadata else None,
        semconv.CONVERSATION_ID: (is_root and _get(shape, "sessionId")) or None,
    }
    if _OPENINFERENCE in sent:  # its reader knows what these names mean
        told = (("input.value", inputs), ("output.value", outputs))
        sent = {k: whole_text(v) for k, v in told if v is not None} | sent
    if operation == semconv.CHAT:
        model = shape.get("model") or _get(shape, "providedModelName")
        found |= of_model_call(inputs, outputs, model, _used(shape))
        found |= total_alone(_usage(shape))
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
        named = vocabulary.read(sent, "agent") or _AGENT.sub(r"\1\2", title)
        found |= {**(of_run("", inputs) if is_root else {}), semconv.AGENT_NAME: named}
        found["output.value"] = None if outputs is None else whole_text(outputs)
    elif is_root:
        found |= of_run(str(_get(shape, "traceName") or title), inputs)
    if operation:
        found[semconv.OPERATION_NAME] = operation
    return {**found, **sent}


def _is_title_of_agent(title: str, kind: Any) -> bool:
    named = _AGENT.fullmatch(title) or (kind == "SPAN" and _NAMED_AGENT.fullmatch(title))
    return bool(named)


def _usage(shape: Mapping[str, Any]) -> dict[str, Any]:
    usage = loaded(_get(shape, "usageDetails")) or loaded(shape.get("usage"))
    return usage if isinstance(usage, dict) else {}


def _used(shape: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """Return the tokens of input and output; None where the file does not tell.

    Where the parts make the total, those of the cache and of reasoning stand beside ``input`` and ``output``.
    """
    told = _usage(shape)
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
    settled=_settled,
)
