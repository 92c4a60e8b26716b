"""Named queries that compare failure modes with frameworks, models and agents, as shares."""

from __future__ import annotations

from itertools import combinations
from typing import Final

from mast_trace.taxonomy import FAILURE_MODES, SPECIFICATION_CODES
from mast_trace_dashboards.queries.query import Column, Param, Query
from mast_trace_dashboards.queries.sql import (
    CODES,
    COUNTED_RUNS,
    JUDGED,
    MODE_HITS,
    MODES_EXAMINED,
    OWNERS,
    RANGE,
    SHOWN,
    SHOWN_VERDICTS,
    mode_mask,
)

_VIOLATES = f"bitAnd(ShownBits, {mode_mask(SPECIFICATION_CODES)}) != 0"
_LOOKED = f"bitAnd(ExaminedBits, {mode_mask(SPECIFICATION_CODES)}) != 0"
_PAIRS = list(combinations(FAILURE_MODES, 2))
_PAIR_BITS = [mode_mask(pair) for pair in _PAIRS]
_LIMIT = {"limit": Param("UInt32", 200, "most rows to return")}
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
        params={**RANGE, **OWNERS, **SHOWN, **_LIMIT},
        columns={column: Column("String"), **_SHARE_COLUMNS},
    )


MODES_BY_FRAMEWORK: Final = _by(
    "modes_by_framework", "Framework", "toString(Framework)", SHOWN_VERDICTS
)
MODES_BY_SERVICE: Final = _by(
    "modes_by_service", "Service", "toString(ServiceName)", SHOWN_VERDICTS
)
MODES_BY_AGENT: Final = _by("modes_by_agent", "Agent", "arrayJoin(Agents)", JUDGED)
MODES_BY_MODEL: Final = _by("modes_by_model", "Model", "arrayJoin(Models)", JUDGED)

MODE_PAIRS: Final = Query(
    name="mode_pairs",
    meaning="Failure modes that occur together, and how much more often than by chance.",
    template=f"""
SELECT Codes.1 AS One, Codes.2 AS Other, Runs,
    Runs / Examined * Looked[indexOf({CODES}, One)] / Singles[indexOf({CODES}, One)]
      * Looked[indexOf({CODES}, Other)] / Singles[indexOf({CODES}, Other)] AS Lift
FROM (
  SELECT sumForEach(arrayMap(hit -> hit * Times, {MODE_HITS})) AS Singles,
    sumForEach(arrayMap(looked -> looked * Times, {MODES_EXAMINED})) AS Looked,
    sumForEach(arrayMap(pair -> (bitAnd(ShownBits, pair) = pair) * Times, {_PAIR_BITS})) AS Both,
    sumForEach(arrayMap(pair -> (bitAnd(ExaminedBits, pair) = pair) * Times, {_PAIR_BITS})) AS BothLooked
  FROM (
    SELECT ShownBits, ExaminedBits, count() AS Times
    FROM ({SHOWN_VERDICTS})
    GROUP BY ShownBits, ExaminedBits
  )
)
ARRAY JOIN {_PAIRS} AS Codes, arrayResize(Both, {len(_PAIRS)}) AS Runs,
  arrayResize(BothLooked, {len(_PAIRS)}) AS Examined
WHERE Runs > 0
ORDER BY Runs DESC, One, Other
LIMIT {{limit:UInt32}}""",
    params={**RANGE, **OWNERS, **SHOWN, **_LIMIT},
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
