"""Named queries on runs that belong together: of one user, of one session, of one version of a service, and a gate's counts."""

from __future__ import annotations

from typing import Final

from mast_trace_collector.storage.removal.thinning import VERSIONS
from mast_trace_dashboards.queries.query import Column, Param, Query, limit
from mast_trace_dashboards.queries.sql import (
    COUNTED_RUNS,
    LATEST,
    OWNED,
    OWNERS,
    RANGE,
    RUNS,
    SHOWN,
    SHOWN_BITS,
    STARTED,
    TO_BE_REPLACED,
    VERDICTS,
)

_EARLY = "Timestamp >= {since:DateTime64(3)}"
_COLUMNS: Final = {
    "user": "UserId",
    "session": "ConversationId",
    "version": "ServiceVersion",
}
GROUPS: Final = tuple(_COLUMNS)
"""Values by which runs are grouped."""


def _members(column: str) -> str:
    """Return the SQL of the runs that have a value of a column, one row each.

    A run may go on beyond the range, so spans have no upper limit of time. Runs whose spans retention has left out
    count by what was kept of them.
    """
    return f"""SELECT RunKey, max(OfRun) AS Value, max(Called) AS Service
    FROM (
      SELECT halfMD5(Project, TraceId) AS RunKey, toString(max({column})) AS OfRun,
        toString(max(ServiceName)) AS Called
      FROM otel_traces
      WHERE {_EARLY} AND {column} != ''
      GROUP BY Project, TraceId
      UNION ALL
      SELECT RunKey, toString({column}) AS OfRun, toString(ServiceName) AS Called
      FROM mast_left_out WHERE RunStart >= {{since:DateTime64(3)}} AND {column} != ''
    )
    GROUP BY RunKey"""


def _by(name: str, column: str) -> Query:
    group = "Value, Service" if name == "version" else "Value"
    service = "m.Service" if name == "version" else "max(m.Service)"
    return Query(
        name=f"runs_by_{name}",
        meaning=f"The runs of each {name}, with those that failed; the latest {name} first.",
        template=f"""
SELECT m.Value AS Value, {service} AS ServiceName, count() AS Runs,
    countIf(v.Outcome IN ('failure', 'success')) AS Known, countIf(v.Outcome = 'failure') AS Failures,
    countIf(v.RunKey != 0) AS Judged, sum(v.RunInputTokens + v.RunOutputTokens) AS Tokens,
    min(r.Begun) AS First, max(r.Begun) AS Last
FROM ({_members(column)}) AS m
INNER JOIN ({COUNTED_RUNS}) AS r ON r.RunKey = m.RunKey
LEFT JOIN (
  SELECT RunKey, if(RunOutcome != '', RunOutcome, if(Status = 'ok', Outcome, '')) AS Outcome,
    RunInputTokens, RunOutputTokens
  FROM ({VERDICTS})
) AS v ON v.RunKey = m.RunKey
GROUP BY {", ".join(f"m.{each}" for each in group.split(", "))}
ORDER BY max(least(r.Begun, r.LastSeen)) DESC, Value, ServiceName
LIMIT {{limit:UInt32}} OFFSET {{offset:UInt32}}""",
        params={
            **RANGE,
            **OWNERS,
            **limit(50),
            "offset": Param("UInt32", 0, "rows to leave out before"),
        },
        columns={
            "Value": Column("String", f"the {name}"),
            "ServiceName": Column("String"),
            "Runs": Column("UInt64"),
            "Known": Column("UInt64", "runs whose outcome is known, recorded or judged"),
            "Failures": Column("UInt64", "of these, runs that failed"),
            "Judged": Column("UInt64", "runs with a verdict"),
            "Tokens": Column("UInt64", "of the runs with a verdict"),
            "First": Column("DateTime64(9)", "start of the first run"),
            "Last": Column("DateTime64(9)", "start of the last run"),
        },
    )


RUNS_BY_USER: Final = _by("user", _COLUMNS["user"])
RUNS_BY_SESSION: Final = _by("session", _COLUMNS["session"])
RUNS_BY_VERSION: Final = _by("version", _COLUMNS["version"])

_OF_GROUP = " AND ".join(
    f"({{{name}:String}} = '' OR {column} = {{{name}:String}})" for name, column in _COLUMNS.items()
)

RUNS_OF_GROUP: Final = Query(
    name="runs_of_group",
    meaning="The ids of the runs of a user, a session, a version or a model, the latest first.",
    template=f"""
SELECT TraceId
FROM (
  SELECT toString(Project) AS OfProject, TraceId, min(Timestamp) AS Begun
  FROM otel_traces
  WHERE {_EARLY}
    AND {_OF_GROUP}
    AND ({{model:String}} = '' OR Model = {{model:String}})
  GROUP BY OfProject, TraceId
  UNION ALL
  SELECT toString(Project) AS OfProject, TraceId, min(RunStart) AS Begun
  FROM mast_left_out
  WHERE RunStart >= {{since:DateTime64(3)}}
    AND {_OF_GROUP}
    AND {{model:String}} = ''
  GROUP BY OfProject, TraceId
)
GROUP BY OfProject, TraceId
HAVING min(Begun) < {{until:DateTime64(3)}}
ORDER BY min(Begun) DESC, TraceId
LIMIT {{limit:UInt32}}""",
    params={
        **RANGE,
        "user": Param("String", "", "the user; empty for all"),
        "session": Param("String", "", "the session; empty for all"),
        "version": Param("String", "", "the version of the service; empty for all"),
        "model": Param("String", "", "a model that was called; empty for all"),
        **limit(10_000),
    },
    columns={"TraceId": Column("String", "the run's id")},
)

