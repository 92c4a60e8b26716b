"""Named queries on replays: failed runs with a confirmed decisive error, and the cost of replays."""

from __future__ import annotations

from typing import Final

from mast_trace_dashboards.queries.query import Column, Param, Query
from mast_trace_dashboards.queries.sql import OWNERS, RANGE, VERDICTS
from mast_trace_judge.proof import RULE

_FAILED: Final = (
    f"""SELECT * FROM ({VERDICTS}) WHERE if(RunOutcome != '', RunOutcome, Outcome) = 'failure'"""
)
"""The judged runs of a time range that failed, by what was recorded or else by the judge."""
_COSTS: Final = """SELECT halfMD5(r.Project, r.TraceId) AS CostKey, count() AS Number,
    sum(r.LiveCalls) AS Calls, sum(ifNull(r.CostUsd, 0)) AS Cost,
    countIf(isNull(r.CostUsd) AND r.LiveCalls > 0) AS Unknown
  FROM mast_replays AS r FINAL
  GROUP BY CostKey"""
"""Replays of each run. A reservation for a replay that has not ended counts in full."""

CONFIRMED_DECISIVE: Final = Query(
    name="confirmed_decisive",
    meaning="Failed runs by what replays have shown of their decisive errors, and the cost: one row for each.",
    template=f"""
SELECT if(v.Confirmation = '', 'untested', v.Confirmation) AS Conclusion, count() AS Runs,
    assumeNotNull((SELECT count() FROM ({_FAILED}))) AS Failures, Runs / Failures AS Share,
    countIf(isNotNull(v.DecisiveStep) AND v.DecisiveRule = '{RULE}') AS Confirmed,
    sum(c.Number) AS Replays, sum(c.Calls) AS LiveCalls, sum(c.Cost) AS CostUsd,
    sum(c.Unknown) AS Unpriced
FROM ({_FAILED}) AS v
LEFT JOIN ({_COSTS}) AS c ON c.CostKey = v.RunKey
GROUP BY Conclusion
ORDER BY Runs DESC, Conclusion
LIMIT {{limit:UInt32}}""",
    params={**RANGE, **OWNERS, "limit": Param("UInt32", 100, "most rows to return")},
    columns={
        "Conclusion": Column("String", "such as confirmed, refuted, inconclusive; untested"),
        "Runs": Column("UInt64", "judged runs that failed"),
        "Failures": Column("UInt64", "all of them"),
        "Share": Column("Float64", "Runs / Failures"),
        "Confirmed": Column("UInt64", "of the runs, with a decisive error that replays have shown"),
        "Replays": Column("UInt64", "replays of these runs"),
        "LiveCalls": Column("UInt64", "model calls that these replays sent to a model"),
        "CostUsd": Column("Float64", "of these calls, where prices are known"),
        "Unpriced": Column("UInt64", "replays with live calls whose cost is unknown"),
    },
)
