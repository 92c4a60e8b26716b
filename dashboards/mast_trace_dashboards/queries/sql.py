"""SQL parts that several named queries share."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timezone
from typing import Final

from mast_trace import semconv
from mast_trace.taxonomy import FAILURE_MODES
from mast_trace_collector.config import DEFAULT_RUN_IDLE
from mast_trace_dashboards.queries.query import Param
from mast_trace_judge.verdict import SHOWN_FROM

BEGINNING: Final = datetime(1970, 1, 2, tzinfo=timezone.utc)
# ClickHouse's Date ends in 2149; some versions (25.8) match nothing before a later time.
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
IDLE: Final = {
    "idle": Param(
        "Float64", DEFAULT_RUN_IDLE, "seconds after which a run without a root counts as finished"
    )
}
NO_END: Final = "no end seen"
"""State of a run without a root and without new spans for the idle time. Its process may have been
killed, a person may be waited for, or the root may have been sent elsewhere: the cause is unknown.
"""
LATEST: Final = "JudgedAt DESC, ShownAt DESC"
"""The order in which the verdict of a run that counts comes first, as replays leave it."""
BUCKET: Final = {"bucket": Param("UInt32", 3600, "seconds that one point of time covers")}

CODES: Final = "[" + ", ".join(f"'{code}'" for code in FAILURE_MODES) + "]"
"""The failure modes; bit i of ``ShownBits`` and of ``ExaminedBits`` stands for the i-th."""
_BITS: Final = [1 << i for i in range(len(FAILURE_MODES))]
SHOWN: Final = {
    "at_least": Param(
        "Float64", SHOWN_FROM, "probability from which a failure mode counts as shown"
    )
}
IS_SHOWN: Final = "probability >= toFloat32({at_least:Float64})"
"""A condition on a finding's ``probability``, which is stored in 32 bits."""
# The sum of different bits is all of them; readers of our own ClickHouse address may not call arrayReduce.
SHOWN_BITS: Final = f"""bitAnd(ExaminedBits, toUInt16(arraySum(arrayDistinct(arrayMap((code, probability) ->
      if({IS_SHOWN}, transform(toString(code), {CODES}, {_BITS}, 0), 0),
      `Modes.Code`, `Modes.Probability`)))))"""
"""The modes that a verdict shows. A verdict that does not record its examined modes counts in no
share.
"""


def _hits(bits: str) -> str:
    return f"arrayMap(i -> toUInt64(bitTest({bits}, i)), range({len(FAILURE_MODES)}))"


MODE_HITS: Final = _hits("ShownBits")
"""1 for each failure mode that a verdict shows, else 0, in the order of `CODES`."""
MODES_EXAMINED: Final = _hits("ExaminedBits")
"""1 for each failure mode that a verdict examined, else 0, in the order of `CODES`."""


def mode_mask(codes: Iterable[str]) -> int:
    """Return the bits of ``ShownBits`` and ``ExaminedBits`` for ``codes``."""
    order = list(FAILURE_MODES)
    return sum(1 << order.index(code) for code in codes)


_SINCE = "{since:DateTime64(3)}"
_UNTIL = "{until:DateTime64(3)}"
OWNED: Final = """(empty({projects:Array(String)}) OR has({projects:Array(String)}, Project))
    AND (empty({services:Array(String)}) OR has({services:Array(String)}, ServiceName))
    AND (empty({frameworks:Array(String)}) OR has({frameworks:Array(String)}, Framework))"""

OF_PROGRAMS: Final = "Kind = ''"
"""A condition on a run, a state of it or a verdict on it: a program's own, and no replay, which is not counted."""

RUNS: Final = f"""SELECT * FROM mast_runs
  WHERE RunKey IN (SELECT RunKey FROM mast_run_states
      WHERE Start >= {_SINCE} AND Start < {_UNTIL})
    AND Start >= {_SINCE} AND Start < {_UNTIL}
    AND {OF_PROGRAMS} AND {OWNED}"""
