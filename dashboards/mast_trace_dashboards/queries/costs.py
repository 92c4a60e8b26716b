"""Named queries on the cost of runs: in total, and by run, agent, model, tool and failure mode.

Costs are sums of decimals, without rounding between. Calls count as in the totals of a run
(`storage/schema/runs.v3.part`): see `storage/schema/facts.v1.part`.
"""

from __future__ import annotations

from typing import Any, Final

from mast_trace.semconv import CALL_KIND
from mast_trace_collector.storage.facts import FACTS, asked, states_of
from mast_trace_dashboards.queries.query import Column, Param, Query, SummedQuery, limit
from mast_trace_dashboards.queries.sql import (
    BEGINNING,
    BUCKET,
    IS_SHOWN,
    LATEST,
    OWNERS,
    RANGE,
    SHOWN,
    counted_runs,
)

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


_PARAMS: Final = {**RANGE, **OWNERS, **ONLY}
_SUMS: Final = f"""count() AS Calls, uniqExact(RunKey) AS Runs,
    sum(Sent) AS InputTokens, sum(CacheRead) AS CacheReadTokens, sum(CacheWrite) AS CacheWriteTokens,
    sum(Output) AS OutputTokens, {usd()} AS Cost, countIf(isNull(MicroUsd)) AS UnpricedCalls,
    arraySort(groupUniqArrayIf(20)(Model, isNull(MicroUsd))) AS UnpricedModels,
    sumIf(Sent + Output, After) AS TokensAfter, {usd("After")} AS CostAfter,
    countIf(After AND isNull(MicroUsd)) AS UnpricedAfter,
    countIf(Again) AS Retries, {usd("Again")} AS RetryCost, sum(Resent) AS ResentTokens"""
_COLUMNS: Final = {
    "Calls": Column("UInt64", "model calls with a number of tokens"),
    "Runs": Column("UInt64", "runs with such calls; a call outside of runs counts as one"),
    "InputTokens": Column("UInt64", "all that was read, caches included"),
    "CacheReadTokens": Column("UInt64", "of these, read from a cache"),
    "CacheWriteTokens": Column("UInt64", "of these, written to a cache"),
    "OutputTokens": Column("UInt64"),
    "Cost": Column(
        "Nullable(Float64)", "US dollars of the calls with a known price; NULL if none has one"
    ),
    "UnpricedCalls": Column("UInt64", "calls whose price is unknown; Cost is without them"),
    "UnpricedModels": Column("Array(String)", "their models, at most 20"),
    "TokensAfter": Column("UInt64", "of calls that began after the decisive step"),
    "CostAfter": Column("Nullable(Float64)", "US dollars of these, likewise"),
    "UnpricedAfter": Column("UInt64", "of these calls, those whose price is unknown"),
    "Retries": Column("UInt64", "calls with the same input as the agent's previous call"),
    "RetryCost": Column("Nullable(Float64)", "US dollars of these"),
    "ResentTokens": Column(
        "UInt64", "input that the agent's previous call had read or written already, at most"
    ),
}


def _dearest(row: dict[str, Any]) -> tuple[Any, ...]:
    """Return the order of rows by cost, the most expensive first and those of unknown price last."""
    tokens = row["Tokens"] if "Tokens" in row else row["InputTokens"] + row["OutputTokens"]
    return row.get("Part", ""), row["Cost"] is None, -(row["Cost"] or 0.0), -tokens, row["Key"]


COSTS: Final = SummedQuery(
    name="costs",
    meaning="The cost of runs, and of what came after their decisive steps: in all, and by its parts, most expensive first.",
    template=f"""
WITH {ASKED}
SELECT part.1 AS Part, part.2 AS Key, {_SUMS}, uniqExactIf(RunKey, Decided) AS DecidedRuns
FROM ({CALLS})
ARRAY JOIN arrayFilter(one -> empty({{parts:Array(String)}}) OR has({{parts:Array(String)}}, one.1), [
    ('total', ''), ('agent', Agent), ('model', Model), ('version', toString(Version)), ('run', TraceId),
    ('time', toString(toUnixTimestamp(toStartOfInterval(toDateTime(Timestamp), toIntervalSecond({{bucket:UInt32}})))))]) AS part
GROUP BY Part, Key
ORDER BY Part, Cost DESC NULLS LAST, InputTokens + OutputTokens DESC, Key
LIMIT {{limit:UInt32}} BY Part""",
    params={
        **_PARAMS,
        **BUCKET,
        "parts": Param(
            "Array(String)", [], "total, agent, model, version, run, time; none means all"
        ),
        **limit(100),
    },
    columns={
        "Part": Column("String"),
        "Key": Column(
            "String",
            "agent, model, version, run, or the beginning of a stretch of time in seconds; empty if unknown",
        ),
        **_COLUMNS,
        "DecidedRuns": Column("UInt64", "runs with a decisive step"),
    },
    order=_dearest,
)


