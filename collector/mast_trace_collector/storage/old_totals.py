"""Run totals of earlier versions: finds them piece by piece, and records them."""

from __future__ import annotations

import secrets
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from mast_trace_collector.storage.store import WRITE_SETTINGS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mast_trace_collector.storage.store import Store

SPANS_AT_ONCE = 250_000
"""Approximate number of spans in a piece: a statement takes some 100 bytes for each."""
_ROWS_AT_ONCE = 5_000

RANGE = "Project = {project:String} AND TraceId >= {first:String} AND TraceId <= {last:String}"
"""A condition on the runs of a piece."""
_HOW_MANY = "SELECT sum(length(Spans)) AS Spans FROM mast_run_states WHERE Old = 1"
_PROJECTS = "SELECT DISTINCT toString(Project) AS Project FROM mast_run_states ORDER BY Project"
# From one trace on, in the order of the table: a look-up of a piece does not scan all runs.
_NEXT = """
SELECT TraceId, length(Spans) AS Length FROM mast_run_states
WHERE Project = {project:String} AND TraceId > {after:String}
  AND ({end:String} = '' OR TraceId <= {end:String}) AND Old = 1
ORDER BY TraceId
LIMIT {rows:UInt32}
"""
# Written with the day of the run's states: queries for old runs must not take it for a new one.
_REMEMBER = f"""
INSERT INTO mast_run_states (Project, TraceId, Day, LastSeen, OldSpans, OldErrors, OldInputTokens, OldOutputTokens)
SELECT r.Project, r.TraceId, old.Day, toDateTime64(0, 3), r.Spans, r.Errors, r.InputTokens, r.OutputTokens
FROM (SELECT * FROM mast_runs WHERE {RANGE}) AS r
INNER JOIN
(
    SELECT TraceId, max(Day) AS Day FROM mast_run_states WHERE {RANGE} AND Old = 1 GROUP BY TraceId
) AS old ON old.TraceId = r.TraceId
"""  # noqa: S608  # made of constants


@dataclass(frozen=True)
class Piece:
    """Runs of one project, from one trace up to another.

    Attributes:
        spans: number of their spans that earlier versions stored.
    """

    project: str
    first: str
    last: str
    spans: int = 0

    @property
    def params(self) -> dict[str, Any]:
        """The values of `RANGE`."""
        return {name: value for name, value in asdict(self).items() if name != "spans"}


def remember_totals(store: Store) -> None:
    """Record the totals of runs as the former view has them; call it before the view is changed.

    Raises:
        StorageError: the database refused; call it again later.
    """
    for piece in pieces(store):
        store.command(_REMEMBER, piece.params, settings=WRITE_SETTINGS)


def old_spans(store: Store) -> int:
    """Return the approximate number of spans of all pieces."""
    (row,) = store.query(_HOW_MANY)
    return int(row["Spans"])


def pieces(store: Store) -> Iterator[Piece]:
    """Yield pieces that cover all former runs, from a random start and around.

    Processes that repair one database at once begin at different pieces.
    """
    for project in [row["Project"] for row in store.query(_PROJECTS)]:
        middle = secrets.token_hex(16)
        yield from _between(store, project, middle, "")
        yield from _between(store, project, "", middle)


def _between(store: Store, project: str, after: str, end: str) -> Iterator[Piece]:
    while True:
        given = {"project": project, "after": after, "end": end, "rows": _ROWS_AT_ONCE}
        rows = store.query(_NEXT, given)
        if not rows:
            return
        first = after = rows[0]["TraceId"]
        spans = 0
        for row in rows:
            if spans >= SPANS_AT_ONCE and row["TraceId"] != after:
                break
            spans, after = spans + int(row["Length"]), row["TraceId"]
        yield Piece(project, first, after, spans)
