"""Reads the spans of one run page by page, however many and however long they are.

Where only the beginning of a run is known, its start record replaces the root, before the first
page. A page holds at most `PAGE_BYTES` of attributes beside those of one span. The database
computes the ends of pages before the first one is read. The latest of duplicate spans counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

from mast_trace import semconv
from mast_trace.trajectory import SpanRecord, with_events
from mast_trace_collector.storage.moments import (
    FIRST_NANOSECOND,
    LAST_NANOSECOND,
    around,
    in_time,
    nanoseconds,
    within,
)
from mast_trace_collector.storage.span_sql import literal

if TYPE_CHECKING:
    from mast_trace_collector.storage.store import Store

RECORD_COLUMNS = """
    TraceId, SpanId, ParentSpanId, toString(SpanName) AS Name,
    toUnixTimestamp64Nano(Timestamp) AS StartNano, Duration, SpanAttributes,
    toString(StatusCode) AS Status, StatusMessage, toString(ServiceName) AS Service, ScopeName,
    `Events.Name` AS EventNames, `Events.Attributes` AS EventAttributes
"""
"""Columns of a query for `record`; times as integers, because datetimes lose nanoseconds."""

_MOST_BYTES = 64 * 1024 * 1024
"""Most bytes of the attributes of a record of a run's start."""
_OPEN_ROOTS = f"""
SELECT TraceId, SpanId, '' AS ParentSpanId, Body AS Name, toUnixTimestamp64Nano(Timestamp) AS StartNano,
    toUInt64(0) AS Duration, LogAttributes AS SpanAttributes, 'Unset' AS Status, '' AS StatusMessage,
    toString(ServiceName) AS Service, ScopeName, toString(Project) AS RunProject
FROM otel_logs
WHERE TraceId IN {{traces:Array(String)}} AND SpanId != '' AND {{then}}
  AND if(EventName != '', EventName, LogAttributes['event.name']) = {literal(semconv.RUN_START)}
  AND ({{project:Nullable(String)}} IS NULL OR Project = {{project:Nullable(String)}})
  AND (toString(Project), TraceId, SpanId) GLOBAL NOT IN (
    SELECT toString(Project), TraceId, SpanId FROM otel_traces
    WHERE TraceId IN {{traces:Array(String)}} AND {{then}}
  )
  AND arraySum(text -> length(text), mapValues(LogAttributes)) < {{most:UInt64}}
ORDER BY Timestamp, SpanId
LIMIT 1 BY Project, TraceId
"""  # noqa: S608  # made of constants
PAGE_BYTES = 8 * 1024 * 1024
"""Approximate bytes of attributes that are read at a time."""
_A_SPAN = 512
"""Bytes counted for a span beside its attributes; they limit the spans of a page."""
_AT_ONCE = 250
"""Number of spans that are read by their ids at a time, if their texts are cut."""
_LONG_AT_ONCE = 20
"""The same number, if texts are not cut: each may hold some megabytes."""
_FEW_PAGES = 3
_SHORT_TEXT = 16 * 1024
_OF_RUN = (
    "TraceId = {trace_id:String} AND "
    "({project:Nullable(String)} IS NULL OR Project = {project:Nullable(String)})"
)
_OURS = (
    "splitByChar('.', ScopeName)[1] = 'mast_trace' "
    f"OR mapContains(SpanAttributes, {literal(semconv.FRAMEWORK)})"
)
_PAGES = f"""
SELECT toUnixTimestamp64Nano(min((Time, Span)).1) AS First, min((Time, Span)).2 AS FirstSpan,
    toUnixTimestamp64Nano(max((Time, Span)).1) AS Last, max((Time, Span)).2 AS LastSpan,
    count() AS Spans, sum(Bytes) AS Bytes, min(Ours) AS Ours
FROM
(
    SELECT *, sum(Bytes) OVER (ORDER BY Time, Span ROWS UNBOUNDED PRECEDING) AS Until
    FROM
    (
        SELECT Timestamp AS Time, SpanId AS Span, max(byteSize(SpanAttributes, `Events.Attributes`)) + {{a_span:UInt64}} AS Bytes,
            max({_OURS}) AS Ours
        FROM otel_traces WHERE {_OF_RUN}
        GROUP BY Time, Span
    )
)
GROUP BY intDiv(Until, {{page:UInt64}})
ORDER BY First, FirstSpan
"""  # noqa: S608  # made of constants
_MOVED = f"""
SELECT SpanId, toUnixTimestamp64Nano(argMax(Timestamp, ReceivedAt)) AS Kept
FROM otel_traces WHERE {_OF_RUN}
GROUP BY SpanId HAVING min(Timestamp) != max(Timestamp)
"""  # noqa: S608  # made of constants
_RANGE = """(Timestamp, SpanId) >= (fromUnixTimestamp64Nano({first:Int64}), {first_span:String})
    AND (Timestamp, SpanId) <= (fromUnixTimestamp64Nano({last:Int64}), {last_span:String})"""
