"""Spans of tool calls that are part of another span's call: they are not counted again.

The same decision as `mast_trace.trajectory.copies`, in SQL. Only traces in which this can
happen are examined: those in which a tool's span is the parent of another, or in which several
instrumentations or several sides, such as a protocol's client and its server, recorded tools.
"""

from __future__ import annotations

from mast_trace import semconv
from mast_trace.trajectory import vocabulary
from mast_trace.trajectory.copies import TURNS
from mast_trace.trajectory.span_tree import LEVELS
from mast_trace_collector.storage.span_sql import field, literal

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
