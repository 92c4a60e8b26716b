"""Named queries on decisive errors: where in a run, by whom, of which kind."""

from __future__ import annotations

from typing import Final

from mast_trace_dashboards.queries.query import Column, Param, Query
from mast_trace_dashboards.queries.sql import OWNERS, RANGE, STARTED, VERDICTS

_DECIDED = f"""SELECT * FROM ({VERDICTS})
  WHERE Status = 'ok' AND Outcome != 'success' AND isNotNull(DecisiveStep)"""
_LIMIT = {"limit": Param("UInt32", 100, "most rows to return")}

DECISIVE_POSITIONS: Final = Query(
    name="decisive_positions",
    meaning="In which tenth of the run the decisive error lies; every tenth has a row.",
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
        "Share": Column("Nullable(Float64)", "the one of the other"),
    },
)

DECISIVE_BY_MODE: Final = Query(
    name="decisive_by_mode",
    meaning="Deciding agents against the failure modes of the runs that they decided.",
    template=f"""
SELECT DecisiveAgent AS Agent, Code, count() AS Runs, any(Decided) AS AllRuns,
    Runs / AllRuns AS Share
FROM (
  SELECT TraceId, DecisiveAgent, `Modes.Code` AS Codes,
    count() OVER (PARTITION BY DecisiveAgent) AS Decided
  FROM ({_DECIDED})
)
ARRAY JOIN Codes AS Code
GROUP BY Agent, Code
ORDER BY AllRuns DESC, Agent, Code
LIMIT {{limit:UInt32}}""",
    params={**RANGE, **OWNERS, **_LIMIT},
    columns={
        "Agent": Column("String"),
        "Code": Column("String", "of the failure mode"),
        "Runs": Column("UInt64", "that the agent decided and that show the mode"),
        "AllRuns": Column("UInt64", "that the agent decided"),
        "Share": Column("Float64", "the one of the other"),
    },
)

DECISIVE_RULES: Final = Query(
    name="decisive_rules",
    meaning="What speaks for the decisive steps, and how sure the judge is.",
    template=f"""
SELECT if(DecisiveRule = '', 'model', DecisiveRule) AS Rule, Method, count() AS Runs,
    avg(DecisiveProbability) AS MeanProbability
FROM ({_DECIDED})
GROUP BY Rule, Method
ORDER BY Runs DESC, Rule, Method
LIMIT {{limit:UInt32}}""",
    params={**RANGE, **OWNERS, **_LIMIT},
    columns={
        "Rule": Column("String", "the rule that named the step"),
        "Method": Column("String", "local, llm or fused"),
        "Runs": Column("UInt64"),
        "MeanProbability": Column("Float64"),
    },
)

DECISIVE_CONFIDENCE: Final = Query(
    name="decisive_confidence",
    meaning="How often the judge abstains, and the spread of its confidence: one row.",
    template=f"""
SELECT countIf(Outcome != 'success') AS Failures,
    countIf(Outcome != 'success' AND isNull(DecisiveStep)) AS Undecided,
    if(Failures = 0, NULL, Undecided / Failures) AS UndecidedShare,
    quantileExactInclusiveOrNullIf(0.5)(DecisiveProbability, isNotNull(DecisiveStep)) AS MedianProbability
FROM ({VERDICTS})
WHERE Status = 'ok'""",
    params={**RANGE, **OWNERS},
    columns={
        "Failures": Column("UInt64", "judged runs that did not succeed"),
        "Undecided": Column("UInt64", "of those, without a decisive error"),
        "UndecidedShare": Column("Nullable(Float64)"),
        "MedianProbability": Column("Nullable(Float64)", "of the decisive steps"),
    },
)

NEWEST_DECISIVE: Final = Query(
    name="newest_decisive",
    meaning="The newest decisive errors.",
    template=f"""
SELECT RunEnd AS Time, TraceId, Name, Framework, DecisiveAgent AS Agent,
    assumeNotNull(DecisiveStep) AS Step, DecisiveProbability AS Probability,
    DecisiveReason AS Reason, `Modes.Code` AS Modes
FROM mast_findings
WHERE {STARTED} AND (RunKey, JudgedAt) GLOBAL IN (
    SELECT RunKey, JudgedAt FROM ({_DECIDED})
    ORDER BY RunEnd DESC, TraceId
    LIMIT {{limit:UInt32}})
ORDER BY Time DESC, TraceId
LIMIT 1 BY RunKey""",
    params={**RANGE, **OWNERS, **_LIMIT},
    columns={
        "Time": Column("DateTime64(9)", "end of the run"),
        "TraceId": Column("String"),
        "Name": Column("String", "of the workflow"),
        "Framework": Column("String"),
        "Agent": Column("String", "who decided the failure"),
        "Step": Column("UInt32", "in which step"),
        "Probability": Column("Float32"),
        "Reason": Column("String"),
        "Modes": Column("Array(String)"),
    },
)
