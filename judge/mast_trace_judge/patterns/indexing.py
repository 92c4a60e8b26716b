"""Keeps ``mast_pattern_runs`` up to date with the verdicts: one row for each judged run.

A pass takes the runs whose newest verdict has no row yet, so it can be killed at any moment and
repeated any number of times: a row that is written twice counts once. A run whose row cannot be made has an empty
one, which is in no pattern, and the log has the reason.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, Final

from mast_trace.taxonomy import FAILURE_MODES
from mast_trace_collector.storage.facts import FACTS, asked, states_of
from mast_trace_collector.storage.moments import in_time, within
from mast_trace_collector.storage.removal.tombstones import AT_ONCE, insert_living
from mast_trace_collector.storage.transient import is_transient
from mast_trace_judge.patterns.hits import TextMiner, hits_of
from mast_trace_judge.store.apart import apart
from mast_trace_judge.store.records import utc

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from mast_trace_collector.storage.store import Store

_LOG = logging.getLogger(__name__)
TABLE: Final = "mast_pattern_runs"
_BEGINNING: Final = datetime(1970, 1, 2, tzinfo=timezone.utc)
_SKEW: Final = timedelta(minutes=15)
"""Verdicts of several workers become visible in another order than that of their times."""
_MARGIN: Final = 3600 * 10**9
"""Nanoseconds around runs in which their spans are looked for."""
_NO_RUN: Final = {"Project": "", "TraceId": "-", "Begin": 0, "End": 0}
_CODES: Final = list(FAILURE_MODES)
COUNTS: Final = (2, 3, 4, 5, 8, 16)
"""Counts from which on an action is an action of its own. Each is one more test, so that they are few."""

_DUE: Final = """
SELECT toString(any(v.Project)) AS Project, any(v.TraceId) AS TraceId, max(v.JudgedAt) AS Judged,
    toUnixTimestamp64Nano(min(v.RunStart)) AS Begin, toUnixTimestamp64Nano(max(v.RunEnd)) AS End
FROM mast_findings AS v
WHERE v.JudgedAt >= {since:DateTime64(3)} AND v.Kind = ''
GROUP BY RunKey
HAVING (RunKey, Judged) GLOBAL NOT IN (
  SELECT RunKey, JudgedAt FROM mast_pattern_runs WHERE JudgedAt >= {since:DateTime64(3)})
ORDER BY Judged, TraceId
LIMIT {limit:UInt64}
"""
_OF_RUNS: Final = "Project IN {projects:Array(String)} AND TraceId IN {traces:Array(String)}"
_VERDICTS: Final = f"""
SELECT Project, TraceId, JudgedAt, Fingerprint, Status, RunStart, RunEnd, ServiceName, Framework, Steps,
    RunOutcome, Examined, DecisiveStep, DecisiveAgent, DecisiveSpanId,
    RunInputTokens + RunOutputTokens AS Tokens,
    `Modes.Code`, `Modes.Probability`, `Modes.Steps`, `Modes.SpanIds`, `Modes.Quotes`
FROM mast_verdicts
WHERE {_OF_RUNS}
ORDER BY JudgedAt DESC
LIMIT 1 BY Project, TraceId
"""  # noqa: S608  # made of constants
_SPANS: Final = f"""
SELECT toString(Project) AS OfProject, TraceId, SpanId,
    if(Sender != '', toString(Sender), toString(AgentName)) AS Agent,
    arrayMap(name -> toString(name), Recipients) AS Recipients, toString(ToolName) AS ToolName,
    if(StatusCode = 'Error', substringUTF8(if(StatusMessage != '', StatusMessage, 'error'), 1, 2000), '') AS Error,
    substringUTF8(multiIf(Operation = 'send_message', SpanAttributes['mast.message.content'],
        JSONExtractString(SpanAttributes['gen_ai.output.messages'], 1, 'parts', 1, 'content')), 1, 2000) AS Text
