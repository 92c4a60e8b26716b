"""Stores runs that were read from files."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from mast_trace_collector.storage.span_writer import SpanWriter
from mast_trace_judge.store.labels import save_labels
from mast_trace_judge.transfer.reading import Transcript
from mast_trace_judge.transfer.spans import to_request, trace_id_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mast_trace_collector.storage.store import Store
    from mast_trace_judge.store.labels import HumanLabel
    from mast_trace_judge.transfer.reading import Read

_KNOWN = "SELECT DISTINCT SpanId FROM otel_traces WHERE TraceId IN {traces:Array(String)}"


@dataclass(frozen=True)
class Imported:
    """What an import did.

    Attributes:
        runs: ids of the runs in the files, in their order.
        spans: the number of spans that were stored; those already there are not.
        labels: the number of labels that came along.
    """

    runs: tuple[str, ...]
    spans: int
    labels: int


def import_runs(store: Store, found: Iterable[Read]) -> Imported:
    """Store runs; what the store has already is left as it is.

    Raises:
        StorageError: the database does not take them.
    """
    writer = SpanWriter(store)
    runs: dict[str, None] = {}
    spans = 0
    labels: list[HumanLabel] = []
    for one in found:
        request = _request(one) if isinstance(one, Transcript) else one
        runs |= dict.fromkeys(_trace_ids(request))
        new = _without_known(store, request)
        if new.resource_spans:
            data = new.SerializeToString(deterministic=True)
            spans += writer.write([data], token=f"import-{time.time_ns()}")
        if isinstance(one, Transcript):
            identity = trace_id_of(one.trajectory)
            labels += [replace(label, trace_id=identity) for label in one.labels]
    save_labels(store, labels)
    return Imported(tuple(runs), spans, len(labels))


def _request(one: Transcript) -> ExportTraceServiceRequest:
    return to_request(one.trajectory, name=one.name, start=time.time_ns())


def _trace_ids(request: ExportTraceServiceRequest) -> list[str]:
    return [
        span.trace_id.hex()
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


def _without_known(store: Store, request: ExportTraceServiceRequest) -> ExportTraceServiceRequest:
    """Return the request without the spans that are stored already."""
    traces = sorted(set(_trace_ids(request)))
    known = {row["SpanId"] for row in store.query(_KNOWN, {"traces": traces})}
    if not known:
        return request
    left = ExportTraceServiceRequest()
    for resource in request.resource_spans:
        for scope in resource.scope_spans:
            new = [span for span in scope.spans if span.span_id.hex() not in known]
            if new:
                to = left.resource_spans.add(resource=resource.resource)
                to.scope_spans.add(scope=scope.scope, spans=new)
    return left
