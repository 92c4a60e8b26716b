"""The named query on measures of teams that need no texts, by version."""

from __future__ import annotations

from typing import Final

from mast_trace import semconv
from mast_trace_collector.storage.span_sql import literal
from mast_trace_dashboards.queries.query import Column, Param, Query
from mast_trace_dashboards.queries.sql import OWNED, OWNERS, RANGE, RUNS, STARTED

# A small service reads no other service's spans. A run's service is that of one of its states.
ASKED: Final = """(empty({services:Array(String)}) AND empty({projects:Array(String)}) OR TraceId GLOBAL IN (
      SELECT TraceId FROM mast_run_states
      WHERE Start >= {since:DateTime64(3)} AND Start < {until:DateTime64(3)}
        AND (empty({services:Array(String)}) OR has({services:Array(String)}, ServiceName))
        AND (empty({projects:Array(String)}) OR has({projects:Array(String)}, Project))))"""
"""A condition on spans: they are of runs that the question may be about."""

_VERSIONS: Final = Param("Array(String)", [], "versions of the service; none means all")
KEPT: Final = "RunKey GLOBAL NOT IN (SELECT RunKey FROM mast_left_out)"
"""A condition on runs: retention has kept their spans."""
_LEAST: Final = 20
_SELECTED: Final = f"SpanAttributes[{literal(semconv.SELECTED_BY)}]"
_ACT: Final = f"SpanAttributes[{literal(semconv.MESSAGE_PERFORMATIVE)}]"
_ASKS_FOR_TOOL: Final = (
    f"position(lower(SpanAttributes[{literal(semconv.FINISH_REASONS)}]), 'tool') > 0"
)
# Stretches of work of each agent: (agent, begin, end). A tool inside which another agent's model works is
# an agent that was called as a tool.
_WORK: Final = """arrayConcat(Calls, arrayFilter(t -> NOT arrayExists(
        c -> c.1 != t.1 AND t.2 <= c.2 AND c.3 <= t.3, Calls), Tools))"""
# Events (time, change) of one agent, of which those stay that begin or end its work as a whole.
_EVENTS: Final = """arraySort(event -> (event.1, -event.2), arrayConcat(
        arrayMap(w -> (w.2, toInt8(1)), mine), arrayMap(w -> (w.3, toInt8(-1)), mine)))"""
_MERGED: Final = f"""arrayFilter((event, open) -> open = if(event.2 = 1, 1, 0),
        {_EVENTS} AS events, arrayCumSum(event -> event.2, events))"""
_ALL_EVENTS: Final = f"""arraySort(event -> (event.1, -event.2), arrayFlatten(arrayMap(
      agent -> {_MERGED.replace("mine", "arrayFilter(w -> w.1 = agent, Work)")},
      arrayDistinct(arrayMap(w -> w.1, Work)))))"""
# Nobody works after the last event, so its time is of no account.
_TIMES: Final = """arrayMap((event, after) -> after.1 - event.1, Events,
      arrayResize(arraySlice(Events, 2), length(Events)))"""
