"""Named queries on the judge's findings: failure modes, the agents that decide, and shares by framework, model and agent."""

from __future__ import annotations

from typing import Final

from mast_trace.taxonomy import FAILURE_MODES, SPECIFICATION_CODES, Category
from mast_trace_dashboards.queries.query import Column, Param, Query, limit
from mast_trace_dashboards.queries.sql import (
    BUCKET,
    CODES,
    COUNTED_RUNS,
    IS_SHOWN,
    MODE_HITS,
    MODES_EXAMINED,
    OWNERS,
    RANGE,
    SHOWN,
    SHOWN_VERDICTS,
    VERDICTS,
    mode_mask,
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
  SELECT RunAgents AS Agents, ServiceName, Framework, DecisiveAgent, ShownBits, count() AS Runs,
    countIf(Calibrated) AS Measured, sumIf(toFloat64(DecisiveProbability), Calibrated) AS Probabilities
  FROM ({SHOWN_VERDICTS})
  WHERE if(RunOutcome != '', RunOutcome, Outcome) = 'failure'
  GROUP BY Agents, ServiceName, Framework, DecisiveAgent, ShownBits
)
ARRAY JOIN Agents AS Agent
GROUP BY Agent, ServiceName, Framework
HAVING Decided > 0
ORDER BY Decided DESC, Agent, ServiceName, Framework
LIMIT {{limit:UInt32}}""",
    params={**RANGE, **OWNERS, **SHOWN, **limit(100)},
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


_VIOLATES = f"bitAnd(ShownBits, {mode_mask(SPECIFICATION_CODES)}) != 0"
_LOOKED = f"bitAnd(ExaminedBits, {mode_mask(SPECIFICATION_CODES)}) != 0"
_SHARE_COLUMNS: Final = {
    "Code": Column("String", "of the failure mode"),
    "Runs": Column("UInt64", "that show it"),
    "Examined": Column("UInt64", "runs of this row's group in which it was looked for"),
    "Judged": Column("UInt64", "judged runs of this row's group"),
    "Share": Column("Float64", "of the examined runs"),
}


def _by(name: str, column: str, group: str, groups: str) -> Query:
    """Return the query of modes against a column of verdicts: ``groups``, an array of values."""
    return Query(
        name=name,
        meaning=f"Failure modes against {column.lower()}s, of the runs in which each was looked for.",
        template=f"""
SELECT {column}, Code, Runs, Examined, Judged, Runs / Examined AS Share
FROM (
  SELECT {column}, sum(Times) AS Judged,
    sumForEach(arrayMap(hit -> hit * Times, {MODE_HITS})) AS Counts,
    sumForEach(arrayMap(looked -> looked * Times, {MODES_EXAMINED})) AS Looked
  FROM (
    SELECT {group} AS {column}, ShownBits, ExaminedBits, count() AS Times
    FROM ({groups})
    GROUP BY {column}, ShownBits, ExaminedBits
  )
  WHERE {column} != ''
  GROUP BY {column}
)
ARRAY JOIN {CODES} AS Code, Counts AS Runs, Looked AS Examined
WHERE Runs > 0
ORDER BY Judged DESC, {column}, Code
LIMIT {{limit:UInt32}}""",
        params={**RANGE, **OWNERS, **SHOWN, **limit(200)},
        columns={column: Column("String"), **_SHARE_COLUMNS},
    )


MODES_BY_FRAMEWORK: Final = _by(
    "modes_by_framework", "Framework", "toString(Framework)", SHOWN_VERDICTS
)
MODES_BY_SERVICE: Final = _by(
    "modes_by_service", "Service", "toString(ServiceName)", SHOWN_VERDICTS
)
MODES_BY_AGENT: Final = _by("modes_by_agent", "Agent", "arrayJoin(RunAgents)", SHOWN_VERDICTS)
MODES_BY_MODEL: Final = _by("modes_by_model", "Model", "arrayJoin(RunModels)", SHOWN_VERDICTS)

MODE_PAIRS: Final = Query(
    name="mode_pairs",
    meaning="Failure modes that occur together, and how much more often than by chance.",
    template=f"""
WITH {CODES} AS codes, arrayFlatten(arrayMap(i -> arrayMap(j -> (i, j), range(i + 1, {len(FAILURE_MODES)})), range({len(FAILURE_MODES)}))) AS pairs,
  arrayMap(pair -> bitShiftLeft(toUInt16(1), pair.1) + bitShiftLeft(toUInt16(1), pair.2), pairs) AS bits
