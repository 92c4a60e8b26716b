"""The named query on measures of teams that need no texts, by version."""

from __future__ import annotations

from typing import Final

from mast_trace_collector.storage.facts import FACTS, asked
from mast_trace_dashboards.queries.query import Column, Param, Query, limit
from mast_trace_dashboards.queries.sql import OWNED, OWNERS, RANGE, STARTED, counted_runs

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
# The newest runs of each version: a trend needs no more.
_MOST: Final = 500


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
    params={**RANGE, **OWNERS, "versions": _VERSIONS, **limit(300)},
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

_MEASURED: Final = counted_runs("max(Kind) = '' AND max(Root) > 0", KEPT)

TEAMS_BY_VERSION: Final = Query(
    name="teams_by_version",
    meaning="Measures of teams that need no texts, by service and version, newest version first.",
    template=f"""
WITH {asked(_MEASURED)}
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
FROM (
  SELECT toString(r.ServiceName) AS Service, toString(f.Version) AS Version, r.Begun AS Begun,
    f.Team.1 AS Agents, f.Team.2 AS Messages, f.Team.3 AS Acts, f.Team.4 AS Chosen, f.Team.5 AS ByAgents,
    f.Team.6 AS Read, f.Team.7 AS Written, f.Team.8 AS Spoken, f.Team.9 AS Together, f.Team.10 AS Active
  FROM ({_MEASURED}) AS r
  INNER JOIN ({FACTS}) AS f ON f.RunKey = r.RunKey
  ORDER BY Begun DESC, r.TraceId
  LIMIT {_MOST} BY Service, Version
)
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
    params={**RANGE, **OWNERS, **limit(100)},
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
