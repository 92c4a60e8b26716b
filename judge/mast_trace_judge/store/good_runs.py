"""Finds the good runs of a program: its outcome was recorded, or a person labelled it. The judge's word is none."""

from __future__ import annotations

import time
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from mast_trace_collector.storage.run_spans import RunSpans
from mast_trace_judge.local.contrast import Relations, relations
from mast_trace_judge.local.long_runs import PAGE_BYTES, read_run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mast_trace.trajectory import Trajectory
    from mast_trace_collector.storage.runs import RunSummary
    from mast_trace_collector.storage.store import Store

MOST: Final = 20
"""Good runs with which a run is compared."""
_READ: Final = 30
"""The newest good runs that are read; those of the nearest tasks are compared."""
_FOUND: Final = 200
_DAYS: Final = 30
_LONGEST: Final = 2000
"""Spans of the longest good run that is read."""
_KEPT: Final = 300
_ANEW: Final = 60.0
"""Seconds after which good runs of a program are looked for anew."""
_LABELLED: Final = (
    "SELECT TraceId FROM mast_human_labels FINAL WHERE Project = {project:String} AND Outcome"
)
_GOOD: Final = f"""
SELECT TraceId FROM mast_run_states
WHERE Project = {{project:String}} AND Day >= today() - {{days:UInt32}}
GROUP BY TraceId
HAVING substring(min(Named), 21) = {{name:String}} AND max(ServiceName) = {{service:String}} AND max(Kind) = ''
  AND length(groupUniqArrayArray(Spans)) <= {{longest:UInt32}}
  AND (startsWith(substring(max(Said), 21), 'success\\n') OR TraceId IN ({_LABELLED} = 'success'))
  AND TraceId NOT IN ({_LABELLED} = 'failure')
ORDER BY max(LastSeen) DESC LIMIT {{limit:UInt32}}"""  # noqa: S608  # made of constants
_VERSIONS: Final = """
SELECT TraceId, max(ServiceVersion) AS Version FROM otel_traces
WHERE Project = {project:String} AND TraceId IN {runs:Array(String)} GROUP BY TraceId"""


def good_runs(store: Store, project: str, service: str, name: str) -> tuple[str, ...]:
    """Return the ids of good runs of the last weeks, the newest first.

    Args:
        store: the database.
        project: of the runs.
        service: of the runs.
        name: of their roots.

    Raises:
        StorageError: the database does not answer.
    """
    given = {"project": project, "service": service, "name": name}
    bounds = {"days": _DAYS, "longest": _LONGEST, "limit": _FOUND}
    return tuple(row["TraceId"] for row in store.query(_GOOD, {**given, **bounds}))


def of_version(store: Store, project: str, run: str, others: Sequence[str]) -> list[str]:
    """Return those of other runs whose program states the version of a run's, or states none as there.

    Raises:
        StorageError: the database does not answer.
    """
    asked = {"project": project, "runs": [run, *others]}
    versions = {row["TraceId"]: row["Version"] for row in store.query(_VERSIONS, asked)}
    return [each for each in others if each != run and versions.get(each) == versions.get(run, "")]


class GoodRuns:
    """Reads good runs, and remembers some hundred of them.

    Args:
        store: the database.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._relations = lru_cache(_KEPT)(self._read)
        self._found = lru_cache(_KEPT)(lambda _minute, *program: good_runs(store, *program))

    def of(self, run: RunSummary, trajectory: Trajectory) -> list[Relations]:
        """Return up to `MOST` good runs of a run's program and version, those of the nearest tasks first.

        Raises:
            StorageError: the database does not answer.
        """
        minute = time.monotonic() // _ANEW
        found = self._found(minute, run.project, run.service, run.name)
        same = of_version(self._store, run.project, run.trace_id, found) if found else []
        read = [self._relations(run.project, each) for each in same[:_READ]]
        words = _words(trajectory.task)

        def nearness(other: Relations) -> float:
            theirs = _words(other.task)
            return len(words & theirs) / max(len(words | theirs), 1)

        return sorted((each for each in read if each.all), key=nearness, reverse=True)[:MOST]

    def _read(self, project: str, trace_id: str) -> Relations:
        spans = RunSpans(self._store, trace_id, project=project, page_bytes=PAGE_BYTES)
        return relations(read_run(spans))


def _words(text: str) -> frozenset[str]:
    return frozenset(text.lower().split())
