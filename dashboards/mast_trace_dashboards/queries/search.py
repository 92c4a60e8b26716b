"""The named queries of the search in texts."""

from __future__ import annotations

from typing import Final

from mast_trace_collector.storage.search_index import NARROWED, SETTINGS, TEXTS
from mast_trace_dashboards.queries.query import Column, Param, Query
from mast_trace_dashboards.queries.sql import END, OF_PROGRAMS, RANGE

_SHARE: Final = {
    "first": Param("String", "", "only runs with this id or a greater one"),
    "last": Param("String", "", "only runs with a lesser id; empty for all"),
}
_END: Final = f"toDateTime64('{END:%Y-%m-%d %H:%M:%S}', 3, 'UTC')"
_NARROWING: Final = {
    "word": Param(
        "String",
        "",
        "a LIKE pattern that lower case of every hit matches, for the index; empty: none",
    ),
    "phrase": Param("String", "", "a second one"),
}

# Replays of a run have its texts once more; their states say what they are.
_OF_PROGRAMS: Final = f"""(Project, TraceId) GLOBAL NOT IN (
      SELECT Project, TraceId FROM mast_run_states
      WHERE NOT ({OF_PROGRAMS}) AND Start < {{until:DateTime64(3)}})"""

# A run is named by any of these, or by the beginning of its id, from the length on that chance does not meet.
_NAMES: Final = """concat(substring(min(Named), 21), '\\n', max(ServiceName), '\\n', max(ConversationId), '\\n',
      arrayStringConcat(arrayConcat(groupUniqArrayArray(Agents), groupUniqArrayArray(Models)), '\\n'))"""
_NAMED: Final = f"""SELECT TraceId, 0 AS Found, min(Start) AS Last FROM mast_run_states
    WHERE Start >= {{since:DateTime64(3)}} AND Start < {{until:DateTime64(3)}} AND {{text:String}} != ''
    GROUP BY Project, TraceId
    HAVING max(Kind) = '' AND Last < {{begun:DateTime64(3)}}
      AND (positionCaseInsensitiveUTF8({_NAMES}, {{text:String}}) > 0
        OR length({{text:String}}) >= 6 AND positionCaseInsensitiveUTF8(TraceId, {{text:String}}) = 1)
    UNION ALL
    SELECT TraceId, 0 AS Found, min(Timestamp) AS Last FROM otel_traces
    WHERE Timestamp >= {{since:DateTime64(3)}} AND Timestamp < {{until:DateTime64(3)}}
      AND {{text:String}} != '' AND {_OF_PROGRAMS}
      AND (positionCaseInsensitiveUTF8(UserId, {{text:String}}) > 0
        OR positionCaseInsensitiveUTF8(ServiceVersion, {{text:String}}) > 0)
    GROUP BY TraceId
    HAVING Last < {{begun:DateTime64(3)}}"""

SEARCH: Final = Query(
    name="search",
    meaning="Runs with a text in a name, an id, a user, a version or what was said, newest first.",
    template=f"""
SELECT TraceId, sum(Found) AS Hits
FROM (
  SELECT TraceId, count() AS Found, max(Timestamp) AS Last
  FROM otel_traces
  WHERE Timestamp >= {{since:DateTime64(3)}} AND Timestamp < {{until:DateTime64(3)}}
    AND {{text:String}} != '' AND {NARROWED} AND {_OF_PROGRAMS}
    AND ({{begun:DateTime64(3)}} >= {_END} OR TraceId GLOBAL IN (
      SELECT TraceId FROM mast_run_states WHERE Start < {{begun:DateTime64(3)}}))
    AND (positionCaseInsensitiveUTF8(SpanAttributes['mast.message.content'], {{text:String}}) > 0
      OR positionCaseInsensitiveUTF8(SpanAttributes['gen_ai.tool.call.result'], {{text:String}}) > 0
      OR positionCaseInsensitiveUTF8(SpanAttributes['gen_ai.tool.call.arguments'], {{text:String}}) > 0
      OR positionCaseInsensitiveUTF8(SpanAttributes['gen_ai.output.messages'], {{text:String}}) > 0)
  GROUP BY TraceId
  UNION ALL
  {_NAMED}
)
GROUP BY TraceId
ORDER BY max(Last) DESC, TraceId
LIMIT {{limit:UInt32}}""",
    params={
        **RANGE,
        "begun": Param("DateTime64(3)", END, "only runs that started before this time"),
        "text": Param("String", "", "the text to find; case does not matter"),
        **_NARROWING,
        "limit": Param("UInt32", 500, "most runs to return"),
    },
    columns={
        "TraceId": Column("String"),
        "Hits": Column("UInt64", "spans in whose texts it occurs; 0 where a name has it"),
    },
    wishes=SETTINGS,
    wishes_with="word",
)

