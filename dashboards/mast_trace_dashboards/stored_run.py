"""One run of a store, read as far as it is shown.

The steps of a run depend on all of its spans, so the run is read once, page by page, into an
outline; texts are read for the steps that are shown. Outlines are cached for a while, for all
readers.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from mast_trace.trajectory import SpanRecord, Step, Trajectory, read_trajectory
from mast_trace_collector.storage.facts import FACTS, WRITTEN, asked, states_of
from mast_trace_collector.storage.moments import around, nanoseconds
from mast_trace_collector.storage.removal.thinning import was_left_out
from mast_trace_collector.storage.run_spans import RECORD_COLUMNS, RunSpans, open_roots, record
from mast_trace_dashboards.queries import QUERIES
from mast_trace_dashboards.queries.costs import ASKED
from mast_trace_judge.local.long_runs import PAGE_BYTES, outline_of, read_run
from mast_trace_judge.transfer.exporting import run_as_json, steps_of

if TYPE_CHECKING:
    from mast_trace.trajectory.outline import Outline
    from mast_trace_collector.storage import Store
    from mast_trace_judge.verdict import Verdict

KEPT_BYTES = 64 * 1024 * 1024
"""Bytes of outlines, and of spans of short runs, that are cached."""
_SHORT = 1024 * 1024
"""Bytes of attributes up to which a run's spans are cached with its outline."""
_SHORTEST_RUN = 2000
"""Number of spans up to which outlining a run takes no noticeable time."""
_QUOTED = 20
"""Number of steps of a finding among which its quotes are searched."""
_MOST_BYTES = 32 * 1024 * 1024
"""Bytes of attributes of the spans that are read for the tasks of several runs."""
_ASKED = f"""
SELECT {RECORD_COLUMNS}, toString(Project) AS RunProject FROM otel_traces
WHERE TraceId IN {{runs:Array(String)}} AND {{then}}
  AND arraySum(text -> length(text), mapValues(SpanAttributes)) < {{most:UInt64}}
  AND (toString(Project), TraceId, SpanId) GLOBAL IN (
    SELECT toString(Project), TraceId, SpanId FROM otel_traces
    WHERE TraceId IN {{runs:Array(String)}} AND {{then}}
      AND (Operation = 'invoke_workflow' AND ParentSpanId = '' OR Operation IN ('send_message', 'chat'))
    ORDER BY Timestamp LIMIT 1 BY Project, TraceId, Operation
  )
LIMIT 1 BY Project, TraceId, SpanId
"""  # noqa: S608  # made of constants
_STATE = """
SELECT Fingerprint, Name, Outcome, OutcomeReason FROM mast_runs
WHERE TraceId = {trace_id:String} AND Project = {project:String}
"""
_CALLS = QUERIES["cost_of_calls"]
_OF_ONE = states_of("TraceId IN {only:Array(String)} AND has({projects:Array(String)}, Project)")
# Planning the view over spans takes longer than all the rest: it is asked where the run's facts are not written.
_WRITTEN_CALLS = replace(
    _CALLS, template=_CALLS.template.replace(ASKED, asked(_OF_ONE)).replace(FACTS, WRITTEN)
)
_SCOPES = """
SELECT ScopeName, max(ScopeVersion) AS Version FROM otel_traces
WHERE TraceId = {trace_id:String} AND Project = {project:String} AND Operation != '' AND ScopeName != ''
GROUP BY ScopeName ORDER BY ScopeName LIMIT 9
"""
_GROUPS = """
SELECT max(ServiceVersion) AS version, max(UserId) AS user, max(ConversationId) AS session,
    arraySort(groupUniqArrayIf(9)(Model, Model != '')) AS models
FROM otel_traces WHERE TraceId = {trace_id:String} AND Project = {project:String}
"""

Key = tuple[str, str, str, str, str]


@dataclass(frozen=True)
class _Read:
    """The cached data of a run: its outline, and the spans of a short one."""

    outline: Outline
    spans: Mapping[str, SpanRecord] | None
    size: int


