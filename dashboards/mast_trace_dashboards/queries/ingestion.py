"""Named queries on arriving spans: hand-offs, tools, and the state of the store.

A tool call counts once. Spans of it that are part of another span's call are left out by the same decision as in
`mast_trace.trajectory.copies`, in SQL. Only traces in which this can
happen are examined: those in which a tool's span is the parent of another, or in which several
instrumentations or several sides, such as a protocol's client and its server, recorded tools.
"""

from __future__ import annotations

from typing import Final

from mast_trace import semconv
from mast_trace.trajectory import vocabulary
from mast_trace.trajectory.copies import TURNS
from mast_trace.trajectory.span_tree import LEVELS
from mast_trace_collector.storage.span_sql import field, literal
from mast_trace_dashboards.queries.query import Column, Query, limit
from mast_trace_dashboards.queries.sql import BUCKET, OWNERS, RANGE, RUNS

# A duplicate span counts once; its id is unique in its trace only. Numbers make a set in two thirds
# of the time of strings, and no two 128-bit hashes are equal by chance.
SPAN = "sipHash128(Project, TraceId, SpanId)"
"""The key of a span among all stored spans."""
_PARTS_CALLS = ", ".join(sorted(literal(operation) for operation in TURNS))
_IS_REQUEST = f"SpanAttributes[{literal(semconv.MCP_METHOD_NAME)}] = {literal(vocabulary.MCP_CALL)}"
# Arguments in one spelling: keys in order, without null values; empty where they are no object.
_GIVEN = f"""arraySort(arrayFilter(pair -> pair.2 != 'null',
        JSONExtractKeysAndValuesRaw({field("arguments")})))"""
_IS_OURS = (
    f"(startsWith(ScopeName, 'mast_trace') OR SpanAttributes[{literal(semconv.FRAMEWORK)}] != '')"
)
_CALL_ID = f"if({field('tool_call_id')} = 'unknown', '', {field('tool_call_id')})"
# An outer span o and an inner one i: (id, parent, name, scope, request, call's id, arguments).
_NAMED_ALIKE = """(o.3 = '' OR i.3 = '' OR o.3 = i.3 OR (i.5 AND NOT o.5 AND endsWith(o.3, i.3)
        AND NOT match(substring(o.3, length(o.3) - length(i.3), 1), '[a-zA-Z0-9]')))"""
_ONE_CALL = f"""(o.6 = '' OR i.6 = '' OR o.6 = i.6) AND (empty(o.7) OR empty(i.7) OR o.7 = i.7)
      AND {_NAMED_ALIKE}
      AND (i.5 OR o.4 != i.4 OR (o.6 != '' AND i.6 != '') OR (notEmpty(o.7) AND notEmpty(i.7)))"""

# The nth calls of one name with equal arguments in two trees are one if they overlap. The first counts.
_FACT = """if(Operation != 'execute_tool' OR ToolName = '' OR (empty(Given) AND CallId = ''), '',
              concat(toString(ToolName), '\n', if(empty(Given), CallId, toString(Given))))"""
_NEAR = (
    16  # spans between an agent's call as a tool and the like call of that agent: each takes time
)
_IS_TWIN = """Fact != '' AND Scope != first.2 AND (CallId = '' OR first.3 = '' OR CallId = first.3)
        AND least(Ended, first.5) - greatest(Began, first.4) >= least(1, Ended - Began, first.5 - first.4)"""


def _above(span: str) -> str:
    """Return the numbers of a span and of those above it."""
    return f"""arrayFold((path, up) -> if(path[-1] = 0, path, arrayPushBack(path, parents[indexOf(ids, path[-1])])),
        range({_NEAR}), [{span}])"""


def counted_elsewhere(which: str) -> str:
    """Return the SELECT of the spans, as `SPAN` names them, that belong to the call of another span.

    Args:
        which: a condition on the spans of tools; the spans of other calls may be left out.
    """
    return f"""WITH (
    SELECT groupUniqArray(TraceId) FROM otel_traces
    WHERE Operation = 'execute_tool' AND NOT startsWith(ScopeName, 'mast_trace') AND ({which})
  ) AS theirs, (
    SELECT groupArray(TraceId) FROM (
      SELECT TraceId FROM otel_traces
      WHERE Operation = 'execute_tool' AND ({which})
        AND notEmpty(theirs) AND TraceId IN (SELECT arrayJoin(theirs))
      GROUP BY TraceId
      HAVING uniqExact(ScopeName, SpanKind) > 1
        OR hasAny(groupUniqArray(sipHash64(ParentSpanId)), groupUniqArray(sipHash64(SpanId)))
    )
  ) AS possible
  SELECT sipHash128(Project, TraceId, (arrayJoin(arrayFilter(i -> arrayExists(
      o -> has(arrayFold(
          (path, turn) -> if(path[-1] = '', path, arrayPushBack(path, parents[indexOf(ids, path[-1])])),
          range({LEVELS}), [i.2]), o.1) AND {_ONE_CALL},
      tools), tools)) AS inner).1) AS Span
  FROM (
    SELECT Project, TraceId, groupArray(SpanId) AS ids,
      groupArray(if(Operation IN ({_PARTS_CALLS}), '', ParentSpanId)) AS parents,
      groupArrayIf((SpanId, ParentSpanId, toString(ToolName), ScopeName,
        {_IS_REQUEST}, {_CALL_ID}, {_GIVEN}), Operation = 'execute_tool') AS tools
    FROM otel_traces
    WHERE notEmpty(possible) AND TraceId IN (SELECT arrayJoin(possible))
    GROUP BY Project, TraceId
  )
  UNION ALL
  SELECT sipHash128(Project, TraceId, (arrayJoin(arrayFilter(
      t -> NOT has({_above("t.1")}, t.2) AND NOT has({_above("t.2")}, t.1), twins)) AS twin).3)
  FROM (
    SELECT Project, TraceId, groupArray(Number) AS ids, groupArray(Parent) AS parents,
      groupArrayIf((Number, first.1, SpanId), {_IS_TWIN}) AS twins
    FROM (
      SELECT *, argMin((Number, Scope, CallId, Began, Ended), (NOT IsOurs, Began, -Ended, SpanId)) OVER (
        PARTITION BY Project, TraceId, Fact, Nth) AS first
      FROM (
        SELECT *, denseRank() OVER (
          PARTITION BY Project, TraceId, Fact, Scope ORDER BY Began, -Ended, SpanId) AS Nth
        FROM (
          SELECT Project, TraceId, SpanId, sipHash64(SpanId) AS Number, toString(ScopeName) AS Scope,
            if(ParentSpanId = '', 0, sipHash64(ParentSpanId)) AS Parent, {_CALL_ID} AS CallId, {_GIVEN} AS Given,
            {_FACT} AS Fact, {_IS_OURS} AS IsOurs,
            toUnixTimestamp64Nano(Timestamp) AS Began, Began + toInt64(Duration) AS Ended
          FROM otel_traces
          WHERE notEmpty(possible) AND TraceId IN (SELECT arrayJoin(possible))
        )
      )
    )
    GROUP BY Project, TraceId
    HAVING notEmpty(twins)
  )"""


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
