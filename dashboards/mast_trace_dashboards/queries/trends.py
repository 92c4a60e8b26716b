"""Named queries of comparisons: categories over time, a period and the one before, judge and people."""

from __future__ import annotations

from typing import Final

from mast_trace.taxonomy import FAILURE_MODES, Category
from mast_trace_dashboards.queries.query import Column, Param, Query
from mast_trace_dashboards.queries.sql import (
    BUCKET,
    CODES,
    MODE_HITS,
    MODES_EXAMINED,
    OWNERS,
    RANGE,
    SHOWN,
    SHOWN_VERDICTS,
    VERDICTS,
    mode_mask,
)

_NAMES = {category.value: category.name.lower().replace("_", "-") for category in Category}
_MASKS = {
    value: mode_mask(code for code in FAILURE_MODES if code.startswith(f"{value}."))
    for value in _NAMES
}
_CATEGORIES = ", ".join(f"({_MASKS[value]}, '{name}')" for value, name in _NAMES.items())
_SINCE = "{since:DateTime64(3)}"
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
    arrayResize(sumForEachIf(Looked, RunStart >= {_SINCE}), {len(FAILURE_MODES)}) AS AllLooked,
    arrayResize(sumForEachIf(Looked, RunStart < {_SINCE}), {len(FAILURE_MODES)}) AS LookedBefore,
    arrayResize(sumForEachIf(Shown, RunStart >= {_SINCE}), {len(FAILURE_MODES)}) AS Counts,
    arrayResize(sumForEachIf(Shown, RunStart < {_SINCE}), {len(FAILURE_MODES)}) AS CountsBefore
  FROM (
    SELECT RunStart, {MODE_HITS} AS Shown, {MODES_EXAMINED} AS Looked
    FROM ({SHOWN_VERDICTS.replace(_SINCE, _BEFORE)})
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

JUDGE_CALLS_OVER_TIME: Final = Query(
    name="judge_calls_over_time",
    meaning="The judge's model calls over time: how many, how many failed, and their cost.",
    template="""
SELECT toStartOfInterval(toDateTime(StartedAt), toIntervalSecond({bucket:UInt32})) AS Time,
    count() AS Calls, countIf(Status != 'ok') / Calls AS FailedShare, sum(CostUsd) AS Cost
FROM mast_judge_calls FINAL
WHERE StartedAt >= {since:DateTime64(3)} AND StartedAt < {until:DateTime64(3)}
  AND (empty({projects:Array(String)}) OR has({projects:Array(String)}, Project))
GROUP BY Time
ORDER BY Time""",
    params={**RANGE, "projects": OWNERS["projects"], **BUCKET},
    columns={
        "Time": Column("DateTime", "beginning of the stretch"),
        "Calls": Column("UInt64"),
        "FailedShare": Column("Float64"),
        "Cost": Column("Float64", "US dollars"),
    },
)

JUDGE_AGREEMENT: Final = Query(
    name="judge_agreement",
    meaning="Agreement of the judge and people on the outcome of labelled runs.",
    template=f"""
SELECT JudgeVersion, count() AS Labels, avg(Human = Judge) AS Agreement,
    avg(Human) AS HumanFailures, avg(Judge) AS JudgeFailures,
    HumanFailures * JudgeFailures + (1 - HumanFailures) * (1 - JudgeFailures) AS ByChance,
    if(ByChance = 1, NULL, (Agreement - ByChance) / (1 - ByChance)) AS Kappa
FROM (
  SELECT v.JudgeVersion AS JudgeVersion, l.Outcome = 'failure' AS Human,
    v.Outcome = 'failure' AS Judge
  FROM (SELECT * FROM mast_human_labels FINAL WHERE Outcome IN ('failure', 'success')) AS l
  INNER JOIN ({VERDICTS}) AS v ON v.Project = l.Project AND v.TraceId = l.TraceId
  WHERE v.Status = 'ok' AND v.Outcome IN ('failure', 'success')
)
GROUP BY JudgeVersion
ORDER BY Labels DESC, JudgeVersion
LIMIT {{limit:UInt32}}""",
    params={**RANGE, **OWNERS, "limit": Param("UInt32", 20, "most rows to return")},
    columns={
        "JudgeVersion": Column("String"),
        "Labels": Column("UInt64", "that people gave to runs which it judged"),
        "Agreement": Column("Float64", "share of them with the same outcome"),
        "HumanFailures": Column("Float64", "share that people call failed"),
        "JudgeFailures": Column("Float64", "share that the judge calls failed"),
        "ByChance": Column("Float64", "agreement of two who guess at those rates"),
        "Kappa": Column("Nullable(Float64)", "Cohen's: agreement beyond chance; 1 is perfect"),
    },
)
