"""Named queries on runs: the list, one run and its spans, the values of filters, runs that retention has left out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mast_trace_dashboards.queries.ingestion import SPAN, counted_elsewhere
from mast_trace_dashboards.queries.query import Column, Param, Query, limit
from mast_trace_dashboards.queries.sql import (
    BUCKET,
    COUNTED,
    IDLE,
    JUDGED_RUN,
    JUDGED_RUNS,
    OF_PROGRAMS,
    OWNED,
    OWNERS,
    RANGE,
    SHOWN,
    STARTED,
    judged_runs,
)

TOTALS: Final = (
    "what spans, errors and tokens are: exact; at least (a run of millions of spans, a number that does "
    "not fit, or a run whose threads called a model outside of it); being counted (stored by an earlier version, and not counted anew yet); about (the same, and the "
    "spans are gone)"
)
_RUN_COLUMNS: Final = {
    "Project": Column("String"),
    "TraceId": Column("String", "the run's id"),
    "Name": Column("String", "of the workflow, or of the agent that is all of it"),
    "ServiceName": Column("String"),
    "Framework": Column("String"),
    "Start": Column("DateTime64(9)"),
    "End": Column("DateTime64(9)"),
    "StartNs": Column(
        "Int64",
        "the start, at most the last arrival, in nanoseconds since the epoch, of whole microseconds: the cursor",
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
    "TerminationReason": Column("String", "the reason for which the framework stopped"),
    "Outcome": Column("String", "success, failure, unknown; empty if none was recorded or judged"),
    "OutcomeSource": Column("String", "recorded by the program or a person, or judged"),
    "OutcomeReason": Column("String"),
    "State": Column(
        "String",
        "running; waiting, judged, unscored, changed since it was judged; no end seen: nothing has come "
        "for long, and no root",
    ),
    "StateReason": Column("String", "the reason why a run could not be judged"),
    "Modes": Column("Array(String)", "codes of the failure modes shown, most probable first"),
    "ModeProbabilities": Column("Array(Float32)"),
    "DecisiveAgent": Column("String", "the agent that made the decisive error; empty if unknown"),
    "DecisiveStep": Column("Nullable(UInt32)", "in which step"),
    "DecisiveProbability": Column(
        "Nullable(Float32)", "of that step, where it was measured on runs like this one"
    ),
    "DecisiveReason": Column("String"),
    "Confirmation": Column(
        "String", "what replays have shown; empty where the run was not replayed"
    ),
    "LookAgent": Column("String", "the agent of the step to look at first; empty without evidence"),
    "LookStep": Column("Nullable(UInt32)", "this step"),
    "LookBasis": Column(
        "String", "the kind of evidence: confirmed, record, rule, model or contrast"
    ),
    "LookWhy": Column("String", "the cause in one sentence"),
    "Method": Column(
        "String",
        "local, llm or fused; reading: local, a model reads the run; provisional: local, spans may still come",
    ),
    "JudgeCostUsd": Column("Float64", "of judging it"),
}

_FILTERS: Final = {
    "outcomes": Param(
        "Array(String)",
        [],
        "success, failure, unknown, or suspect: not failed, and the record contradicts a good end; "
        "empty text for runs without one",
    ),
    "states": Param("Array(String)", [], "see the column State"),
    "modes": Param("Array(String)", [], "runs that show any of these failure modes"),
    "agents": Param("Array(String)", [], "runs in which any of these agents acts"),
    "decisive_agents": Param("Array(String)", [], "runs that one of these decided"),
    "bases": Param("Array(String)", [], "runs whose place to look at first rests on one of these"),
    "only": Param("Array(String)", [], "ids of runs; none means all"),
}

_MATCHES: Final = """(empty({outcomes:Array(String)}) OR has({outcomes:Array(String)}, Outcome)
    OR (Outcome = '' AND has({outcomes:Array(String)}, 'unknown'))
    OR (Outcome != 'failure' AND isNotNull(LookStep) AND has({outcomes:Array(String)}, 'suspect')))
  AND (empty({states:Array(String)}) OR has({states:Array(String)}, State))
  AND (empty({modes:Array(String)}) OR hasAny({modes:Array(String)}, Modes))
  AND (empty({agents:Array(String)}) OR hasAny({agents:Array(String)}, Agents))
  AND (empty({bases:Array(String)}) OR has({bases:Array(String)}, LookBasis))
  AND (empty({only:Array(String)}) OR TraceId IN {only:Array(String)})
  AND (empty({decisive_agents:Array(String)}) OR has({decisive_agents:Array(String)}, DecisiveAgent))"""

# Without a filter, a page is limited to the latest runs by their beginning, so that older ones are
# not aggregated. Some more are counted, because a run whose first state lies before the range seems
# to begin later.
_UNFILTERED = " AND ".join(f"empty({{{name}:Array(String)}})" for name in (*OWNERS, *_FILTERS))
_FROM = f"""SELECT if({_UNFILTERED} AND count() = {{limit:UInt32}} + 200,
      min(Begun), toDateTime64({{since:DateTime64(3)}}, 9))
    FROM (
      SELECT least(min(Start), max(LastSeen)) AS Begun FROM mast_run_states
      WHERE Start >= {{since:DateTime64(3)}} AND Start < {{until:DateTime64(3)}}
        AND intDiv(toUnixTimestamp64Nano(Start), 1000) * 1000 <= {{before:Int64}}
      GROUP BY RunKey
      HAVING max(Kind) = ''
      ORDER BY Begun DESC
      LIMIT {{limit:UInt32}} + 200
    )"""

# Two projects may have a run of one id, as where one file was imported into both.
_KEY: Final = "concat(TraceId, ' ', toString(Project))"


def run_key(row: Mapping[str, Any]) -> str:
    """Return what tells a listed run from others that started just then: the cursor `before_run`."""
    return f"{row['TraceId']} {row['Project']}"


RUN_LIST: Final = Query(
    name="runs",
    meaning="The runs, newest first; the next page begins before the last row's StartNs, TraceId and Project.",
    template=f"""