_PLAIN = (
    semconv.MESSAGE_CONTENT,
    semconv.TOOL_CALL_RESULT,
    semconv.TOOL_CALL_ARGUMENTS,
    *("output.value", "traceloop.entity.output"),
)
"""Attributes that are plain texts; cutting them, unlike JSON, leaves them readable."""
_CLIPPED = f"""mapApply((k, v) -> (k, if(k IN ({", ".join(map(literal, _PLAIN))}),
    substringUTF8(v, 1, {{clip:UInt64}}), v)), SpanAttributes)"""


def record(row: Mapping[str, Any]) -> SpanRecord:
    """Read one row; a span that lasts beyond the end of time ends there."""
    return SpanRecord(
        trace_id=row["TraceId"],
        span_id=row["SpanId"],
        parent_span_id=row["ParentSpanId"],
        name=row["Name"],
        start=row["StartNano"],
        end=within(row["StartNano"] + row["Duration"]),
        attributes=with_events(
            row["SpanAttributes"],
            zip(row.get("EventNames", ()), row.get("EventAttributes", ()), strict=True),
        ),
        status=row["Status"],
        status_message=row["StatusMessage"],
        service=row["Service"],
        scope=row["ScopeName"],
    )


def open_roots(
    store: Store,
    trace_ids: Sequence[str],
    *,
    project: str | None = None,
    times: Iterable[tuple[datetime, datetime]] = (),
    most: int = _MOST_BYTES,
    settings: Mapping[str, Any] | None = None,
) -> dict[tuple[str, str], SpanRecord]:
    """Return the root of each run of which only the beginning is known, by project and trace id.

    Args:
        store: the database.
        trace_ids: of the runs.
        project: of the runs; any project if absent.
        times: start and end of each run, where they are known; see `around`.
        most: bytes of a record's attributes; longer records are left out.
        settings: of the query; not every reader may change them.

    Raises:
        StorageError: the database does not answer, or the records exceed a limit of the settings.
    """
    if not trace_ids:
        return {}
    then, bounds = around((nanoseconds(start), nanoseconds(end)) for start, end in times)
    given = {"traces": sorted(set(trace_ids)), "project": project, "most": most, **bounds}
    return {
        (row["RunProject"], row["TraceId"]): replace(record(row), is_open=True)
        for row in store.query(_OPEN_ROOTS.replace("{then}", then), given, settings=settings)
    }


@dataclass(frozen=True)
class SpanPage:
    """A part of a run by time: from one span to another, both included."""

    first: tuple[int, str]
    last: tuple[int, str]
    spans: int
    size: int


