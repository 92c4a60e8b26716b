"""MLflow's traces, as its client, its API and its artifacts write them in JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mast_trace.trajectory import vocabulary
from mast_trace_judge.transfer.formats.foreign_spans import ForeignSpan, hex_of, loaded, request_of
from mast_trace_judge.transfer.formats.kinds import (
    Format,
    is_record,
    moment_or_zero,
    nanoseconds_of,
    objects_in,
    usage_of,
    word_in,
)
from mast_trace_judge.transfer.formats.observations import of_kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

_FAILED = frozenset({"STATUS_CODE_ERROR", "ERROR"})


def _read(value: dict[str, Any], _: str) -> Iterator[ExportTraceServiceRequest]:
    spans = objects_in(value.get("data", value), "spans")
    if not spans:
        raise ValueError("it holds no spans")
    info = value.get("info", value)
    for span in spans:
        yield request_of(_span(span, str(info.get("trace_id") or info.get("request_id"))))


def _span(span: Mapping[str, Any], trace: str) -> ForeignSpan:
    context = span.get("context")
    known = context if isinstance(context, dict) else span
    given = span.get("attributes")
    sent = {key: loaded(each) for key, each in given.items()} if isinstance(given, dict) else {}
    title = str(span.get("name") or "")
    start = nanoseconds_of(span.get("start_time_unix_nano", span.get("start_time")), "start time")
    parent = hex_of(str(span.get("parent_span_id") or span.get("parent_id") or ""), 8)
    status = span.get("status")
    failed = word_in(status, "code") in _FAILED or span.get("status_code") in _FAILED
    said = word_in(status, "message") or str(span.get("status_message") or "")
    return ForeignSpan(
        trace_id=hex_of(str(known.get("trace_id") or trace), 16),
        span_id=hex_of(str(known.get("span_id") or ""), 8),
        parent_id=parent,
        name=title,
        start=start,
        end=moment_or_zero(span.get("end_time_unix_nano", span.get("end_time"))),
        attributes=_attributes(sent, title, is_root=not parent),
        error=said or "error" if failed else None,
        scope="mlflow",
    )


def _attributes(sent: Mapping[str, Any], title: str, *, is_root: bool) -> dict[str, Any]:
    kind = vocabulary.OPERATIONS.get(f'"{sent.get("mlflow.spanType")}"', "")
    inputs, outputs = sent.get("mlflow.spanInputs"), sent.get("mlflow.spanOutputs")
    beside = outputs.get("usage") if isinstance(outputs, dict) else None
    spent = usage_of(sent.get("mlflow.chat.tokenUsage")) or usage_of(beside)
    model = sent.get("mlflow.llm.model") or sent.get("model") or word_in(inputs, "model") or None
    return of_kind(kind, title, inputs, outputs, is_root=is_root, model=model, usage=spent)


def _is_trace(value: Any) -> bool:
    """Return whether a value is a trace, a row of a data frame, or the artifact with a trace's spans alone."""
    if is_record(value, "spans", "trace_metadata"):
        return True
    if is_record(value, "info", "data"):
        return isinstance(value["info"], dict) and is_record(value["data"], "spans")
    return any(
        is_record(x.get("attributes"), "mlflow.spanType") for x in objects_in(value, "spans")
    )


MLFLOW = Format(
    name="mlflow",
    title="MLflow traces",
    recognised="`info` and `data` with `spans`, or a row of `search_traces` with `spans`",
    read=_read,
    keys=("info", "data", "spans"),
    record=_is_trace,
)
