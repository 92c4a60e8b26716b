"""Named queries on patterns: failures that recur over runs, from ``mast_pattern_runs``."""

from __future__ import annotations

from typing import Final

from mast_trace.taxonomy import FAILURE_MODES
from mast_trace_dashboards.queries.exact_tests import at_least, wilson, with_holm
from mast_trace_dashboards.queries.query import Column, Param, Query, limit
from mast_trace_dashboards.queries.sql import BUCKET, CODES, MODES_EXAMINED, OWNED, OWNERS, RANGE
from mast_trace_judge.patterns.places import NEWEST, PATTERN, PATTERN_ID, PLACES, RECURS, STAGE

EXAMINED: Final = f"arrayConcat([toUInt64(1)], {MODES_EXAMINED})"
"""1 for a decisive error without a mode, which is always looked for; then as `MODES_EXAMINED`."""

_IN_RANGE: Final = "RunStart >= {since:DateTime64(3)} AND RunStart < {until:DateTime64(3)}"
_LATE: Final = (
    "RunStart >= least({until:DateTime64(3)}, now64(3)) - toIntervalDay({recent_days:UInt32})"
)
_CHOSEN: Final = {
    "patterns": Param("Array(String)", [], "ids of patterns; none means all"),
    "modes": Param("Array(String)", [], "codes of failure modes; none means all"),
    "agents": Param("Array(String)", [], "agents; none means all"),
    "states": Param("Array(String)", [], "open, acknowledged, resolved, reopened; none means all"),
    "min_runs": Param("UInt32", RECURS, "fewest runs in the range"),
    "recent_days": Param("UInt32", 7, "days at the end of the range whose rate is the trend's"),
    **limit(100),
}
_CONFIRMATIONS: Final = "SELECT RunKey, Fingerprint FROM mast_confirmations FINAL"
_COUNTED: Final = f"""
SELECT toString(Project) AS OfProject, {PATTERN_ID} AS Id, toString(Code) AS OfCode, toString(Agent) AS OfAgent,
    toString(Peer) AS OfPeer, toString(Tool) AS OfTool,
    arrayStringConcat(arrayMap((one, other) -> if(one = other, one, '<*>'), minForEach(Words), maxForEach(Words)), ' ')
      AS OfText,
    min(RunStart) AS FirstSeen, max(RunStart) AS LastSeen,
    maxMap(map(toString(Version), toUnixTimestamp64Nano(RunStart))) AS LastOfVersions,
    countIf(Inside) AS Runs, countIf(Inside AND Late) AS RecentRuns,
    countIf(Inside AND Outcome = 'failure') AS Failed, countIf(Inside AND Outcome = 'success') AS Succeeded,
    quantileExactIf(0.5)(Step, Inside) AS TypicalStep, quantileExactIf(0.5)(Steps, Inside) AS TypicalSteps,
    countIf(Inside AND isNotNull(DecisiveStep)) AS Decided,
    countIf(Inside AND DecisiveStep = Step) AS DecidedHere,
    groupUniqArrayIf(20)(toString(ServiceName), Inside) AS InServices,
    groupUniqArrayIf(20)(toString(Version), Inside AND Version != '') AS InVersions,
    sumIf(Tokens, Inside) AS AllTokens,
    countIf(Inside AND (RunKey, Fingerprint) IN ({_CONFIRMATIONS})) AS Replayed,
    countIf(Inside AND (RunKey, Fingerprint) IN ({_CONFIRMATIONS} WHERE isNotNull(OriginStep))) AS Confirmed,
    argMaxIf(TraceId, RunStart, Inside) AS NewestRun
FROM (
  SELECT *, splitByChar(' ', if(Kept = 0, '', Text)) AS Words, {_IN_RANGE} AS Inside, {_LATE} AS Late
  FROM ({PLACES})
  WHERE {OWNED}
)
GROUP BY {PATTERN}
HAVING Runs >= {{min_runs:UInt32}}
  AND (empty({{modes:Array(String)}}) OR has({{modes:Array(String)}}, OfCode))
  AND (empty({{agents:Array(String)}}) OR has({{agents:Array(String)}}, OfAgent))
  AND (empty({{patterns:Array(String)}}) OR has({{patterns:Array(String)}}, Id))"""
