"""Model calls of runs with their cost: the SQL that queries on cost share.

Costs are sums of decimals, without rounding between. Calls count as in the totals of a run
(`storage/schema/runs.v3.part`): see `storage/schema/facts.v1.part`.
"""

from __future__ import annotations

from typing import Final

from mast_trace.semconv import CALL_KIND
from mast_trace_collector.storage.facts import FACTS, asked
from mast_trace_dashboards.queries.query import Param
from mast_trace_dashboards.queries.sql import LATEST, counted_runs

ONLY: Final = {"only": Param("Array(String)", [], "ids of runs; none means all")}
# A replay's only where it is named.
ASKED: Final = asked(
    counted_runs(
        f"(max(Kind) IN ('', '{CALL_KIND}') OR notEmpty({{only:Array(String)}}))",
        "(empty({only:Array(String)}) OR has({only:Array(String)}, TraceId))",
    )
)
"""The definition of the runs whose calls are priced, calls outside of runs as well, for the WITH of a query on `CALLS`."""
_DECIDED: Final = f"""SELECT halfMD5(Project, TraceId) AS RunKey, min(Timestamp) AS DecidedAt FROM otel_traces
  WHERE Timestamp >= {{since:DateTime64(3)}} AND (Project, TraceId, SpanId) GLOBAL IN (
    SELECT Project, TraceId, DecisiveSpanId FROM (
      SELECT Project, TraceId, Outcome, DecisiveSpanId FROM mast_findings
      WHERE RunKey IN (SELECT arrayJoin(asked.1)) ORDER BY {LATEST} LIMIT 1 BY RunKey
    ) WHERE Outcome != 'success' AND DecisiveSpanId != '')
  GROUP BY Project, TraceId"""
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

COUNTED: Final = f"""SELECT Project, TraceId, RunKey, Version, call.1 AS Timestamp, call.2 AS SpanId, toString(call.4) AS Model,
    toString(call.5) AS Provider, toString(call.3) AS Agent, call.6 AS Sent, call.7 AS CacheRead,
    call.8 AS CacheWrite, call.9 AS Output, call.10 AS Again, call.11 AS Resent
  FROM ({FACTS}) ARRAY JOIN Calls AS call"""
"""The model calls of the runs that are asked for, each once.

``Again``: the agent's previous call had the same input, so it is a retry. ``Resent``: tokens of the input that
the agent's previous call had read or written already, at most.
"""
_TOLD: Final = (
    *("Project", "TraceId", "RunKey", "Version", "SpanId", "Timestamp", "Model", "Agent"),
    *("Sent", "CacheRead", "CacheWrite", "Output", "Again", "Resent"),
)
CALLS: Final = f"""SELECT {", ".join(f"c.{name} AS {name}" for name in _TOLD)}, {PRICED}, d.RunKey != 0 AS Decided, Decided AND c.Timestamp > d.DecidedAt AS After
  FROM ({COUNTED}) AS c
  {WITH_PRICES}
  LEFT JOIN ({_DECIDED}) AS d ON d.RunKey = c.RunKey"""
"""These calls, each with its cost. ``After``: the call began after the decisive step."""


def usd(condition: str = "") -> str:
    """Return the SQL of the cost of calls; NULL where no price of them is known."""
    total = f"sumOrNullIf(MicroUsd, {condition})" if condition else "sumOrNull(MicroUsd)"
    return f"toFloat64({total}) / 1000000"
