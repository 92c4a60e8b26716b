"""The named query of the full-text search."""

from __future__ import annotations

from typing import Final

from mast_trace_dashboards.queries.query import Column, Param, Query
from mast_trace_dashboards.queries.sql import RANGE

SEARCH: Final = Query(
    name="search",
    meaning="Runs in whose messages, tool calls or model answers a text occurs, newest first.",
    template="""
SELECT TraceId, count() AS Hits
FROM otel_traces
WHERE Timestamp >= {since:DateTime64(3)} AND Timestamp < {until:DateTime64(3)}
  AND {text:String} != ''
  AND (positionCaseInsensitiveUTF8(SpanAttributes['mast.message.content'], {text:String}) > 0
    OR positionCaseInsensitiveUTF8(SpanAttributes['gen_ai.tool.call.result'], {text:String}) > 0
    OR positionCaseInsensitiveUTF8(SpanAttributes['gen_ai.tool.call.arguments'], {text:String}) > 0
    OR positionCaseInsensitiveUTF8(SpanAttributes['gen_ai.output.messages'], {text:String}) > 0)
GROUP BY TraceId
ORDER BY max(Timestamp) DESC, TraceId
LIMIT {limit:UInt32}""",
    params={
        **RANGE,
        "text": Param("String", "", "the text to find; case does not matter"),
        "limit": Param("UInt32", 500, "most runs to return"),
    },
    columns={
        "TraceId": Column("String"),
        "Hits": Column("UInt64", "spans in which it occurs"),
    },
)
