"""Named queries on the cost of single model calls, and of the few runs that a page lists."""

from __future__ import annotations

from typing import Final

from mast_trace_collector.storage.facts import asked, states_of
from mast_trace_dashboards.queries.priced_calls import (
    ASKED,
    CALLS,
    COUNTED,
    ONLY,
    PRICED,
    WITH_PRICES,
    usd,
)
from mast_trace_dashboards.queries.query import Column, Param, Query
from mast_trace_dashboards.queries.sql import BEGINNING, OWNERS, RANGE

COST_OF_CALLS: Final = Query(
    name="cost_of_calls",
    meaning="The model calls of runs with their cost, by time.",
    template=f"""
WITH {ASKED}
SELECT TraceId, SpanId, toString(Agent) AS Agent, Model, Sent AS InputTokens,
    CacheRead AS CacheReadTokens, CacheWrite AS CacheWriteTokens, Output AS OutputTokens,
    if(isNull(MicroUsd), NULL, toFloat64(assumeNotNull(MicroUsd)) / 1000000) AS Cost,
    After, Again AS Retry
FROM ({CALLS})
ORDER BY Timestamp, SpanId
LIMIT {{limit:UInt32}}""",
    params={
        **RANGE,
        **OWNERS,
        **ONLY,
        "limit": Param("UInt32", 10_000, "most rows to return"),
    },
    columns={
        "TraceId": Column("String", "the run's id"),
        "SpanId": Column("String"),
        "Agent": Column("String", "the calling agent; empty if unknown"),
        "Model": Column("String"),
        "InputTokens": Column("UInt64", "all that was read, caches included"),
        "CacheReadTokens": Column("UInt64", "of these, read from a cache"),
        "CacheWriteTokens": Column("UInt64", "of these, written to a cache"),
        "OutputTokens": Column("UInt64"),
        "Cost": Column("Nullable(Float64)", "US dollars; NULL if the price is unknown"),
        "After": Column("UInt8", "1 for a call that began after the decisive step"),
        "Retry": Column("UInt8", "1 for a call with the same input as the agent's previous call"),
    },
)

COST_OF_RUNS: Final = Query(
    name="cost_of_runs",
    meaning="The cost of runs named by their ids, and nothing else of them, for lists that wait for it.",
    template=f"""
WITH {asked(states_of("TraceId IN {only:Array(String)}"))}
SELECT TraceId, {usd()} AS Cost, countIf(isNull(MicroUsd)) AS UnpricedCalls
FROM (
  SELECT c.TraceId AS TraceId, {PRICED}
  FROM ({COUNTED}) AS c
  {WITH_PRICES}
)
GROUP BY TraceId
ORDER BY TraceId""",
    params={
        "since": Param("DateTime64(3)", BEGINNING, "the start of the first of them, or before"),
        "only": Param("Array(String)", [], "ids of runs"),
    },
    columns={
        "TraceId": Column("String", "the id of a run with model calls"),
        "Cost": Column(
            "Nullable(Float64)", "US dollars of the calls with a known price; NULL if none has one"
        ),
        "UnpricedCalls": Column("UInt64", "calls whose price is unknown; Cost is without them"),
    },
)