# The newest runs of each version: a trend needs no more, and all spans of these are read. As one value they are
# looked for once.
_MOST: Final = 500
_MOST_IN_ALL: Final = 25_000
_OF_RUNS: Final = "TraceId IN (SELECT arrayJoin(sampled).2)"
# Each level reads the columns of the one inside: names within one level are replaced by their definitions
# wherever they occur, which took engines of 25.8 two seconds before they read a row.
_PER_RUN: Final = f"""SELECT *,
    arraySum((time, open) -> if(open > 1, time, 0), Times, Open) AS Together,
    arraySum((time, open) -> if(open > 0, time, 0), Times, Open) AS Active
  FROM (SELECT *, arrayCumSum(event -> event.2, Events) AS Open, {_TIMES} AS Times FROM (
  SELECT *, {_ALL_EVENTS} AS Events FROM (SELECT *, {_WORK} AS Work FROM (
    SELECT s.Project AS Project, s.TraceId AS TraceId,
      uniqExactIf(s.Actor, s.Actor != '') AS Agents,
      countIf(Operation = 'send_message') AS Messages,
      countIf(Operation = 'send_message' AND {_ACT} != '') AS Acts,
      countIf({_SELECTED} != '') AS Chosen, countIf({_SELECTED} IN ('agent', 'model')) AS ByAgents,
      sumIf(toUInt64(InputTokens), Operation = 'chat') AS Read,
      sumIf(toUInt64(OutputTokens), Operation = 'chat') AS Written,
      arraySort(groupArrayIf((Timestamp, SpanId, toUInt64(OutputTokens)),
        Operation = 'chat' AND NOT ({_ASKS_FOR_TOOL}))) AS Texts,
      arraySum(text -> text.3, arrayPopBack(Texts)) AS Spoken,
      groupArrayIf(10000)((s.Actor, toUnixTimestamp64Nano(Timestamp),
        toUnixTimestamp64Nano(Timestamp) + toInt64(Duration)),
        Operation = 'chat' AND s.Actor != '' AND Duration > 0) AS Calls,
      groupArrayIf(10000)((s.Actor, toUnixTimestamp64Nano(Timestamp),
        toUnixTimestamp64Nano(Timestamp) + toInt64(Duration)),
        Operation = 'execute_tool' AND s.Actor != '' AND Duration > 0) AS Tools
    FROM (
      SELECT t.*, SpanAttributes,
        if(t.AgentName != '', toString(t.AgentName), a.TurnOf) AS Actor
      FROM (SELECT *, Project, Operation, AgentName, InputTokens, OutputTokens FROM otel_traces
        WHERE {_OF_RUNS} LIMIT 1 BY Project, TraceId, SpanId) AS t
      LEFT JOIN (
        SELECT Project, TraceId, SpanId, any(toString(AgentName)) AS TurnOf FROM otel_traces
        WHERE Operation = 'invoke_agent' AND AgentName != '' AND {_OF_RUNS}
        GROUP BY Project, TraceId, SpanId
      ) AS a ON a.Project = t.Project AND a.TraceId = t.TraceId AND a.SpanId = t.ParentSpanId
    ) AS s
    GROUP BY Project, TraceId
  ))))"""


def versions(which: str) -> str:
    """Return the SQL of the versions of runs, from the same spans as `thinning.VERSIONS` reads them."""
    return f"""SELECT Project, TraceId, max(toString(ServiceVersion)) AS Version FROM otel_traces
    WHERE (ParentSpanId = '' OR Operation IN ('invoke_workflow', 'invoke_agent'))
      AND Timestamp >= {{since:DateTime64(3)}} AND {which}
    GROUP BY Project, TraceId"""


# Found by their states before anything is put together or read. Some more are taken, because a run whose first state
# lies before the range seems to begin later.
_NEWEST: Final = f"""SELECT RunKey FROM (
    SELECT RunKey, Project, TraceId, max(ServiceName) AS ServiceName, max(Framework) AS Framework,
      min(Start) AS Begun
    FROM mast_run_states
    WHERE Start >= {{since:DateTime64(3)}} AND Start < {{until:DateTime64(3)}} AND {KEPT}
    GROUP BY RunKey, Project, TraceId
    HAVING max(Root) > 0 AND max(Kind) = ''
  )
  WHERE {OWNED} AND (empty({{versions:Array(String)}}) OR (Project, TraceId) GLOBAL IN (
    SELECT Project, TraceId FROM ({versions("notEmpty({versions:Array(String)}) AND " + ASKED)})
    WHERE Version IN {{versions:Array(String)}}))
  ORDER BY Begun DESC
  LIMIT {{limit:UInt32}} + 200"""
_FINISHED: Final = f"""SELECT * FROM mast_runs
    WHERE RunKey IN ({_NEWEST}) AND RootSeen = 1
      AND Start >= {{since:DateTime64(3)}} AND Start < {{until:DateTime64(3)}}
    ORDER BY Start DESC, TraceId
    LIMIT {{limit:UInt32}}"""
# An id alone lets the index of the spans be asked.
_IS_FINISHED: Final = f"TraceId GLOBAL IN (SELECT TraceId FROM ({_FINISHED}))"

TEAM_RUNS: Final = Query(
    name="team_runs",
    meaning="The newest finished runs that have spans, with their versions, for measures of teams.",
    template=f"""
SELECT r.Project AS Project, r.TraceId AS TraceId, r.ServiceName AS ServiceName, v.Version AS Version,
    r.Start AS Start, r.Spans AS Spans, r.Outcome AS Outcome
FROM ({_FINISHED}) AS r
LEFT JOIN (
  {versions(_IS_FINISHED)}
) AS v ON v.Project = r.Project AND v.TraceId = r.TraceId
ORDER BY Start DESC, TraceId""",
    params={
        **RANGE,
        **OWNERS,
        "versions": _VERSIONS,
        "limit": Param("UInt32", 300, "most rows to return"),
    },
    columns={
        "Project": Column("String"),
        "TraceId": Column("String"),
        "ServiceName": Column("String"),
        "Version": Column("String", "of the service; empty if unknown"),
        "Start": Column("DateTime64(9)"),
        "Spans": Column("UInt64"),
        "Outcome": Column("String", "as the program or a person recorded it"),
    },
)

