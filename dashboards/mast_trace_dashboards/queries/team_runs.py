"""The named query on the runs that profiles of teams read, and the versions of runs."""

from __future__ import annotations

from typing import Final

from mast_trace_dashboards.queries.query import Column, Param, Query
from mast_trace_dashboards.queries.sql import OWNED, OWNERS, RANGE

# A small service reads no other service's spans. A run's service is that of one of its states.
ASKED: Final = """(empty({services:Array(String)}) AND empty({projects:Array(String)}) OR TraceId GLOBAL IN (
      SELECT TraceId FROM mast_run_states
      WHERE Start >= {since:DateTime64(3)} AND Start < {until:DateTime64(3)}
        AND (empty({services:Array(String)}) OR has({services:Array(String)}, ServiceName))
        AND (empty({projects:Array(String)}) OR has({projects:Array(String)}, Project))))"""
"""A condition on spans: they are of runs that the question may be about."""


def versions(which: str) -> str:
    """Return the SQL of the versions of runs, from the same spans as `thinning.VERSIONS` reads them."""
    return f"""SELECT Project, TraceId, max(toString(ServiceVersion)) AS Version FROM otel_traces
    WHERE (ParentSpanId = '' OR Operation IN ('invoke_workflow', 'invoke_agent'))
      AND Timestamp >= {{since:DateTime64(3)}} AND {which}
    GROUP BY Project, TraceId"""


_VERSIONS: Final = Param("Array(String)", [], "versions of the service; none means all")
KEPT: Final = "RunKey GLOBAL NOT IN (SELECT RunKey FROM mast_left_out)"
"""A condition on runs: retention has kept their spans."""
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