FROM otel_traces
WHERE {_OF_RUNS} AND {{then}} AND (TraceId, SpanId) GLOBAL IN (
  SELECT TraceId, arrayJoin(arrayPushBack(arrayMap(ids -> ids[1], `Modes.SpanIds`), DecisiveSpanId))
  FROM mast_verdicts WHERE {_OF_RUNS})
LIMIT 1 BY Project, TraceId, SpanId
"""  # noqa: S608  # made of constants
_ACTED: Final = f"""
WITH {asked(states_of(_OF_RUNS))}
SELECT toString(Project) AS OfProject, TraceId, Version, Actions FROM ({FACTS})"""  # noqa: S608  # made of constants
_KNOWN: Final = """
SELECT toString(Project) AS OfProject, Code, Agent, Peer, Tool, Template, min(RunStart) AS First,
    groupArraySample(3, 1)(Text) AS Texts
FROM (
  SELECT Project, RunStart, toString(Code) AS Code, toString(Agent) AS Agent, toString(Peer) AS Peer,
    toString(Tool) AS Tool, Template, Text
  FROM mast_pattern_runs
  ARRAY JOIN `Hits.Code` AS Code, `Hits.Agent` AS Agent, `Hits.Peer` AS Peer, `Hits.Tool` AS Tool,
    `Hits.Template` AS Template, `Hits.Text` AS Text
  WHERE Template != 0
)
GROUP BY OfProject, Code, Agent, Peer, Tool, Template
ORDER BY max(RunStart) DESC
LIMIT 200 BY OfProject, Code, Agent, Peer, Tool
"""

_COPIED: Final = (
    "Project",
    "TraceId",
    "Fingerprint",
    "ServiceName",
    "Framework",
    "Steps",
    "DecisiveStep",
    "DecisiveAgent",
    "Tokens",
)


class PatternIndexer:
    """Writes the rows of runs that were judged since the last pass.

    Only one process at a time should index a store: two would give new texts of one form two
    numbers until one of them starts again. Counts are right all the same.

    Args:
        store: of all projects.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._since = _BEGINNING
        self._miner: TextMiner | None = None

    def index(self, *, at_all: bool = False, limit: int = AT_ONCE) -> int:
        """Write the rows of at most ``limit`` runs, oldest verdict first; return how many.

        A run that is too large at this moment stays due, and does not keep the others from being written.

        Args:
            at_all: look through all verdicts, not only those since the last pass.
            limit: most runs.

        Raises:
            StorageError: the database does not answer, or a run is too large at this moment.
        """
        since = _BEGINNING if at_all else self._since
        due = self._store.query(_DUE, {"since": since, "limit": limit})
        too_large: list[Exception] = []

        def refused(run: Mapping[str, Any], error: Exception) -> None:
            if is_transient(error):
                too_large.append(error)
            else:
                self._leave_out(run, error)

        for start in range(0, len(due), AT_ONCE):
            apart(due[start : start + AT_ONCE], self._write, refused)
        if too_large:
            raise too_large[0]
        if due:
            newest = max(utc(row["Judged"]) for row in due)
            self._since = max(self._since, newest - _SKEW)
        return len(due)

    def _leave_out(self, run: Mapping[str, Any], error: Exception) -> None:
        """Write the empty row of a run whose row cannot be made; its verdict remains."""
        self._write([_NO_RUN])  # raises where the failure is not about this run
        _LOG.error(
            "run %s is left out of the patterns: %s",
            run["TraceId"],
            error,
            extra={"action": "run_left_out_of_patterns", "project": run["Project"]},
            exc_info=error,
        )
        row = {
            "Project": run["Project"],
            "TraceId": run["TraceId"],
            "JudgedAt": utc(run["Judged"]),
            "RunStart": _moment(run["Begin"]),
            "RunEnd": _moment(run["End"]),
        }
        self._store.insert(TABLE, [row])

    def _write(self, due: Sequence[Mapping[str, Any]]) -> None:
        """Write the rows of some runs in one insert."""
        wanted = {(row["Project"], row["TraceId"]) for row in due}
        first = within(min(row["Begin"] for row in due) - _MARGIN)
        last = within(max(row["End"] for row in due) + _MARGIN)
        given = {
            "traces": sorted({trace for _, trace in wanted}),
            "projects": sorted({project for project, _ in wanted}),
            "first": first,
            "last": last,
        }
        # Days are partitions: without a time, each of them is searched for each run.
        then = in_time(first, last)
        spans: dict[tuple[str, str], dict[str, Mapping[str, Any]]] = defaultdict(dict)
        for row in self._store.query(_SPANS.replace("{then}", then), given):
            spans[row["OfProject"], row["TraceId"]][row["SpanId"]] = row
        acted = {
            (row["OfProject"], row["TraceId"]): row for row in self._store.query(_ACTED, given)
        }
        miner = self._miner or self._learned()
        # Oldest first, so that a text has the number that it would have had without an interruption.
        verdicts = sorted(
            self._store.query(_VERDICTS, given),
            key=lambda row: (row["JudgedAt"], row["Project"], row["TraceId"]),
        )
        rows = []
        for verdict in verdicts:
            key = (verdict["Project"], verdict["TraceId"])
            if key in wanted:
                rows.append(_row(verdict, spans.get(key, {}), acted.get(key, {}), miner))
        insert_living(self._store, TABLE, rows)

    def _learned(self) -> TextMiner:
        """Return a miner that knows the texts that are stored."""
        self._miner = miner = TextMiner()
        miner.learn(_texts(self._store.query(_KNOWN)))
        return miner


