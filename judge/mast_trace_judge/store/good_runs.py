"""Finds the good runs of a program: its outcome was recorded, or a person labelled it. The judge's word is none."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from mast_trace_collector.storage.moments import around
from mast_trace_collector.storage.run_spans import RunSpans
from mast_trace_judge.local.long_runs import PAGE_BYTES, read_run
from mast_trace_judge.local.relations import Relations, relations

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mast_trace_collector.storage.store import Store

MOST: Final = 20
"""Good runs with which a run is compared."""
_READ: Final = 30
"""The newest good runs that are read; those of the nearest tasks are compared."""
_FOUND: Final = 200
_DAYS: Final = (1, 30)
"""Days in which they are looked for; the second number where the first has too few, for reading a month takes long."""
_LONGEST: Final = 1000
"""Spans of the longest good run that is read."""
_KEPT: Final = 300
_ANEW: Final = 60.0
"""Seconds after which good runs of a program are looked for anew."""
_LABELLED: Final = (
    "SELECT TraceId FROM mast_human_labels FINAL WHERE Project = {project:String} AND Outcome"
)
_GOOD: Final = f"""
SELECT TraceId, toUnixTimestamp64Nano(min(Start)) AS Begin, toUnixTimestamp64Nano(max(End)) AS Ended FROM mast_run_states
WHERE Project = {{project:String}} AND Day >= today() - {{days:UInt32}}
  AND TraceId GLOBAL IN (
    SELECT TraceId FROM mast_run_states
    WHERE Project = {{project:String}} AND Day >= today() - {{days:UInt32}} AND startsWith(substring(Said, 21), 'success\\n')
    UNION ALL {_LABELLED} = 'success')
  AND TraceId GLOBAL IN (
    SELECT TraceId FROM mast_run_states
    WHERE Project = {{project:String}} AND Day >= today() - {{days:UInt32}} AND ServiceName = {{service:String}})
GROUP BY TraceId
HAVING substring(min(Named), 21) = {{name:String}} AND max(ServiceName) = {{service:String}} AND max(Kind) = ''
  AND length(groupUniqArrayArray(Spans)) <= {{longest:UInt32}}
  AND (startsWith(substring(max(Said), 21), 'success\\n') OR TraceId GLOBAL IN ({_LABELLED} = 'success'))
  AND TraceId GLOBAL NOT IN ({_LABELLED} = 'failure')
ORDER BY max(LastSeen) DESC LIMIT {{limit:UInt32}}"""  # noqa: S608  # made of constants
_VERSIONS: Final = """
SELECT TraceId, max(ServiceVersion) AS Version FROM otel_traces
WHERE Project = {project:String} AND TraceId IN {runs:Array(String)} AND {then} GROUP BY TraceId"""


class GoodRuns:
    """Reads good runs of programs, and remembers some hundred of them.

    Args:
        store: the database; one project's, if only that may be seen.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._relations = lru_cache(_KEPT)(self._read)
        self._found = lru_cache(_KEPT)(self._find)

    def nearest(
        self, trace_id: str, task: str, project: str, service: str, name: str
    ) -> list[Relations]:
        """Return up to `MOST` good runs of a run's program, those of the nearest tasks first.

        They are of its version, or where that has none, of others, which say so.

        Args:
            trace_id: of the run.
            task: its task.
            project: its project.
            service: its service.
            name: of its root.

        Raises:
            StorageError: the database does not answer.
        """
        found = self._found(time.monotonic() // _ANEW, project, service, name)
        own = self._versions(project, [trace_id]).get(trace_id, "") if found else ""
        others = [each for each in found if each != trace_id]
        ids = [each for each in others if found[each] == own] or others
        words = _words(task)

        def nearness(run: Relations) -> float:
            theirs = _words(run.task)
            return len(words & theirs) / max(len(words | theirs), 1)

        # Erased runs leave nothing to be read.
        read = [run for each in ids[:_READ] if (run := self._relations(project, each)).all]
        read = [replace(run, versions=(found[run.trace_id], own)) for run in read]
        return sorted(read, key=nearness, reverse=True)[:MOST]

    def any_beside(self, trace_id: str, project: str, service: str, name: str) -> bool:
        """Return whether `nearest` finds any; cheaper, because none is read.

        Raises:
            StorageError: the database does not answer.
        """
        found = self._found(time.monotonic() // _ANEW, project, service, name)
        return bool(found.keys() - {trace_id})

    def _find(self, _minute: float, project: str, service: str, name: str) -> dict[str, str]:
        """Return the versions of good runs by their ids, the newest first."""
        given = {"project": project, "service": service, "name": name}
        bounds = {"longest": _LONGEST, "limit": _FOUND}
        rows: Sequence[Mapping[str, Any]] = ()
        for days in _DAYS:
            if len(rows) < _FOUND:
                rows = self._store.query(_GOOD, {**given, **bounds, "days": days})
        ids = [row["TraceId"] for row in rows]
        versions = self._versions(project, ids, [(row["Begin"], row["Ended"]) for row in rows])
        return {each: versions[each] for each in ids if each in versions}

    def _versions(
        self, project: str, runs: list[str], times: Sequence[tuple[int, int]] = ()
    ) -> dict[str, str]:
        then, bounds = around(times)
        given = {"project": project, "runs": runs, **bounds}
        rows = self._store.query(_VERSIONS.replace("{then}", then), given) if runs else ()
        return {row["TraceId"]: row["Version"] for row in rows}

    def _read(self, project: str, trace_id: str) -> Relations:
        spans = RunSpans(self._store, trace_id, project=project, page_bytes=PAGE_BYTES)
        return relations(read_run(spans))


def _words(text: str) -> frozenset[str]:
    return frozenset(text.lower().split())
