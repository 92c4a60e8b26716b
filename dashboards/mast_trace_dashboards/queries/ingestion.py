"""Named queries on arriving spans: hand-offs, tools, and the state of the store."""

from __future__ import annotations

from typing import Final

from mast_trace_dashboards.queries.query import Column, Query, limit
from mast_trace_dashboards.queries.sql import BUCKET, OWNERS, RANGE, RUNS
from mast_trace_dashboards.queries.tool_calls import SPAN, counted_elsewhere

_WHICH = """Timestamp >= {since:DateTime64(3)} AND Timestamp < {until:DateTime64(3)}
    AND (empty({projects:Array(String)}) OR has({projects:Array(String)}, Project))
    AND (empty({services:Array(String)}) OR has({services:Array(String)}, ServiceName))
    AND (empty({frameworks:Array(String)}) OR has({frameworks:Array(String)}, Framework))"""
_SPANS = f"otel_traces\n  WHERE {_WHICH}"
# A replay may say what it is in its root alone. Its states come no earlier than its spans begin.
_OF_RUNS = """(Project, TraceId) GLOBAL NOT IN (
      SELECT Project, TraceId FROM mast_run_states
      WHERE Kind != '' AND Day >= toDate({since:DateTime64(3)}) - 1)"""
_ELSEWHERE = counted_elsewhere(_WHICH)

HANDOFFS: Final = Query(
    name="handoffs",
    meaning="Hand-offs from one agent to another, and the share that fails.",
    template=f"""
SELECT AgentName AS Source, HandoffTarget AS Target, uniqExact({SPAN}) AS Times,
    uniqExact(TraceId) AS Runs, uniqExactIf({SPAN}, StatusCode = 'Error') AS Failed
FROM {_SPANS}
    AND HandoffTarget != '' AND {_OF_RUNS}
GROUP BY Source, Target
ORDER BY Times DESC, Source, Target
LIMIT {{limit:UInt32}}""",
    params={**RANGE, **OWNERS, **limit(100)},
    columns={
        "Source": Column("String"),
        "Target": Column("String"),
        "Times": Column("UInt64"),
        "Runs": Column("UInt64", "in which it happens"),
        "Failed": Column("UInt64", "hand-offs that ended with an error"),
    },
)

LATENCY_OVER_TIME: Final = Query(
    name="latency_over_time",
    meaning="Durations of runs, tool calls and model calls in each stretch of time, and the share that failed.",
    template=f"""
SELECT toStartOfInterval(toDateTime(Timestamp), toIntervalSecond({{bucket:UInt32}})) AS Time,
    multiIf(Operation = 'execute_tool', 'tool', Operation = 'chat', 'model', 'run') AS Kind,
    quantileExactInclusive(0.5)(Duration) / 1e9 AS MedianSeconds,
    quantileExactInclusive(0.95)(Duration) / 1e9 AS P95Seconds,
    uniqExact({SPAN}) AS Calls, uniqExactIf({SPAN}, StatusCode = 'Error') / Calls AS FailedShare
FROM {_SPANS}
    AND (Operation IN ('execute_tool', 'chat') OR ParentSpanId = '')
    AND {SPAN} GLOBAL NOT IN ({_ELSEWHERE}) AND {_OF_RUNS}
GROUP BY Time, Kind
ORDER BY Time, Kind""",
    params={**RANGE, **OWNERS, **BUCKET},
    columns={
        "Time": Column("DateTime", "beginning of the stretch"),
        "Kind": Column("String", "run, tool or model"),
        "MedianSeconds": Column("Float64"),
        "P95Seconds": Column("Float64", "nineteen of twenty took no longer"),
        "Calls": Column("UInt64", "how many there were"),
        "FailedShare": Column("Float64", "of those that failed"),
    },
)