SELECT codes[Pair.1 + 1] AS One, codes[Pair.2 + 1] AS Other, Runs,
    Runs / Examined * Looked[Pair.1 + 1] / Singles[Pair.1 + 1] * Looked[Pair.2 + 1] / Singles[Pair.2 + 1] AS Lift
FROM (
  SELECT sumForEach(arrayMap(hit -> hit * Times, {MODE_HITS})) AS Singles,
    sumForEach(arrayMap(looked -> looked * Times, {MODES_EXAMINED})) AS Looked,
    sumForEach(arrayMap(pair -> (bitAnd(ShownBits, pair) = pair) * Times, bits)) AS Both,
    sumForEach(arrayMap(pair -> (bitAnd(ExaminedBits, pair) = pair) * Times, bits)) AS BothLooked
  FROM (
    SELECT ShownBits, ExaminedBits, count() AS Times
    FROM ({SHOWN_VERDICTS})
    GROUP BY ShownBits, ExaminedBits
  )
)
ARRAY JOIN pairs AS Pair, arrayResize(Both, length(pairs)) AS Runs, arrayResize(BothLooked, length(pairs)) AS Examined
WHERE Runs > 0
ORDER BY Runs DESC, One, Other
LIMIT {{limit:UInt32}}""",
    params={**RANGE, **OWNERS, **SHOWN, **limit(200)},
    columns={
        "One": Column("String", "code of a failure mode"),
        "Other": Column("String", "code of another"),
        "Runs": Column("UInt64", "that show both"),
        "Lift": Column("Float64", "times as often as if they were independent"),
    },
)

SUMMARY: Final = Query(
    name="summary",
    meaning="The present state of the runs: one row.",
    template=f"""
SELECT
    assumeNotNull((SELECT count() FROM ({COUNTED_RUNS}))) AS Runs,
    count() AS Judged,
    if(Runs = 0, NULL, least(1, Judged / Runs)) AS JudgedShare,
    countIf(Outcome = 'failure') AS Failures,
    if(countIf(Outcome IN ('failure', 'success')) = 0, NULL,
      Failures / countIf(Outcome IN ('failure', 'success'))) AS FailureShare,
    countIf({_VIOLATES}) AS Violations,
    if(countIf({_LOOKED}) = 0, NULL, Violations / countIf({_LOOKED})) AS ViolationShare
FROM ({SHOWN_VERDICTS})""",
    params={**RANGE, **OWNERS, **SHOWN},
    columns={
        "Runs": Column("UInt64"),
        "Judged": Column("UInt64"),
        "JudgedShare": Column("Nullable(Float64)", "of the runs"),
        "Failures": Column("UInt64", "judged runs that failed"),
        "FailureShare": Column("Nullable(Float64)", "of the runs whose outcome is known"),
        "Violations": Column("UInt64", "judged runs with a specification violation"),
        "ViolationShare": Column("Nullable(Float64)", "of the runs in which one was looked for"),
    },
)


_NAMES = {category.value: category.name.lower().replace("_", "-") for category in Category}
_MASKS = {
    value: mode_mask(code for code in FAILURE_MODES if code.startswith(f"{value}."))
    for value in _NAMES
}
_CATEGORIES = ", ".join(f"({_MASKS[value]}, '{name}')" for value, name in _NAMES.items())
_FROM_THEN = "{since:DateTime64(3)}"
_BEFORE = (
    "fromUnixTimestamp64Milli(greatest(0, 2 * toUnixTimestamp64Milli({since:DateTime64(3)})"
    " - toUnixTimestamp64Milli({until:DateTime64(3)})))"
)

CATEGORIES_OVER_TIME: Final = Query(
    name="categories_over_time",
    meaning="Share of the examined runs with a failure mode of each category, over time.",
    template=f"""
