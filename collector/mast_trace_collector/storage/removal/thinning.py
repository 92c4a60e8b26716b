"""Thinning: leaves out the spans of most successful runs, and keeps failures whole.

Run states and verdicts of these runs stay, so that every share counts them as before. A run is written down in
``mast_left_out`` before its spans are deleted, once whatever happens between: after an interruption the next
thinning deletes the rest. The kept sample follows from the ids of the runs alone, so that every repetition,
and every process, chooses the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from mast_trace_collector.storage.facts import PLANNED, runs_without_facts, write_facts
from mast_trace_collector.storage.removal.retention import stored_table
from mast_trace_collector.storage.removal.tombstones import parts_of
from mast_trace_collector.storage.store import WRITE_SETTINGS, Store

TABLE: Final = "mast_left_out"
THINNED: Final = ("otel_traces", "otel_logs")
"""Tables of which the rows of these runs are deleted."""
KEPT_FOR: Final = (
    "mast_human_labels",
    "mast_confirmations",
    "mast_injections",
    "mast_replay_plans",
)
"""Tables a row of which keeps a run: of people's labels, of replays, of planted faults."""

VERSION_ATTRIBUTE: Final = "service.version"
BRANCH_ATTRIBUTE: Final = "vcs.ref.head.name"
VERSIONS: Final = f"""SELECT halfMD5(Project, TraceId) AS RunKey,
    max(ResourceAttributes['{VERSION_ATTRIBUTE}']) AS ServiceVersion,
    max(ResourceAttributes['{BRANCH_ATTRIBUTE}']) AS Branch
  FROM otel_traces
  WHERE (ParentSpanId = '' OR Operation IN ('invoke_workflow', 'invoke_agent')) {{runs}}
  GROUP BY Project, TraceId"""  # noqa: S608
"""A SELECT of the version and the branch of each program, by run; ``{runs}`` is a further condition."""
_GROUPS: Final = """SELECT halfMD5(Project, TraceId) AS RunKey, max(UserId) AS OfUser, max(ConversationId) AS OfSession
  FROM otel_traces
  WHERE {runs}
  GROUP BY Project, TraceId"""

_FRACTION = "sipHash64(TraceId, 'kept') / 18446744073709551616"
_COLUMNS = (
    "Project, TraceId, KeptShare, ServiceName, Framework, ServiceVersion, Branch, UserId, ConversationId, GroupsKnown, "
    "Spans, InputTokens, OutputTokens, RunStart, RunEnd, RunSeen"
)
_RANGE = (
    "RunEnd < {before:DateTime64(3)} AND toDate(RunEnd) = {day:Date} "
    "AND ({project:Nullable(String)} IS NULL OR Project = {project:Nullable(String)})"
)
_KEPT = "\n".join(
    f"      AND RunKey GLOBAL NOT IN (SELECT halfMD5(Project, TraceId) FROM {table})"  # noqa: S608
    for table in KEPT_FOR
)
_OF_THE_DAY = (
    f"(Project, TraceId) GLOBAL IN (SELECT Project, TraceId FROM mast_findings WHERE {_RANGE})"  # noqa: S608
)
# A run that has changed since its verdict is judged again first.
_CHOSEN = f"""
SELECT v.Project AS Project, v.TraceId AS TraceId, {{share:Float64}} AS KeptShare,
  v.ServiceName AS ServiceName, v.Framework AS Framework, b.ServiceVersion AS ServiceVersion,
  b.Branch AS Branch, g.OfUser AS UserId, g.OfSession AS ConversationId, true AS GroupsKnown,
  r.Spans AS Spans, r.InputTokens AS InputTokens,
  r.OutputTokens AS OutputTokens, v.RunStart AS RunStart, v.RunEnd AS RunEnd,
  r.LastSeen AS RunSeen
FROM (
  SELECT * FROM (
    SELECT * FROM mast_findings WHERE {_RANGE} ORDER BY JudgedAt DESC, ShownAt DESC LIMIT 1 BY RunKey
  )
  WHERE Status = 'ok' AND {_FRACTION} >= {{share:Float64}}
      AND RunKey GLOBAL NOT IN (SELECT RunKey FROM {TABLE})
{_KEPT}
) AS v
INNER JOIN (
  SELECT RunKey, Fingerprint, Outcome, Spans, InputTokens, OutputTokens, LastSeen
  FROM mast_runs
  WHERE RunKey GLOBAL IN (SELECT RunKey FROM mast_findings WHERE {_RANGE})
) AS r ON r.RunKey = v.RunKey
LEFT JOIN (
  {VERSIONS.replace("{runs}", f"AND {_OF_THE_DAY}")}
) AS b ON b.RunKey = v.RunKey
LEFT JOIN (
  {_GROUPS.replace("{runs}", _OF_THE_DAY)}
) AS g ON g.RunKey = v.RunKey
WHERE r.Fingerprint = v.Fingerprint AND if(r.Outcome != '', r.Outcome, v.Outcome) = 'success'"""  # noqa: S608
_DAYS = """
SELECT DISTINCT toString(toDate(RunEnd)) AS Day FROM mast_findings
WHERE RunEnd < {before:DateTime64(3)}
  AND ({project:Nullable(String)} IS NULL OR Project = {project:Nullable(String)})
ORDER BY Day"""
_PLANNED = f"SELECT Project, TraceId FROM {TABLE} FINAL WHERE NOT Done"  # noqa: S608
_COUNT = f"SELECT count() AS Runs, sum(Spans) AS Spans FROM ({_CHOSEN})"  # noqa: S608
_SETTINGS: Final = {"mutations_sync": 2, "allow_nondeterministic_mutations": 1}