def tasks_of(
    store: Store, runs: Sequence[str], times: Sequence[tuple[datetime, datetime]] = ()
) -> dict[tuple[str, str], str]:
    """Return the task of each run, by project and run, as its root, its first message or first model call holds it.

    For a run whose root has not ended, its start record holds it.

    Args:
        store: the database; one project's, if only that may be seen.
        runs: their ids.
        times: start and end of each run, where they are known; see `around`.

    Raises:
        StorageError: the database does not answer.
    """
    if not runs:
        return {}
    most = _MOST_BYTES // len(runs)
    then, bounds = around((nanoseconds(start), nanoseconds(end)) for start, end in times)
    given = {"runs": sorted(set(runs)), "most": most, **bounds}
    spans: dict[tuple[str, str], list[SpanRecord]] = {}
    for row in store.query(_ASKED.replace("{then}", then), given):
        spans.setdefault((row["RunProject"], row["TraceId"]), []).append(record(row))
    for key, root in open_roots(store, runs, times=times, most=most).items():
        spans.setdefault(key, []).append(root)
    return {key: read_trajectory(found).task for key, found in spans.items()}


class OutlineCache:
    """A cache of the runs that were read last; one run is read at a time.

    Args:
        most: bytes of the cache.
    """

    def __init__(self, most: int = KEPT_BYTES) -> None:
        self._most = most
        self._kept: OrderedDict[Key, _Read] = OrderedDict()
        self._lock = threading.Lock()
        self._reading = threading.Lock()

    def find(self, key: Key) -> _Read | None:
        """Return the cached data of a run, if any."""
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
            return found

    def read(self, key: Key, spans: RunSpans) -> _Read:
        """Return the cached data of a run, or read it.

        Raises:
            StorageError: the database does not answer.
        """
        with self._reading:
            found = self.find(key)
            if found is None:
                found = _read(spans)
                with self._lock:
                    self._kept[key] = found
                    while len(self._kept) > 1 and self.size > self._most:
                        self._kept.popitem(last=False)
        return found

    @property
    def size(self) -> int:
        """Approximate bytes of the cache."""
        return sum(read.size for read in self._kept.values())


_CACHE = OutlineCache()


def _read(spans: RunSpans) -> _Read:
    outline = outline_of(spans).compact()
    if spans.size > _SHORT:
        return _Read(outline, None, outline.size)
    kept = {span.span_id: span for page in spans.read() for span in page}
    return _Read(outline, kept, outline.size + 3 * spans.size)


def left_out_words(at: datetime) -> str:
    """Return the sentence about a run whose spans were left out."""
    return f"Retention left the steps of this run out on {at:%Y-%m-%d}; its verdict is kept."