def counted(actions: Iterable[tuple[str, str, int]]) -> Iterator[tuple[str, str]]:
    """Yield agent and name of each action, and of its counts: an action that is repeated is another one, too.

    Args:
        actions: agent, name and number of each action of a run; the name is empty for all that the agent does.
    """
    for agent, name, times in actions:
        yield agent, name
        for least in COUNTS:
            if name and times >= least:
                yield agent, f"{name}, {least} times or more"


def _moment(nanosecond: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(microseconds=nanosecond // 1000)


def _texts(
    rows: Sequence[Mapping[str, Any]],
) -> Iterator[tuple[tuple[str, ...], int, str]]:
    for row in sorted(rows, key=lambda row: row["First"]):
        place = (row["OfProject"], row["Code"], row["Agent"], row["Peer"], row["Tool"])
        for text in row["Texts"]:
            yield place, row["Template"], text


def _row(
    verdict: Mapping[str, Any],
    spans: Mapping[str, Mapping[str, Any]],
    acted: Mapping[str, Any],
    miner: TextMiner,
) -> dict[str, Any]:
    is_scored = verdict["Status"] == "ok"
    hits = hits_of(verdict, spans, miner) if is_scored else []
    actions = sorted(counted(acted.get("Actions", ())))
    examined = set(verdict["Examined"]) if is_scored else set()
    return {
        **{name: verdict[name] for name in _COPIED},
        "RunStart": utc(verdict["RunStart"]),
        "RunEnd": utc(verdict["RunEnd"]),
        "JudgedAt": utc(verdict["JudgedAt"]),
        "Version": acted.get("Version", ""),
        "Outcome": verdict["RunOutcome"],
        "ExaminedBits": sum(1 << bit for bit, code in enumerate(_CODES) if code in examined),
        "Hits.Code": [hit.code for hit in hits],
        "Hits.Agent": [hit.agent for hit in hits],
        "Hits.Peer": [hit.peer for hit in hits],
        "Hits.Tool": [hit.tool for hit in hits],
        "Hits.Template": [hit.template for hit in hits],
        "Hits.Text": [hit.text for hit in hits],
        "Hits.Step": [hit.step for hit in hits],
        "Hits.SpanId": [hit.span_id for hit in hits],
        "Actions.Agent": [agent for agent, _ in actions],
        "Actions.Name": [name for _, name in actions],
    }