@dataclass(frozen=True)
class Thinned:
    """The runs whose spans were left out, or would be.

    Attributes:
        runs: number of runs.
        spans: of these runs together.
        resumed: runs of an earlier, interrupted thinning that are among them.
    """

    runs: int
    spans: int
    resumed: int = 0


def thin(
    store: Store,
    before: datetime,
    share: float,
    *,
    project: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Thinned:
    """Leave out the spans and log records of successful runs that ended before a time.

    A run is kept if it failed, if its outcome is unknown, if it is not judged as it is now, if it has a label, a
    replay or a planted fault, or if it is in the sample.

    Args:
        store: the database.
        before: runs that ended later stay.
        share: of the successful runs that is kept, from 0 to 1.
        project: only runs of this project.
        progress: called with the number of days done, and of all.

    Raises:
        ValueError: the share is none.
        StorageError: the database refused; the next thinning goes on from there.
    """
    given = _given(before, share, project)
    resumed = _planned(store)
    days = _days(store, given)
    for number, day in enumerate(days):
        store.command(
            f"INSERT INTO {TABLE} ({_COLUMNS}, LeftOutAt, Done) "  # noqa: S608
            f"SELECT {_COLUMNS}, now64(6), false FROM ({_CHOSEN})",
            {**given, "day": day},
            settings=WRITE_SETTINGS,
        )
        if progress is not None:
            progress(number + 1, len(days))
    planned = _planned(store)
    if planned.runs:
        for runs in parts_of(runs_without_facts(store, PLANNED)):
            write_facts(store, runs)
        delete_planned(store)
        _finish(store)
    return Thinned(planned.runs, planned.spans, resumed.runs)


def beyond_sample(
    store: Store, before: datetime, share: float, *, project: str | None = None
) -> Thinned:
    """Return the runs that `thin` would leave out now, with those of an interrupted thinning."""
    given = _given(before, share, project)
    planned = _planned(store)
    runs, spans = planned.runs, planned.spans
    for day in _days(store, given):
        (row,) = store.query(_COUNT, {**given, "day": day})
        runs, spans = runs + int(row["Runs"]), spans + int(row["Spans"])
    return Thinned(runs, spans, planned.runs)


def delete_planned(store: Store) -> None:
    """Delete the spans and log records of the runs that are written down as not yet done."""
    for table in THINNED:
        name, on_cluster = stored_table(store, table)
        store.command(
            f"ALTER TABLE {name} {on_cluster} DELETE WHERE (Project, TraceId) IN ({_PLANNED})",
            settings=_SETTINGS,
        )


def was_left_out(store: Store, trace_id: str, project: str) -> datetime | None:
    """Return the time at which a run's spans were left out; None if they were not."""
    rows: Sequence[Mapping[str, Any]] = store.query(
        f"SELECT LeftOutAt FROM {TABLE} FINAL "  # noqa: S608
        "WHERE TraceId = {trace_id:String} AND Project = {project:String} AND Done",
        {"trace_id": trace_id, "project": project},
    )
    return rows[0]["LeftOutAt"] if rows else None


def _given(before: datetime, share: float, project: str | None) -> dict[str, Any]:
    if not 0 <= share <= 1:
        raise ValueError(f"the kept share is from 0 to 1, not {share}")
    return {"before": before, "share": share, "project": project}


def _days(store: Store, given: Mapping[str, Any]) -> list[str]:
    return [row["Day"] for row in store.query(_DAYS, given)]


def _planned(store: Store) -> Thinned:
    (row,) = store.query(
        f"SELECT count() AS Runs, sum(Spans) AS Spans FROM {TABLE} FINAL WHERE NOT Done"  # noqa: S608
    )
    return Thinned(int(row["Runs"]), int(row["Spans"]))


def _finish(store: Store) -> None:
    store.command(
        f"INSERT INTO {TABLE} ({_COLUMNS}, LeftOutAt, Done) "  # noqa: S608
        f"SELECT {_COLUMNS}, now64(6), true FROM {TABLE} FINAL WHERE NOT Done",
        settings=WRITE_SETTINGS,
    )
