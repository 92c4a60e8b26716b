"""Named queries on runs: the list, one run, what can be filtered by."""

from __future__ import annotations

from typing import Final

from mast_trace_dashboards.queries.query import Column, Param, Query
from mast_trace_dashboards.queries.sql import (
    BUCKET,
    COUNTED,
    JUDGED_RUN,
    OWNERS,
    RANGE,
    judged_runs,
)

TOTALS: Final = (
    "what spans, errors and tokens are: exact; at least (a run of millions of spans, or a number that "
    "does not fit); about (stored by an earlier version, and the spans are gone)"
)
_RUN_COLUMNS: Final = {
    "Project": Column("String"),
    "TraceId": Column("String", "the run's id"),
    "Name": Column("String", "of the workflow"),
    "ServiceName": Column("String"),
    "Framework": Column("String"),
    "Start": Column("DateTime64(9)"),
    "End": Column("DateTime64(9)"),
    "StartNs": Column(
        "Int64", "the start in nanoseconds since the epoch, of whole microseconds: the cursor"
    ),
    "DurationMs": Column("Int64"),
    "Spans": Column("UInt64"),
    "Errors": Column("UInt64", "spans that failed"),
    "Steps": Column("UInt32", "messages, tool calls and model actions; 0 until judged"),
    "InputTokens": Column("UInt64"),
    "OutputTokens": Column("UInt64"),
    "Totals": Column("String", TOTALS),
    "Kind": Column("String", "of run; empty for a program's own"),
    "Agents": Column("Array(String)"),
    "TerminationReason": Column("String", "why the framework stopped"),
    "Outcome": Column("String", "success, failure, unknown; empty if nobody said"),
    "OutcomeSource": Column("String", "recorded by the program or a person, or judged"),
    "OutcomeReason": Column("String"),
    "State": Column("String", "running, waiting, judged, unscored, changed since it was judged"),
    "StateReason": Column("String", "why a run could not be judged"),
    "Modes": Column("Array(String)", "codes of the failure modes, most probable first"),
    "ModeProbabilities": Column("Array(Float32)"),
    "DecisiveAgent": Column("String", "who made the decisive error; empty if unknown"),
    "DecisiveStep": Column("Nullable(UInt32)", "in which step"),
    "DecisiveProbability": Column("Float32"),
    "DecisiveReason": Column("String"),
    "Method": Column("String", "local, llm or fused"),
    "CostUsd": Column("Float64", "of judging it"),
}

_FILTERS: Final = {
    "outcomes": Param("Array(String)", [], "success, failure, unknown, or empty text for none"),
    "states": Param("Array(String)", [], "see the column State"),
    "modes": Param("Array(String)", [], "runs that show any of these failure modes"),
    "agents": Param("Array(String)", [], "runs in which any of these agents acts"),
    "decisive_agents": Param("Array(String)", [], "runs that one of these decided"),
    "only": Param("Array(String)", [], "ids of runs; none means all"),
}

# Without a filter the page ends where so many runs have begun: older ones are not put together.
# Some more are counted, for a run whose first state lies before the range seems to begin later.
_UNFILTERED = " AND ".join(f"empty({{{name}:Array(String)}})" for name in (*OWNERS, *_FILTERS))
_FROM = f"""SELECT if({_UNFILTERED} AND count() = {{limit:UInt32}} + 200,
      min(Begun), toDateTime64({{since:DateTime64(3)}}, 9))
    FROM (
      SELECT min(Start) AS Begun FROM mast_run_states
      WHERE Start >= {{since:DateTime64(3)}} AND Start < {{until:DateTime64(3)}}
        AND intDiv(toUnixTimestamp64Nano(Start), 1000) * 1000 <= {{before:Int64}}
      GROUP BY RunKey
      ORDER BY Begun DESC
      LIMIT {{limit:UInt32}} + 200
    )"""

RUN_LIST: Final = Query(
    name="runs",
    meaning="The runs, newest first; the next page begins before the last row's StartNs, TraceId.",
    template=f"""
WITH ({_FROM}) AS earliest
{judged_runs("earliest")}
WHERE (StartNs, TraceId) < ({{before:Int64}}, {{before_run:String}})
  AND (empty({{outcomes:Array(String)}}) OR has({{outcomes:Array(String)}}, Outcome))
  AND (empty({{states:Array(String)}}) OR has({{states:Array(String)}}, State))
  AND (empty({{modes:Array(String)}}) OR hasAny({{modes:Array(String)}}, Modes))
  AND (empty({{agents:Array(String)}}) OR hasAny({{agents:Array(String)}}, Agents))
  AND (empty({{only:Array(String)}}) OR has({{only:Array(String)}}, TraceId))
  AND (empty({{decisive_agents:Array(String)}}) OR has({{decisive_agents:Array(String)}}, DecisiveAgent))
ORDER BY StartNs DESC, TraceId DESC
LIMIT {{limit:UInt32}}""",
    params={
        **RANGE,
        **OWNERS,
        "before": Param("Int64", 2**63 - 1, "only runs that started before this, in nanoseconds"),
        "before_run": Param("String", "", "of runs that started just then, those with a lesser id"),
        **_FILTERS,
        "limit": Param("UInt32", 50, "most rows to return"),
    },
    columns=_RUN_COLUMNS,
)

