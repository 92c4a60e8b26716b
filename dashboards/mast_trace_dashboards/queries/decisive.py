"""Named queries on decisive errors: position in the run, agent, failure mode, and what replays have confirmed."""

from __future__ import annotations

from typing import Final

from mast_trace_collector.storage.facts import FACTS
from mast_trace_dashboards.queries.costs import ASKED, ONLY
from mast_trace_dashboards.queries.query import Column, Query, SummedQuery, limit
from mast_trace_dashboards.queries.sql import (
    CODES,
    MODE_HITS,
    MODES_EXAMINED,
    OWNERS,
    RANGE,
    SHOWN,
    SHOWN_VERDICTS,
    VERDICTS,
)
from mast_trace_judge.proof import RULE

_IS_DECIDED = "Status = 'ok' AND Outcome != 'success' AND isNotNull(DecisiveStep)"
_DECIDED = f"SELECT * FROM ({VERDICTS}) WHERE {_IS_DECIDED}"

DECISIVE_POSITIONS: Final = Query(
    name="decisive_positions",
    meaning="Decisive errors by tenth of the run; every tenth has a row.",
    template=f"""
SELECT Decile, countIf(Tenth = Decile) AS Runs, count() AS Decided,
    if(Decided = 0, NULL, Runs / Decided) AS Share
FROM (
  SELECT least(10, 1 + intDiv(10 * assumeNotNull(DecisiveStep), greatest(Steps, 1))) AS Tenth
  FROM ({_DECIDED})
)
ARRAY JOIN range(1, 11) AS Decile
GROUP BY Decile
ORDER BY Decile""",
    params={**RANGE, **OWNERS},
    columns={
        "Decile": Column("UInt8", "1: the first tenth of the run's steps"),
        "Runs": Column("UInt64", "whose decisive error lies there"),
        "Decided": Column("UInt64", "runs with a decisive error"),
        "Share": Column("Nullable(Float64)", "Runs / Judged"),
    },
)

DECISIVE_BY_MODE: Final = Query(
    name="decisive_by_mode",
    meaning="Deciding agents against the failure modes of the runs that they decided.",
    template=f"""
SELECT Agent, Code, Runs, Examined, AllRuns, Runs / Examined AS Share
FROM (
  SELECT DecisiveAgent AS Agent, count() AS AllRuns,
    sumForEach({MODE_HITS}) AS Counts, sumForEach({MODES_EXAMINED}) AS Looked
  FROM ({SHOWN_VERDICTS})
  WHERE {_IS_DECIDED}
  GROUP BY Agent
)
ARRAY JOIN {CODES} AS Code, Counts AS Runs, Looked AS Examined
WHERE Runs > 0
ORDER BY AllRuns DESC, Agent, Code
LIMIT {{limit:UInt32}}""",
    params={**RANGE, **OWNERS, **SHOWN, **limit(100)},
    columns={
        "Agent": Column("String"),
        "Code": Column("String", "of the failure mode"),
        "Runs": Column("UInt64", "that the agent decided and that show the mode"),
        "Examined": Column("UInt64", "that the agent decided, in which the mode was looked for"),
        "AllRuns": Column("UInt64", "that the agent decided"),
        "Share": Column("Float64", "of the examined runs"),
    },
)

DECISIVE_BY_AGENT: Final = SummedQuery(
    name="decisive_by_agent",
    meaning="Decisive errors of each agent among all that it did, the highest share first.",
    template=f"""
WITH {ASKED}
SELECT a.Agent AS Agent, count() AS Runs, sum(a.Times) AS Acts,
    countIf({_IS_DECIDED} AND v.DecisiveAgent = a.Agent) AS Errors, Errors / Acts AS Share
FROM (
  SELECT RunKey, toString(act.1) AS Agent, act.3 AS Times
  FROM ({FACTS}) ARRAY JOIN Actions AS act
  WHERE act.2 = ''
) AS a
INNER JOIN ({VERDICTS}) AS v ON v.RunKey = a.RunKey
WHERE v.Status = 'ok'
GROUP BY Agent
ORDER BY Share DESC, Acts DESC, Agent
LIMIT {{limit:UInt32}}""",
    params={**RANGE, **OWNERS, **ONLY, **limit(100)},
    columns={
        "Agent": Column("String"),
        "Runs": Column("UInt64", "judged runs in which it acts"),
        "Acts": Column("UInt64", "its turns, model calls, messages and tool calls in them"),
        "Errors": Column("UInt64", "of these runs, those whose decisive error is its own"),
        "Share": Column("Float64", "of its acts"),
    },
    order=lambda row: (-row["Share"], -row["Acts"], row["Agent"]),
    derived={"Share": lambda row: row["Errors"] / row["Acts"]},
)

DECISIVE_RULES: Final = Query(
    name="decisive_rules",
    meaning="The evidence for the decisive steps, and the judge's certainty.",
    template=f"""
SELECT if(DecisiveRule = '', 'model', DecisiveRule) AS Rule, Method, count() AS Runs,
    if(countIf(Calibrated) = 0, NULL, avgIf(DecisiveProbability, Calibrated)) AS MeanProbability
FROM ({_DECIDED})
GROUP BY Rule, Method
ORDER BY Runs DESC, Rule, Method
LIMIT {{limit:UInt32}}""",
    params={**RANGE, **OWNERS, **limit(100)},
    columns={
        "Rule": Column("String", "the rule that named the step"),
        "Method": Column(
            "String",
            "local, llm or fused; reading: local, a model reads the run; provisional: local, spans may still come",
        ),
        "Runs": Column("UInt64"),
        "MeanProbability": Column("Nullable(Float64)", "where it was measured on such runs"),
    },
)

DECISIVE_CONFIDENCE: Final = Query(
    name="decisive_confidence",
    meaning="The share of abstentions, and the spread of the judge's confidence: one row.",
    template=f"""
SELECT countIf(Outcome = 'failure') AS Failures,
    countIf(Outcome = 'failure' AND isNull(DecisiveStep)) AS Undecided,
    if(Failures = 0, NULL, Undecided / Failures) AS UndecidedShare,
    quantileExactInclusiveOrNullIf(0.5)(DecisiveProbability,
      isNotNull(DecisiveStep) AND Calibrated) AS MedianProbability
FROM ({VERDICTS})
WHERE Status = 'ok'""",
    params={**RANGE, **OWNERS},
    columns={
        "Failures": Column("UInt64", "judged runs whose outcome is failure"),
        "Undecided": Column("UInt64", "of those, without a decisive error"),
        "UndecidedShare": Column("Nullable(Float64)"),
        "MedianProbability": Column(
            "Nullable(Float64)", "of the decisive steps, where it was measured on such runs"
        ),
    },
)

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
    params={**RANGE, **OWNERS, **limit(100)},
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
