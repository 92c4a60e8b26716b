"""Converts rows of ``otel_traces`` to `SpanRecord`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mast_trace.trajectory import SpanRecord
from mast_trace_collector.storage.moments import within

if TYPE_CHECKING:
    from collections.abc import Mapping

RECORD_COLUMNS = """
    TraceId, SpanId, ParentSpanId, toString(SpanName) AS Name,
    toUnixTimestamp64Nano(Timestamp) AS StartNano, Duration, SpanAttributes,
    toString(StatusCode) AS Status, StatusMessage, toString(ServiceName) AS Service, ScopeName
"""
"""Columns of a query for `record`; times as integers, because datetimes lose nanoseconds."""


def record(row: Mapping[str, Any]) -> SpanRecord:
    """Read one row; a span that lasts beyond the end of time ends there."""
    return SpanRecord(
        trace_id=row["TraceId"],
        span_id=row["SpanId"],
        parent_span_id=row["ParentSpanId"],
        name=row["Name"],
        start=row["StartNano"],
        end=within(row["StartNano"] + row["Duration"]),
        attributes=row["SpanAttributes"],
        status=row["Status"],
        status_message=row["StatusMessage"],
        service=row["Service"],
        scope=row["ScopeName"],
    )
