"""Named queries that separate failed runs from successful ones, versions from each other, and new patterns from old."""

from __future__ import annotations

from typing import Final

from mast_trace_dashboards.queries.exact_tests import at_least, evidence, with_holm
from mast_trace_dashboards.queries.patterns import EXAMINED, code_index
from mast_trace_dashboards.queries.query import Column, Param, Query, limit
from mast_trace_dashboards.queries.sql import CODES, END, MODES_EXAMINED, OWNED, OWNERS, RANGE
from mast_trace_judge.patterns.places import NEWEST, PATTERN, PATTERN_ID, PLACES

_IN_RANGE: Final = "RunStart >= {since:DateTime64(3)} AND RunStart < {until:DateTime64(3)}"
# One more action is in every run: it counts the runs of a service.
_SEPARATED: Final = f"""
SELECT Service, OfAgent AS Agent, OfAction AS Action, Absent,
    if(Absent, AllFailed - With, With) AS FailedRuns, if(Absent, AllPassed - Without, Without) AS PassedRuns,
    AllFailed, AllPassed,
    if(FailedRuns = 0, 0., FailedRuns / sqrt(AllFailed * (FailedRuns + PassedRuns))) AS Ochiai,
    {at_least("[FailedRuns]", "[AllFailed]", "[FailedRuns + PassedRuns]", "[AllFailed + AllPassed]")}[1] AS PValue
FROM (
  SELECT *, max(With * OfAll) OVER (PARTITION BY Service) AS AllFailed,
    max(Without * OfAll) OVER (PARTITION BY Service) AS AllPassed
  FROM (
    SELECT toString(ServiceName) AS Service, OfAgent, OfAction, OfAll, toInt64(countIf(Outcome = 'failure')) AS With,
      toInt64(countIf(Outcome = 'success')) AS Without
    FROM ({NEWEST})
    ARRAY JOIN arrayPushFront(arrayMap(i -> toString(i), `Actions.Agent`), '') AS OfAgent,
      arrayPushFront(arrayMap(i -> toString(i), `Actions.Name`), '') AS OfAction,
      arrayPushFront(arrayMap(i -> 0, `Actions.Name`), 1) AS OfAll
    WHERE {_IN_RANGE} AND {OWNED} AND Outcome IN ('failure', 'success')
    GROUP BY Service, OfAgent, OfAction, OfAll
  )
)
ARRAY JOIN [false, true] AS Absent
WHERE OfAll = 0 AND AllFailed > 0 AND AllPassed > 0
  AND FailedRuns + PassedRuns > 0 AND FailedRuns + PassedRuns < AllFailed + AllPassed"""

SEPARATING_ACTIONS: Final = Query(
    name="separating_actions",
    meaning="Agents and actions that separate failed from successful runs, of recorded outcomes, by service.",
    template=f"""
SELECT *
FROM ({with_holm(_SEPARATED, "PValue", "Corrected", "Service")})
WHERE Corrected < {{below:Float64}}
ORDER BY PValue, Ochiai DESC, Service, Agent, Action, Absent
LIMIT {{limit:UInt32}}""",
    params={
        **RANGE,
        **OWNERS,
        "below": Param("Float64", 0.05, "corrected probability below which an action is returned"),
        **limit(100),
    },
    columns={
        "Service": Column("String"),
        "Agent": Column("String"),
        "Action": Column(
            "String",
            "such as `tool search`, `tool search, 4 times or more` or `message to critic`; empty: the agent acts at all",
        ),
        "Absent": Column("Bool", "whether the row is about the runs without it"),
        "FailedRuns": Column("Int64", "failed runs with it, or without it"),
        "PassedRuns": Column("Int64", "successful runs, likewise"),
        "AllFailed": Column("Int64", "failed runs of the service"),
        "AllPassed": Column("Int64", "successful runs of the service"),
        "Ochiai": Column(
            "Float64",
            "FailedRuns / sqrt(AllFailed * (FailedRuns + PassedRuns)), from 0 to 1 "
            "(Ochiai; for faults, Abreu et al. 2007)",
        ),
        "PValue": Column(
            "Float64", "of so many failed runs if it had nothing to do with failing (Fisher)"
        ),
        "Corrected": Column(
            "Nullable(Float64)", "the same, corrected for all tests of the service (Holm)"
        ),
    },
)

