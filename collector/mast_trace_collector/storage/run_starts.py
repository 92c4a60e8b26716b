"""Reads the start records of runs, which replace a run's root until its span arrives."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mast_trace import semconv
from mast_trace_collector.storage.span_records import record
from mast_trace_collector.storage.span_sql import literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mast_trace.trajectory import SpanRecord
    from mast_trace_collector.storage.store import Store

_MOST_BYTES = 64 * 1024 * 1024
"""Most bytes of the records of several runs together."""
_OPEN_ROOTS = f"""
SELECT TraceId, SpanId, '' AS ParentSpanId, Body AS Name, toUnixTimestamp64Nano(Timestamp) AS StartNano,
    toUInt64(0) AS Duration, LogAttributes AS SpanAttributes, 'Unset' AS Status, '' AS StatusMessage,
    toString(ServiceName) AS Service, ScopeName, toString(Project) AS RunProject
FROM otel_logs
WHERE TraceId IN {{traces:Array(String)}} AND SpanId != ''
  AND if(EventName != '', EventName, LogAttributes['event.name']) = {literal(semconv.RUN_START)}
  AND ({{project:Nullable(String)}} IS NULL OR Project = {{project:Nullable(String)}})
  AND (toString(Project), TraceId, SpanId) GLOBAL NOT IN (
    SELECT toString(Project), TraceId, SpanId FROM otel_traces
    WHERE TraceId IN {{traces:Array(String)}}
  )
ORDER BY Timestamp, SpanId
LIMIT 1 BY Project, TraceId
SETTINGS max_result_bytes = {_MOST_BYTES}
"""  # noqa: S608  # made of constants


def open_roots(
    store: Store, trace_ids: Sequence[str], *, project: str | None = None
) -> dict[tuple[str, str], SpanRecord]:
    """Return the root of each run of which only the beginning is known, by project and trace id.

    Args:
        store: the database.
        trace_ids: of the runs.
        project: of the runs; any project if absent.

    Raises:
        StorageError: the database does not answer, or the records exceed the limit of memory.
    """
    if not trace_ids:
        return {}
    given = {"traces": sorted(set(trace_ids)), "project": project}
    return {
        (row["RunProject"], row["TraceId"]): replace(record(row), is_open=True)
        for row in store.query(_OPEN_ROOTS, given)
    }
