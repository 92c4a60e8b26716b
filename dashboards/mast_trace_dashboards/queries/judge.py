"""Named queries on the judge itself: its backlog, its cost, and the totals of its Prometheus metrics."""

from __future__ import annotations

from typing import Final

from mast_trace.taxonomy import FAILURE_MODES, Category
from mast_trace_dashboards.queries.query import Column, Query
from mast_trace_dashboards.queries.sql import (
    OWNERS,
    RANGE,
    SHOWN,
    SHOWN_BITS,
    VERDICTS,
    WAITING,
    mode_mask,
    newest,
)

JUDGE_LAG: Final = Query(
    name="judge_lag",
    meaning="The judge's backlog: one row.",
    template=f"""
WITH (SELECT (count(), max(greatest(dateDiff('second', End, now64(9)), 0))) FROM ({WAITING})) AS late
SELECT
    assumeNotNull(late.1) AS Waiting,
    assumeNotNull(late.2) AS OldestWaitSeconds,
    countIf(Status = 'ok') AS Judged,
    countIf(Status = 'unscored') AS Unscored,
    if(count() = 0, NULL, quantileExactInclusive(0.5)(Lag)) AS MedianLagSeconds,
    if(count() = 0, NULL, quantileExactInclusive(0.95)(Lag)) AS P95LagSeconds
FROM (
  SELECT Status, greatest(dateDiff('millisecond', RunEnd, JudgedAt), 0) / 1000 AS Lag
  FROM ({VERDICTS})
)""",
    params={**RANGE, **OWNERS},
    columns={
        "Waiting": Column(
            "UInt64", "finished runs of which a verdict, or a model's reading, is due"
        ),
        "OldestWaitSeconds": Column("Int64", "since the oldest of those ended"),
        "Judged": Column("UInt64"),
        "Unscored": Column("UInt64", "runs on which no verdict could be reached"),
        "MedianLagSeconds": Column("Nullable(Float64)", "from a run's end to its verdict"),
        "P95LagSeconds": Column("Nullable(Float64)"),
    },
)

JUDGE_CALLS: Final = Query(
    name="judge_calls",
    meaning="Cost of the judge's model calls, by model and stage.",
    template="""
SELECT
    Model, Stage, count() AS Calls, countIf(Status != 'ok') AS Failed, sum(Retries) AS AllRetries,
    sum(InputTokens) AS AllInputTokens, sum(CachedTokens) AS AllCachedTokens,
    sum(OutputTokens) AS AllOutputTokens, sum(CostUsd) AS Cost,
    quantileExactInclusive(0.95)(DurationMs) AS P95Ms,
    argMaxIf(Error, (StartedAt, CallId), Status != 'ok') AS LastError
FROM mast_judge_calls FINAL
WHERE StartedAt >= {since:DateTime64(3)} AND StartedAt < {until:DateTime64(3)}
  AND (empty({projects:Array(String)}) OR has({projects:Array(String)}, Project))
GROUP BY Model, Stage
ORDER BY Cost DESC, Model, Stage""",
    params={**RANGE, "projects": OWNERS["projects"]},
    columns={
        "Model": Column("String"),
        "Stage": Column("String"),
        "Calls": Column("UInt64"),
        "Failed": Column("UInt64"),
        "AllRetries": Column("UInt64"),
        "AllInputTokens": Column("UInt64"),
        "AllCachedTokens": Column("UInt64", "of the input tokens"),
        "AllOutputTokens": Column("UInt64"),
        "Cost": Column("Float64", "US dollars"),
        "P95Ms": Column("Float64", "milliseconds of a slow call"),
        "LastError": Column("String", "error of the last failed call"),
    },
)


_CATEGORIES = {
    category.name.lower(): mode_mask(c for c in FAILURE_MODES if c.startswith(f"{category.value}."))
    for category in Category
}

JUDGED_TOTALS: Final = Query(
    name="judged_totals",
    meaning="Judged runs by service and framework, how many show a mode of each category, and in how "
    "many one was looked for.",
    template=f"""
SELECT toString(ServiceName) AS Service, toString(Framework) AS Framework, count() AS Judged,
  {", ".join(f"countIf(bitAnd(ShownBits, {c}) != 0) AS {n}" for n, c in _CATEGORIES.items())},
  {", ".join(f"countIf(bitAnd(ExaminedBits, {c}) != 0) AS {n}_examined" for n, c in _CATEGORIES.items())}
FROM ({newest("1", "ServiceName", "Framework", "ExaminedBits", f"{SHOWN_BITS} AS ShownBits", "Status")})
WHERE Status = 'ok'
GROUP BY ServiceName, Framework
ORDER BY Service, Framework""",
    params=SHOWN,
    columns={
        "Service": Column("String"),
        "Framework": Column("String"),
        "Judged": Column("UInt64"),
        **{name: Column("UInt64", "runs with a mode of it") for name in _CATEGORIES},
        **{
            f"{name}_examined": Column("UInt64", "runs in which one was looked for")
            for name in _CATEGORIES
        },
    },
)