class StoredRun:
    """A run in a store.

    Attributes:
        trace_id: of the run.
        project: of the run.
        store: the database.
        spans: its spans, read on demand.
    """

    def __init__(self, store: Store, trace_id: str, project: str, *, size: int = 0) -> None:
        """Find the run; its spans are not read yet.

        Args:
            store: the database.
            trace_id: of the run.
            project: of the run.
            size: its number of spans, as far as known.

        Raises:
            StorageError: the database does not answer.
        """
        given = {"trace_id": trace_id, "project": project}
        # The four columns alone: planning those that count takes as long again.
        state = next(iter(store.query(_STATE, given)), None)
        self.store = store
        self._cache = _CACHE
        self._size = size
        self.trace_id, self.project = trace_id, project
        self._state = state
        self._key = (
            *(store.url, store.database, project, trace_id),
            # The record of a run's beginning may arrive after its spans; it changes the name alone.
            f"{state['Fingerprint']} {state['Name']}" if state else "",
        )
        self.spans = RunSpans(store, trace_id, project=project)

    @property
    def fingerprint(self) -> str:
        """The state of the run; empty for a run without spans."""
        return str(self._state["Fingerprint"]) if self._state else ""

    @cached_property
    def left_out(self) -> datetime | None:
        """The time at which retention left its spans out; None if it did not.

        Raises:
            StorageError: the database does not answer.
        """
        return was_left_out(self.store, self.trace_id, self.project)

    @property
    def is_ready(self) -> bool:
        """True if its outline is cached, or takes no noticeable time."""
        return not self.is_long or self._cache.find(self._key) is not None

    @property
    def is_long(self) -> bool:
        """True if counting its steps takes a while, because nobody has counted them lately."""
        return self._size > _SHORTEST_RUN

    @property
    def count(self) -> int:
        """The number of steps.

        Raises:
            StorageError: the database does not answer.
        """
        return len(self.outline)

    @cached_property
    def _whole(self) -> _Read:
        return self._cache.find(self._key) or self._cache.read(self._key, self.spans)

    @property
    def outline(self) -> Outline:
        """The run without its texts.

        Raises:
            StorageError: the database does not answer.
        """
        return self._whole.outline

    def steps(self, numbers: Sequence[int], *, clip: int | None = None) -> list[Step]:
        """Return steps in order; see `RunSpans.of`."""

        def fetch(span_ids: Sequence[str], between: tuple[int, int] | None) -> Iterable[SpanRecord]:
            kept = self._whole.spans
            if kept is None:
                return self.spans.of(span_ids, between, clip=clip)
            return [kept[identity] for identity in span_ids if identity in kept]

        return sorted(self.outline.steps(numbers, fetch), key=lambda step: step.index)

    def all_steps(self) -> Iterator[Step]:
        """Yield every step in order, with its whole texts; few are held at a time.

        Raises:
            StorageError: the database does not answer.
        """
        if self._whole.spans is not None:
            return iter(self.steps(range(self.count)))
        return steps_of(self.spans, self.outline)

    def trajectory(self) -> Trajectory | None:
        """Return the whole run, with all texts; None if it is not short.

        Raises:
            StorageError: the database does not answer.
        """
        spans = self._whole.spans
        return None if spans is None else read_trajectory(spans.values())

    def read(self) -> Trajectory:
        """Return the run with its texts; of one that is too long to be held, some steps are left out.

        Raises:
            StorageError: the database does not answer.
        """
        whole = self.trajectory()
        if whole is not None:
            return whole
        pages = RunSpans(self.store, self.trace_id, project=self.project, page_bytes=PAGE_BYTES)
        return read_run(pages)

    def span_of(self, number: int) -> SpanRecord | None:
        """Return the span of a step."""
        wanted = self.outline.span_ids[number]
        return next(iter(self.spans.of([wanted])), None)

    def calls(self, limit: int) -> list[dict[str, Any]]:
        """Return the rows of the query `cost_of_calls` on this run, at most this many.

        Raises:
            StorageError: the database does not answer.
        """
        given = {"only": [self.trace_id], "projects": [self.project], "limit": limit}
        written = _WRITTEN_CALLS.run(self.store, **given)
        return written or _CALLS.run(self.store, **given)

    def task(self) -> str:
        """Return the task of the run, as `tasks_of` has it."""
        return tasks_of(self.store, [self.trace_id]).get((self.project, self.trace_id), "")

    def places_of(self, verdict: Verdict | None) -> dict[str, int]:
        """Find the step of each quote, among the first steps of its own finding; no long run is read for it."""
        asked: dict[str, list[tuple[int, str]]] = {}
        for finding in verdict.modes if verdict else ():
            steps, span_ids = finding.steps[:_QUOTED], finding.span_ids
            if not span_ids and self.is_ready:
                span_ids = tuple(self.outline.span_ids[number] for number in steps)
            for number, span_id in zip(steps, span_ids, strict=False):
                asked.setdefault(span_id, []).extend((number, quote) for quote in finding.quotes)
        places: dict[str, int] = {}
        for span in self.spans.of(asked) if asked else ():
            texts = "\n".join(step.text for step in read_trajectory([span]).steps)
            for number, quote in asked[span.span_id]:
                if quote and quote in texts:
                    places[quote] = min(number, places.get(quote, number))
        return places

    def scopes(self) -> dict[str, str]:
        """Return the scopes of the spans that state an operation, each with its version, empty if unknown.

        Raises:
            StorageError: the database does not answer.
        """
        rows = self.store.query(_SCOPES, {"trace_id": self.trace_id, "project": self.project})
        return {row["ScopeName"]: row["Version"] for row in rows}

    def groups(self) -> dict[str, list[str]]:
        """Return the version, user, session and the first models of the run, by the filter of the list that each has.

        Raises:
            StorageError: the database does not answer.
        """
        (row,) = self.store.query(_GROUPS, {"trace_id": self.trace_id, "project": self.project})
        one = {name: [row[name]] if row[name] else [] for name in ("version", "user", "session")}
        return {**one, "model": list(row["models"])}

    def json(self, verdict: Verdict | None) -> Iterator[str]:
        """Yield the run and its verdict as JSON text, with the outcome that was recorded last.

        Raises:
            StorageError: the database does not answer.
        """
        state = self._state or {"Outcome": "", "OutcomeReason": ""}
        outcome, reason = state["Outcome"], state["OutcomeReason"]
        return run_as_json(self.spans, verdict, outcome=outcome, outcome_reason=reason)