TOOL_ERRORS: Final = Query(
    name="tool_errors",
    meaning="Tools by how often they fail; a call counts once, even if others have recorded it too.",
    template=f"""
SELECT ToolName AS Tool, AgentName AS Agent, uniqExact({SPAN}) AS Calls,
    uniqExactIf({SPAN}, StatusCode = 'Error') AS Failed, Failed / Calls AS Share,
    argMaxIf(StatusMessage, (Timestamp, SpanId), StatusCode = 'Error') AS LastError
FROM {_SPANS}
    AND Operation = 'execute_tool'
    AND {SPAN} GLOBAL NOT IN ({_ELSEWHERE}) AND {_OF_RUNS}
GROUP BY Tool, Agent
ORDER BY Failed DESC, Calls DESC, Tool, Agent
LIMIT {{limit:UInt32}}""",
    params={**RANGE, **OWNERS, **limit(100)},
    columns={
        "Tool": Column("String"),
        "Agent": Column("String", "who called it"),
        "Calls": Column("UInt64"),
        "Failed": Column("UInt64"),
        "Share": Column("Float64", "of the calls that failed"),
        "LastError": Column("String", "message of the last failed call"),
    },
)

SPANS_OVER_TIME: Final = Query(
    name="spans_over_time",
    meaning="Spans stored in each stretch of time, by framework.",
    template=f"""
SELECT toStartOfInterval(toDateTime(Timestamp), toIntervalSecond({{bucket:UInt32}})) AS Time,
    if(Framework = '', 'other', Framework) AS Framework, count() AS Spans
FROM {_SPANS}
GROUP BY Time, Framework
ORDER BY Time, Framework""",
    params={**RANGE, **OWNERS, **BUCKET},
    columns={
        "Time": Column("DateTime", "beginning of the stretch"),
        "Framework": Column("String", "other: traces that are not mast-trace's own"),
        "Spans": Column("UInt64", "as they are stored: one that was sent twice counts twice"),
    },
)

ARRIVAL: Final = Query(
    name="arrival",
    meaning="Time from a span's end until it is stored, in each stretch of time.",
    template=f"""
SELECT toStartOfInterval(toDateTime(Timestamp), toIntervalSecond({{bucket:UInt32}})) AS Time,
    quantileExactInclusive(0.5)(Delay) AS MedianSeconds,
    quantileExactInclusive(0.95)(Delay) AS P95Seconds,
    countIf(Delay > 60) AS Late
FROM (
  SELECT Timestamp,
    greatest(0, (toUnixTimestamp64Milli(ReceivedAt)
      - intDiv(toUnixTimestamp64Nano(Timestamp) + toInt64(Duration), 1000000)) / 1000) AS Delay
  FROM {_SPANS}
)
GROUP BY Time
ORDER BY Time""",
    params={**RANGE, **OWNERS, **BUCKET},
    columns={
        "Time": Column("DateTime", "beginning of the stretch"),
        "MedianSeconds": Column("Float64"),
        "P95Seconds": Column("Float64"),
        "Late": Column("UInt64", "spans that took more than a minute"),
    },
)

RUN_HEALTH: Final = Query(
    name="run_health",
    meaning="Irregularities among the runs that arrived: one row.",
    template=f"""
SELECT count() AS Runs, countIf(RootSeen = 0) AS WithoutRoot,
    countIf(Framework = '') AS UnknownFramework, countIf(Failed = 1) AS WithErrors,
    if(count() = 0, NULL, max(LastSeen)) AS LastSpan
FROM ({RUNS})""",
    params={**RANGE, **OWNERS},
    columns={
        "Runs": Column("UInt64"),
        "WithoutRoot": Column("UInt64", "whose root span has not arrived"),
        "UnknownFramework": Column("UInt64", "of traces that are not mast-trace's own"),
        "WithErrors": Column("UInt64", "with a failed span"),
        "LastSpan": Column("Nullable(DateTime64(3))", "time at which the newest span was stored"),
    },
)

TABLE_SIZES: Final = Query(
    name="table_sizes",
    meaning="Size of the tables on disk.",
    template="""
SELECT table AS Table, sum(rows) AS Rows, sum(bytes_on_disk) AS Bytes, count() AS Parts,
    if(Rows = 0, NULL, Bytes / Rows) AS BytesPerRow
FROM system.parts
WHERE active AND database = currentDatabase()
GROUP BY Table
ORDER BY Bytes DESC, Table""",
    params={},
    columns={
        "Table": Column("String"),
        "Rows": Column("UInt64"),
        "Bytes": Column("UInt64"),
        "Parts": Column("UInt64"),
        "BytesPerRow": Column("Nullable(Float64)"),
    },
)