SELECT Time, Category.2 AS Category, Runs, Examined, if(Examined = 0, NULL, Runs / Examined) AS Share
FROM (
  SELECT toStartOfInterval(toDateTime(RunStart), toIntervalSecond({{bucket:UInt32}})) AS Time,
    sumForEach(arrayMap(category -> toUInt64(bitAnd(ShownBits, category.1) != 0),
      [{_CATEGORIES}])) AS Counts,
    sumForEach(arrayMap(category -> toUInt64(bitAnd(ExaminedBits, category.1) != 0),
      [{_CATEGORIES}])) AS Looked
  FROM ({SHOWN_VERDICTS})
  GROUP BY Time
)
ARRAY JOIN [{_CATEGORIES}] AS Category, Counts AS Runs, Looked AS Examined
ORDER BY Time, Category""",
    params={**RANGE, **OWNERS, **SHOWN, **BUCKET},
    columns={
        "Time": Column("DateTime", "beginning of the stretch"),
        "Category": Column("String", "specification, inter-agent or verification"),
        "Runs": Column("UInt64", "with a mode of it"),
        "Examined": Column("UInt64", "runs in which a mode of it was looked for"),
        "Share": Column("Nullable(Float64)", "Runs / Judged"),
    },
)

MODES_COMPARED: Final = Query(
    name="modes_compared",
    meaning="Each failure mode in the range and in as long a time before it, largest rise first.",
    template=f"""
SELECT Code, Runs, Examined, if(Examined = 0, NULL, Runs / Examined) AS Share,
    ExaminedBefore, if(ExaminedBefore = 0, NULL, RunsBefore / ExaminedBefore) AS ShareBefore,
    Share - ShareBefore AS Rise
FROM (
  SELECT
    arrayResize(sumForEachIf(Looked, RunStart >= {_FROM_THEN}), {len(FAILURE_MODES)}) AS AllLooked,
    arrayResize(sumForEachIf(Looked, RunStart < {_FROM_THEN}), {len(FAILURE_MODES)}) AS LookedBefore,
    arrayResize(sumForEachIf(Shown, RunStart >= {_FROM_THEN}), {len(FAILURE_MODES)}) AS Counts,
    arrayResize(sumForEachIf(Shown, RunStart < {_FROM_THEN}), {len(FAILURE_MODES)}) AS CountsBefore
  FROM (
    SELECT RunStart, {MODE_HITS} AS Shown, {MODES_EXAMINED} AS Looked
    FROM ({SHOWN_VERDICTS.replace(_FROM_THEN, _BEFORE)})
  )
)
ARRAY JOIN {CODES} AS Code, Counts AS Runs, CountsBefore AS RunsBefore, AllLooked AS Examined,
  LookedBefore AS ExaminedBefore
ORDER BY Rise DESC NULLS LAST, Share DESC, Code""",
    params={**RANGE, **OWNERS, **SHOWN},
    columns={
        "Code": Column("String", "of the failure mode"),
        "Runs": Column("UInt64", "that show it"),
        "Examined": Column("UInt64", "runs of the range in which it was looked for"),
        "Share": Column("Nullable(Float64)", "Runs / Judged"),
        "ExaminedBefore": Column("UInt64", "those of the time before"),
        "ShareBefore": Column("Nullable(Float64)", "of those that show it"),
        "Rise": Column("Nullable(Float64)", "of the share"),
    },
)

FOUND_BY_DAY: Final = Query(
    name="found_by_day",
    meaning="Judged runs of each day that are suspect, by failure mode, and by the agent that decided a failure.",
    template=f"""
SELECT toDate(RunStart) AS Day, Found.1 AS Kind, Found.2 AS Value, count() AS Runs
FROM (
  SELECT RunStart, ShownBits, DecisiveAgent, DecisiveStep, `LookFirst.Step` AS Places,
    if(RunOutcome != '', RunOutcome, Outcome) = 'failure' AS Failed
  FROM ({SHOWN_VERDICTS})
)
ARRAY JOIN arrayConcat(
  if(Failed OR empty(Places), [], [('suspect', '')]),
  arrayMap(code -> ('mode', toString(code)),
    arrayFilter((code, i) -> bitTest(ShownBits, i), {CODES}, range({len(FAILURE_MODES)}))),
  if(Failed AND isNotNull(DecisiveStep) AND DecisiveAgent != '', [('agent', toString(DecisiveAgent))], [])
) AS Found
GROUP BY Day, Kind, Value
ORDER BY Day, Kind, Value""",
    params={**RANGE, **OWNERS, **SHOWN},
    columns={
        "Day": Column("Date", "on which the runs started, UTC"),
        "Kind": Column("String", "suspect, mode or agent"),
        "Value": Column("String", "the mode's code, or the agent; else empty"),
        "Runs": Column("UInt64"),
    },
)
