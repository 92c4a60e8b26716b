"""Spans as the OpenAI Agents SDK's own exporter sends them, or as its `export()` gives them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from mast_trace import semconv
from mast_trace_judge.transfer.formats.foreign_spans import ForeignSpan, request_of
from mast_trace_judge.transfer.formats.kinds import (
    Format,
    is_record,
    moment_or_zero,
    nanoseconds_of,
    usage_of,
    whole_text,
    word_in,
)
from mast_trace_judge.transfer.formats.observations import of_kind, of_tool_call

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

_NOT_IN_A_NAME = re.compile(r"[^a-zA-Z0-9_]")


def _is_trace(value: Any) -> bool:
    """Return whether a value names a trace, whose spans come beside it; it has no times of its own."""
    return is_record(value, "workflow_name") and value.get("object") == "trace"


def _read(value: dict[str, Any], _: str) -> Iterator[ExportTraceServiceRequest]:
    if _is_trace(value):
        return
    data = value["span_data"] if isinstance(value["span_data"], dict) else {}
    error = value.get("error")
    yield request_of(
        ForeignSpan(
            trace_id=str(value["trace_id"]),
            span_id=str(value.get("id") or ""),
            parent_id=str(value.get("parent_id") or ""),
            name=word_in(data, "name") or word_in(data, "type") or "span",
            start=nanoseconds_of(value["started_at"], "started_at"),
            end=moment_or_zero(value.get("ended_at")),
            attributes=_attributes(data),
            error=(word_in(error, "message") or whole_text(error)) if error else None,
            service="",
            scope="openai-agents",
        )
    )


_KINDS = {
    "agent": semconv.INVOKE_AGENT,
    "generation": semconv.CHAT,
    "response": semconv.CHAT,
    "function": semconv.EXECUTE_TOOL,
}


def _attributes(data: dict[str, Any]) -> dict[str, Any]:
    kind, given, made = (data.get(key) for key in ("type", "input", "output"))
    if kind == "handoff":
        target = str(data.get("to_agent") or "")
        tool = f"transfer_to_{_NOT_IN_A_NAME.sub('_', target).lower()}"
        return {**of_tool_call(tool, {}, None), semconv.HANDOFF_TARGET: target}
    title, usage = str(data.get("name") or kind), usage_of(data.get("usage"))
    return of_kind(
        _KINDS.get(str(kind), ""), title, given, made, model=data.get("model"), usage=usage
    )


OPENAI_AGENTS = Format(
    name="openai-agents",
    title="Spans of the OpenAI Agents SDK's exporter",
    recognised="`span_data` and `trace_id`",
    read=_read,
    keys=("trace_id", "started_at", "span_data"),
    record=lambda value: (
        _is_trace(value) or is_record(value, "trace_id", "started_at", "span_data")
    ),
)
