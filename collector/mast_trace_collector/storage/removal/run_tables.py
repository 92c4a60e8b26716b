"""Tables with rows about runs or projects, by the database's own catalogue: a new one needs no entry here."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from mast_trace_collector.storage.store import Store

TOMBSTONES: Final = "mast_tombstones"
"""The table of erased runs, which no erasure deletes."""
NAMES: Final = "mast_pattern_names"
"""The table whose rows name several runs."""

DISTRIBUTED: Final = re.compile(r"Distributed\('([^']+)', '[^']+', '([^']+)'")
_CATALOGUE: Final = """
SELECT t.name AS name, any(t.engine_full) AS engine, groupArray(c.name) AS columns,
    max(c.name = 'RunKey' AND c.default_expression = 'halfMD5(Project, TraceId)') AS has_key
FROM system.tables AS t
INNER JOIN system.columns AS c ON c.database = t.database AND c.table = t.name
WHERE t.database = currentDatabase() AND (t.engine LIKE '%MergeTree' OR t.engine = 'Distributed')
    AND c.name IN ('Project', 'TraceId', 'TraceIds', 'RunKey')
GROUP BY name
ORDER BY name
"""


@dataclass(frozen=True)
class RunTable:
    """A table with rows about runs, or about a project.

    Attributes:
        name: by which all of its rows are read.
        stored: the table that holds them: a local one behind a Distributed one.
        on_cluster: the clause for statements about `stored`; empty outside of clusters.
        columns: those of ``Project``, ``TraceId`` and ``TraceIds`` that it has.
        has_key: whether it also has the short key of runs, by which some tables are ordered.
    """

    name: str
    stored: str
    on_cluster: str
    columns: frozenset[str]
    has_key: bool

    @property
    def names_runs(self) -> bool:
        """True if a row names a run, not only a project."""
        return not self.columns.isdisjoint({"TraceId", "TraceIds"})

    def rows_of(self, runs: str) -> str:
        """Return a SELECT of the number of rows (``n``) about each of some runs (``OfProject``, ``OfTrace``).

        Args:
            runs: a SELECT of ``Project`` and ``TraceId``.
        """
        run = "arrayJoin(TraceIds)" if "TraceIds" in self.columns else "TraceId"
        rows = f"SELECT Project, {run} AS Run FROM `{self.name}` WHERE {self.about(runs)}"  # noqa: S608
        if "Project" not in self.columns:
            rows = (
                f"SELECT r.Project AS Project, t.TraceId AS Run FROM `{self.name}` AS t "  # noqa: S608
                f"GLOBAL INNER JOIN (SELECT DISTINCT Project, TraceId FROM ({runs})) AS r ON r.TraceId = t.TraceId WHERE {self.about(runs)}"
            )
        return (
            "SELECT toString(Project) AS OfProject, toString(Run) AS OfTrace, count() AS n "  # noqa: S608
            f"FROM ({rows}) GROUP BY OfProject, OfTrace"
        )

    def about(self, runs: str) -> str:
        """Return the condition on the rows about some runs; empty where no row names a run.

        Args:
            runs: a SELECT of ``Project`` and ``TraceId``.
        """
        ids = f"SELECT TraceId FROM ({runs})"  # noqa: S608
        if "TraceIds" in self.columns:
            return f"arrayExists(run -> (toString(Project), run) GLOBAL IN ({runs}), TraceIds)"
        if "TraceId" not in self.columns:
            return ""
        if "Project" in self.columns:
            keys = f"SELECT halfMD5(Project, TraceId) FROM ({runs})"  # noqa: S608
            by_key = f"RunKey GLOBAL IN ({keys}) AND " if self.has_key else ""
            return f"{by_key}(Project, TraceId) GLOBAL IN ({runs})"
        # A table without projects keeps a trace as long as another project has it.
        return (
            f"TraceId GLOBAL IN ({ids}) AND TraceId GLOBAL NOT IN (SELECT TraceId FROM mast_run_states "  # noqa: S608
            f"WHERE TraceId GLOBAL IN ({ids}) AND (Project, TraceId) GLOBAL NOT IN ({runs}))"
        )


def run_tables(store: Store) -> list[RunTable]:
    """Return the tables of the database that name runs or projects, those of plugins included."""
    found: Sequence[Mapping[str, Any]] = store.query(_CATALOGUE)
    spread = {row["name"]: DISTRIBUTED.match(row["engine"]) for row in found}
    behind = {match[2] for match in spread.values() if match}
    return [
        RunTable(
            name=row["name"],
            stored=match[2] if (match := spread[row["name"]]) else row["name"],
            on_cluster=f"ON CLUSTER {match[1]}" if match else "",
            columns=frozenset(row["columns"]) - {"RunKey"},
            has_key=bool(row["has_key"]),
        )
        for row in found
        if row["name"] not in behind | {TOMBSTONES}
    ]
