"""Named queries that hold failure modes against frameworks, models and agents, as shares."""

from __future__ import annotations

from typing import Final

from mast_trace.taxonomy import SPECIFICATION_CODES
from mast_trace_dashboards._sql import BUCKET, OWNERS, RANGE, RUNS, VERDICTS
from mast_trace_dashboards.query import Column, Param, Query

_SPECIFICATION = "[" + ", ".join(f"'{code}'" for code in SPECIFICATION_CODES) + "]"
_LIMIT = {"limit": Param("UInt32", 200, "most rows to return")}
_SHARE_COLUMNS: Final = {
    "Code": Column("String", "of the failure mode"),
    "Runs": Column("UInt64", "that show it"),
    "Judged": Column("UInt64", "judged runs of this row's group"),
    "Share": Column("Float64", "the one of the other"),
}


def _by(name: str, column: str, group: str, source: str) -> Query:
    """Return the query of modes against ``group``, a column that ``source`` gives as an array."""
    return Query(
        name=name,
        meaning=f"Failure modes against {column.lower()}s, with the number of judged runs.",
        template=f"""
SELECT {column}, Code, countIf(has(Codes, Code)) AS Runs, count() AS Judged, Runs / Judged AS Share
FROM (
  SELECT {group} AS Groups, v.`Modes.Code` AS Codes
  FROM ({VERDICTS}) AS v {source}
  WHERE v.Status = 'ok'
)
ARRAY JOIN Groups AS {column}
ARRAY JOIN (
  SELECT groupUniqArray(c) FROM (SELECT arrayJoin(`Modes.Code`) AS c FROM ({VERDICTS}))
) AS Code
WHERE {column} != ''
GROUP BY {column}, Code
HAVING Runs > 0
ORDER BY Judged DESC, {column}, Code
LIMIT {{limit:UInt32}}""",
        params={**RANGE, **OWNERS, **_LIMIT},
        columns={column: Column("String"), **_SHARE_COLUMNS},
    )


_RUN_OF = f"INNER JOIN ({RUNS}) AS r ON r.Project = v.Project AND r.TraceId = v.TraceId"

MODES_BY_FRAMEWORK: Final = _by("modes_by_framework", "Framework", "[toString(v.Framework)]", "")
MODES_BY_SERVICE: Final = _by("modes_by_service", "Service", "[toString(v.ServiceName)]", "")
MODES_BY_AGENT: Final = _by("modes_by_agent", "Agent", "r.Agents", _RUN_OF)
MODES_BY_MODEL: Final = _by("modes_by_model", "Model", "r.Models", _RUN_OF)

MODE_PAIRS: Final = Query(
    name="mode_pairs",
    meaning="Which failure modes occur together, and how much more often than by chance.",
    template=f"""
SELECT One, Other, Runs, Runs * Judged / (Singles[One] * Singles[Other]) AS Lift
FROM (
  SELECT Pair.1 AS One, Pair.2 AS Other, count() AS Runs
  FROM ({VERDICTS})
  ARRAY JOIN arrayFlatten(arrayMap(one -> arrayMap(other -> (one, other),
      arrayFilter(other -> other > one, `Modes.Code`)), `Modes.Code`)) AS Pair
  WHERE Status = 'ok'
  GROUP BY One, Other
) AS pairs
CROSS JOIN (
  SELECT count() AS Judged,
    sumMap(mapFromArrays(`Modes.Code`, arrayMap(c -> toUInt64(1), `Modes.Code`))) AS Singles
  FROM ({VERDICTS})
  WHERE Status = 'ok'
) AS totals
ORDER BY Runs DESC, One, Other
LIMIT {{limit:UInt32}}""",
    params={**RANGE, **OWNERS, **_LIMIT},
    columns={
        "One": Column("String", "code of a failure mode"),
        "Other": Column("String", "code of another"),
        "Runs": Column("UInt64", "that show both"),
        "Lift": Column("Float64", "times as often as if they were independent"),
    },
)

SPECIFICATION_OVER_TIME: Final = Query(
    name="specification_over_time",
    meaning="Share of the judged runs with a specification violation (modes 1.1 to 1.5).",
    template=f"""
SELECT toStartOfInterval(toDateTime(RunStart), toIntervalSecond({{bucket:UInt32}})) AS Time,
    countIf(hasAny(`Modes.Code`, {_SPECIFICATION})) AS Runs, count() AS Judged,
    Runs / Judged AS Share
FROM ({VERDICTS})
WHERE Status = 'ok'
GROUP BY Time
ORDER BY Time""",
    params={**RANGE, **OWNERS, **BUCKET},
    columns={
        "Time": Column("DateTime", "beginning of the stretch"),
        "Runs": Column("UInt64", "with a specification violation"),
        "Judged": Column("UInt64"),
        "Share": Column("Float64"),
    },
)

SUMMARY: Final = Query(
    name="summary",
    meaning="How things stand: one row.",
    template=f"""
SELECT
    assumeNotNull((SELECT count() FROM ({RUNS}))) AS Runs,
    count() AS Judged,
    if(Runs = 0, NULL, least(1, Judged / Runs)) AS JudgedShare,
    countIf(Outcome = 'failure') AS Failures,
    if(countIf(Outcome IN ('failure', 'success')) = 0, NULL,
      Failures / countIf(Outcome IN ('failure', 'success'))) AS FailureShare,
    countIf(hasAny(`Modes.Code`, {_SPECIFICATION})) AS Violations,
    if(Judged = 0, NULL, Violations / Judged) AS ViolationShare
FROM ({VERDICTS})
WHERE Status = 'ok'""",
    params={**RANGE, **OWNERS},
    columns={
        "Runs": Column("UInt64"),
        "Judged": Column("UInt64"),
        "JudgedShare": Column("Nullable(Float64)", "of the runs"),
        "Failures": Column("UInt64", "judged runs that failed"),
        "FailureShare": Column("Nullable(Float64)", "of the runs whose outcome is known"),
        "Violations": Column("UInt64", "judged runs with a specification violation"),
        "ViolationShare": Column("Nullable(Float64)", "of the judged runs"),
    },
)

QUERIES: Final = (
    MODES_BY_FRAMEWORK,
    MODES_BY_SERVICE,
    MODES_BY_AGENT,
    MODES_BY_MODEL,
    MODE_PAIRS,
    SPECIFICATION_OVER_TIME,
    SUMMARY,
)