RUN: Final = Query(
    name="run",
    meaning="One run with what was found in it.",
    template=JUDGED_RUN,
    params={"run": Param("String", "", "its trace id")},
    columns=_RUN_COLUMNS,
)

RUN_SPANS: Final = Query(
    name="run_spans",
    meaning="What happened in a run, by time: turns, messages, tool calls and model calls.",
    template="""
SELECT
    Timestamp, intDiv(Duration, 1000000) AS DurationMs, Operation,
    if(Sender != '', Sender, AgentName) AS Agent, Recipients, ToolName, Model,
    multiIf(Operation = 'send_message', SpanAttributes['mast.message.content'],
            Operation = 'execute_tool', SpanAttributes['gen_ai.tool.call.result'],
            SpanAttributes['gen_ai.output.messages']) AS Text,
    SpanAttributes['gen_ai.tool.call.arguments'] AS Arguments,
    HandoffTarget, InputTokens, OutputTokens,
    if(StatusCode = 'Error', if(StatusMessage != '', StatusMessage, 'error'), '') AS Error,
    SpanId, ParentSpanId
FROM otel_traces
WHERE TraceId = {run:String} AND Operation != ''
ORDER BY Timestamp, Duration DESC
LIMIT {limit:UInt32}""",
    params={
        "run": Param("String", "", "its trace id"),
        "limit": Param("UInt32", 10_000, "most rows to return"),
    },
    columns={
        "Timestamp": Column("DateTime64(9)"),
        "DurationMs": Column("UInt64"),
        "Operation": Column("String", "invoke_agent, send_message, execute_tool, chat ..."),
        "Agent": Column("String", "who acted"),
        "Recipients": Column("Array(String)", "to whom a message went"),
        "ToolName": Column("String"),
        "Model": Column("String"),
        "Text": Column("String", "what was said, or what the tool returned"),
        "Arguments": Column("String", "of a tool call"),
        "HandoffTarget": Column("String"),
        "InputTokens": Column("UInt32"),
        "OutputTokens": Column("UInt32"),
        "Error": Column("String", "what failed; empty if nothing did"),
        "SpanId": Column("String"),
        "ParentSpanId": Column("String"),
    },
)

FILTER_VALUES: Final = Query(
    name="filter_values",
    meaning="The values that runs can be filtered by, most frequent first.",
    template=f"""
SELECT Filter, Value, sum(Times) AS Runs FROM (
  SELECT Times, arrayJoin(arrayConcat(
      [('project', Project), ('service', ServiceName), ('framework', Framework)],
      arrayMap(agent -> ('agent', agent), Agents))) AS Pair, Pair.1 AS Filter, Pair.2 AS Value
  FROM (
    SELECT Project, ServiceName, Framework, Agents, count() AS Times
    FROM ({COUNTED})
    GROUP BY Project, ServiceName, Framework, Agents
  )
)
WHERE Value != ''
GROUP BY Filter, Value
ORDER BY Filter, Runs DESC, Value
LIMIT 10000 BY Filter""",
    params={**RANGE, **OWNERS},
    columns={
        "Filter": Column("String", "project, service, framework or agent"),
        "Value": Column("String"),
        "Runs": Column("UInt64"),
    },
)

OUTCOMES_OVER_TIME: Final = Query(
    name="outcomes_over_time",
    meaning="Runs by outcome in each stretch of time.",
    template=f"""
SELECT
    toStartOfInterval(toDateTime(Start), toIntervalSecond({{bucket:UInt32}})) AS Time,
    count() AS Runs, countIf(Outcome = 'success') AS Successes,
    countIf(Outcome = 'failure') AS Failures, countIf(State IN ('judged', 'changed')) AS Judged,
    if(Successes + Failures = 0, NULL, Failures / (Successes + Failures)) AS FailureShare
FROM ({COUNTED})
GROUP BY Time
ORDER BY Time""",
    params={**RANGE, **OWNERS, **BUCKET},
    columns={
        "Time": Column("DateTime", "beginning of the stretch"),
        "Runs": Column("UInt64"),
        "Successes": Column("UInt64"),
        "Failures": Column("UInt64"),
        "Judged": Column("UInt64"),
        "FailureShare": Column("Nullable(Float64)", "of the runs whose outcome is known"),
    },
)
