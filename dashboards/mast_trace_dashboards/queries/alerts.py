"""Named queries that alert rules evaluate.

Each gives one row per alert instance: strings, which become the labels, and one number. A quiet
group has a row too (a series that vanishes would count as resolved), unless its runs were not
examined. No query uses the present time: ``until`` is the moment of the evaluation, so that a rule
can be replayed.
"""

from __future__ import annotations

from typing import Final

from mast_trace.taxonomy import SPECIFICATION_CODES
from mast_trace_dashboards.queries.query import Column, Param, Query
from mast_trace_dashboards.queries.sql import (
    CODES,
    END,
    MODE_HITS,
    MODES_EXAMINED,
    OPEN_RUNS,
    SHOWN,
    SHOWN_BITS,
    mode_mask,
    newest,
)

_UNTIL = {"until": Param("DateTime64(3)", END, "the moment of the evaluation")}
_GATES = {
    "windows": Param("Array(UInt32)", [30, 120, 360], "minutes; the best one counts"),
    "min_runs": Param("UInt32", 20, "examined runs that a window must have"),
    "min_hits": Param("UInt32", 5, "hits that a window must have"),
    "min_ratio": Param("Float64", 2.0, "times the baseline that the rate must reach"),
}
_SPECIFICATION = mode_mask(SPECIFICATION_CODES)
_JUDGED = newest(
    """RunEnd > {until:DateTime64(3)} - toIntervalHour(174)
    AND RunEnd <= {until:DateTime64(3)} AND RunStart > {until:DateTime64(3)} - toIntervalDay(30)
    AND Method != 'provisional'""",
    "ServiceName",
    "Framework",
    "RunEnd",
    "ExaminedBits",
    f"{SHOWN_BITS} AS ShownBits",
    "Outcome",
    "Status",
    "notEmpty(`LookFirst.Step`) AS HasPlace",
)

# Runs are counted by age, down to the edges of windows and baselines, and by their failure modes;
# the result has few rows, whatever the number of runs.
_SPIKE = """
SELECT {labels}, round(max(if(
    N >= {{min_runs:UInt32}} AND K >= {{min_hits:UInt32}} AND K / greatest(N, 1) >= {{min_ratio:Float64}} * P0,
    least(300, -(Top + log(arraySum(term -> exp(term - Top), Terms))) / log(10)), 0)), 3) AS Evidence
FROM (
  SELECT {groups}, N, K, P0,
    arrayMap(j -> lgamma(N + 1) - lgamma(j + 1) - lgamma(N - j + 1)
      + j * log(P0) + (N - j) * log(1 - P0), range(K, N + 1)) AS Terms,
    arrayMax(Terms) AS Top
  FROM (
    SELECT {groups}, Minutes,
      sumIf(Judged, Age < Minutes) AS N,
      sumIf(Hits, Age < Minutes) AS K,
      (sumIf(Hits, Age >= Minutes + 60) + 1) / (sumIf(Judged, Age >= Minutes + 60) + 10) AS P0
    FROM (
      SELECT ServiceName, Framework, Age, {counts}
      FROM (
        SELECT ServiceName, Framework, {found} AS Found, {looked} AS Looked, count() AS Runs,
          intDiv(roundDown(
            toUnixTimestamp64Nano(toDateTime64({{until:DateTime64(3)}}, 9)) - toUnixTimestamp64Nano(RunEnd),
            arraySort(arrayMap(edge -> toInt64(edge) * 60000000000, arrayConcat([0],
              {{windows:Array(UInt32)}}, arrayMap(minutes -> minutes + 60, {{windows:Array(UInt32)}}))))
          ), 60000000000) AS Age
        FROM ({judged})
        WHERE Status = 'ok' AND {where}
        GROUP BY ServiceName, Framework, Found, Looked, Age
      )
      GROUP BY ServiceName, Framework, Age
    )
    {by_mode}
    ARRAY JOIN {{windows:Array(UInt32)}} AS Minutes
    GROUP BY {groups}, Minutes
    HAVING sum(Judged) > 0
  )
)
GROUP BY {groups}
ORDER BY {groups}"""

