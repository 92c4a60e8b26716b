"""Named queries that alert rules evaluate.

Each gives one row per alert instance: strings, which become the labels, and one number. A quiet
group has a row too (a series that vanishes would count as resolved), and nothing asks for the time
of day: ``until`` is the moment that is looked at, so that a rule can be replayed.
"""

from __future__ import annotations

from typing import Final

from mast_trace.taxonomy import FAILURE_MODES, SPECIFICATION_CODES
from mast_trace_dashboards._sql import END
from mast_trace_dashboards.query import Column, Param, Query

_UNTIL = {"until": Param("DateTime64(3)", END, "the moment that is looked at")}
_GATES = {
    "windows": Param("Array(UInt32)", [30, 120, 360], "minutes; the best one counts"),
    "min_runs": Param("UInt32", 20, "judged runs that a window must have"),
    "min_hits": Param("UInt32", 5, "hits that a window must have"),
    "min_ratio": Param("Float64", 2.0, "times the baseline that the rate must reach"),
}
_CODES = "[" + ", ".join(f"'{code}'" for code in FAILURE_MODES) + "]"
_SPECIFICATION = "[" + ", ".join(f"'{code}'" for code in SPECIFICATION_CODES) + "]"

_SPIKE = """
SELECT {labels}, round(max(WindowEvidence), 3) AS Evidence
FROM (
  SELECT {groups}, Minutes,
    countIf(RunEnd > {{until:DateTime64(3)}} - toIntervalMinute(Minutes)) AS N,
    countIf(Hit AND RunEnd > {{until:DateTime64(3)}} - toIntervalMinute(Minutes)) AS K,
    countIf(RunEnd <= {{until:DateTime64(3)}} - toIntervalMinute(Minutes + 60)) AS BaseN,
    countIf(Hit AND RunEnd <= {{until:DateTime64(3)}} - toIntervalMinute(Minutes + 60)) AS BaseK,
    (BaseK + 1) / (BaseN + 10) AS P0,
    K / greatest(N, 1) AS P,
    arrayMap(j -> lgamma(N + 1) - lgamma(j + 1) - lgamma(N - j + 1)
      + j * log(P0) + (N - j) * log(1 - P0), range(K, N + 1)) AS Terms,
    if(N >= {{min_runs:UInt32}} AND K >= {{min_hits:UInt32}} AND P >= {{min_ratio:Float64}} * P0,
      least(300, -(arrayMax(Terms) + log(arraySum(term -> exp(term - arrayMax(Terms)), Terms)))
        / log(10)), 0) AS WindowEvidence
  FROM (
    SELECT ServiceName, Framework, RunEnd, {hit}
    FROM mast_latest_verdicts {join}
    WHERE Status = 'ok' AND {where}
      AND RunEnd > {{until:DateTime64(3)}} - toIntervalHour(174)
      AND RunEnd <= {{until:DateTime64(3)}}
      AND RunStart > {{until:DateTime64(3)}} - toIntervalDay(30)
  )
  ARRAY JOIN {{windows:Array(UInt32)}} AS Minutes
  GROUP BY {groups}, Minutes
)
GROUP BY {groups}
ORDER BY {groups}"""

_EVIDENCE = "minus the logarithm of the probability of so many hits at the rate of the last week"


def _spike(name: str, meaning: str, hit: str, *, by_mode: bool = False, where: str = "1") -> Query:
    """Return the query of a spike of the rate of ``hit`` per judged run.

    The exact binomial tail against the smoothed rate of the week before, best of three windows,
    with gates; in 68 simulated weeks of a steady rate it paged for nothing once (`benchmarks/alerts`).
    """
    groups = "ServiceName, Framework" + (", Code" if by_mode else "")
    labels = "CAST(ServiceName, 'String') AS service, CAST(Framework, 'String') AS framework"
    columns = {"service": Column("String"), "framework": Column("String")}
    if by_mode:
        labels += ", Code AS mode"
        columns["mode"] = Column("String", "code of the failure mode")
    return Query(
        name=name,
        meaning=meaning,
        template=_SPIKE.format(
            labels=labels,
            groups=groups,
            hit=f"{hit} AS Hit" + (", Code" if by_mode else ""),
            join=f"ARRAY JOIN {_CODES} AS Code" if by_mode else "",
            where=where,
        ),
        params={**_UNTIL, **_GATES},
        columns={**columns, "Evidence": Column("Float64", _EVIDENCE)},
    )