_SAMPLED: Final = f"""SELECT groupArray((Project, TraceId, Service, Version, Begun)) FROM (
    SELECT toString(r.Project) AS Project, r.TraceId AS TraceId, toString(r.ServiceName) AS Service,
      v.Version AS Version, r.Start AS Begun
    FROM ({RUNS}) AS r
    LEFT JOIN ({versions(ASKED)}) AS v ON v.Project = r.Project AND v.TraceId = r.TraceId
    WHERE r.RootSeen = 1 AND r.{KEPT}
    ORDER BY Begun DESC, TraceId
    LIMIT {_MOST} BY Service, Version
    LIMIT {_MOST_IN_ALL}
  )"""

TEAMS_BY_VERSION: Final = Query(
    name="teams_by_version",
    meaning="Measures of teams that need no texts, by service and version, newest version first.",
    template=f"""
WITH ({_SAMPLED}) AS sampled
SELECT t.Service AS Service, t.Version AS Version, t.Runs AS Runs, t.Newest AS Newest,
    t.AgentsPerRun AS AgentsPerRun, t.MessagesPerRun AS MessagesPerRun, t.Talk AS Talk,
    t.ReadForEach AS ReadForEach, t.Concurrency AS Concurrency, t.ChosenByAgents AS ChosenByAgents,
    t.Acts AS Acts, l.Gone AS LeftOut
FROM (
SELECT Service, Version, count() AS Runs, max(Begun) AS Newest,
    avg(Agents) AS AgentsPerRun, avg(Messages) AS MessagesPerRun,
    if(Runs < {_LEAST} OR sum(Written) = 0, NULL, sum(Spoken) / sum(Written)) AS Talk,
    if(Runs < {_LEAST} OR sum(Written) = 0, NULL, sum(Read) / sum(Written)) AS ReadForEach,
    if(Runs < {_LEAST} OR sum(Active) = 0, NULL, sum(Together) / sum(Active)) AS Concurrency,
    if(Runs < {_LEAST} OR sum(Chosen) = 0, NULL, sum(ByAgents) / sum(Chosen)) AS ChosenByAgents,
    if(Runs < {_LEAST} OR sum(Messages) = 0, NULL, sum(Acts) / sum(Messages)) AS Acts
FROM ({_PER_RUN}) AS p
INNER JOIN (
  SELECT run.1 AS Project, run.2 AS TraceId, run.3 AS Service, run.4 AS Version, run.5 AS Begun
  FROM (SELECT arrayJoin(sampled) AS run)
) AS r ON r.Project = p.Project AND r.TraceId = p.TraceId
WHERE Agents > 1
GROUP BY Service, Version
) AS t
LEFT JOIN (
  SELECT toString(ServiceName) AS OfService, toString(ServiceVersion) AS OfVersion, count() AS Gone
  FROM (SELECT * FROM mast_left_out FINAL WHERE Done)
  WHERE {STARTED} AND {OWNED}
  GROUP BY OfService, OfVersion
) AS l ON l.OfService = t.Service AND l.OfVersion = t.Version
ORDER BY Service, Newest DESC
LIMIT {{limit:UInt32}}""",
    params={**RANGE, **OWNERS, "limit": Param("UInt32", 100, "most rows to return")},
    columns={
        "Service": Column("String"),
        "Version": Column("String", "empty if unknown"),
        "Runs": Column("UInt64", f"finished runs of several agents, among the newest {_MOST}"),
        "Newest": Column("DateTime64(9)", "start of the newest of them"),
        "AgentsPerRun": Column("Float64", "mean"),
        "MessagesPerRun": Column("Float64", "mean"),
        "Talk": Column(
            "Nullable(Float64)",
            "share of output tokens that is text between agents; NULL below 20 runs",
        ),
        "ReadForEach": Column("Nullable(Float64)", "tokens read for each one written; likewise"),
        "Concurrency": Column(
            "Nullable(Float64)", "share of the working time in which two or more work; likewise"
        ),
        "ChosenByAgents": Column(
            "Nullable(Float64)", "share of recorded choices of the next speaker by agents; likewise"
        ),
        "Acts": Column(
            "Nullable(Float64)", "share of messages with an explicit speech act; likewise"
        ),
        "LeftOut": Column(
            "UInt64",
            "further runs of the version, whose spans retention has left out: not measured",
        ),
    },
)
