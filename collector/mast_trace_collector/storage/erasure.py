"""Permanent erasure: of runs, of a project, of everything before a time.

An erasure removes every row about a run: its spans, its state, the verdicts and the answers of the
judge's model that quote it, its replays and their conclusion, the labels that people gave it, the
evaluations that were sent, its part in patterns, and the lessons and the sentences on patterns that quote it.
Parts are rewritten without the rows, which are not only hidden. ClickHouse deletes the old files a
few minutes later (``old_parts_lifetime``); backups and dead letters are up to the operator.
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
"""Attributes that hold the user of a run, as spelled by different instrumentations."""
SESSION: tuple[str, ...] = (
    *vocabulary.SPELLINGS["conversation"],
    "langfuse.session.id",
    "traceloop.association.properties.session_id",
)
"""Attributes that hold the conversation of a run."""

_SPANS = "otel_traces"
_LOOKUP = "otel_traces_trace_id_ts"
_STATES = "mast_run_states"
_NAMES = "mast_pattern_names"
_WITHOUT_RUNS = (
    "mast_experiments",
    "mast_experiment_looks",
    "mast_pattern_states",
    "mast_selftests",
)
"""Tables that name no run, and are erased with their project alone."""
_BY_RUN_END = (
    "mast_replay_plans",
    "mast_replays",
    "mast_confirmations",
    "mast_injections",
    "mast_left_out",
    "mast_pattern_runs",
    "mast_experiment_runs",
    "mast_lessons",
)
# The states come last: the rows of a run are found by them. Sentences come after the patterns of runs, without
# which no new sentence is stored.
_ABOUT_RUNS = (
    "mast_verdicts",
    "mast_findings",
    "mast_judge_calls",
    "mast_human_labels",
    *_BY_RUN_END,
    _NAMES,
    "otel_logs",
)
_TABLES = (_LOOKUP, *_ABOUT_RUNS, _SPANS, _STATES)
_SETTINGS = {"mutations_sync": 2, "allow_nondeterministic_mutations": 1}
_CHUNK = 1000
"""Most ids in one statement: they travel in the URL of a request."""
_OURS = "({project:Nullable(String)} IS NULL OR Project = {project:Nullable(String)})"
_NOBODY_ELSES = "TraceId NOT IN (SELECT TraceId FROM mast_run_states WHERE NOT {ours})".replace(
    "{ours}", _OURS
)


@dataclass(frozen=True)
class Erasure:
    """The scope of an erasure: a condition on the rows of each table, in the order of the deletions.

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
        """Count the rows of each table that would be erased."""
        counted = {}
        for table, condition in self.conditions.items():
            (row,) = store.query(
                f"SELECT count() AS n FROM {table} WHERE {condition}",  # noqa: S608
                self.params,
            )
            counted[table] = int(row["n"])
        return counted

    def execute(self, store: Store) -> None:
        """Erase, and return when it is done. Safe to run again after an interruption.

        Raises:
            StorageError: the database refused; earlier deletions remain in effect.
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
    # The lookup table has no projects: a trace stays in it while another project has it.
    lookup = f"TraceId IN {{ids:Array(String)}} AND {_NOBODY_ELSES}"
    conditions = {table: lookup if table == _LOOKUP else ours for table in _TABLES}
    conditions[_NAMES] = f"hasAny(TraceIds, {{ids:Array(String)}}) AND {_OURS}"
    return [
        Erasure(conditions, {"ids": list(trace_ids[at : at + _CHUNK]), "project": project})
        for at in range(0, len(trace_ids), _CHUNK)
    ]


def of_names(trace_ids: Sequence[str], *, project: str) -> list[Erasure]:
    """Erase only the sentences on patterns that a model made from one of some runs of a project."""
    return [
        Erasure({_NAMES: each.conditions[_NAMES]}, each.params)
        for each in of_runs(trace_ids, project=project)
    ]


def of_project(project: str) -> Erasure:
    """Erase all data of a project."""
    lookup = f"TraceId IN (SELECT TraceId FROM {_STATES} WHERE {_OURS}) AND {_NOBODY_ELSES}"  # noqa: S608
    tables = (*_WITHOUT_RUNS, *_TABLES)
    conditions = {table: lookup if table == _LOOKUP else _OURS for table in tables}
    return Erasure(conditions, {"project": project})


def before(time: datetime, *, project: str | None = None) -> Erasure:
    """Erase spans from before a time, and all rows about the runs that ended before it."""
    ended = (
        f"(Project, TraceId) IN (SELECT Project, TraceId FROM {_STATES} "  # noqa: S608
        "GROUP BY Project, TraceId HAVING max(End) < {time:DateTime})"
    )
    quoted = f"SELECT TraceId FROM {_STATES} GROUP BY TraceId HAVING max(End) < {{time:DateTime}}"  # noqa: S608
    early = {table: f"{column} < {{time:DateTime}}" for table, column in TIMES.items()}
    conditions = {
        # Its rows have the beginning of a trace; the project, if given, comes from the run's state.
        _LOOKUP: early[_LOOKUP] if project is None else f"{early[_LOOKUP]} AND {_NOBODY_ELSES}",
        "mast_verdicts": f"{_OURS} AND ({early['mast_verdicts']} OR {ended})",
        "mast_findings": f"{_OURS} AND ({early['mast_findings']} OR {ended})",
        # A run may be judged, or labelled, long after it ended.
        "mast_judge_calls": f"{_OURS} AND ({early['mast_judge_calls']} OR {ended})",
        "mast_human_labels": f"{_OURS} AND (toDateTime(LabelledAt) < {{time:DateTime}} OR {ended})",
        **{table: f"{_OURS} AND ({early[table]} OR {ended})" for table in _BY_RUN_END},
        # A sentence is erased with the first of the runs that it quotes.
        _NAMES: f"{_OURS} AND ({early[_NAMES]} OR arrayExists(run -> run IN ({quoted}), TraceIds))",
        "otel_logs": f"{_OURS} AND ({early['otel_logs']} OR {ended})",
        _SPANS: f"{_OURS} AND {early[_SPANS]}",
        # A run's state has the day on which it was written, which is late for imported runs.
        _STATES: f"{_OURS} AND {ended}",
    }
    return Erasure(conditions, {"time": time, "project": project})


def runs_with(
    store: Store, attributes: Sequence[str], value: str, *, project: str | None = None
) -> list[str]:
    """Return the ids of runs with one of ``attributes`` on a span, a log record or a resource.

    With `USER` or `SESSION` and `of_runs` this erases the data of a person's runs. A run whose spans retention has
    left out is found by one user and one session alone, the last of its spans' in alphabetical order: a run of
    several persons is not found by the others.
    """
    found: set[str] = set()
    for table, own in (("otel_traces", "SpanAttributes"), ("otel_logs", "LogAttributes")):
        rows = store.query(
            f"SELECT DISTINCT TraceId FROM {table} WHERE arrayExists(name -> "  # noqa: S608
            f"{own}[name] = {{value:String}} OR ResourceAttributes[name] = {{value:String}}, "
            f"{{names:Array(String)}}) AND TraceId != '' AND {_OURS}",
            {"names": list(attributes), "value": value, "project": project},
        )
        found.update(row["TraceId"] for row in rows)
    for kept, spellings in (("UserId", USER), ("ConversationId", SESSION)):
        if not set(attributes).isdisjoint(spellings):
            rows = store.query(
                f"SELECT DISTINCT TraceId FROM mast_left_out WHERE {kept} = {{value:String}} AND {_OURS}",  # noqa: S608
                {"value": value, "project": project},
            )
            found.update(row["TraceId"] for row in rows)
    return sorted(found)
