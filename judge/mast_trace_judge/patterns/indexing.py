"""Keeps ``mast_pattern_runs`` up to date with the verdicts: one row for each judged run.

A pass takes the runs whose newest verdict has no row yet, so it can be killed at any moment and
repeated any number of times: a row that is written twice counts once. A run whose row cannot be made has an empty
one, which is in no pattern, and the log has the reason.

Texts of one form are one place: ids, numbers and addresses are masked. The miner is drain3's Drain (He et al., "Drain:
An Online Log Parsing Approach with Fixed Depth Tree", ICWS 2017). Its state is never stored: it is rebuilt from the
masked texts of the runs that are kept, so that nothing of an erased run is left.
"""

from __future__ import annotations

import hashlib
import logging
from collections import OrderedDict, defaultdict
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from mast_trace.taxonomy import FAILURE_MODES
from mast_trace_collector.storage.facts import FACTS, asked, states_of
from mast_trace_collector.storage.moments import around
from mast_trace_collector.storage.removal.tombstones import AT_ONCE, insert_living
from mast_trace_collector.storage.transient import is_transient
from mast_trace_judge.store.apart import apart
from mast_trace_judge.store.records import utc
from mast_trace_judge.verdict import SHOWN_FROM

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from drain3.drain import Drain
    from drain3.masking import LogMasker

    from mast_trace_collector.storage.store import Store

