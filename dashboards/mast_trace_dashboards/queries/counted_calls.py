"""Model calls of runs, each counted once: the SQL that queries on cost and the costs of listed runs share.

Calls count as in the totals of a run (`storage/schema/runs.v2.part`): a call that is stored twice counts
once, and where several tools have recorded calls, of those with the same tokens there were as many as the
tool saw that saw most.
"""

from __future__ import annotations

from typing import Final

from mast_trace import semconv
from mast_trace_collector.storage.span_sql import field, literal
from mast_trace_dashboards.queries.query import Param
from mast_trace_dashboards.queries.sql import OF_PROGRAMS, OWNED
from mast_trace_judge.pricing.stored_prices import PROVIDER

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
_REQUEST = f"""sipHash64(SpanAttributes[{literal(semconv.INPUT_MESSAGE_IDS)}])"""
_NUMBER = "least(toUInt64OrZero({}), 0xFFFFFFFF)"


def counted(spans: str) -> str:
    """Return the SQL of the model calls among the spans that meet a condition."""
    stored = f"""SELECT Project, TraceId, SpanId, ParentSpanId, Timestamp, Duration, Model,
    toString(AgentName) AS OwnAgent, {PROVIDER} AS Provider,
    toUInt64(InputTokens) AS Sent, toUInt64(OutputTokens) AS Output,
    {_NUMBER.format(field("cache_read_tokens"))} AS CacheRead,
    {_NUMBER.format(field("cache_write_tokens"))} AS CacheWrite,
    if(SpanAttributes[{literal(semconv.INPUT_MESSAGE_IDS)}] = '', 0, {_REQUEST}) AS Request,
    if(SpanAttributes[{literal(semconv.FRAMEWORK)}] != '' OR startsWith(ScopeName, 'mast_trace'), 0,
      1 + cityHash64(ScopeName) % 255) AS Source
  FROM otel_traces
  WHERE Operation = 'chat' AND (InputTokens > 0 OR OutputTokens > 0) AND {spans}
  ORDER BY Sent DESC, Output DESC
  LIMIT 1 BY Project, TraceId, SpanId"""
    return f"""SELECT * FROM (
    SELECT *, row_number() OVER (
        PARTITION BY Project, TraceId, Source, Sent, Output ORDER BY Timestamp, SpanId) AS Nth
    FROM ({stored})
  )
  ORDER BY Source
  LIMIT 1 BY Project, TraceId, Sent, Output, Nth"""