"""The runs of a time range, aggregated from all their states. Candidates are found first, so that
no other runs are merged: a run that starts in the range has a state in it.
"""


def counted_runs(kinds: str = "max(Kind) = ''", states: str = "true") -> str:
    """Return the SELECT of the runs of a time range as `RUNS`, with the columns alone that counting needs.

    It is planned in a third of the time.

    Args:
        kinds: a condition on all states of a run.
        states: a condition on one of its states in the range, by which it is found.
    """
    return f"""SELECT RunKey, any(Project) AS Project, any(TraceId) AS TraceId, max(ServiceName) AS ServiceName,
    max(Framework) AS Framework, min(Start) AS Begun, max(LastSeen) AS LastSeen
  FROM mast_run_states
  WHERE RunKey GLOBAL IN (SELECT RunKey FROM mast_run_states
      WHERE Start >= {_SINCE} AND Start < {_UNTIL} AND {states})
  GROUP BY RunKey
  HAVING Begun >= {_SINCE} AND Begun < {_UNTIL} AND {kinds} AND {OWNED}"""


COUNTED_RUNS: Final = counted_runs()
"""As RUNS, with only the columns needed for counting."""


def newest(which: str, *columns: str) -> str:
    """Return columns of the newest verdict of each run, among the verdicts that meet a condition."""
    return f"""SELECT {", ".join(columns)} FROM mast_findings
  WHERE {which} AND {OF_PROGRAMS}
  ORDER BY {LATEST}
  LIMIT 1 BY RunKey"""


STARTED: Final = f"RunStart >= {_SINCE} AND RunStart < {_UNTIL}"
"""A condition on verdicts: their runs lie in a time range."""
VERDICTS: Final = f"""SELECT * FROM (
    SELECT * FROM mast_findings
    WHERE {STARTED} AND {OF_PROGRAMS}
    ORDER BY {LATEST}
    LIMIT 1 BY RunKey
  )
  WHERE {OWNED}"""
"""The newest verdict on each of these runs, with the run's metadata at judging time. The range is
applied before the newest verdict is chosen, which saves reading all others; only a run whose first
span arrived after a first verdict, on the other side of the range's edge, is seen in its former
state.
"""

SHOWN_VERDICTS: Final = f"SELECT *, {SHOWN_BITS} AS ShownBits FROM ({VERDICTS}) WHERE Status = 'ok'"
"""Those of these verdicts with status ok, with the failure modes that they show."""

# Rows that arrived after a run was judged have a later time, and so have all rows of a run that was
# not. An outcome recorded later has no start, and a later span may start beyond the range: both are
# looked up from the time of the first of these verdicts on.
_IN_RANGE = f"Start >= {_SINCE} AND Start < {_UNTIL}"
_FIRST_SEEN = f"""(SELECT if(countIf(RunSeen != 0) = 0, now64(3), minIf(RunSeen, RunSeen != 0))
        FROM mast_findings WHERE {STARTED})"""
_OPEN = f"""SELECT groupUniqArray(s.RunKey)
  FROM (
    SELECT RunKey, LastSeen, 1 AS Started FROM mast_run_states
    WHERE {_IN_RANGE} AND {OF_PROGRAMS}
    UNION ALL
    WITH {_FIRST_SEEN} AS seen
    SELECT RunKey, LastSeen, 0 AS Started FROM mast_run_states
    WHERE Day >= toDate(seen) - 1 AND LastSeen > seen AND NOT ({_IN_RANGE}) AND {OF_PROGRAMS}
  ) AS s
  LEFT JOIN (
    SELECT RunKey, RunSeen FROM mast_findings WHERE {STARTED}
  ) AS v ON v.RunKey = s.RunKey
  WHERE s.LastSeen > v.RunSeen AND (s.Started = 1 OR v.RunKey != 0)"""
