"""Named queries on the judge's findings: failure modes, decisive errors, agents."""

from __future__ import annotations

from typing import Final

from mast_trace.taxonomy import FAILURE_MODES
from mast_trace_dashboards.queries.query import Column, Param, Query
from mast_trace_dashboards.queries.sql import (
    BUCKET,
    CODES,
    IS_SHOWN,
    JUDGED,
    MODES_EXAMINED,
    OWNERS,
    RANGE,
    SHOWN,
    VERDICTS,
)

_FINDINGS = {
    "evidence": Param("Array(String)", [], "exact, heuristic, model; none means all"),
    **SHOWN,
}
_SHOWN = f"""SELECT RunStart, ExaminedBits, arrayFilter((code, kind, probability) ->
        {IS_SHOWN}
        AND (empty({{evidence:Array(String)}}) OR has({{evidence:Array(String)}}, kind)),
      `Modes.Code`, `Modes.Evidence`, `Modes.Probability`) AS Shown
  FROM ({VERDICTS})
  WHERE Status = 'ok'"""
# One pass over the verdicts counts all modes, including those that no run shows.
_COUNTED = f"""count() AS Judged,
    arrayResize(sumForEach(arrayMap((code, looked) -> looked * has(Shown, code), {CODES}, {MODES_EXAMINED})),
      {len(FAILURE_MODES)}) AS Counts,
    arrayResize(sumForEach({MODES_EXAMINED}), {len(FAILURE_MODES)}) AS Looked"""
_COUNTS: Final = {
    "Code": Column("String", "of the failure mode"),
    "Runs": Column("UInt64", "that show it"),
    "Examined": Column("UInt64", "runs in which it was looked for"),
    "Judged": Column("UInt64", "runs that were judged"),
    "Share": Column("Nullable(Float64)", "of the examined runs; NULL where there are none"),
}

MODE_COUNTS: Final = Query(
    name="mode_counts",
    meaning="Share of the runs in which a failure mode was looked for that show it; every mode has a row.",
    template=f"""
SELECT Code, Runs, Examined, Judged, if(Examined = 0, NULL, Runs / Examined) AS Share
FROM (SELECT {_COUNTED} FROM ({_SHOWN}))
ARRAY JOIN {CODES} AS Code, Counts AS Runs, Looked AS Examined
ORDER BY Code""",
    params={**RANGE, **OWNERS, **_FINDINGS},
    columns=_COUNTS,
)

MODES_OVER_TIME: Final = Query(
    name="modes_over_time",
    meaning="The same for each stretch of time in which a run was judged.",
    template=f"""
SELECT Time, Code, Runs, Examined, Judged, if(Examined = 0, NULL, Runs / Examined) AS Share
FROM (
  SELECT toStartOfInterval(toDateTime(RunStart), toIntervalSecond({{bucket:UInt32}})) AS Time,
    {_COUNTED}
  FROM ({_SHOWN})
  GROUP BY Time
)
ARRAY JOIN {CODES} AS Code, Counts AS Runs, Looked AS Examined
ORDER BY Time, Code""",
    params={**RANGE, **OWNERS, **_FINDINGS, **BUCKET},
    columns={
        "Time": Column("DateTime", "beginning of the stretch"),
        **_COUNTS,
    },
)

DECISIVE_AGENTS: Final = Query(
    name="decisive_agents",
    meaning="Agents that decide failures, most often first.",
    template=f"""
SELECT
    Agent, ServiceName, Framework, sumIf(Runs, Agent = DecisiveAgent) AS Decided,
    sum(Runs) AS Failures, Decided / Failures AS Share,
    sumIf(Measured, Agent = DecisiveAgent) AS AllMeasured,
    if(AllMeasured = 0, NULL, sumIf(Probabilities, Agent = DecisiveAgent) / AllMeasured) AS MeanProbability,
    arrayFilter((code, i) -> bitTest(groupBitOrIf(ShownBits, Agent = DecisiveAgent), i),
      {CODES}, range({len(FAILURE_MODES)})) AS Modes
FROM (
  SELECT Agents, ServiceName, Framework, DecisiveAgent, ShownBits, count() AS Runs,
    countIf(Calibrated) AS Measured, sumIf(toFloat64(DecisiveProbability), Calibrated) AS Probabilities
  FROM ({JUDGED})
  WHERE Outcome = 'failure'
  GROUP BY Agents, ServiceName, Framework, DecisiveAgent, ShownBits
)
ARRAY JOIN Agents AS Agent
GROUP BY Agent, ServiceName, Framework
HAVING Decided > 0
ORDER BY Decided DESC, Agent, ServiceName, Framework
LIMIT {{limit:UInt32}}""",
    params={**RANGE, **OWNERS, **SHOWN, "limit": Param("UInt32", 100, "most rows to return")},
    columns={
        "Agent": Column("String"),
        "ServiceName": Column("String"),
        "Framework": Column("String"),
        "Decided": Column("UInt64", "failed runs in which it made the decisive error"),
        "Failures": Column("UInt64", "failed runs in which it acts"),
        "Share": Column("Float64", "Runs / Judged"),
        "AllMeasured": Column(
            "UInt64", "decided runs whose probability was measured on runs like them"
        ),
        "MeanProbability": Column("Nullable(Float64)", "that the judge gave to it in those"),
        "Modes": Column("Array(String)", "failure modes of those runs"),
    },
)
