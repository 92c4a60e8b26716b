"""Spans of Arize Phoenix: its data frames in Parquet or JSON lines, and its API's JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mast_trace.trajectory import vocabulary
from mast_trace.trajectory.span_messages import objects
from mast_trace_judge.transfer.formats.foreign_spans import loaded, request_of, span_of_sdk
from mast_trace_judge.transfer.formats.kinds import Format, is_record, whole_text, word_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

_PREFIX = "attributes."
_KIND = "openinference.span.kind"
_LISTS = (
    "llm.input_messages",
    "llm.output_messages",
    "message.tool_calls",
    "message.contents",
)
"""Attributes that OpenInference spreads over numbered names, and Phoenix collects."""
_AS_JSON = frozenset({"metadata", "llm.invocation_parameters"})


def _read(value: dict[str, Any], _: str) -> Iterator[ExportTraceServiceRequest]:
    failed = value.get("status_code") == "ERROR"
    attributes = _attributes(value)
    attributes.setdefault(_KIND, value.get("span_kind"))
    columns = {key: value.get(f"context.{key}") for key in ("trace_id", "span_id")}
    error = str(value.get("status_message") or "") if failed else None
    known = {"context": columns, **value}
    yield request_of(span_of_sdk(known, attributes, error, scope="openinference"))


def _attributes(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes as OpenInference writes them: one level, lists by number."""
    found: dict[str, Any] = {}
    given = loaded(value.get("attributes"))
    for key, each in (given if isinstance(given, dict) else {}).items():
        _spread(found, str(key), each)
    for key, each in value.items():
        if key.startswith(_PREFIX) and each is not None:
            _spread(found, key.removeprefix(_PREFIX), each)
    return found


def _spread(found: dict[str, Any], name: str, value: Any) -> None:
    inner = loaded(value) if name.endswith(_LISTS) else value
    if inner is None:
        return
    if isinstance(inner, list) and objects(inner):
        for number, item in enumerate(inner):
            _spread(found, f"{name}.{number}", item)
    elif isinstance(inner, dict) and name not in _AS_JSON and not name.endswith("json_schema"):
        for key, each in inner.items():
            _spread(found, f"{name}.{key}", each)
    elif ".token_count." in name:  # a data frame has them as fractions
        found[name] = vocabulary.integer(
            inner if isinstance(inner, float) else str(inner).removesuffix(".0")
        )
    else:
        found[name] = whole_text(inner) if isinstance(inner, dict) else inner


def _is_span(value: Any) -> bool:
    if not is_record(value, "start_time") or not value.keys() & {"span_kind", _PREFIX + _KIND}:
        return False
    inner = value.get("context")
    return bool(word_in(value, "context.trace_id")) or is_record(inner, "trace_id")


PHOENIX = Format(
    name="phoenix",
    title="Phoenix spans",
    recognised="`span_kind` and `context.trace_id`, the attributes in columns or nested",
    read=_read,
    keys=("context", "span_kind", "start_time"),
    record=_is_span,
)