_STATE = """multiIf(v.RunKey = 0, if(r.RootSeen = 1, 'waiting', 'running'),
            v.Fingerprint != r.Fingerprint, 'changed', v.Status = 'ok', 'judged', 'unscored')"""
# A verdict on the present content implies that the idle time has passed, whatever its setting.
_SHOWN_STATE = f"""if(r.RootSeen = 1, {_STATE}, if(v.Fingerprint = r.Fingerprint
            OR r.LastSeen <= now64(3) - toIntervalMillisecond(toUInt64({{{{idle:Float64}}}} * 1000)),
            '{NO_END}', 'running'))"""
# Verdicts keep microseconds of a run's start: the cursor has no more precision, so that it stays
# the same. A clock that is ahead must not keep a run at the top: a run starts when it arrives, at the latest.
_START_NS = "intDiv(toUnixTimestamp64Nano(least(r.Start, r.LastSeen)), 1000) * 1000"
_JUDGED_OK = "v.RunKey != 0 AND v.Status = 'ok'"

# A root that names no workflow gives the run its span's name: of an agent's turn, the agent is shown.
_TURN = f"{semconv.INVOKE_AGENT} "
_RUN_NAME = f"if(startsWith(r.Name, '{_TURN}'), substring(r.Name, {len(_TURN) + 1}), r.Name)"

# Formatted twice.
_IS_SHOWN = IS_SHOWN.replace("{", "{{").replace("}", "}}")
_JUDGED = f"""SELECT
    r.Project AS Project, r.TraceId AS TraceId, {_RUN_NAME} AS Name, r.ServiceName AS ServiceName,
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
    {_SHOWN_STATE} AS State, v.StatusReason AS StateReason,
    arrayFilter((code, probability) -> {_IS_SHOWN},
      v.`Modes.Code`, v.`Modes.Probability`) AS Modes,
    arrayFilter(probability -> {_IS_SHOWN}, v.`Modes.Probability`) AS ModeProbabilities,
    v.DecisiveAgent AS DecisiveAgent, v.DecisiveStep AS DecisiveStep,
    if(v.Calibrated, v.DecisiveProbability, NULL) AS DecisiveProbability,
    v.DecisiveReason AS DecisiveReason, v.Confirmation AS Confirmation,
    v.`LookFirst.Agent`[1] AS LookAgent,
    if(empty(v.`LookFirst.Step`), NULL, v.`LookFirst.Step`[1]) AS LookStep,
    v.`LookFirst.Basis`[1] AS LookBasis, v.`LookFirst.Why`[1] AS LookWhy,
    v.Method AS Method, v.CostUsd AS JudgeCostUsd
  FROM ({{runs}}) AS r
  LEFT JOIN ({{verdicts}}) AS v ON v.RunKey = r.RunKey"""
# Listed one by one: each further column costs ClickHouse planning time.
_TOLD = """Fingerprint, Status, StatusReason, Steps, Outcome, `Modes.Code`, `Modes.Probability`,
    DecisiveAgent, DecisiveStep, DecisiveProbability, DecisiveReason, Calibrated, Confirmation,
    `LookFirst.Agent`, `LookFirst.Step`, `LookFirst.Basis`, `LookFirst.Why`, Method, CostUsd"""
_TOLD_VERDICTS = f"""SELECT RunKey, {_TOLD} FROM mast_findings
    WHERE {STARTED}
    ORDER BY {LATEST}
    LIMIT 1 BY RunKey"""

# Without open runs, the condition is constant false and nothing is read.
_OPEN_RUNS = f"""SELECT * FROM mast_runs
    WHERE notEmpty(open) AND RunKey IN (SELECT arrayJoin(open))
      AND Start >= {_SINCE} AND Start < {_UNTIL} AND {OF_PROGRAMS}"""
