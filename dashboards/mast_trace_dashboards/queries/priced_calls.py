"""Model calls with their cost: the SQL that queries on cost share.

Costs are sums of decimals, without rounding between.

Model calls of runs, each counted once: the SQL that queries on cost and the costs of listed runs share.

Calls count as in the totals of a run (`storage/schema/runs.v2.part`): a call that is stored twice counts
once, and where several tools have recorded calls, of those with the same tokens there were as many as the
tool saw that saw most.
"""

from __future__ import annotations

from typing import Final

from mast_trace.semconv import CALL_KIND
from mast_trace_dashboards.queries.query import Param
from mast_trace_dashboards.queries.sql import LATEST, OF_PROGRAMS, OWNED

ONLY: Final = {"only": Param("Array(String)", [], "ids of runs; none means all")}
RUNS_OF_COST: Final = f"""SELECT Project, TraceId, ServiceName, Framework, Start FROM mast_runs
  WHERE RunKey IN (SELECT RunKey FROM mast_run_states
      WHERE Start >= {{since:DateTime64(3)}} AND Start < {{until:DateTime64(3)}}
        AND (empty({{only:Array(String)}}) OR has({{only:Array(String)}}, TraceId)))
    AND Start >= {{since:DateTime64(3)}} AND Start < {{until:DateTime64(3)}}
    AND ({OF_PROGRAMS} OR Kind = '{CALL_KIND}' OR notEmpty({{only:Array(String)}})) AND {OWNED}"""
"""The runs whose calls are priced, calls outside of runs as well; a replay's only where it is named. Candidates are found first, so that no other
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

# The turns of calls that do not name their agent; most do.
_AGENTS = f"""SELECT {RUN_OF_CALL} AS Run, SpanId, toString(AgentName) AS TurnOf FROM otel_traces
    WHERE Operation = 'invoke_agent' AND AgentName != '' AND {SPANS_OF_COST}
      AND SpanId GLOBAL IN (SELECT ParentSpanId FROM otel_traces
        WHERE Operation = 'chat' AND AgentName = '' AND {SPANS_OF_COST})
    LIMIT 1 BY Run, SpanId"""
_DECIDED = f"""SELECT Project, TraceId, SpanId FROM (
      SELECT Project, TraceId, RunKey, Outcome, DecisiveSpanId AS SpanId FROM mast_findings
      WHERE {OF_RUNS}
      ORDER BY {LATEST}
      LIMIT 1 BY RunKey
    )
    WHERE Outcome != 'success' AND SpanId != ''"""
DECIDED: Final = f"""SELECT Project, TraceId, min(Timestamp) AS DecidedAt FROM otel_traces
  WHERE {SPANS_OF_COST} AND (Project, TraceId, SpanId) GLOBAL IN (SELECT Project, TraceId, SpanId FROM ({_DECIDED}))
  GROUP BY Project, TraceId"""
"""The time of the decisive step of each run that has one."""
# Bands as a whole: readers of our own ClickHouse address may not write the name of its part Input. The parts are
# Since, Begin, End, Above, Input, CacheRead, CacheWrite, Output, Calls, in this order.
_PRICES = """SELECT Project, Model, Provider, Bands
    FROM mast_prices
    ORDER BY PricedAt DESC LIMIT 1 BY Project, Model, Provider"""
_SECOND = "toUInt32(toUnixTimestamp(c.Timestamp) % 86400)"
_BAND = f"""arrayFilter(b -> toDate(c.Timestamp, 'UTC') >= b.1
        AND if(b.2 <= b.3, {_SECOND} >= b.2 AND {_SECOND} < b.3, {_SECOND} >= b.2 OR {_SECOND} < b.3)
        AND toInt64(c.Sent) > b.4, p.Bands)"""
_FRESH = "toUInt64(greatest(toInt64(c.Sent) - toInt64(c.CacheRead) - toInt64(c.CacheWrite), 0))"
_COST = f"""if(empty(applying), NULL,
      {_FRESH} * band.5 + c.CacheRead * band.6 + c.CacheWrite * band.7 + c.Output * band.8 + band.9)"""
PRICED: Final = f"""{_BAND} AS applying, applying[-1] AS band, {_COST} AS MicroUsd"""
"""The columns that give a call `c` with prices `p` its cost in millionths of a US dollar; NULL if they are unknown."""
WITH_PRICES: Final = f"""LEFT JOIN ({_PRICES}) AS p
    ON p.Project = c.Project AND p.Model = c.Model AND p.Provider = c.Provider"""
"""The join that finds the prices of a call `c`."""


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


CALLS: Final = f"""SELECT c.Project AS Project, c.TraceId AS TraceId, c.SpanId AS SpanId,
    c.Timestamp AS Timestamp, toString(c.Model) AS Model, c.Provider AS Provider, c.Agent AS Agent,
    c.Sent AS Sent, c.CacheRead AS CacheRead, c.CacheWrite AS CacheWrite, c.Output AS Output,
    c.Again AS Again, c.Resent AS Resent,
    {PRICED},
    d.TraceId != '' AS Decided, Decided AND c.Timestamp > d.DecidedAt AS After
  FROM (
    SELECT *, Request != 0 AND Request = lagInFrame(Request) OVER same AS Again,
      least(Sent, lagInFrame(Sent + Output) OVER same) AS Resent
    FROM (
      SELECT s.*, if(s.OwnAgent != '', s.OwnAgent, a.TurnOf) AS Agent
      FROM ({counted(SPANS_OF_COST)}) AS s
      LEFT JOIN ({_AGENTS}) AS a
        ON a.Run = s.Run AND a.SpanId = s.Turn
    )
    WINDOW same AS (PARTITION BY Run, Agent ORDER BY Timestamp, SpanId
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
  ) AS c
  {WITH_PRICES}
  LEFT JOIN ({DECIDED}) AS d ON d.Project = c.Project AND d.TraceId = c.TraceId"""
"""The model calls of runs, each with its cost.

``Again``: the agent's previous call had the same input, so it is a retry. ``Resent``: tokens of the input that
the agent's previous call had read or written already, at most. ``After``: the call began after the decisive step.
"""


def usd(condition: str = "") -> str:
    """Return the SQL of the cost of calls; NULL where no price of them is known."""
    total = f"sumOrNullIf(MicroUsd, {condition})" if condition else "sumOrNull(MicroUsd)"
    return f"toFloat64({total}) / 1000000"
