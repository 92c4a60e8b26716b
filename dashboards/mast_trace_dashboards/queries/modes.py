"""Named queries on what the judge found: failure modes, decisive errors, agents."""

from __future__ import annotations

from typing import Final

from mast_trace.taxonomy import FAILURE_MODES
from mast_trace_dashboards.queries.query import Column, Param, Query
from mast_trace_dashboards.queries.sql import BUCKET, CODES, JUDGED, OWNERS, RANGE, VERDICTS

_FINDINGS = {
    "evidence": Param("Array(String)", [], "exact, heuristic, model; none means all"),
    "at_least": Param("Float64", 0.0, "findings of at least this probability"),
}
_SHOWN = f"""SELECT RunStart, arrayFilter((code, kind, probability) ->
        probability >= {{at_least:Float64}}
        AND (empty({{evidence:Array(String)}}) OR has({{evidence:Array(String)}}, kind)),
      `Modes.Code`, `Modes.Evidence`, `Modes.Probability`) AS Shown
  FROM ({VERDICTS})
  WHERE Status = 'ok'"""
# One pass over the verdicts counts all modes, those that no run shows as well.
_COUNTED = f"""count() AS Judged,
    arrayResize(sumForEach(arrayMap(code -> toUInt64(has(Shown, code)), {CODES})),
      {len(FAILURE_MODES)}) AS Counts"""

MODE_COUNTS: Final = Query(
    name="mode_counts",
    meaning="How many of the judged runs show each failure mode; every mode has a row.",
    template=f"""
SELECT Code, Runs, Judged, if(Judged = 0, NULL, Runs / Judged) AS Share
FROM (SELECT {_COUNTED} FROM ({_SHOWN}))
ARRAY JOIN {CODES} AS Code, Counts AS Runs
ORDER BY Code""",
    params={**RANGE, **OWNERS, **_FINDINGS},
    columns={
        "Code": Column("String", "of the failure mode"),
        "Runs": Column("UInt64", "that show it"),
        "Judged": Column("UInt64", "runs that were judged"),
        "Share": Column("Nullable(Float64)", "of the judged runs"),
    },
)

MODES_OVER_TIME: Final = Query(
    name="modes_over_time",
    meaning="The same for each stretch of time in which a run was judged.",
    template=f"""
SELECT Time, Code, Runs, Judged, Runs / Judged AS Share
FROM (
  SELECT toStartOfInterval(toDateTime(RunStart), toIntervalSecond({{bucket:UInt32}})) AS Time,
    {_COUNTED}
  FROM ({_SHOWN})
  GROUP BY Time
)
ARRAY JOIN {CODES} AS Code, Counts AS Runs
ORDER BY Time, Code""",
    params={**RANGE, **OWNERS, **_FINDINGS, **BUCKET},
    columns={
        "Time": Column("DateTime", "beginning of the stretch"),
        "Code": Column("String"),
        "Runs": Column("UInt64"),
        "Judged": Column("UInt64"),
        "Share": Column("Float64"),
    },
)

DECISIVE_AGENTS: Final = Query(
    name="decisive_agents",
    meaning="Which agents decide failures, most often first.",
    template=f"""
SELECT
    Agent, ServiceName, Framework, sumIf(Runs, Agent = DecisiveAgent) AS Decided,
    sum(Runs) AS Failures, Decided / Failures AS Share,
    if(Decided = 0, NULL, sumIf(Probabilities, Agent = DecisiveAgent) / Decided) AS MeanProbability,
    arrayFilter((code, i) -> bitTest(groupBitOrIf(ModeBits, Agent = DecisiveAgent), i),
      {CODES}, range({len(FAILURE_MODES)})) AS Modes
FROM (
  SELECT Agents, ServiceName, Framework, DecisiveAgent, ModeBits, count() AS Runs,
    sum(toFloat64(DecisiveProbability)) AS Probabilities
  FROM ({JUDGED})
  WHERE Outcome = 'failure'
  GROUP BY Agents, ServiceName, Framework, DecisiveAgent, ModeBits
)
ARRAY JOIN Agents AS Agent
GROUP BY Agent, ServiceName, Framework
HAVING Decided > 0
ORDER BY Decided DESC, Agent, ServiceName, Framework
LIMIT {{limit:UInt32}}""",
    params={**RANGE, **OWNERS, "limit": Param("UInt32", 100, "most rows to return")},
    columns={
        "Agent": Column("String"),
        "ServiceName": Column("String"),
        "Framework": Column("String"),
        "Decided": Column("UInt64", "failed runs in which it made the decisive error"),
        "Failures": Column("UInt64", "failed runs in which it acts"),
        "Share": Column("Float64", "the one of the other"),
        "MeanProbability": Column("Nullable(Float64)", "that the judge gave to it"),
        "Modes": Column("Array(String)", "failure modes of those runs"),
    },
)