# The empty code is of decisive errors without a mode, which are always looked for.
_TOTALS: Final = f"""
SELECT Project AS LookedProject, LookedCode, sum(Runs) AS Examined, sum(Recent) AS RecentExamined,
    sum(Failed) AS KnownFailed, sum(Succeeded) AS KnownSucceeded
FROM (
  SELECT toString(Project) AS Project, ExaminedBits, countIf({_IN_RANGE}) AS Runs,
    countIf({_IN_RANGE} AND {_LATE}) AS Recent, countIf({_IN_RANGE} AND Outcome = 'failure') AS Failed,
    countIf({_IN_RANGE} AND Outcome = 'success') AS Succeeded
  FROM ({NEWEST})
  WHERE {OWNED}
  GROUP BY Project, ExaminedBits
)
ARRAY JOIN arrayPushFront(arrayFilter((code, i) -> bitTest(ExaminedBits, i), {CODES}, range({len(FAILURE_MODES)})), '')
  AS LookedCode
GROUP BY Project, LookedCode"""
_TESTS: Final = at_least(
    "[Failed, RecentRuns, toUInt64(Runs - RecentRuns)]",
    "[KnownFailed, Runs, Runs]",
    "[Failed + Succeeded, RecentExamined, toUInt64(Examined - RecentExamined)]",
    "[KnownFailed + KnownSucceeded, Examined, Examined]",
)
PATTERN_NAMING: Final = Query(
    name="pattern_naming",
    meaning="Projects in which a model's last call for the name of a pattern failed, in the last week.",
    template="""
SELECT toString(Project) AS Project, argMax(toString(Model), StartedAt) AS NamedBy, max(StartedAt) AS AskedAt,
    argMax(if(Status = 'ok', '', if(empty(Error), 'no answer', Error)), StartedAt) AS Reason
FROM mast_judge_calls FINAL
WHERE Stage = {stage:String} AND StartedAt >= now64(3) - toIntervalDay(7)
  AND (empty({projects:Array(String)}) OR has({projects:Array(String)}, Project))
GROUP BY Project
HAVING notEmpty(Reason)
ORDER BY AskedAt DESC, Project""",
    params={
        "projects": OWNERS["projects"],
        "stage": Param("String", STAGE, "the ledger's name of the question"),
    },
    columns={
        "Project": Column("String"),
        "NamedBy": Column("String", "the model"),
        "AskedAt": Column("DateTime64(3)"),
        "Reason": Column("String", "for which it gave no name"),
    },
)
PATTERN_RUNS: Final = Query(
    name="pattern_runs",
    meaning="The runs of a pattern, newest first.",
    template=f"""
SELECT toString(Project) AS Project, TraceId, RunStart, toString(ServiceName) AS ServiceName,
    toString(Version) AS Version, toString(Outcome) AS Outcome, Step, Steps, DecisiveStep, Text,
    Tokens, ReplayedKey != 0 AS Replayed, isNotNull(OriginStep) AS Confirmed
FROM ({PLACES}) AS h
LEFT JOIN (
  SELECT RunKey AS ReplayedKey, Fingerprint AS ReplayedState, OriginStep FROM mast_confirmations FINAL
) AS c ON c.ReplayedKey = h.RunKey AND c.ReplayedState = h.Fingerprint
WHERE PatternId = {{pattern:String}} AND {_IN_RANGE} AND {OWNED}
ORDER BY RunStart DESC, TraceId
LIMIT {{limit:UInt32}}""",
    params={
        **RANGE,
        **OWNERS,
        "pattern": Param("String", "", "its id"),
        **limit(50),
    },
    columns={
        "Project": Column("String"),
        "TraceId": Column("String"),
        "RunStart": Column("DateTime64(9)"),
        "ServiceName": Column("String"),
        "Version": Column("String", "of the service; empty if it states none"),
        "Outcome": Column("String", "recorded; empty if none was"),
        "Step": Column("UInt32", "the first step that shows the pattern"),
        "Steps": Column("UInt32"),
        "DecisiveStep": Column("Nullable(UInt32)"),
        "Text": Column("String", "masked text of the step"),
        "Tokens": Column("UInt64"),
        "Replayed": Column("UInt8", "1 if replays have come to a conclusion"),
        "Confirmed": Column("UInt8", "1 if they have confirmed its decisive step"),
    },
)


def code_index(code: str) -> str:
    """Return the SQL of a failure mode's place in `EXAMINED`."""
    return f"(1 + indexOf({CODES}, {code}))"