class RunSpans:
    """The spans of one run, as stored when they are first read."""

    def __init__(
        self,
        store: Store,
        trace_id: str,
        *,
        project: str | None = None,
        page_bytes: int = PAGE_BYTES,
    ) -> None:
        """Name the run; nothing is read yet.

        Args:
            store: the database.
            trace_id: of the run.
            project: of the run; any project if absent.
            page_bytes: bytes of attributes that are read at a time.
        """
        self._store = store
        self._of_run: dict[str, Any] = {"trace_id": trace_id, "project": project}
        self._page_bytes = page_bytes

    @cached_property
    def _rows(self) -> list[dict[str, Any]]:
        given = {**self._of_run, "page": self._page_bytes, "a_span": _A_SPAN}
        return self._store.query(_PAGES, given)

    @cached_property
    def _moved(self) -> dict[str, int]:
        """Start times of the spans that came again with another time."""
        return {row["SpanId"]: row["Kept"] for row in self._store.query(_MOVED, self._of_run)}

    @cached_property
    def pages(self) -> tuple[SpanPage, ...]:
        """The run's parts, by time.

        Raises:
            StorageError: the database does not answer.
        """
        return tuple(
            SpanPage(
                (row["First"], row["FirstSpan"]),
                (row["Last"], row["LastSpan"]),
                row["Spans"],
                row["Bytes"],
            )
            for row in self._rows
        )

    @cached_property
    def open_root(self) -> SpanRecord | None:
        """The stand-in for the root, where only the run's beginning is known.

        Raises:
            StorageError: the database does not answer.
        """
        trace_id, project = self._of_run["trace_id"], self._of_run["project"]
        return next(iter(open_roots(self._store, [trace_id], project=project).values()), None)

    @property
    def spans(self) -> int:
        """The number of spans."""
        return sum(page.spans for page in self.pages)

    @property
    def size(self) -> int:
        """Approximate bytes of their attributes."""
        return sum(page.size for page in self.pages)

    @property
    def foreign(self) -> bool:
        """True if some of them are not ours; see `mast_trace.trajectory.foreign`."""
        return not all(row["Ours"] for row in self._rows)

    def read(
        self, pages: Iterable[SpanPage] | None = None, *, clip: int | None = None
    ) -> Iterator[Sequence[SpanRecord]]:
        """Yield the spans of each page by their start.

        Args:
            pages: those to read.
            clip: see `of`.

        Raises:
            StorageError: the database does not answer.
        """
        columns = "SpanAttributes" if clip is None else _CLIPPED
        wanted = self.pages if pages is None else tuple(pages)
        if self.open_root is not None and wanted[:1] == self.pages[:1]:
            yield [self.open_root]
        for page in wanted:
            (first, first_span), (last, last_span) = page.first, page.last
            bounds = {
                "first": first,
                "first_span": first_span,
                "last": last,
                "last_span": last_span,
            }
            yield self._select(_RANGE, columns, {**bounds, "clip": clip or 0})

    def of(
        self,
        span_ids: Iterable[str],
        between: tuple[int, int] | None = None,
        *,
        clip: int | None = None,
    ) -> Iterator[SpanRecord]:
        """Yield the spans of these ids, some at a time.

        Args:
            span_ids: unknown ids are left out.
            between: the first and the last time at which they begin, in nanoseconds since the epoch.
            clip: characters that messages and tools' texts are cut to; whole if absent.

        Raises:
            StorageError: the database does not answer.
        """
        wanted = iter(span_ids)
        root = self.open_root
        if root is not None:
            identities = list(wanted)
            wanted = (each for each in identities if each != root.span_id)
            if root.span_id in identities:
                yield root
        columns = "SpanAttributes" if clip is None else _CLIPPED
        first, last = map(within, between or (FIRST_NANOSECOND, LAST_NANOSECOND))
        short = (clip is not None and clip <= _SHORT_TEXT) or self._holds_little(first, last)
        at_once = _AT_ONCE if short else _LONG_AT_ONCE
        while some := list(islice(wanted, at_once)):
            bounds = {"first": first, "last": last, "ids": some, "clip": clip or 0}
            yield from self._select("SpanId IN {ids:Array(String)}", columns, bounds)

    def _holds_little(self, first: int, last: int) -> bool:
        """Return whether all spans of a time fit into a few pages, as far as is known already."""
        if "_rows" not in self.__dict__:
            return False
        there = (p.size for p in self.pages if p.first[0] <= last and p.last[0] >= first)
        return sum(there) <= _FEW_PAGES * self._page_bytes

    def _select(
        self, condition: str, attributes: str, bounds: dict[str, Any]
    ) -> Sequence[SpanRecord]:
        columns = RECORD_COLUMNS.replace("SpanAttributes", f"{attributes} AS SpanAttributes")
        rows = self._store.query(
            f"""SELECT {columns} FROM otel_traces
            WHERE {_OF_RUN} AND {in_time(bounds["first"], bounds["last"])} AND {condition}
            ORDER BY Timestamp, SpanId, ReceivedAt DESC LIMIT 1 BY Timestamp, SpanId""",  # noqa: S608
            {**self._of_run, **bounds},
        )
        moved = self._moved
        return [
            record(row)
            for row in rows
            if moved.get(row["SpanId"], row["StartNano"]) == row["StartNano"]
        ]