_OPEN_VERDICTS = f"""SELECT RunKey, Fingerprint, Status, Outcome, Method FROM mast_findings
    WHERE notEmpty(open) AND RunKey IN (SELECT arrayJoin(open))
    ORDER BY {LATEST}
    LIMIT 1 BY RunKey"""
_OPEN_JOINED = f"""FROM ({_OPEN_RUNS}) AS r
LEFT JOIN ({_OPEN_VERDICTS}) AS v ON v.RunKey = r.RunKey"""

TO_BE_REPLACED: Final = "Method IN ('reading', 'provisional')"
"""True of a verdict that a model's reading, or that of the quiet run, is to replace."""
# Not among the runs of `_OPEN`: every run that a model has read once was one of these, and its row may be there still.
_UNREAD = f"""SELECT groupArray(RunKey) FROM (
    SELECT RunKey FROM mast_findings WHERE {STARTED} AND {OF_PROGRAMS}
      AND RunKey GLOBAL IN (SELECT RunKey FROM mast_findings WHERE {STARTED} AND {TO_BE_REPLACED})
    GROUP BY RunKey HAVING argMax({TO_BE_REPLACED}, (JudgedAt, Method != 'reading'))
  )"""
OPEN_RUNS: Final = f"""WITH arrayDistinct(arrayConcat(({_OPEN}), ({_UNREAD}))) AS open
SELECT r.Project AS Project, r.ServiceName AS ServiceName, r.Framework AS Framework, r.End AS End,
  r.LastSeen AS LastSeen, r.RootSeen AS RootSeen, if(v.{TO_BE_REPLACED}, 'waiting', {_STATE}) AS State
{_OPEN_JOINED}"""
"""Runs in the range without an up-to-date verdict, or whose reading by a model is due, of all projects. Usually few."""

WAITING: Final = f"SELECT * FROM ({OPEN_RUNS}) WHERE State IN ('waiting', 'changed') AND {OWNED}"
"""Those of these runs that the judge should judge, or its model read."""

COUNTED: Final = f"""WITH ({_OPEN}) AS open
SELECT * FROM (
  SELECT Project, ServiceName, Framework, RunStart AS Start, RunAgents AS Agents,
    multiIf(v.RunOutcome != '', v.RunOutcome, v.Status = 'ok', v.Outcome, '') AS Outcome,
    if(v.Status = 'ok', 'judged', 'unscored') AS State
  FROM mast_findings AS v
  WHERE {STARTED} AND {OF_PROGRAMS} AND (empty(open) OR RunKey NOT IN (SELECT arrayJoin(open)))
  ORDER BY {LATEST}
  LIMIT 1 BY RunKey
  UNION ALL
  SELECT r.Project AS Project, r.ServiceName AS ServiceName, r.Framework AS Framework,
    r.Start AS Start, r.Agents AS Agents,
    multiIf(r.Outcome != '', r.Outcome, {_JUDGED_OK}, v.Outcome, '') AS Outcome,
    {_STATE} AS State
  {_OPEN_JOINED}
)
WHERE {OWNED}"""
"""The runs of a time range with the columns that counts use. A run without new rows since its
verdict is read from the verdict; only the others are aggregated from their states.
"""

JUDGED_RUNS: Final = _JUDGED.format(runs=RUNS, verdicts=_TOLD_VERDICTS)
"""The runs of a time range with their findings, one row each, aggregated."""


def judged_runs(since: str) -> str:
    """Return `JUDGED_RUNS` with another expression for the beginning of the range."""
    return JUDGED_RUNS.replace(_SINCE, since)


JUDGED_RUN: Final = _JUDGED.format(
    runs="SELECT * FROM mast_runs WHERE TraceId = {run:String}",
    verdicts=f"""SELECT RunKey, {_TOLD} FROM mast_findings
    WHERE RunKey GLOBAL IN (SELECT RunKey FROM mast_verdicts WHERE TraceId = {{run:String}})
    ORDER BY {LATEST}
    LIMIT 1 BY RunKey""",
)
"""The same for one run."""