RUNS_WITHOUT_GROUPS: Final = Query(
    name="runs_without_groups",
    meaning="The number of runs that may belong to a user or a session that is lost: their spans were left out before "
    "both were kept.",
    template=f"""
SELECT uniqExact(RunKey) AS Runs
FROM mast_left_out
WHERE {STARTED} AND {OWNED} AND NOT GroupsKnown""",
    params={**RANGE, **OWNERS},
    columns={"Runs": Column("UInt64")},
)


_STORED = VERSIONS.replace(
    "{runs}", "AND Timestamp >= {since:DateTime64(3)} AND Timestamp < {until:DateTime64(3)}"
)
# Runs whose spans retention has left out still count.
_VERSIONS: Final = f"""SELECT RunKey, max(ServiceVersion) AS Version, max(Branch) AS Branch
    FROM (
      {_STORED}
      UNION ALL
      SELECT RunKey, toString(ServiceVersion) AS ServiceVersion, toString(Branch) AS Branch
      FROM mast_left_out WHERE {STARTED}
    )
    GROUP BY RunKey"""

RUN_COUNTS: Final = Query(
    name="run_counts",
    meaning="Runs by version, state, outcome and failure modes, before and after a moment.",
    template=f"""
SELECT toUInt8(Start >= {{moment:DateTime64(3)}}) AS Later, ServiceName, Version, Branch, State,
  Outcome, OutcomeSource, JudgeVersion, ShownBits, ExaminedBits,
  count() AS Runs, arraySlice(arraySort(groupArray(TraceId)), 1, 5) AS Examples
FROM (
  SELECT r.TraceId AS TraceId, r.Start AS Start, toString(r.ServiceName) AS ServiceName,
    b.Version AS Version, b.Branch AS Branch,
    multiIf(v.RunKey = 0, if(r.RootSeen = 1, 'waiting', 'running'), v.{TO_BE_REPLACED}, 'waiting',
      v.Fingerprint != r.Fingerprint, 'changed', v.Status = 'ok', 'judged', 'unscored') AS State,
    multiIf(r.Outcome != '', r.Outcome, State = 'judged', v.Outcome, '') AS Outcome,
    multiIf(r.Outcome != '', 'recorded', State = 'judged', 'judged', '') AS OutcomeSource,
    if(State = 'judged', toString(v.JudgeVersion), '') AS JudgeVersion,
    if(State = 'judged', v.ShownBits, 0) AS ShownBits,
    if(State = 'judged', v.ExaminedBits, 0) AS ExaminedBits
  FROM ({RUNS}) AS r
  LEFT JOIN (
    SELECT RunKey, Fingerprint, toString(Status) AS Status, Method, Outcome, JudgeVersion, ExaminedBits,
      {SHOWN_BITS} AS ShownBits
    FROM mast_findings
    WHERE {STARTED}
    ORDER BY {LATEST}
    LIMIT 1 BY RunKey
  ) AS v ON v.RunKey = r.RunKey
  LEFT JOIN ({_VERSIONS}) AS b ON b.RunKey = r.RunKey
)
GROUP BY Later, ServiceName, Version, Branch, State, Outcome, OutcomeSource, JudgeVersion, ShownBits,
  ExaminedBits
ORDER BY Later, ServiceName, Version, Branch, State, Outcome, OutcomeSource, JudgeVersion, ShownBits,
  ExaminedBits""",
    params={
        **RANGE,
        "moment": Param(
            "DateTime64(3)", RANGE["since"].default, "the moment that divides the runs"
        ),
        **OWNERS,
        **SHOWN,
    },
    columns={
        "Later": Column("UInt8", "1 for runs that started at the moment or later"),
        "ServiceName": Column("String"),
        "Version": Column("String", "service.version of the program; empty if it names none"),
        "Branch": Column("String", "vcs.ref.head.name of the program; empty if it names none"),
        "State": Column(
            "String",
            "running; waiting, also while its verdict is provisional; judged, unscored, or changed since it was judged",
        ),
        "Outcome": Column("String", "success, failure, unknown; empty if none is known"),
        "OutcomeSource": Column("String", "recorded or judged"),
        "JudgeVersion": Column("String", "of the verdict; empty unless the run is judged"),
        "ShownBits": Column("UInt16", "bit i: the i-th failure mode is shown"),
        "ExaminedBits": Column("UInt16", "bit i: the i-th failure mode was looked for"),
        "Runs": Column("UInt64", "in this row's group"),
        "Examples": Column("Array(String)", "ids of some of them"),
    },
)