_AROUND: Final = 120
PASSAGE: Final = 2 * _AROUND
"""Characters of a passage, beside the text itself."""

SEARCH_HITS: Final = Query(
    name="search_hits",
    meaning="Spans in whose texts a text occurs, with the passage around it, newest first among those found.",
    template=f"""
SELECT * FROM (
  SELECT Project, TraceId, SpanId, Timestamp, ServiceName, Operation,
    if(Sender != '', Sender, AgentName) AS Agent, ToolName,
    positionCaseInsensitiveUTF8({TEXTS} AS Texts, {{text:String}}) AS Place,
    substringUTF8(Texts, greatest(toInt64(Place) - {_AROUND}, 1),
      {PASSAGE} + lengthUTF8({{text:String}})) AS Passage,
    greatest(toInt64(Place) - {_AROUND}, 1) > 1 AS CutBefore
  FROM otel_traces
  WHERE Timestamp >= {{since:DateTime64(3)}} AND Timestamp < {{until:DateTime64(3)}}
    AND {{text:String}} != '' AND Operation IN ('send_message', 'execute_tool', 'chat', 'invoke_agent')
    AND (empty({{services:Array(String)}}) OR has({{services:Array(String)}}, ServiceName))
    AND TraceId >= {{first:String}} AND ({{last:String}} = '' OR TraceId < {{last:String}})
    AND {NARROWED} AND {_OF_PROGRAMS}
    AND Place > 0
  LIMIT greatest({{found:UInt32}}, {{limit:UInt32}})
)
ORDER BY Timestamp DESC, TraceId, SpanId
LIMIT {{limit:UInt32}} OFFSET {{offset:UInt32}}""",
    params={
        **RANGE,
        "text": Param("String", "", "the text to find; case does not matter"),
        "services": Param("Array(String)", [], "service names; none means all"),
        **_SHARE,
        **_NARROWING,
        "found": Param(
            "UInt32", 0, "hits at which the engine stops, of which the newest are returned"
        ),
        "limit": Param(
            "UInt32", 50, "most rows to return; the engine stops at them unless `found` is more"
        ),
        "offset": Param("UInt32", 0, "rows to leave out before"),
    },
    columns={
        "Project": Column("String"),
        "TraceId": Column("String"),
        "SpanId": Column("String"),
        "Timestamp": Column("DateTime64(9)"),
        "ServiceName": Column("String"),
        "Operation": Column("String"),
        "Agent": Column("String", "who acted; empty if unknown"),
        "ToolName": Column("String"),
        "Place": Column("UInt64", "the first occurrence, in characters from 1"),
        "Passage": Column("String", "the text around it"),
        "CutBefore": Column("UInt8", "1 where text before the passage was cut off"),
    },
    wishes=SETTINGS,
    wishes_with="word",
)

SEARCHED: Final = Query(
    name="searched",
    meaning="The number of spans of a time: what a search has to read without an index.",
    template="""
SELECT count() AS Spans FROM otel_traces
WHERE Timestamp >= {since:DateTime64(3)} AND Timestamp < {until:DateTime64(3)}""",
    params={**RANGE},
    columns={"Spans": Column("UInt64")},
)

SEARCH_COUNT: Final = Query(
    name="search_count",
    meaning="The number of spans in whose texts a text occurs, and of their runs: one row.",
    template=f"""
SELECT count() AS Spans, uniqExact(Project, TraceId) AS Runs
FROM otel_traces
WHERE Timestamp >= {{since:DateTime64(3)}} AND Timestamp < {{until:DateTime64(3)}}
  AND TraceId >= {{first:String}} AND ({{last:String}} = '' OR TraceId < {{last:String}})
  AND {{text:String}} != '' AND Operation IN ('send_message', 'execute_tool', 'chat', 'invoke_agent')
  AND (empty({{services:Array(String)}}) OR has({{services:Array(String)}}, ServiceName))
  AND {NARROWED} AND {_OF_PROGRAMS}
  AND positionCaseInsensitiveUTF8({TEXTS}, {{text:String}}) > 0""",
    params={
        **RANGE,
        "text": Param("String", "", "the text to find; case does not matter"),
        "services": Param("Array(String)", [], "service names; none means all"),
        **_SHARE,
        **_NARROWING,
    },
    columns={"Spans": Column("UInt64"), "Runs": Column("UInt64")},
    wishes=SETTINGS,
    wishes_with="word",
)
