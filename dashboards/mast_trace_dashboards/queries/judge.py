"""Named queries on the judge itself: its backlog, its cost, its agreement with people, and the labels that would teach it most."""

from __future__ import annotations

from typing import Final

from mast_trace.taxonomy import FAILURE_MODES, Category
from mast_trace_dashboards.queries.query import Column, Param, Query, limit
from mast_trace_dashboards.queries.sql import (
    BUCKET,
    IS_SHOWN,
    OF_PROGRAMS,
    OWNED,
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


_VERDICTS = f"""SELECT Project, TraceId, RunStart, ServiceName, Framework, Name, Steps,
      if(RunOutcome != '', RunOutcome, '') AS Recorded, toString(Outcome) AS Judged,
      FailureProbability, DecisiveStep, DecisiveAgent, Readings, Agreeing,
      arrayReverseSort(`Candidates.Probability`) AS Chances,
      arrayDistinct(arrayFilter((code, probability) -> {IS_SHOWN},
        arrayMap(code -> toString(code), `Modes.Code`), `Modes.Probability`)) AS ShownModes
    FROM mast_verdicts
    WHERE RunStart >= {{since:DateTime64(3)}} AND RunStart < {{until:DateTime64(3)}}
      AND Status = 'ok' AND {OF_PROGRAMS}
    ORDER BY JudgedAt DESC
    LIMIT 1 BY Project, TraceId"""
_LABELS = """SELECT Project, TraceId, count() AS Labels,
      countIf({annotator:String} = '' OR Annotator = {annotator:String}) AS Own
    FROM mast_human_labels FINAL
    GROUP BY Project, TraceId"""
_OF_SERVICE = f"""SELECT s.Project AS Project, s.ServiceName AS ServiceName, uniqExact(s.RunKey) AS Known
    FROM ({_LABELS}) AS l
    INNER JOIN mast_findings AS s ON s.Project = l.Project AND s.TraceId = l.TraceId
    GROUP BY Project, ServiceName"""
_OF_MODE = """SELECT mapFromArrays(groupArray(Code), groupArray(Times)) FROM (
      SELECT arrayJoin(arrayMap(code -> toString(code), Modes)) AS Code, count() AS Times
      FROM mast_human_labels FINAL GROUP BY Code)"""

LABEL_QUEUE: Final = Query(
    name="label_queue",
    meaning="Judged runs that nobody, or not this person, has labelled: first those whose readings name "
    "different steps, then the one whose label teaches most.",
    template=f"""
WITH ({_OF_MODE}) AS of_mode
SELECT v.Project AS Project, v.TraceId AS TraceId, v.Name AS Name, v.ServiceName AS ServiceName,
    v.Framework AS Framework, v.Steps AS Steps, v.RunStart AS Start,
    v.Recorded AS RecordedOutcome, if(v.Recorded != '', v.Recorded, v.Judged) AS Outcome, v.ShownModes AS Modes,
    if(Outcome = 'success' OR empty(v.Chances), 0,
      1 - (v.Chances[1] - if(length(v.Chances) > 1, v.Chances[2], 0))) AS Unsure,
    greatest(if(v.Readings > 1, 1 - v.Agreeing / v.Readings, 0),
      if(v.Recorded = 'success', v.FailureProbability, if(v.Recorded = 'failure', 1 - v.FailureProbability, 0)))
      AS Disagreement,
    1 / (1 + toFloat64(s.Known)) AS NewService,
    if(empty(v.ShownModes), 0, arrayMax(code -> 1 / (1 + toFloat64(of_mode[code])), v.ShownModes)) AS NewMode,
    Unsure + Disagreement + (NewService + NewMode) / 2 AS Worth,
    toUInt64(l.Labels) AS Labels
FROM ({_VERDICTS}) AS v
LEFT JOIN ({_LABELS}) AS l ON l.Project = v.Project AND l.TraceId = v.TraceId
LEFT JOIN ({_OF_SERVICE}) AS s ON s.Project = v.Project AND s.ServiceName = v.ServiceName
WHERE {OWNED} AND l.Own = 0
ORDER BY v.Agreeing < v.Readings DESC, Worth DESC, Start DESC, TraceId
LIMIT {{limit:UInt32}}""",
    params={
        **RANGE,
        **OWNERS,
        **SHOWN,
        "annotator": Param(
            "String", "", "leave out the runs that this person labelled; empty: all labelled runs"
        ),
        **limit(50),
    },
    columns={
        "Project": Column("String"),
        "TraceId": Column("String", "the run's id"),
        "Name": Column("String"),
        "ServiceName": Column("String"),
        "Framework": Column("String"),
        "Steps": Column("UInt32"),
        "Start": Column("DateTime64(9)"),
        "RecordedOutcome": Column("String", "empty if none was recorded"),
        "Outcome": Column("String", "recorded, else judged"),
        "Modes": Column("Array(String)", "codes of the failure modes shown"),
        "Unsure": Column(
            "Float64", "1 less the distance of the two likeliest steps; 0 for a run that succeeded"
        ),
        "Disagreement": Column(
            "Float64",
            "share of a model's readings that name another step, or the judge's probability of the outcome that "
            "was not recorded; the greater of both",
        ),
        "NewService": Column("Float64", "1 for a service without labels, less with each label"),
        "NewMode": Column("Float64", "likewise for the failure mode shown with the fewest labels"),
        "Worth": Column("Float64", "Unsure + Disagreement + (NewService + NewMode) / 2"),
        "Labels": Column("UInt64", "of other people"),
    },
)

LABELS_OVER_TIME: Final = Query(
    name="labels_over_time",
    meaning="Labels of decisive steps in the order in which they were given, and whether the judge's step is among them.",
    template="""
SELECT l.LabelledAt AS LabelledAt, l.Annotator AS Annotator, l.TraceId AS TraceId,
    has(l.Steps, assumeNotNull(v.DecisiveStep)) AS Agrees
FROM (
  SELECT Project, TraceId, Annotator, LabelledAt,
    if(empty(DecisiveSteps), [assumeNotNull(DecisiveStep)], DecisiveSteps) AS Steps
  FROM mast_human_labels FINAL
  WHERE isNotNull(DecisiveStep)
) AS l
INNER JOIN (
  SELECT Project, TraceId, DecisiveStep FROM mast_latest_verdicts
  WHERE Status = 'ok' AND isNotNull(DecisiveStep)
) AS v ON v.Project = l.Project AND v.TraceId = l.TraceId
WHERE empty({projects:Array(String)}) OR has({projects:Array(String)}, l.Project)
ORDER BY LabelledAt DESC, TraceId, Annotator
LIMIT {limit:UInt32}""",
    params={
        "projects": OWNERS["projects"],
        "limit": Param("UInt32", 10_000, "most rows to return, the latest"),
    },
    columns={
        "LabelledAt": Column("DateTime64(3)"),
        "Annotator": Column("String"),
        "TraceId": Column("String", "the run's id"),
        "Agrees": Column("UInt8", "1 if the judge's decisive step is one of the person's"),
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
    params={**RANGE, **OWNERS, **limit(20)},
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
