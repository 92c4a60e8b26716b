"""Model calls of runs, each counted once: the SQL that queries on cost and the costs of listed runs share.

Calls count as in the totals of a run (`storage/schema/runs.v2.part`): a call that is stored twice counts
once, and where several tools have recorded calls, of those with the same tokens there were as many as the
tool saw that saw most.
"""

from __future__ import annotations

from typing import Final

from mast_trace_dashboards.queries.query import Param
from mast_trace_dashboards.queries.sql import OF_PROGRAMS, OWNED

ONLY: Final = {"only": Param("Array(String)", [], "ids of runs; none means all")}
RUNS_OF_COST: Final = f"""SELECT Project, TraceId, ServiceName, Framework, Start FROM mast_runs
  WHERE RunKey IN (SELECT RunKey FROM mast_run_states
      WHERE Start >= {{since:DateTime64(3)}} AND Start < {{until:DateTime64(3)}}
        AND (empty({{only:Array(String)}}) OR has({{only:Array(String)}}, TraceId)))
    AND Start >= {{since:DateTime64(3)}} AND Start < {{until:DateTime64(3)}}
    AND ({OF_PROGRAMS} OR notEmpty({{only:Array(String)}})) AND {OWNED}"""
"""The runs whose calls are priced; a replay's only where it is named. Candidates are found first, so that no other
runs are merged.
"""
OF_RUNS = f"(Project, TraceId) GLOBAL IN (SELECT Project, TraceId FROM ({RUNS_OF_COST}))"
"""The condition on rows of these runs."""
# No span of a run is older than its start; ids as they are given let the index of ids be asked.
SPANS_OF_COST: Final = f"""{OF_RUNS} AND Timestamp >= {{since:DateTime64(3)}}
    AND (empty({{only:Array(String)}}) OR TraceId IN {{only:Array(String)}})"""
"""The condition on spans of these runs."""
RUN_OF_CALL: Final = "sipHash128(Project, TraceId)"
"""The key of a run by which its calls are grouped and joined: half as long as its id."""


def counted(spans: str) -> str:
    """Return the SQL of the model calls among the spans that meet a condition."""
    stored = f"""SELECT {RUN_OF_CALL} AS Run, Project, TraceId, SpanId, Timestamp, Model, Provider,
    toString(AgentName) AS OwnAgent, if(AgentName = '', ParentSpanId, '') AS Turn,
    toUInt64(InputTokens) AS Sent, toUInt64(OutputTokens) AS Output,
    toUInt64(CacheReadTokens) AS CacheRead, toUInt64(CacheWriteTokens) AS CacheWrite,
    InputHash AS Request, Recorder AS Source
  FROM otel_traces
  WHERE Operation = 'chat' AND (InputTokens > 0 OR OutputTokens > 0) AND {spans}
  ORDER BY Sent DESC, Output DESC
  LIMIT 1 BY Run, SpanId"""
    return f"""SELECT * FROM (
    SELECT *, row_number() OVER (
        PARTITION BY Run, Source, Sent, Output ORDER BY Timestamp, SpanId) AS Nth
    FROM ({stored})
  )
  ORDER BY Source
  LIMIT 1 BY Run, Sent, Output, Nth"""
