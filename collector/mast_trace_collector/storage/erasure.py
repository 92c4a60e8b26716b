"""Erases for good: runs, all that a project has, everything before a time.

An erasure takes every row that tells of a run: its spans, its state, the verdicts and the answers
of the judge's model that quote it, what people said of it, and the evaluations that were sent. Rows
are rewritten away, not only hidden. The files that held them are deleted by ClickHouse a few
minutes later (``old_parts_lifetime``); backups and dead letters are the operator's.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mast_trace.trajectory import vocabulary
from mast_trace_collector.storage.retention import TIMES, stored_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from mast_trace_collector.storage.store import Store

USER: tuple[str, ...] = (
    "user.id",
    "enduser.id",
    "enduser.pseudo.id",
    "langfuse.user.id",
    "traceloop.association.properties.user_id",
)
"""Attributes that say for whom a program ran, in the words of different instrumentations."""
SESSION: tuple[str, ...] = (
    *vocabulary.SPELLINGS["conversation"],
    "langfuse.session.id",
    "traceloop.association.properties.session_id",
)
"""Attributes that say to which conversation a run belongs."""

_SPANS = "otel_traces"
_LOOKUP = "otel_traces_trace_id_ts"
_STATES = "mast_run_states"
# The states come last: what belongs to a run is told by them.
_SAID = ("mast_verdicts", "mast_findings", "mast_judge_calls", "mast_human_labels", "otel_logs")
_TABLES = (_LOOKUP, *_SAID, _SPANS, _STATES)
_SETTINGS = {"mutations_sync": 2, "allow_nondeterministic_mutations": 1}
_CHUNK = 1000
"""Ids that one statement names: they travel in the address of a request."""
_OURS = "({project:Nullable(String)} IS NULL OR Project = {project:Nullable(String)})"
_NOBODY_ELSES = "TraceId NOT IN (SELECT TraceId FROM mast_run_states WHERE NOT {ours})".replace(
    "{ours}", _OURS
)


@dataclass(frozen=True)
class Erasure:
    """What is to go: a condition on the rows of each table, in the order of the deletions.

    Attributes:
        conditions: table -> SQL with ``{name:Type}`` for parameters.
        params: their values.
    """

    conditions: Mapping[str, str]
    params: Mapping[str, Any] = field(default_factory=dict)

    def runs(self, store: Store) -> int:
        """Count the runs of which nothing would be left."""
        (row,) = store.query(
            f"SELECT uniqExact(Project, TraceId) AS n FROM {_STATES} "  # noqa: S608
            f"WHERE {self.conditions[_STATES]}",
            self.params,
        )
        return int(row["n"])

    def rows(self, store: Store) -> dict[str, int]:
        """Count the rows of each table that would go."""
        counted = {}
        for table, condition in self.conditions.items():
            (row,) = store.query(
                f"SELECT count() AS n FROM {table} WHERE {condition}",  # noqa: S608
                self.params,
            )
            counted[table] = int(row["n"])
        return counted

    def execute(self, store: Store) -> None:
        """Erase; done when it returns. Safe to run again after an interruption.

        Raises:
            StorageError: the database refused; what was erased before stays erased.
        """
        for table, condition in self.conditions.items():
            name, on_cluster = stored_table(store, table)
            store.command(
                f"ALTER TABLE {name} {on_cluster} DELETE WHERE {condition}",
                self.params,
                settings=_SETTINGS,
            )


def of_runs(trace_ids: Sequence[str], *, project: str | None = None) -> list[Erasure]:
    """Erase runs by their ids, in one project or wherever they are."""
    ours = f"TraceId IN {{ids:Array(String)}} AND {_OURS}"
    # The lookup table knows no project: a trace stays in it while another project has it.
    lookup = f"TraceId IN {{ids:Array(String)}} AND {_NOBODY_ELSES}"
    conditions = {table: lookup if table == _LOOKUP else ours for table in _TABLES}
    return [
        Erasure(conditions, {"ids": list(trace_ids[at : at + _CHUNK]), "project": project})
        for at in range(0, len(trace_ids), _CHUNK)
    ]


def of_project(project: str) -> Erasure:
    """Erase all that a project has."""
    lookup = f"TraceId IN (SELECT TraceId FROM {_STATES} WHERE {_OURS}) AND {_NOBODY_ELSES}"  # noqa: S608
    conditions = {table: lookup if table == _LOOKUP else _OURS for table in _TABLES}
    return Erasure(conditions, {"project": project})


def before(time: datetime, *, project: str | None = None) -> Erasure:
    """Erase spans from before a time, and all that was said of the runs that ended before it."""
    ended = (
        f"(Project, TraceId) IN (SELECT Project, TraceId FROM {_STATES} "  # noqa: S608
        "GROUP BY Project, TraceId HAVING max(End) < {time:DateTime})"
    )
    early = {table: f"{column} < {{time:DateTime}}" for table, column in TIMES.items()}
    conditions = {
        # Its rows say when a trace began; with a project given, whose it is says its state.
        _LOOKUP: early[_LOOKUP] if project is None else f"{early[_LOOKUP]} AND {_NOBODY_ELSES}",
        "mast_verdicts": f"{_OURS} AND ({early['mast_verdicts']} OR {ended})",
        "mast_findings": f"{_OURS} AND ({early['mast_findings']} OR {ended})",
        # A run may be judged, or labelled, long after it ended.
        "mast_judge_calls": f"{_OURS} AND ({early['mast_judge_calls']} OR {ended})",
        "mast_human_labels": f"{_OURS} AND (toDateTime(LabelledAt) < {{time:DateTime}} OR {ended})",
        "otel_logs": f"{_OURS} AND ({early['otel_logs']} OR {ended})",
        _SPANS: f"{_OURS} AND {early[_SPANS]}",
        # A run's state has the day on which it was written, which for imported runs is a late one.
        _STATES: f"{_OURS} AND {ended}",
    }
    return Erasure(conditions, {"time": time, "project": project})


def runs_with(
    store: Store, attributes: Sequence[str], value: str, *, project: str | None = None
) -> list[str]:
    """Return the ids of runs of which a span or its resource carries one of ``attributes``.

    With `USER` or `SESSION` and `of_runs` this erases what a person's runs left.
    """
    rows = store.query(
        "SELECT DISTINCT TraceId FROM otel_traces WHERE arrayExists(name -> "  # noqa: S608
        "SpanAttributes[name] = {value:String} OR ResourceAttributes[name] = {value:String}, "
        f"{{names:Array(String)}}) AND TraceId != '' AND {_OURS} ORDER BY TraceId",
        {"names": list(attributes), "value": value, "project": project},
    )
    return [row["TraceId"] for row in rows]
