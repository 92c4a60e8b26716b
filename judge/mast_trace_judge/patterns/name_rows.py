"""Writes the rows of patterns' names, and erases those that outlived a run; see `save`."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Final

from mast_trace_collector.storage.erasure import erase_names
from mast_trace_collector.storage.tombstones import tombstones_of
from mast_trace_judge.patterns.places import TABLE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mast_trace_collector.storage.store import Store
    from mast_trace_judge.patterns.name_record import Name, NameRecord
    from mast_trace_judge.patterns.places import Lapsed, Unnamed

_STILL_THERE: Final = """SELECT uniqExact(TraceId) AS Runs FROM mast_pattern_runs
WHERE Project = {project:String} AND has({runs:Array(String)}, TraceId)"""
_READ: Final = "SELECT Project, arrayJoin(TraceIds) AS TraceId FROM mast_pattern_names WHERE notEmpty(Sentence)"
_OUTLIVED: Final = f"""SELECT DISTINCT toString(Project) AS OfProject, TraceId FROM ({_READ})
WHERE (Project, TraceId) GLOBAL NOT IN (
  SELECT Project, TraceId FROM mast_pattern_runs WHERE TraceId GLOBAL IN (SELECT TraceId FROM ({_READ}))
)"""  # noqa: S608  # made of constants


def save(
    store: Store, pattern: Unnamed, record: NameRecord, name: Name | None, *, model: str
) -> bool:
    """Store a name with all runs that the model has read, any of which may be in its words.

    Without a name the row says that this model gave none. Nothing is stored if a run was erased while the model was
    asked.

    Returns:
        Whether the row was stored.

    Raises:
        StorageError: the database does not answer.
    """
    runs = [read.run.trace_id for read in record.runs]
    if tombstones_of(store, [(pattern.project, run) for run in runs]):
        return False
    (there,) = store.query(_STILL_THERE, {"project": pattern.project, "runs": runs})
    if there["Runs"] < len(runs):
        return False
    row = {
        "Project": pattern.project,
        "PatternId": pattern.pattern,
        "NamedAt": _now(),
        "Sentence": name.sentence if name else "",
        "Quotes": list(name.quotes) if name else [],
        "TraceIds": runs,
        "Model": model,
        # Retention must not keep a run's words longer than the run.
        "RunEnd": min(read.run.end for read in record.runs),
    }
    store.insert(TABLE, [row])
    return True


def take_back(store: Store, lapsed: Sequence[Lapsed]) -> None:
    """Store that some names hold no longer.

    Raises:
        StorageError: the database does not answer.
    """
    rows = [
        {"Project": name.project, "PatternId": name.pattern, "NamedAt": _now(), "RunEnd": name.end}
        for name in lapsed
    ]
    if rows:
        store.insert(TABLE, rows)


def erase_outlived(store: Store) -> int:
    """Erase names, older ones included, that were made from runs which are gone; return the number of these runs.

    Such a name was stored in the moment in which a run was erased.

    Raises:
        StorageError: the database does not answer.
    """
    gone: dict[str, list[str]] = defaultdict(list)
    for row in store.query(_OUTLIVED):
        gone[row["OfProject"]].append(row["TraceId"])
    for project, runs in gone.items():
        erase_names(store, runs, project=project)
    return sum(map(len, gone.values()))


def _now() -> datetime:
    return datetime.now(timezone.utc)
