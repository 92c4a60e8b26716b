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
_CALL_ID = f"if({field('tool_call_id')} = 'unknown', '', {field('tool_call_id')})"
# An outer span o and an inner one i: (id, parent, name, scope, request, call's id, arguments).
_NAMED_ALIKE = """(o.3 = '' OR i.3 = '' OR o.3 = i.3 OR (i.5 AND NOT o.5 AND endsWith(o.3, i.3)
        AND NOT match(substring(o.3, length(o.3) - length(i.3), 1), '[a-zA-Z0-9]')))"""
_ONE_CALL = f"""(o.6 = '' OR i.6 = '' OR o.6 = i.6) AND (empty(o.7) OR empty(i.7) OR o.7 = i.7)
      AND {_NAMED_ALIKE}
      AND (i.5 OR o.4 != i.4 OR (o.6 != '' AND i.6 != '') OR (notEmpty(o.7) AND notEmpty(i.7)))"""


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
  )"""