_OF_MODES = ", ".join(
    f"sumForEach(arrayMap(hit -> hit * Runs, {hits.replace(bits, column)})) AS {name}"
    for hits, bits, column, name in (
        (MODE_HITS, "ShownBits", "Found", "AllHits"),
        (MODES_EXAMINED, "ExaminedBits", "Looked", "AllLooked"),
    )
)
_EVIDENCE = "minus the logarithm of the probability of so many hits at the rate of the last week"


def _spike(name: str, meaning: str, hit: str, *, looked: str = "1", where: str = "1") -> Query:
    """Return the query of a spike in the rate of ``hit`` per examined run.

    Without a ``hit``, each failure mode has its own rate.

    It computes the exact binomial tail against the smoothed rate of the week before, best of three
    windows, with gates; in 68 simulated weeks of a steady rate it paged falsely once
    (`benchmarks/alerts`).
    """
    by_mode = not hit
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
            found=hit or "ShownBits",
            looked="ExaminedBits" if by_mode else looked,
            counts=_OF_MODES
            if by_mode
            else "sum(Found * Runs) AS Hits, sum(Looked * Runs) AS Judged",
            by_mode=f"ARRAY JOIN {CODES} AS Code, AllHits AS Hits, AllLooked AS Judged"
            if by_mode
            else "",
            judged=_JUDGED,
            where=where,
        ),
        params={**_UNTIL, **_GATES, **SHOWN},
        columns={**columns, "Evidence": Column("Float64", _EVIDENCE)},
    )


SPECIFICATION_SPIKE: Final = _spike(
    "specification_spike",
    "Improbability of the recent rate of specification violations, by service and framework.",
    f"bitAnd(ShownBits, {_SPECIFICATION}) != 0",
    looked=f"bitAnd(ExaminedBits, {_SPECIFICATION}) != 0",
)
MODE_SPIKE: Final = _spike(
    "mode_spike",
    "The same for each failure mode.",
    "",
)
FAILURE_SPIKE: Final = _spike(
    "failure_spike",
    "The same for failed runs, of those whose outcome is known.",
    "Outcome = 'failure'",
    where="Outcome IN ('failure', 'success')",
)
SUSPECT_SPIKE: Final = _spike(
    "suspect_spike",
    "The same for suspect runs, of those that did not fail: their record contradicts a good end.",
    "HasPlace",
    where="Outcome != 'failure'",
)

JUDGE_BEHIND: Final = Query(
    name="judge_behind",
    meaning="Seconds for which the oldest finished run has waited for its verdict, or for a model's reading.",
    template=f"""
SELECT toFloat64(maxIf(greatest(dateDiff('second', LastSeen, {{until:DateTime64(3)}}), 0),
    RootSeen = 1 AND State IN ('waiting', 'changed'))) AS Seconds
FROM ({OPEN_RUNS.replace("{since:DateTime64(3)}", "({until:DateTime64(3)} - toIntervalDay(1))")})""",
    params=_UNTIL,
    columns={"Seconds": Column("Float64", "of the runs of the last day")},
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
    meaning="US dollars that the judge's model calls of the last 24 hours cost.",
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
FROM (
  SELECT max(ServiceName) AS ServiceName, min(Start) AS Start
  FROM mast_run_states
  WHERE RunKey GLOBAL IN (SELECT RunKey FROM mast_run_states
      WHERE Start > {until:DateTime64(3)} - toIntervalHour(26) AND Start <= {until:DateTime64(3)})
  GROUP BY RunKey
  HAVING max(Kind) = ''
)
WHERE Start > {until:DateTime64(3)} - toIntervalHour(26) AND Start <= {until:DateTime64(3)}
GROUP BY ServiceName
ORDER BY service""",
    params=_UNTIL,
    columns={"service": Column("String"), "Missing": Column("Float64")},
)