PARAMETER: Final = "<*>"
"""Stands for a word that differs between the texts of a template."""
WORDS: Final = 40
"""Number of words of a text that its template is made of."""
_READ: Final = 2000
"""Characters of a text that are masked at all."""
_LONGEST_WORD: Final = 80
_SIMILAR: Final = 0.5
"""Share of equal words from which two texts of one length have one template."""
_TEMPLATES: Final = 200
"""Most templates of one place; the one that was met longest ago makes room."""
_PLACES: Final = 5000
"""Most places whose templates are kept in memory."""
_MASKS: Final = (
    (r"https?://[^\s\"'<>)\]}]+", "url"),
    (r"\b[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+\b", "email"),
    (r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b", "id"),
    (r"\b(?=[0-9a-fA-F]*[0-9])[0-9a-fA-F]{8,}\b", "id"),
    (r"\b(?=\w*\d)(?=\w*[A-Za-z])[A-Za-z]{1,12}[_-][A-Za-z0-9]{6,}\b", "id"),
    (r"(?<![\w/])(?:~|\.{1,2})?(?:/[\w.@%+-]+){2,}/?", "path"),
    (r"\"[^\"\n]{1,200}\"|'[^'\n]{3,200}'(?!\w)", "text"),
    (r"(?<!\w)[+-]?\d[\d.,:]*(?:[eE][+-]?\d+)?(?:%|\w{0,3})?(?!\w)", "number"),
)


@cache
def _masker() -> LogMasker:
    from drain3.masking import LogMasker, MaskingInstruction  # a collector lacks the extra `judge`

    return LogMasker([MaskingInstruction(form, name) for form, name in _MASKS], "<", ">")


def _drain() -> Drain:
    from drain3.drain import Drain

    return Drain(depth=4, sim_th=_SIMILAR, max_clusters=_TEMPLATES, param_str=PARAMETER)


def masked(text: str) -> str:
    """Return the first `WORDS` words of a text, with what differs between runs replaced by its kind."""
    shown = _masker().mask(text[:_READ])
    return " ".join(word[:_LONGEST_WORD] for word in shown.split()[:WORDS])


@dataclass
class _Place:
    """The templates of one place, and the number of each cluster."""

    drain: Drain = field(default_factory=_drain)
    numbers: dict[int, int] = field(default_factory=dict)


class TextMiner:
    """Gives texts of one form at one place the same number.

    A place is any tuple of names, such as a failure mode with its agent; texts of different places
    have different numbers. A number is that of the first text of its template, so that processes that
    have read the same texts in the same order agree.
    """

    def __init__(self) -> None:
        self._places: OrderedDict[tuple[str, ...], _Place] = OrderedDict()

    def number(self, place: tuple[str, ...], text: str) -> int:
        """Return the number of a masked text's template, above 0; 0 for an empty text."""
        return self._number(place, text, 0)

    def learn(self, known: Iterable[tuple[tuple[str, ...], int, str]]) -> None:
        """Take over texts with their numbers, oldest first."""
        for place, number, text in known:
            self._number(place, text, number)

    def _number(self, place: tuple[str, ...], text: str, known: int) -> int:
        if not text:
            return 0
        here = self._places.pop(place, None) or _Place()
        self._places[place] = here
        if len(self._places) > _PLACES:
            self._places.popitem(last=False)
        cluster, _ = here.drain.add_log_message(text)
        if cluster.cluster_id not in here.numbers:
            here.numbers[cluster.cluster_id] = known or _hash(place, text)
            if len(here.numbers) > 2 * _TEMPLATES:
                kept = here.drain.id_to_cluster
                here.numbers = {one: number for one, number in here.numbers.items() if one in kept}
        return here.numbers[cluster.cluster_id]


def _hash(place: tuple[str, ...], text: str) -> int:
    digest = hashlib.sha256("\0".join((*place, text)).encode("utf-8", "replace")).digest()
    return int.from_bytes(digest[:8], "big") or 1


@dataclass(frozen=True)
class PlacedFinding:
    """One finding of a run, by its place.

    Attributes:
        code: of the failure mode; empty for a decisive error that shows none.
        agent: agent of the first step that shows it.
        peer: recipient, where that step is a message to one agent.
        tool: where it is a tool call.
        template: number of the text's template; 0 without a text.
        text: the masked error of the step, or the masked passage that the verdict quotes.
        step: index of the step.
        span_id: its span.
    """

    code: str
    agent: str
    peer: str
    tool: str
    template: int
    text: str
    step: int
    span_id: str


def hits_of(
    verdict: Mapping[str, Any], spans: Mapping[str, Mapping[str, Any]], miner: TextMiner
) -> list[PlacedFinding]:
    """Return the places of a verdict's shown findings, each once, by their steps.

    Args:
        verdict: a row of ``mast_verdicts``.
        spans: the spans of its findings by id, with Agent, Recipients, ToolName, Failed, Error, Text.
        miner: gives the texts' numbers.
    """
    found: dict[tuple[str, ...], PlacedFinding] = {}
    for code, agent, step, span_id, quote in _findings(verdict):
        hit = _hit(verdict["Project"], code, agent, step, span_id, quote, spans, miner)
        place = (hit.code, hit.agent, hit.peer, hit.tool, str(hit.template))
        found.setdefault(place, hit)
    return sorted(found.values(), key=lambda hit: hit.step)


def _findings(verdict: Mapping[str, Any]) -> Iterator[tuple[str, str, int, str, str]]:
    """Yield code, agent, step, span and quote of each shown finding, and of the decisive error alone."""
    decisive = verdict["DecisiveStep"]
    covered = False
    lists = ("Modes.Code", "Modes.Probability", "Modes.Steps", "Modes.SpanIds", "Modes.Quotes")
    for code, probability, steps, span_ids, quotes in zip(
        *(verdict[name] for name in lists), strict=True
    ):
        if probability < SHOWN_FROM:
            continue
        covered = covered or decisive in steps
        if steps:
            span_id = span_ids[0] if span_ids else ""
            agent = verdict["DecisiveAgent"] if steps[0] == decisive else ""
            yield code, agent, steps[0], span_id, quotes[0] if quotes else ""
        else:
            yield code, "", 0, "", ""
    if decisive is not None and not covered:
        yield "", verdict["DecisiveAgent"], decisive, verdict["DecisiveSpanId"], ""


def _hit(
    project: str,
    code: str,
    agent: str,
    step: int,
    span_id: str,
    quote: str,
    spans: Mapping[str, Mapping[str, Any]],
    miner: TextMiner,
) -> PlacedFinding:
    span: Mapping[str, Any] = spans.get(span_id, {})
    agent = span.get("Agent", "") or agent
    tool = span.get("ToolName", "")
    peer = "" if tool else _peer(agent, span.get("Recipients", ()))
    error = span.get("Error", "")
    # A tool names the place; a text is needed where there is none, or where it says how the tool failed.
    text = masked(error or ("" if tool else quote or span.get("Text", "")))
    number = miner.number((project, code, agent, peer, tool), text)
    return PlacedFinding(code, agent, peer, tool, number, text, step, span_id)


def _peer(agent: str, recipients: Sequence[str]) -> str:
    others = [name for name in recipients if name and name != agent]
    return others[0] if len(others) == 1 else ""


_LOG = logging.getLogger(__name__)
TABLE: Final = "mast_pattern_runs"
_BEGINNING: Final = datetime(1970, 1, 2, tzinfo=timezone.utc)
_SKEW: Final = timedelta(minutes=15)
"""Verdicts of several workers become visible in another order than that of their times."""
_NO_RUN: Final = {"Project": "", "TraceId": "-", "Begin": 0, "End": 0}
_CODES: Final = list(FAILURE_MODES)
COUNTS: Final = (2, 3, 4, 5, 8, 16)
"""Counts from which on an action is an action of its own. Each is one more test, so that they are few."""

_DUE: Final = """
SELECT toString(any(v.Project)) AS Project, any(v.TraceId) AS TraceId, max(v.JudgedAt) AS Judged,
    toUnixTimestamp64Nano(min(v.RunStart)) AS Begin, toUnixTimestamp64Nano(max(v.RunEnd)) AS End
FROM mast_findings AS v
WHERE v.JudgedAt >= {since:DateTime64(3)} AND v.Kind = '' AND v.Method != 'provisional'
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
        then, bounds = around((row["Begin"], row["End"]) for row in due)
        given = {
            "traces": sorted({trace for _, trace in wanted}),
            "projects": sorted({project for project, _ in wanted}),
            **bounds,
        }
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
