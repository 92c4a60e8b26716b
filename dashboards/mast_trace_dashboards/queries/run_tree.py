"""The named query on the tree of a run's spans."""

from __future__ import annotations

from typing import Final

from mast_trace_dashboards.queries.query import Column, Param, Query

RUN_TREE: Final = Query(
    name="run_tree",
    meaning="All spans of a run without their texts, by time; those without an operation of agents, too.",
    template="""
SELECT SpanId, ParentSpanId, SpanName, Operation,
    if(Sender != '', Sender, AgentName) AS Agent, ToolName, Model,
    toUnixTimestamp64Nano(Timestamp) AS StartNs, Duration AS DurationNs,
    InputTokens, OutputTokens, StatusCode = 'Error' AS Failed
FROM otel_traces
WHERE TraceId = {run:String}
  AND (empty({projects:Array(String)}) OR has({projects:Array(String)}, Project))
ORDER BY Timestamp, Duration DESC, SpanId
LIMIT 1 BY SpanId
LIMIT {limit:UInt32}""",
    params={
        "run": Param("String", "", "its trace id"),
        "projects": Param("Array(String)", [], "projects; none means all"),
        "limit": Param("UInt32", 2000, "most rows to return"),
    },
    columns={
        "SpanId": Column("String"),
        "ParentSpanId": Column("String"),
        "SpanName": Column("String"),
        "Operation": Column("String", "invoke_agent, send_message ...; empty for others"),
        "Agent": Column("String", "who acted; empty if unknown"),
        "ToolName": Column("String"),
        "Model": Column("String"),
        "StartNs": Column("Int64", "nanoseconds since the epoch"),
        "DurationNs": Column("UInt64"),
        "InputTokens": Column("UInt32"),
        "OutputTokens": Column("UInt32"),
        "Failed": Column("UInt8", "1 for a span that failed"),
    },
)
