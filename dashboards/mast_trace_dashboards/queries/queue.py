"""The named queries on labels to come: runs by how much a label of theirs would teach, and agreement as it grows."""

from __future__ import annotations

from typing import Final

from mast_trace_dashboards.queries.query import Column, Param, Query
from mast_trace_dashboards.queries.sql import IS_SHOWN, OF_PROGRAMS, OWNED, OWNERS, RANGE, SHOWN

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
        "limit": Param("UInt32", 50, "most rows to return"),
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
