"""Parts that several named queries share."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING, Final

from mast_trace.taxonomy import FAILURE_MODES
from mast_trace_dashboards.queries.query import Param

if TYPE_CHECKING:
    from collections.abc import Iterable

BEGINNING: Final = datetime(1970, 1, 2, tzinfo=timezone.utc)
# ClickHouse's Date ends in 2149; some versions (25.8) find nothing before a time beyond it.
END: Final = datetime(2100, 1, 1, tzinfo=timezone.utc)

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

CODES: Final = "[" + ", ".join(f"'{code}'" for code in FAILURE_MODES) + "]"
"""The failure modes; bit i of ``ModeBits`` stands for the i-th."""
MODE_HITS: Final = f"arrayMap(i -> toUInt64(bitTest(ModeBits, i)), range({len(FAILURE_MODES)}))"
"""1 for each failure mode that a verdict finds, else 0, in the order of `CODES`."""


def mode_mask(codes: Iterable[str]) -> int:
    """Return the bits of ``ModeBits`` that stand for ``codes``."""
    order = list(FAILURE_MODES)
    return sum(1 << order.index(code) for code in codes)


_SINCE = "{since:DateTime64(3)}"
_UNTIL = "{until:DateTime64(3)}"
OWNED: Final = """(empty({projects:Array(String)}) OR has({projects:Array(String)}, Project))
    AND (empty({services:Array(String)}) OR has({services:Array(String)}, ServiceName))
    AND (empty({frameworks:Array(String)}) OR has({frameworks:Array(String)}, Framework))"""

RUNS: Final = f"""SELECT * FROM mast_runs
  WHERE RunKey IN (SELECT RunKey FROM mast_run_states
      WHERE Start >= {_SINCE} AND Start < {_UNTIL})
    AND Start >= {_SINCE} AND Start < {_UNTIL}
    AND {OWNED}"""
"""The runs of a time range, put together from all that came of them. Those that may be in it are
found first, so that no others are merged: a run that starts in it has a state that does."""

COUNTED_RUNS: Final = f"""SELECT RunKey, any(Project) AS Project, max(ServiceName) AS ServiceName,
    max(Framework) AS Framework, min(Start) AS Begun
  FROM mast_run_states
  WHERE RunKey GLOBAL IN (SELECT RunKey FROM mast_run_states
      WHERE Start >= {_SINCE} AND Start < {_UNTIL})
  GROUP BY RunKey
  HAVING Begun >= {_SINCE} AND Begun < {_UNTIL} AND {OWNED}"""
"""The same, and no more of them than is needed for counting."""


def newest(which: str, *columns: str) -> str:
    """Return columns of the newest verdict of each run, for a condition that holds for many.

    Nearly all runs have one verdict. Keys that come twice stand beside each other when they are sorted,
    which takes a third of the time of grouping them; only these verdicts are held against each other,
    and where there are none, ClickHouse leaves that part out before it reads.
    """
    wanted = ", ".join(columns)
    return f"""WITH (
    SELECT arrayDistinct(arrayFilter((key, last) -> key = last,
      keys, arraySlice(arrayPushFront(keys, 0), 1, length(keys))))
    FROM (SELECT arraySort(groupArray(RunKey)) AS keys FROM mast_findings WHERE {which})
  ) AS twice
  SELECT * FROM (
    SELECT {wanted} FROM mast_findings
    WHERE {which} AND (empty(twice) OR RunKey NOT IN (SELECT arrayJoin(twice)))
    UNION ALL
    SELECT * FROM (
      SELECT {wanted} FROM mast_findings
      WHERE {which} AND notEmpty(twice) AND RunKey IN (SELECT arrayJoin(twice))
      ORDER BY JudgedAt DESC
      LIMIT 1 BY RunKey
    )
  )"""


STARTED: Final = f"RunStart >= {_SINCE} AND RunStart < {_UNTIL}"
"""A condition on verdicts: of the runs of a time range."""
VERDICTS: Final = f"""SELECT * FROM (
    SELECT * FROM mast_findings
    WHERE {STARTED}
    ORDER BY JudgedAt DESC
    LIMIT 1 BY RunKey
  )
  WHERE {OWNED}"""
"""The newest verdict on each of them, with what the run was when it was judged. The range is cut
before the newest is chosen, which spares looking through all others; only a run whose first span came
after a first verdict, and lies on the other side of the edge, is seen as it was."""

# What came since a run was judged bears a later time; so does all that came of a run that was not.
# A later word on its outcome has no start, and a later span may start beyond the range: they are
# looked for from the time on when the first of these runs was judged.
_IN_RANGE = f"Start >= {_SINCE} AND Start < {_UNTIL}"
_FIRST_SEEN = f"""(SELECT if(countIf(RunSeen != 0) = 0, now64(3), minIf(RunSeen, RunSeen != 0))
        FROM mast_findings WHERE {STARTED})"""
_OPEN = f"""SELECT groupUniqArray(s.RunKey)
  FROM (
    SELECT RunKey, LastSeen, 1 AS Started FROM mast_run_states WHERE {_IN_RANGE}
    UNION ALL
    SELECT RunKey, LastSeen, 0 AS Started FROM mast_run_states
    WHERE Day >= toDate({_FIRST_SEEN}) - 1 AND LastSeen > {_FIRST_SEEN} AND NOT ({_IN_RANGE})
  ) AS s
  LEFT JOIN (
    SELECT RunKey, RunSeen FROM mast_findings WHERE {STARTED}
  ) AS v ON v.RunKey = s.RunKey
  WHERE s.LastSeen > v.RunSeen AND (s.Started = 1 OR v.RunKey != 0)"""
_STATE = """multiIf(v.RunKey = 0, if(r.RootSeen = 1, 'waiting', 'running'),
            v.Fingerprint != r.Fingerprint, 'changed', v.Status = 'ok', 'judged', 'unscored')"""
# Verdicts keep microseconds of a run's start: the cursor has no more, so that it stays the same.
_START_NS = "intDiv(toUnixTimestamp64Nano(r.Start), 1000) * 1000"
_JUDGED_OK = "v.RunKey != 0 AND v.Status = 'ok'"

_JUDGED = f"""SELECT
    r.Project AS Project, r.TraceId AS TraceId, r.Name AS Name, r.ServiceName AS ServiceName,
    r.Framework AS Framework, r.Start AS Start, r.End AS End,
    {_START_NS} AS StartNs,
    intDiv(toUnixTimestamp64Nano(r.End) - toUnixTimestamp64Nano(r.Start), 1000000) AS DurationMs,
    r.Spans AS Spans, r.Errors AS Errors, v.Steps AS Steps,
    r.InputTokens AS InputTokens, r.OutputTokens AS OutputTokens,
    r.Totals AS Totals, r.Kind AS Kind,
    r.Agents AS Agents, r.TerminationReason AS TerminationReason,
    multiIf(r.Outcome != '', r.Outcome, {_JUDGED_OK}, v.Outcome, '') AS Outcome,
    multiIf(r.Outcome != '', 'recorded', {_JUDGED_OK}, 'judged', '') AS OutcomeSource,
    r.OutcomeReason AS OutcomeReason,
    {_STATE} AS State, v.StatusReason AS StateReason,
    v.`Modes.Code` AS Modes, v.`Modes.Probability` AS ModeProbabilities,
    v.DecisiveAgent AS DecisiveAgent, v.DecisiveStep AS DecisiveStep,
    v.DecisiveProbability AS DecisiveProbability, v.DecisiveReason AS DecisiveReason,
    v.Method AS Method, v.CostUsd AS CostUsd
  FROM ({{runs}}) AS r
  LEFT JOIN ({{verdicts}}) AS v ON v.RunKey = r.RunKey"""
# Named one by one: each column more takes ClickHouse time to plan.
_TOLD = """Fingerprint, Status, StatusReason, Steps, Outcome, `Modes.Code`, `Modes.Probability`,
    DecisiveAgent, DecisiveStep, DecisiveProbability, DecisiveReason, Method, CostUsd"""
_TOLD_VERDICTS = f"""SELECT RunKey, {_TOLD} FROM mast_findings
    WHERE {STARTED}
    ORDER BY JudgedAt DESC
    LIMIT 1 BY RunKey"""

# Where nothing is open, what cannot be true is left out before anything is read.
_OPEN_RUNS = f"""SELECT * FROM mast_runs
    WHERE notEmpty(open) AND RunKey IN (SELECT arrayJoin(open))
      AND Start >= {_SINCE} AND Start < {_UNTIL}"""
_OPEN_VERDICTS = """SELECT RunKey, Fingerprint, Status, Outcome FROM mast_findings
    WHERE notEmpty(open) AND RunKey IN (SELECT arrayJoin(open))
    ORDER BY JudgedAt DESC
    LIMIT 1 BY RunKey"""
_OPEN_JOINED = f"""FROM ({_OPEN_RUNS}) AS r
LEFT JOIN ({_OPEN_VERDICTS}) AS v ON v.RunKey = r.RunKey"""

OPEN_RUNS: Final = f"""WITH ({_OPEN}) AS open
SELECT r.Project AS Project, r.ServiceName AS ServiceName, r.Framework AS Framework, r.End AS End,
  r.LastSeen AS LastSeen, r.RootSeen AS RootSeen, {_STATE} AS State
{_OPEN_JOINED}"""
"""The runs of a time range that have no verdict, or to which something came since: few. Whosever."""

WAITING: Final = f"SELECT * FROM ({OPEN_RUNS}) WHERE State IN ('waiting', 'changed') AND {OWNED}"
"""Those of them that the judge should see to."""

COUNTED: Final = f"""WITH ({_OPEN}) AS open
SELECT * FROM (
  SELECT Project, ServiceName, Framework, RunStart AS Start, RunAgents AS Agents,
    multiIf(v.RunOutcome != '', v.RunOutcome, v.Status = 'ok', v.Outcome, '') AS Outcome,
    if(v.Status = 'ok', 'judged', 'unscored') AS State
  FROM mast_findings AS v
  WHERE {STARTED} AND (empty(open) OR RunKey NOT IN (SELECT arrayJoin(open)))
  ORDER BY JudgedAt DESC
  LIMIT 1 BY RunKey
  UNION ALL
  SELECT r.Project AS Project, r.ServiceName AS ServiceName, r.Framework AS Framework,
    r.Start AS Start, r.Agents AS Agents,
    multiIf(r.Outcome != '', r.Outcome, {_JUDGED_OK}, v.Outcome, '') AS Outcome,
    {_STATE} AS State
  {_OPEN_JOINED}
)
WHERE {OWNED}"""
"""The runs of a time range as far as they are counted by. Of a run to which nothing came since it was
judged the verdict says all; only the others are put together from their states."""

JUDGED_RUNS: Final = _JUDGED.format(runs=RUNS, verdicts=_TOLD_VERDICTS)
"""The runs of a time range with what was found in them, one row each, put together."""


def judged_runs(since: str) -> str:
    """Return `JUDGED_RUNS` with another expression for the beginning of the range."""
    return JUDGED_RUNS.replace(_SINCE, since)


JUDGED_RUN: Final = _JUDGED.format(
    runs="SELECT * FROM mast_runs WHERE TraceId = {run:String}",
    verdicts=f"""SELECT halfMD5(Project, TraceId) AS RunKey, {_TOLD} FROM mast_latest_verdicts
    WHERE TraceId = {{run:String}}""",
)
"""The same for one run."""

_OLD = "RunKey IN (SELECT arrayJoin(old))"
JUDGED: Final = f"""WITH (SELECT groupArray(RunKey) FROM mast_findings WHERE {STARTED} AND RunSeen = 0) AS old
SELECT * FROM (
  SELECT Project, ServiceName, Framework, RunAgents AS Agents, RunModels AS Models,
    if(RunOutcome != '', RunOutcome, v.Outcome) AS Outcome, `Modes.Code` AS Modes, ModeBits,
    DecisiveAgent, DecisiveProbability, Status
  FROM mast_findings AS v
  WHERE {STARTED} AND NOT {_OLD}
  ORDER BY JudgedAt DESC
  LIMIT 1 BY RunKey
  UNION ALL
  SELECT v.Project AS Project, v.ServiceName AS ServiceName, v.Framework AS Framework,
    r.Agents AS Agents, r.Models AS Models,
    if(r.Outcome != '', r.Outcome, v.Outcome) AS Outcome, v.`Modes.Code` AS Modes, v.ModeBits AS ModeBits,
    v.DecisiveAgent AS DecisiveAgent, v.DecisiveProbability AS DecisiveProbability, v.Status AS Status
  FROM (
    SELECT * FROM mast_findings WHERE {STARTED} AND {_OLD} ORDER BY JudgedAt DESC LIMIT 1 BY RunKey
  ) AS v
  INNER JOIN (
    SELECT Project, TraceId, Agents, Models, Outcome FROM mast_runs
    WHERE (Project, TraceId) IN (SELECT Project, TraceId FROM mast_findings WHERE {_OLD})
  ) AS r ON r.Project = v.Project AND r.TraceId = v.TraceId
)
WHERE Status = 'ok' AND {OWNED}"""
"""The judged runs of a time range with who acted in them, as they were when they were judged. Verdicts
of earlier versions do not say what the run was; there it is looked up."""
