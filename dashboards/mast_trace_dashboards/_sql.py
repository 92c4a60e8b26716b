"""Parts that several named queries share."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Final

from mast_trace_dashboards.query import Param

BEGINNING: Final = datetime(1970, 1, 2, tzinfo=timezone.utc)
END: Final = datetime(2200, 1, 1, tzinfo=timezone.utc)

RANGE: Final = {
    "since": Param("DateTime64(3)", BEGINNING, "runs that started at this time or later"),
    "until": Param("DateTime64(3)", END, "runs that started before this time"),
}
OWNERS: Final = {
    "projects": Param("Array(String)", [], "projects; none means all"),
    "services": Param("Array(String)", [], "service names; none means all"),
    "frameworks": Param("Array(String)", [], "frameworks; none means all"),
}
BUCKET: Final = {"bucket": Param("UInt32", 3600, "seconds that one point of time covers")}

_OWNED = """(empty({projects:Array(String)}) OR has({projects:Array(String)}, Project))
    AND (empty({services:Array(String)}) OR has({services:Array(String)}, ServiceName))
    AND (empty({frameworks:Array(String)}) OR has({frameworks:Array(String)}, Framework))"""

RUNS: Final = f"""SELECT * FROM mast_runs
  WHERE TraceId IN (SELECT TraceId FROM mast_run_states
      WHERE Start >= {{since:DateTime64(3)}} AND Start < {{until:DateTime64(3)}})
    AND Start >= {{since:DateTime64(3)}} AND Start < {{until:DateTime64(3)}}
    AND {_OWNED}"""
"""The runs of a time range. Those that may be in it are found first, so that no others are merged:
a run that starts in it has a state that does."""

VERDICTS: Final = f"""SELECT * FROM (
    SELECT * FROM mast_verdicts
    WHERE RunStart >= {{since:DateTime64(3)}} AND RunStart < {{until:DateTime64(3)}}
      AND RunEnd >= {{since:DateTime64(3)}}
    ORDER BY JudgedAt DESC
    LIMIT 1 BY Project, TraceId
  )
  WHERE {_OWNED}"""
"""The newest verdict on each of them. The end is named too, for the table is divided by it. The
range is cut before the newest is chosen, which spares looking through all others; only a run whose
first span came after a first verdict, and lies on the other side of the edge, is seen as it was."""

_STATE = """multiIf(v.TraceId = '', if(r.RootSeen = 1, 'waiting', 'running'),
            v.Fingerprint != r.Fingerprint, 'changed', v.Status = 'ok', 'judged', 'unscored')"""

_JUDGED = """SELECT
    r.Project AS Project, r.TraceId AS TraceId, r.Name AS Name, r.ServiceName AS ServiceName,
    r.Framework AS Framework, r.Start AS Start, r.End AS End,
    toUnixTimestamp64Nano(r.Start) AS StartNs,
    intDiv(toUnixTimestamp64Nano(r.End) - toUnixTimestamp64Nano(r.Start), 1000000) AS DurationMs,
    r.Spans AS Spans, r.Errors AS Errors, v.Steps AS Steps,
    r.InputTokens AS InputTokens, r.OutputTokens AS OutputTokens,
    r.Agents AS Agents, r.TerminationReason AS TerminationReason,
    multiIf(r.Outcome != '', r.Outcome, v.TraceId != '' AND v.Status = 'ok', v.Outcome, '') AS Outcome,
    multiIf(r.Outcome != '', 'recorded', v.TraceId != '' AND v.Status = 'ok', 'judged', '') AS OutcomeSource,
    r.OutcomeReason AS OutcomeReason,
    {state} AS State, v.StatusReason AS StateReason,
    v.`Modes.Code` AS Modes, v.`Modes.Probability` AS ModeProbabilities,
    v.DecisiveAgent AS DecisiveAgent, v.DecisiveStep AS DecisiveStep,
    v.DecisiveProbability AS DecisiveProbability, v.DecisiveReason AS DecisiveReason,
    v.Method AS Method, v.CostUsd AS CostUsd
  FROM ({runs}) AS r
  LEFT JOIN ({verdicts}) AS v ON v.Project = r.Project AND v.TraceId = r.TraceId"""

JUDGED_RUNS: Final = _JUDGED.format(runs=RUNS, verdicts=VERDICTS, state=_STATE)
"""The runs of a time range with what was found in them, one row each."""


def judged_runs(since: str) -> str:
    """Return `JUDGED_RUNS` with another expression for the beginning of the range."""
    return JUDGED_RUNS.replace("{since:DateTime64(3)}", since)


JUDGED_RUN: Final = _JUDGED.format(
    runs="SELECT * FROM mast_runs WHERE TraceId = {run:String}",
    verdicts="SELECT * FROM mast_latest_verdicts WHERE TraceId = {run:String}",
    state=_STATE,
)
"""The same for one run."""
