"""MLflow's traces, as its client, its API and its artifacts write them in JSON."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mast_trace import semconv
from mast_trace.trajectory import vocabulary
from mast_trace.trajectory.span_messages import objects
from mast_trace_judge.transfer.formats.foreign_spans import ForeignSpan, hex_of, loaded, request_of
from mast_trace_judge.transfer.formats.kinds import (
    Format,
    is_record,
    moment_or_zero,
    nanoseconds_of,
    objects_in,
    total_alone,
    usage_of,
    word_in,
)
from mast_trace_judge.transfer.formats.observations import of_kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

_CALL_USAGE = "mlflow.chat.tokenUsage"
_FAILED = frozenset({"STATUS_CODE_ERROR", "ERROR"})


def _read(value: dict[str, Any], _: str) -> Iterator[ExportTraceServiceRequest]:
    spans = objects_in(value.get("data", value), "spans")
    if not spans:
        raise ValueError("it holds no spans")
    info = value.get("info", value)
    told = _metadata(info)
    whole = info.get("token_usage") or loaded(told.get("mlflow.trace.tokenUsage"))
    if not any(_CALL_USAGE in each for each in map(_sent, spans)):
        # The usage of the whole trace stands on the first call of a model.
        calls = (each for each in spans if _kind(_sent(each)) == semconv.CHAT)
        if first := next(calls, None):
            first["attributes"].setdefault(_CALL_USAGE, whole)
    of_run = {semconv.CONVERSATION_ID: told.get("mlflow.trace.session") or None}
    for span in spans:
        made = _span(span, str(info.get("trace_id") or info.get("request_id")))
        yield request_of(replace(made, attributes={**of_run, **made.attributes}))


def _metadata(info: Mapping[str, Any]) -> dict[Any, Any]:
    """Return what a trace tells beside its spans, which older releases list in pairs."""
    given = info.get("trace_metadata") or info.get("request_metadata")
    pairs = {each.get("key"): each.get("value") for each in objects(given)}
    return given if isinstance(given, dict) else pairs


def _sent(span: Mapping[str, Any]) -> Mapping[str, Any]:
    given = span.get("attributes")
    return given if isinstance(given, dict) else {}


def _kind(sent: Mapping[str, Any]) -> str:
    return vocabulary.OPERATIONS.get(f'"{loaded(sent.get("mlflow.spanType"))}"', "")


def _span(span: Mapping[str, Any], trace: str) -> ForeignSpan:
    context = span.get("context")
    known = context if isinstance(context, dict) else span
    sent = {key: loaded(each) for key, each in _sent(span).items()}
    title = str(span.get("name") or "")
    start = nanoseconds_of(span.get("start_time_unix_nano", span.get("start_time")), "start time")
    parent = hex_of(str(span.get("parent_span_id") or span.get("parent_id") or ""), 8)
    status = span.get("status")
    failed = word_in(status, "code") in _FAILED or span.get("status_code") in _FAILED
    raised = (loaded(each.get("attributes")) for each in objects(span.get("events")))
    caught = (word_in(each, "exception.message") for each in raised)
    said = word_in(status, "message") or str(span.get("status_message") or "")
    said = said or next(filter(None, caught), "")
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
    inputs, outputs = sent.get("mlflow.spanInputs"), sent.get("mlflow.spanOutputs")
    beside = outputs.get("usage") if isinstance(outputs, dict) else None
    usage = sent.get(_CALL_USAGE) or beside
    model = sent.get("mlflow.llm.model") or sent.get("model") or word_in(inputs, "model") or None
    made = of_kind(
        _kind(sent), title, inputs, outputs, is_root=is_root, model=model, usage=usage_of(usage)
    )
    return {**made, **total_alone(usage)}


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