KNOWN_OUTCOMES: Final = Query(
    name="known_outcomes",
    meaning="Judged runs by service, and those with a recorded outcome, which alone are compared by "
    "separating_actions.",
    template=f"""
SELECT toString(ServiceName) AS Service, count() AS Runs, countIf(Outcome = 'failure') AS Failed,
    countIf(Outcome = 'success') AS Passed
FROM ({NEWEST})
WHERE {_IN_RANGE} AND {OWNED}
GROUP BY Service
ORDER BY Runs DESC, Service
LIMIT {{limit:UInt32}}""",
    params={**RANGE, **OWNERS, **limit(100)},
    columns={
        "Service": Column("String"),
        "Runs": Column("UInt64", "judged runs"),
        "Failed": Column("UInt64", "of these, runs with a recorded failure"),
        "Passed": Column("UInt64", "likewise, with a recorded success"),
    },
)

_OF_VERSIONS: Final = f"""
SELECT toString(ServiceName) AS Service, toString(Version) AS OfVersion, min(RunStart) AS FirstSeen,
    sumForEach(arrayConcat([toUInt64(Outcome = 'failure')],
      arrayMap((code, looked) -> looked * has(arrayMap(i -> toString(i), `Hits.Code`), code),
        {CODES}, {MODES_EXAMINED}))) AS Hits,
    sumForEach(arrayConcat([toUInt64(Outcome IN ('failure', 'success'))], {MODES_EXAMINED})) AS Looked
FROM ({NEWEST})
WHERE {_IN_RANGE} AND {OWNED} AND Version != ''
GROUP BY Service, OfVersion"""
_EARLIER: Final = """OVER (PARTITION BY Service, Measure ORDER BY FirstSeen, OfVersion
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"""
_GATES: Final = {
    "min_runs": Param("UInt32", 20, "examined runs that a version, and those before it, must have"),
    "min_hits": Param("UInt32", 5, "hits that a version must have"),
    "min_ratio": Param("Float64", 2.0, "times the rate of before that the rate must reach"),
}

VERSION_REGRESSIONS: Final = Query(
    name="version_regressions",
    meaning="Rates of failures and failure modes by version of a service, against all versions before it, by the "
    "exact test of the alerts.",
    template=f"""
SELECT Service, OfVersion AS Version, FirstSeen, Measure, Runs, Examined, RunsBefore, ExaminedBefore,
    if(Examined >= {{min_runs:UInt32}} AND ExaminedBefore >= {{min_runs:UInt32}} AND Runs >= {{min_hits:UInt32}}
      AND Runs / Examined >= {{min_ratio:Float64}} * Rate,
      {evidence("Runs", "Examined", "Rate")}, 0.) AS Evidence
FROM (
  SELECT Service, OfVersion, FirstSeen, Measure, Runs, Examined, sum(Runs) {_EARLIER} AS RunsBefore,
    sum(Examined) {_EARLIER} AS ExaminedBefore, (RunsBefore + 1) / (ExaminedBefore + 10) AS Rate
  FROM (
    SELECT Service, OfVersion, FirstSeen, Measure, Runs, Examined
    FROM ({_OF_VERSIONS})
    ARRAY JOIN arrayConcat(['failures'], {CODES}) AS Measure, Hits AS Runs, Looked AS Examined
  )
)
WHERE ExaminedBefore > 0 AND Examined > 0
ORDER BY Evidence DESC, Service, FirstSeen DESC, Measure
LIMIT {{limit:UInt32}}""",
    params={**RANGE, **OWNERS, **_GATES, **limit(100)},
    columns={
        "Service": Column("String"),
        "Version": Column("String"),
        "FirstSeen": Column("DateTime64(9)", "start of its first run in the range"),
        "Measure": Column("String", "failures (recorded ones), or a failure mode's code"),
        "Runs": Column("UInt64", "of the version that show it"),
        "Examined": Column("UInt64", "of the version in which it was looked for"),
        "RunsBefore": Column("UInt64", "the same of all versions before"),
        "ExaminedBefore": Column("UInt64"),
        "Evidence": Column(
            "Float64",
            "minus the decimal logarithm of the probability of so many at the smoothed rate of "
            "before; 0 below the gates; from 3 on it is a warning, from 4 a page, as in the alerts",
        ),
    },
)

