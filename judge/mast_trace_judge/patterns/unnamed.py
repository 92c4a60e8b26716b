"""Finds patterns that have no name, with runs that may be read for one, and names that no longer hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from mast_trace_judge.patterns.places import PLACES, RECURS
from mast_trace_judge.store.verdict_rows import utc

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from datetime import datetime

    from mast_trace_collector.storage.store import Store

TABLE: Final = "mast_pattern_names"
STAGE: Final = "name pattern"
"""The name of the question for a name in the ledger of the judge's calls."""
_TRIED: Final = 6
"""Runs of a pattern that are looked up: some may have no texts any more."""
_AGAIN_DAYS: Final = 1
"""Days after which a model is asked again for a name of which it gave none that held."""

_NAMES: Final = """SELECT toString(Project) AS NamedProject, PatternId AS NamedPattern, NamedAt, Sentence, TraceIds,
    toString(Model) AS NamedBy, RunEnd AS NamedEnd
  FROM mast_pattern_names
  ORDER BY NamedAt DESC
  LIMIT 1 BY Project, PatternId"""
_FOUND: Final = f"""SELECT toString(any(Project)) AS OfProject, PatternId AS Id, toString(any(Code)) AS OfCode,
    toString(any(Agent)) AS OfAgent, toString(any(Peer)) AS OfPeer, toString(any(Tool)) AS OfTool, count() AS Runs,
    countIf((PatternId, TraceId) IN (SELECT NamedPattern, arrayJoin(TraceIds) FROM ({_NAMES}))) AS Held
  FROM ({PLACES})
  GROUP BY PatternId"""  # noqa: S608  # made of constants
_WITH_NAMES: Final = f"""SELECT * FROM ({_FOUND}) AS p
LEFT JOIN ({_NAMES}) AS n ON n.NamedProject = p.OfProject AND n.NamedPattern = p.Id"""  # noqa: S608  # likewise
# A run that was judged again may not show the pattern any more.
_LAPSED: Final = f"""SELECT OfProject, Id, NamedEnd FROM ({_WITH_NAMES})
WHERE notEmpty(Sentence) AND Held < length(TraceIds)"""  # noqa: S608  # likewise
_UNNAMED: Final = f"""SELECT OfProject, Id, OfCode, OfAgent, OfPeer, OfTool, Runs FROM ({_WITH_NAMES})
WHERE Runs >= {RECURS} AND empty(Sentence)
  AND (NamedBy != {{model:String}} OR NamedAt < now64(6) - toIntervalDay({_AGAIN_DAYS}))
  AND NOT has({{without:Array(String)}}, Id)
ORDER BY Runs DESC, Id
LIMIT {{limit:UInt64}}"""  # noqa: S608  # likewise
_RUNS: Final = f"""SELECT PatternId, TraceId, RunEnd, Step FROM ({PLACES})
WHERE has({{patterns:Array(String)}}, PatternId)
ORDER BY Outcome = 'failure' DESC, RunStart DESC, TraceId
LIMIT {_TRIED} BY PatternId"""  # noqa: S608  # likewise


@dataclass(frozen=True)
class ShowingRun:
    """A run that shows a pattern.

    Attributes:
        trace_id: of the run.
        end: of the run.
        step: the first step that shows it.
    """

    trace_id: str
    end: datetime
    step: int


@dataclass(frozen=True)
class Unnamed:
    """A pattern without a name, by its place; ``runs`` are some of its runs, known failures first."""

    project: str
    pattern: str
    code: str
    agent: str
    peer: str
    tool: str
    runs: tuple[ShowingRun, ...]


def unnamed(store: Store, model: str, *, without: Collection[str], limit: int) -> list[Unnamed]:
    """Return patterns that recur and have no name, the most frequent first.

    A pattern is left out for a day after this model gave no sentence for it that held.

    Args:
        store: of all projects.
        model: that will be asked.
        without: ids of patterns to leave out.
        limit: most patterns.

    Raises:
        StorageError: the database does not answer.
    """
    given = {"model": model, "without": sorted(without), "limit": limit}
    found = store.query(_UNNAMED, given) if limit else []
    runs: dict[str, list[ShowingRun]] = {row["Id"]: [] for row in found}
    for row in store.query(_RUNS, {"patterns": sorted(runs)}) if runs else ():
        run = ShowingRun(row["TraceId"], utc(row["RunEnd"]), row["Step"])
        runs[row["PatternId"]].append(run)
    return [_unnamed(row, runs[row["Id"]]) for row in found]


def _unnamed(row: Mapping[str, Any], runs: Sequence[ShowingRun]) -> Unnamed:
    return Unnamed(
        project=row["OfProject"],
        pattern=row["Id"],
        code=row["OfCode"],
        agent=row["OfAgent"],
        peer=row["OfPeer"],
        tool=row["OfTool"],
        runs=tuple(runs),
    )


def lapsed(store: Store) -> list[tuple[str, str, datetime]]:
    """Return the names of which a run no longer shows the pattern: project, pattern, end of the name's runs.

    Raises:
        StorageError: the database does not answer.
    """
    if not store.query(f"SELECT 1 FROM {TABLE} WHERE notEmpty(Sentence) LIMIT 1"):  # noqa: S608
        return []
    return [(row["OfProject"], row["Id"], utc(row["NamedEnd"])) for row in store.query(_LAPSED)]