_LOW, _HIGH = wilson("Runs", "Examined")
_TESTED: Final = f"""
SELECT found.*, Examined, RecentExamined, KnownFailed, KnownSucceeded, {_LOW} AS Low, {_HIGH} AS High, {_TESTS} AS Tails,
    if(Failed + Succeeded = 0 OR KnownFailed = 0 OR KnownSucceeded = 0, NULL, Tails[1]) AS PValue,
    multiIf(RecentExamined = 0 OR RecentExamined = Examined, 'unknown', Tails[2] <= 0.01, 'rising',
      Tails[3] <= 0.01, 'falling', 'steady') AS Trend
FROM ({_COUNTED}) AS found
LEFT JOIN ({_TOTALS}) AS t ON t.LookedProject = found.OfProject AND t.LookedCode = found.OfCode"""

PATTERNS: Final = Query(
    name="patterns",
    meaning="Failures that recur over runs, most frequent first.",
    template=f"""
SELECT OfProject AS Project, found.Id AS PatternId, OfCode AS Code, OfAgent AS Agent, OfPeer AS Peer,
    OfTool AS Tool, OfText AS Text, n.Sentence AS Sentence, n.Quotes AS Quotes,
    toString(n.Model) AS NamedBy, if(empty(n.Model), NULL, toDateTime64(n.NamedAt, 6)) AS NamedAt,
    multiIf(Said = 'resolved' AND arrayExists((version, seen) -> seen > toUnixTimestamp64Nano(SaidAt)
        AND (SaidVersion = '' OR NOT has(OldVersions, version)),
      mapKeys(LastOfVersions), mapValues(LastOfVersions)), 'reopened', Said = '', 'open', Said) AS State,
    SaidVersion AS StateVersion, SaidBy AS StateBy, SaidNote AS Note, if(Said = '', NULL, toDateTime64(SaidAt, 6)) AS StateSince,
    FirstSeen, LastSeen, Runs, Examined, Runs / Examined AS Share, Low, High,
    RecentRuns, RecentExamined, Trend, Failed, Succeeded, KnownFailed, KnownSucceeded, PValue, Corrected,
    TypicalStep, TypicalSteps, Decided, DecidedHere, arraySort(InServices) AS Services,
    arraySort(InVersions) AS Versions, AllTokens AS Tokens, Replayed, Confirmed, NewestRun
FROM ({with_holm(_TESTED, "PValue", "Corrected")}) AS found
LEFT JOIN (
  SELECT toString(Project) AS SaidProject, PatternId AS SaidPattern, toString(State) AS Said,
    toDateTime64(ChangedAt, 9) AS SaidAt, Version AS SaidVersion, OldVersions, toString(Author) AS SaidBy,
    Note AS SaidNote
  FROM mast_pattern_states FINAL
) AS s ON s.SaidProject = found.OfProject AND s.SaidPattern = found.Id
LEFT JOIN (SELECT * FROM mast_pattern_names FINAL ORDER BY NamedAt DESC LIMIT 1 BY Project, PatternId) AS n
  ON n.Project = found.OfProject AND n.PatternId = found.Id
WHERE empty({{states:Array(String)}}) OR has({{states:Array(String)}}, State)
ORDER BY Runs DESC, LastSeen DESC, PatternId
LIMIT {{limit:UInt32}}""",
    params={**RANGE, **OWNERS, **_CHOSEN},
    columns={
        "Project": Column("String"),
        "PatternId": Column("String"),
        "Code": Column("String", "failure mode; empty for decisive errors that show none"),
        "Agent": Column("String", "agent of the first step that shows it"),
        "Peer": Column("String", "recipient, where that step is a message to one agent"),
        "Tool": Column("String", "tool, where it is a tool call"),
        "Text": Column("String", "template of the masked texts; empty where they differ"),
        "Sentence": Column(
            "String", "a model's sentence on it, from `mast_pattern_names`; empty if there is none"
        ),
        "Quotes": Column("Array(String)", "passages of its runs that the sentence rests on"),
        "NamedBy": Column("String", "the model that was asked for the sentence; empty if none was"),
        "NamedAt": Column("Nullable(DateTime64(6))", "time of its answer"),
        "State": Column("String", "open, acknowledged, resolved, reopened"),
        "StateVersion": Column("String", "version in which it was resolved"),
        "StateBy": Column("String", "the person who acknowledged or resolved it"),
        "Note": Column("String"),
        "StateSince": Column("Nullable(DateTime64(6))"),
        "FirstSeen": Column("DateTime64(9)", "start of the first run of all that are kept"),
        "LastSeen": Column("DateTime64(9)", "start of the last run of all"),
        "Runs": Column("UInt64", "runs of the range that show it"),
        "Examined": Column("UInt64", "runs of the project in the range in which it was looked for"),
        "Share": Column("Float64", "of the examined runs"),
        "Low": Column("Nullable(Float64)", "lower end of the share's 95 % interval"),
        "High": Column("Nullable(Float64)", "upper end"),
        "RecentRuns": Column("UInt64", "of the runs, those of the range's last days"),
        "RecentExamined": Column("UInt64", "of the examined runs, likewise"),
        "Trend": Column(
            "String",
            "rising or falling: the last days' rate differs from that before, p <= 0.01; steady: no such "
            "difference was found; unknown: one of the two has no runs",
        ),
        "Failed": Column("UInt64", "of the runs, those with a recorded failure"),
        "Succeeded": Column("UInt64", "of the runs, those with a recorded success"),
        "KnownFailed": Column("UInt64", "of the examined runs, those with a recorded failure"),
        "KnownSucceeded": Column("UInt64", "of the examined runs, those with a recorded success"),
        "PValue": Column(
            "Nullable(Float64)",
            "probability of so many failures among its runs if it had nothing to do with them "
            "(Fisher's exact test, one-sided); NULL without recorded outcomes",
        ),
        "Corrected": Column(
            "Nullable(Float64)", "the same, corrected for all tested patterns (Holm)"
        ),
        "TypicalStep": Column("UInt32", "median of the step that shows it"),
        "TypicalSteps": Column("UInt32", "median of the runs' steps"),
        "Decided": Column("UInt64", "runs with a decisive step"),
        "DecidedHere": Column("UInt64", "runs whose decisive step is the one that shows it"),
        "Services": Column("Array(String)", "in which it occurs, at most 20"),
        "Versions": Column("Array(String)", "of these services, at most 20"),
        "Tokens": Column("UInt64", "of its runs, read and written"),
        "Replayed": Column("UInt64", "runs with a conclusion of replays"),
        "Confirmed": Column("UInt64", "of these, runs whose decisive step was confirmed"),
        "NewestRun": Column("String", "id of the newest run"),
    },
)