_UNTIL: Final = "{until:DateTime64(3)}"
_WINDOW: Final = f"RunStart > {_UNTIL} - toIntervalHour({{hours:UInt32}}) AND RunStart <= {_UNTIL}"
_SEEN: Final = f"""
SELECT Project, {PATTERN_ID} AS PatternId, Code AS OfCode, ServiceName AS Service, countIf({_WINDOW}) AS Hits,
    min(RunStart) AS First
FROM ({PLACES})
WHERE RunStart <= {_UNTIL}
GROUP BY {PATTERN}, Service"""
_LOOKED: Final = f"""
SELECT toString(Project) AS Project, toString(ServiceName) AS Service,
    sumForEach(arrayMap(i -> i * ({_WINDOW}), {EXAMINED})) AS Now,
    sumForEach(arrayMap(i -> i * NOT ({_WINDOW}), {EXAMINED})) AS Before
FROM ({NEWEST})
WHERE RunStart <= {_UNTIL}
GROUP BY Project, Service"""
_AGAIN: Final = f"""
SELECT p.Project AS Project, p.PatternId AS PatternId, p.ServiceName AS Service
FROM ({PLACES}) AS p
INNER JOIN (
  SELECT toString(Project) AS SaidProject, PatternId AS SaidPattern, ChangedAt, Version AS SaidVersion, OldVersions
  FROM mast_pattern_states FINAL WHERE State = 'resolved'
) AS s ON s.SaidProject = p.Project AND s.SaidPattern = p.PatternId
WHERE {_WINDOW} AND p.RunStart > s.ChangedAt AND (s.SaidVersion = '' OR NOT has(s.OldVersions, p.Version))
GROUP BY Project, PatternId, Service"""

NEW_PATTERNS: Final = Query(
    name="new_patterns",
    meaning="Patterns of a service that are new in the last day and no coincidence, or came back after they were "
    "resolved.",
    template=f"""
SELECT CAST(Service AS String) AS service, toFloat64(sum(Counts)) AS Patterns
FROM (
  SELECT Service, 0 AS Counts FROM ({_LOOKED})
  UNION ALL
  SELECT p.Service AS Service, 1 AS Counts
  FROM (
    SELECT *, min(First) OVER (PARTITION BY Project, PatternId) AS FirstOfAll FROM ({_SEEN})
  ) AS p
  INNER JOIN ({_LOOKED}) AS t ON t.Project = p.Project AND t.Service = p.Service
  LEFT JOIN (
    SELECT toString(Project) AS SaidProject, PatternId AS SaidPattern, State FROM mast_pattern_states FINAL
  ) AS s ON s.SaidProject = p.Project AND s.SaidPattern = p.PatternId
  WHERE FirstOfAll > {_UNTIL} - toIntervalHour({{hours:UInt32}}) AND s.State IN ('', 'open')
    AND p.Hits >= {{min_hits:UInt32}} AND t.Before[{code_index("p.OfCode")}] >= {{min_runs:UInt32}}
    AND {evidence("p.Hits", f"t.Now[{code_index('p.OfCode')}]", f"1 / (t.Before[{code_index('p.OfCode')}] + 10)")}
      >= {{evidence:Float64}}
  UNION ALL
  SELECT Service, 1 AS Counts FROM ({_AGAIN})
)
GROUP BY Service
ORDER BY service""",
    params={
        "until": Param("DateTime64(3)", END, "the moment of the evaluation"),
        "hours": Param("UInt32", 24, "hours for which a pattern is new"),
        "min_hits": Param("UInt32", 5, "runs of the service that must show it in this time"),
        "min_runs": Param("UInt32", 20, "examined runs of the service before this time"),
        "evidence": Param(
            "Float64",
            3.0,
            "minus the decimal logarithm of the probability of so many, at the smoothed rate of 0 before",
        ),
    },
    columns={
        "service": Column("String"),
        "Patterns": Column(
            "Float64", "new and neither acknowledged nor resolved, or resolved and back"
        ),
    },
)
