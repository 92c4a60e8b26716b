"""Named queries on versions: the runs of a service by version, as counts that a gate compares."""

from __future__ import annotations

from typing import Final

from mast_trace_collector.storage.removal.thinning import VERSIONS
from mast_trace_dashboards.queries.query import Column, Param, Query
from mast_trace_dashboards.queries.sql import (
    LATEST,
    OWNERS,
    RANGE,
    RUNS,
    SHOWN,
    SHOWN_BITS,
    STARTED,
    TO_BE_REPLACED,
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
