"""Calls that Weave, Braintrust and Opik track: spans with the same facts under other names, from one table."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from mast_trace import semconv
from mast_trace_judge.transfer.formats.foreign_spans import ForeignSpan, at, loaded, request_of
from mast_trace_judge.transfer.formats.kinds import (
    Format,
    is_record,
    moment_or_zero,
    nanoseconds_of,
    usage_of,
    usage_of_models,
    whole_text,
    word_in,
)
from mast_trace_judge.transfer.formats.observations import of_kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

_KINDS = {
    "llm": semconv.CHAT,
    "tool": semconv.EXECUTE_TOOL,
    "agent": semconv.INVOKE_AGENT,
    "task": semconv.INVOKE_AGENT,
}
"""Kind of a call -> its operation; a call of another kind is none."""
_OP = re.compile(r".*/op/|:[^:/]*$")


@dataclass(frozen=True)
class _Names:
    """Paths of the facts in a tracker's call; of several, the first that holds something counts."""

    scope: str
    trace: str
    span: str
    parent: str
    title: str
    kind: str
    start: str
    end: str
    inputs: str
    model: tuple[str, ...]
    usage: str
    error: str


_WEAVE = _Names(
    scope="weave",
    trace="trace_id",
    span="id",
    parent="parent_id",
    title="op_name",
    kind="attributes.weave.kind",
    start="started_at",
    end="ended_at",
    inputs="inputs",
    model=("output.model", "inputs.model"),
    usage="summary.usage",
    error="exception",
)
_BRAINTRUST = _Names(
    scope="braintrust",
    trace="root_span_id",
    span="span_id",
    parent="span_parents",
    title="span_attributes.name",
    kind="span_attributes.type",
    start="metrics.start",
    end="metrics.end",
    inputs="input",
    model=("metadata.model",),
    usage="metrics",
    error="error",
)
_OPIK = _Names(
    scope="opik",
    trace="trace_id",
    span="id",
    parent="parent_span_id",
    title="name",
    kind="type",
    start="start_time",
    end="end_time",
    inputs="input",
    model=("model",),
    usage="usage",
    error="error_info",
)


def _read(names: _Names, value: Mapping[str, Any], _: str) -> Iterator[ExportTraceServiceRequest]:
    parent = at(value, names.parent)
    above = parent[0] if isinstance(parent, list) and parent else parent
    title = _OP.sub("", str(at(value, names.title) or ""))
    models = [str(found) for path in names.model if (found := at(value, path))]
    usage, error = at(value, names.usage), at(value, names.error)
    kind = _KINDS.get(str(at(value, names.kind)), "")
    if not kind and models and usage:  # a call of Weave need not say what it is
        kind = semconv.CHAT
    yield request_of(
        ForeignSpan(
            trace_id=str(at(value, names.trace) or ""),
            span_id=str(at(value, names.span) or ""),
            parent_id=str(above or ""),
            name=title,
            start=nanoseconds_of(at(value, names.start) or value.get("created"), "its start"),
            end=moment_or_zero(at(value, names.end)),
            attributes=of_kind(
                kind,
                title,
                at(value, names.inputs),
                loaded(value.get("output")),
                is_root=not above,
                model=models[0] if models else None,
                usage=usage_of(usage) or usage_of_models(usage),
            ),
            error=whole_text(error) if error else None,
            scope=names.scope,
        )
    )


WEAVE = Format(
    name="weave",
    title="Weave calls",
    recognised="`op_name`, `trace_id` and `started_at`, as its client and its calls table export them",
    read=partial(_read, _WEAVE),
    keys=("op_name", "trace_id", "started_at", "inputs"),
    record=lambda value: is_record(value, "id", "op_name", "trace_id", "started_at"),
)
BRAINTRUST = Format(
    name="braintrust",
    title="Braintrust logs",
    recognised="`span_id`, `root_span_id` and `span_attributes`, as its API and its downloads hold them",
    read=partial(_read, _BRAINTRUST),
    keys=("span_id", "root_span_id", "span_attributes", "metrics"),
    record=lambda value: is_record(value, "span_id", "root_span_id", "span_attributes"),
)
OPIK = Format(
    name="opik",
    title="Opik spans",
    recognised="`trace_id`, `start_time` and a `type` such as `llm` or `general`, as its API and its export have them",
    read=partial(_read, _OPIK),
    keys=("trace_id", "start_time", "type", "input"),
    record=lambda value: (
        is_record(value, "id", "trace_id", "start_time", "type")
        and word_in(value, "type") in {"llm", "tool", "general", "guardrail"}
    ),
)