SPECIFICATION_SPIKE: Final = _spike(
    "specification_spike",
    "How surprising the recent rate of specification violations is, by service and framework.",
    f"hasAny(`Modes.Code`, {_SPECIFICATION})",
)
MODE_SPIKE: Final = _spike(
    "mode_spike",
    "The same for each failure mode.",
    "has(`Modes.Code`, Code)",
    by_mode=True,
)
FAILURE_SPIKE: Final = _spike(
    "failure_spike",
    "The same for failed runs, of those whose outcome is known.",
    "Outcome = 'failure'",
    where="Outcome IN ('failure', 'success')",
)

JUDGE_BEHIND: Final = Query(
    name="judge_behind",
    meaning="Seconds for which the oldest finished run of the last day has waited for its verdict.",
    template="""
SELECT toFloat64(maxIf(greatest(dateDiff('second', r.LastSeen, {until:DateTime64(3)}), 0),
    r.RootSeen = 1 AND v.Fingerprint != r.Fingerprint)) AS Seconds
FROM (
  SELECT Project, TraceId, Fingerprint, RootSeen, LastSeen FROM mast_runs
  WHERE Start > {until:DateTime64(3)} - toIntervalDay(1) AND Start <= {until:DateTime64(3)}
) AS r
LEFT JOIN mast_latest_verdicts AS v ON v.Project = r.Project AND v.TraceId = r.TraceId""",
    params=_UNTIL,
    columns={"Seconds": Column("Float64")},
)

JUDGE_ERRORS: Final = Query(
    name="judge_errors",
    meaning="Share of the judge's model calls of the last hour that failed; 0 below ten calls.",
    template="""
SELECT CAST(Model, 'String') AS model, if(count() < 10, 0., countIf(Status != 'ok') / count()) AS Share
FROM mast_judge_calls FINAL
WHERE StartedAt > {until:DateTime64(3)} - toIntervalHour(1) AND StartedAt <= {until:DateTime64(3)}
GROUP BY Model
ORDER BY model""",
    params=_UNTIL,
    columns={"model": Column("String"), "Share": Column("Float64")},
)

JUDGE_SPENDING: Final = Query(
    name="judge_spending",
    meaning="US dollars that the judge's model calls of the last day cost.",
    template="""
SELECT sum(CostUsd) AS Spent
FROM mast_judge_calls FINAL
WHERE StartedAt > {until:DateTime64(3)} - toIntervalDay(1) AND StartedAt <= {until:DateTime64(3)}""",
    params=_UNTIL,
    columns={"Spent": Column("Float64")},
)

SILENCE: Final = Query(
    name="silence",
    meaning="Runs of yesterday's same two hours, where the last two hours have none; else 0.",
    template="""
SELECT CAST(ServiceName, 'String') AS service,
  if(countIf(Start > {until:DateTime64(3)} - toIntervalHour(2)) > 0, 0.,
    toFloat64(countIf(Start > {until:DateTime64(3)} - toIntervalHour(26)
      AND Start <= {until:DateTime64(3)} - toIntervalHour(24)))) AS Missing
FROM mast_runs
WHERE Start > {until:DateTime64(3)} - toIntervalHour(26) AND Start <= {until:DateTime64(3)}
GROUP BY ServiceName
ORDER BY service""",
    params=_UNTIL,
    columns={"service": Column("String"), "Missing": Column("Float64")},
)

QUERIES: Final = (
    SPECIFICATION_SPIKE,
    MODE_SPIKE,
    FAILURE_SPIKE,
    JUDGE_BEHIND,
    JUDGE_ERRORS,
    JUDGE_SPENDING,
    SILENCE,
)