# A call belongs to the tools that its agent runs after it, before its next call; several share it.
_TOOLS: Final = f"""SELECT *, 1 / count() OVER (PARTITION BY Project, TraceId, SpanId) AS Share
  FROM (
    SELECT c.Project AS Project, c.TraceId AS TraceId, c.SpanId AS SpanId, c.Sent AS Sent,
      c.Output AS Output, c.MicroUsd AS MicroUsd, t.Tool AS Tool
    FROM (
      SELECT RunKey, tool.1 AS Timestamp, toString(tool.2) AS Agent, toString(tool.3) AS Tool
      FROM ({FACTS}) ARRAY JOIN Tools AS tool
    ) AS t
    ASOF INNER JOIN ({CALLS}) AS c
      ON c.RunKey = t.RunKey AND c.Agent = t.Agent AND t.Timestamp >= c.Timestamp
  )"""

COST_BY_TOOL: Final = SummedQuery(
    name="cost_by_tool",
    meaning="The cost of the model calls that asked for tools, most expensive first.",
    template=f"""
WITH {ASKED}
SELECT Tool AS Key, count() AS Uses, uniqExact(Project, TraceId) AS Runs,
    sum((Sent + Output) * Share) AS Tokens,
    sumOrNull(toFloat64(MicroUsd) * Share) / 1000000 AS Cost,
    countIf(isNull(MicroUsd)) AS UnpricedUses
FROM ({_TOOLS})
GROUP BY Key
ORDER BY Cost DESC NULLS LAST, Tokens DESC, Key
LIMIT {{limit:UInt32}}""",
    params={**_PARAMS, **limit(100)},
    columns={
        "Key": Column("String", "tool"),
        "Uses": Column("UInt64", "executions after a model call of the same agent"),
        "Runs": Column("UInt64", "runs with such executions"),
        "Tokens": Column("Float64", "of these calls; several tools share a call in equal parts"),
        "Cost": Column("Nullable(Float64)", "US dollars, likewise; NULL if no price is known"),
        "UnpricedUses": Column("UInt64", "executions asked for by a call without a known price"),
    },
    order=_dearest,
)

COST_BY_MODE: Final = SummedQuery(
    name="cost_by_mode",
    meaning="The cost of the runs that show a failure mode; a run with several counts in each.",
    template=f"""
WITH {ASKED}
SELECT Code AS Key, {_SUMS}
FROM (
  SELECT c.*, m.Code AS Code
  FROM ({CALLS}) AS c
  INNER JOIN (
    SELECT halfMD5(Project, TraceId) AS RunKey, arrayJoin(arrayDistinct(arrayFilter((code, probability) -> {IS_SHOWN},
        arrayMap(code -> toString(code), `Modes.Code`), `Modes.Probability`))) AS Code
    FROM mast_latest_verdicts WHERE Status = 'ok' AND RunKey IN (SELECT arrayJoin(asked.1))
  ) AS m ON m.RunKey = c.RunKey
)
GROUP BY Key
ORDER BY Cost DESC NULLS LAST, InputTokens + OutputTokens DESC, Key
LIMIT {{limit:UInt32}}""",
    params={**_PARAMS, **SHOWN, **limit(100)},
    columns={"Key": Column("String", "code of the failure mode"), **_COLUMNS},
    order=_dearest,
)

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
    params={**RANGE, **OWNERS, **ONLY, **limit(10_000)},
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
SELECT Project, TraceId, {usd()} AS Cost, countIf(isNull(MicroUsd)) AS UnpricedCalls
FROM (
  SELECT c.Project AS Project, c.TraceId AS TraceId, {PRICED}
  FROM ({COUNTED}) AS c
  {WITH_PRICES}
)
GROUP BY Project, TraceId
ORDER BY TraceId, Project""",
    params={
        "since": Param("DateTime64(3)", BEGINNING, "the start of the first of them, or before"),
        "only": Param("Array(String)", [], "ids of runs"),
    },
    columns={
        "Project": Column("String"),
        "TraceId": Column("String", "the id of a run with model calls"),
        "Cost": Column(
            "Nullable(Float64)", "US dollars of the calls with a known price; NULL if none has one"
        ),
        "UnpricedCalls": Column("UInt64", "calls whose price is unknown; Cost is without them"),
    },
)