PATTERNS_OVER_TIME: Final = Query(
    name="patterns_over_time",
    meaning="Runs of patterns in each stretch of time, as a share of the project's examined runs.",
    template=f"""
SELECT h.Time AS Time, h.PatternId AS PatternId, h.Name AS Name, h.Runs AS Runs,
    t.Looked[{code_index("h.OfCode")}] AS Examined, Runs / Examined AS Share
FROM (
  SELECT Project, toStartOfInterval(toDateTime(RunStart), toIntervalSecond({{bucket:UInt32}})) AS Time,
    PatternId, any(Code) AS OfCode,
    arrayStringConcat(arrayFilter(part -> part != '', [any(Code), any(Agent), any(Tool)]), ' ') AS Name,
    count() AS Runs
  FROM ({PLACES})
  WHERE {_IN_RANGE} AND {OWNED}
    AND (empty({{patterns:Array(String)}}) OR has({{patterns:Array(String)}}, PatternId))
  GROUP BY Project, Time, PatternId
) AS h
INNER JOIN (
  SELECT toString(Project) AS Project,
    toStartOfInterval(toDateTime(RunStart), toIntervalSecond({{bucket:UInt32}})) AS Time,
    sumForEach({EXAMINED}) AS Looked
  FROM ({NEWEST})
  WHERE {_IN_RANGE} AND {OWNED}
  GROUP BY Project, Time
) AS t ON t.Project = h.Project AND t.Time = h.Time
ORDER BY Time, Runs DESC, PatternId
LIMIT {{limit:UInt32}}""",
    params={
        **RANGE,
        **OWNERS,
        **BUCKET,
        "patterns": Param("Array(String)", [], "ids of patterns; none means all"),
        **limit(10_000),
    },
    columns={
        "Time": Column("DateTime", "beginning of the stretch"),
        "PatternId": Column("String"),
        "Name": Column("String", "its failure mode, agent and tool"),
        "Runs": Column("UInt64"),
        "Examined": Column("UInt64", "runs in which it was looked for"),
        "Share": Column("Float64"),
    },
)