WITH ({_FROM}) AS earliest
{judged_runs("earliest")}
WHERE (StartNs, {_KEY}) < ({{before:Int64}}, {{before_run:String}})
  AND {_MATCHES}
ORDER BY StartNs DESC, {_KEY} DESC
LIMIT {{limit:UInt32}}""",
    params={
        **RANGE,
        **OWNERS,
        **IDLE,
        **SHOWN,
        "before": Param("Int64", 2**63 - 1, "only runs that started before this, in nanoseconds"),
        "before_run": Param(
            "String",
            "",
            "of runs that started just then, those with a lesser id, a space and project",
        ),
        **_FILTERS,
        **limit(50),
    },
    columns=_RUN_COLUMNS,
)

FIRST_START: Final = Query(
    name="first_start",
    meaning="The starts of the earliest and of the newest run: one row, or none without runs.",
    template=f"""
SELECT min(Start) AS First, max(least(Start, LastSeen)) AS Last FROM mast_run_states WHERE {OF_PROGRAMS}
HAVING count() > 0""",
    params={},
    columns={
        "First": Column("DateTime64(9)", "of the earliest run"),
        "Last": Column(
            "DateTime64(9)", "of the newest run, or of later spans of it; at most its arrival"
        ),
    },
)

_SORTS: Final = {
    "started": "StartNs",
    "took": "DurationMs",
    "tokens": "InputTokens + OutputTokens",
    "steps": "Steps",
    "errors": "Errors",
}
SORTS: Final = tuple(_SORTS)
"""Values by which `RUNS_SORTED` sorts."""
_SORT_KEY: Final = (
    "multiIf("
    + ", ".join(f"{{sort:String}} = '{name}', toInt64({sql})" for name, sql in _SORTS.items())
    + ", 0)"
)

RUNS_SORTED: Final = Query(
    name="runs_sorted",
    meaning="The ids of runs by another order than `runs` has; all runs of the range are read for it, but few columns.",
    template=f"""
SELECT Project, TraceId FROM ({JUDGED_RUNS})
WHERE {_MATCHES}
ORDER BY {_SORT_KEY} * if({{ascending:UInt32}} = 1, 1, -1), StartNs DESC, {_KEY} DESC
LIMIT {{limit:UInt32}} OFFSET {{offset:UInt32}}""",
    params={
        **RANGE,
        **OWNERS,
        **IDLE,
        **SHOWN,
        "sort": Param("String", "started", f"one of {', '.join(_SORTS)}"),
        "ascending": Param("UInt32", 0, "1 puts the least first"),
        **_FILTERS,
        **limit(50),
        "offset": Param("UInt32", 0, "rows to leave out before"),
    },
    columns={name: _RUN_COLUMNS[name] for name in ("Project", "TraceId")},
)

RUN: Final = Query(
    name="run",
    meaning="One run with what was found in it.",
    template=JUDGED_RUN,
    params={"run": Param("String", "", "its trace id"), **IDLE, **SHOWN},
    columns=_RUN_COLUMNS,
)

RUN_SPANS: Final = Query(
    name="run_spans",
    meaning="The events of a run, by time: turns, messages, tool calls and model calls.",
    template=f"""
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
WHERE TraceId = {{run:String}} AND Operation != ''
  AND {SPAN} GLOBAL NOT IN ({counted_elsewhere("TraceId = {run:String}")})
ORDER BY Timestamp, Duration DESC
LIMIT {{limit:UInt32}}""",
    params={
        "run": Param("String", "", "its trace id"),
        **limit(10_000),
    },
    columns={
        "Timestamp": Column("DateTime64(9)"),
        "DurationMs": Column("UInt64"),
        "Operation": Column("String", "invoke_agent, send_message, execute_tool, chat ..."),
        "Agent": Column("String", "who acted"),
        "Recipients": Column("Array(String)", "recipients of a message"),
        "ToolName": Column("String"),
        "Model": Column("String"),
        "Text": Column("String", "the message's content, or the tool's result"),
        "Arguments": Column("String", "of a tool call"),
        "HandoffTarget": Column("String"),
        "InputTokens": Column("UInt32"),
        "OutputTokens": Column("UInt32"),
        "Error": Column("String", "text of the error; empty if there was none"),
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


LEFT_OUT: Final = Query(
    name="left_out",
    meaning="Runs whose spans were left out by retention, by project, service and day; verdicts stay.",
    template=f"""
SELECT Project, toString(ServiceName) AS Service, toDate(RunStart) AS Day,
    count() AS Runs, sum(Spans) AS LeftSpans, sum(InputTokens) AS InTokens, sum(OutputTokens) AS OutTokens
FROM (SELECT * FROM mast_left_out FINAL WHERE Done)
WHERE {STARTED} AND {OWNED}
GROUP BY Project, Service, Day
ORDER BY Day, Project, Service""",
    params={**RANGE, **OWNERS},
    columns={
        "Project": Column("String"),
        "Service": Column("String", "name of the service"),
        "Day": Column("Date", "day on which the runs began"),
        "Runs": Column("UInt64", "that have verdicts and no spans"),
        "LeftSpans": Column("UInt64", "spans that were left out"),
        "InTokens": Column("UInt64", "tokens that the models of these runs read"),
        "OutTokens": Column("UInt64", "tokens that they wrote"),
    },
)


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
        **limit(2000),
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
