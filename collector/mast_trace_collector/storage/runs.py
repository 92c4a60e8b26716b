"""Reads runs: those to be judged, one run's spans, one run by its id, runs by an attribute."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from mast_trace.trajectory import SpanRecord, vocabulary
from mast_trace_collector.storage.moments import around, nanoseconds
from mast_trace_collector.storage.removal.tombstones import refuse_erased
from mast_trace_collector.storage.run_spans import RECORD_COLUMNS, open_roots, record

if TYPE_CHECKING:
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

_KEY = "toString(Project) AS OfProject, TraceId"
_OURS = "({project:Nullable(String)} IS NULL OR Project = {project:Nullable(String)})"

WORKER_AWAY = 30.0
"""Seconds without a sign of life after which others take the runs of a worker: six signs, since a busy database delays some."""
MINE = """(length({workers:Array(String)}) < 2 OR arrayReduce('argMax', {workers:Array(String)},
              arrayMap(worker -> cityHash64(worker, {run}), {workers:Array(String)})) = {workers:Array(String)}[1])"""
"""Condition on a run's id: of some workers, the first one's hash with it is the greatest (rendezvous hashing)."""
_SKEW = 900.0
_SHORT_SKEW = 60.0
"""Clock skew between cluster nodes, or replica lag, in seconds. The scan of recent runs allows for
less of it; the next full scan catches anything it missed."""
_CANDIDATES = """
    SELECT Project, TraceId, Seen, Judged
    FROM
    (
        SELECT RunKey, any(s.Project) AS Project, any(s.TraceId) AS TraceId, max(s.Root) AS Root,
            max(s.LastSeen) AS Seen
        FROM mast_run_states AS s
        WHERE s.Day >= today() - {lookback_days:UInt32} AND {of_runs}
          AND {mine}
          AND s.RunKey GLOBAL NOT IN (SELECT RunKey FROM mast_left_out
              WHERE RunSeen >= today() - {lookback_days:UInt32} - 1)
        GROUP BY RunKey
        HAVING max(s.Kind) = ''
    ) AS runs
    LEFT JOIN
    (
        SELECT RunKey, count() AS Verdicts, maxIf(JudgedAt, Method != 'provisional') AS Judged,
            if(maxIf(RunSeen, Method != 'provisional') = 0, Judged - toIntervalMillisecond(1),
                maxIf(RunSeen, Method != 'provisional')) AS Known
        FROM mast_verdicts
        WHERE JudgeVersion = {judge_version:String} AND {of_runs}
        GROUP BY RunKey
    ) AS verdicts USING (RunKey)
    WHERE Seen <= now64(3) - toIntervalMillisecond(
            multiIf(Root = 2, if(Verdicts = 0 AND {just_ended:Bool}, 0, {quiet_ms:UInt64}), Root = 1, {nested_quiet_ms:UInt64}, {idle_ms:UInt64}))
      AND (Judged = 0 OR Seen > Known OR Seen >= now64(3) - toIntervalMillisecond({skew_ms:UInt64}))
""".replace("{mine}", MINE.replace("{run}", "s.TraceId"))
_ALL = "1"
# All rows of a run count, but only of runs with recent rows.
_OF_LATE = """RunKey GLOBAL IN
            (
                SELECT RunKey FROM mast_run_states
                WHERE Day >= toDate(now64(3) - toIntervalMillisecond({recent_ms:UInt64}))
                  AND LastSeen >= now64(3) - toIntervalMillisecond({recent_ms:UInt64})
            )"""
# Fingerprints are computed only for runs that may be due: a run without a verdict needs none, and
# one with a verdict only if rows arrived since it was judged, or shortly before: clocks differ. The
# due keys are computed once, as a scalar array.
_FINISHED = """
WITH
(
    SELECT arrayConcat(
        groupArrayIf((toString(Project), TraceId), Judged != 0),
        arraySlice(groupArrayIf((toString(Project), TraceId), Judged = 0), 1, {limit:UInt64}))
    FROM ({candidates} ORDER BY Seen)
) AS due
SELECT *, RootSeen = 0 OR LastSeen <= now64(3) - toIntervalMillisecond({quiet_ms:UInt64}) AS Quiet
FROM mast_runs
WHERE (Project, TraceId) IN (SELECT arrayJoin(due)) AND Kind = ''
AND (Project, TraceId, Fingerprint) GLOBAL NOT IN
(
    SELECT Project, TraceId, Fingerprint FROM mast_verdicts
    WHERE JudgeVersion = {judge_version:String} AND (Project, TraceId) IN (SELECT arrayJoin(due))
      AND Method != 'provisional'
)
-- Of a run whose spans were left out, a late span or outcome would be judged alone.
AND (Project, TraceId) GLOBAL NOT IN
(
    SELECT Project, TraceId FROM mast_left_out WHERE (Project, TraceId) IN (SELECT arrayJoin(due))
)
-- What has arrived of an erased run waits for the sweep.
AND (Project, TraceId) GLOBAL NOT IN
(
    SELECT Project, TraceId FROM mast_tombstones WHERE (Project, TraceId) IN (SELECT arrayJoin(due))
)
ORDER BY LastSeen
LIMIT {limit:UInt64}
"""
# A row of the reading replaces that of the local verdict; of both at the same time, it counts. Runs that changed since
# are judged first. Limited here, as fingerprints are computed for the runs of this list alone.
_UNREAD = """
WITH
(
    SELECT groupArray((Project, TraceId, State)) FROM
    (
        SELECT toString(any(v.Project)) AS Project, any(v.TraceId) AS TraceId,
            argMax(v.Fingerprint, (v.JudgedAt, v.Method != 'reading')) AS State
        FROM mast_verdicts AS v
        WHERE v.JudgeVersion = {judge_version:String} AND v.RunEnd >= now() - toIntervalDay({lookback_days:UInt32})
          AND {mine}
          AND v.RunKey GLOBAL IN (SELECT RunKey FROM mast_verdicts
              WHERE JudgeVersion = {judge_version:String} AND Method = 'reading')
          AND v.RunKey GLOBAL NOT IN (SELECT RunKey FROM mast_left_out)
          AND v.TraceId GLOBAL NOT IN (SELECT arrayJoin(Reading) FROM mast_workers FINAL
              WHERE NOT Gone AND Seen >= now64(3) - toIntervalSecond({away:UInt32})
                AND WorkerId != {workers:Array(String)}[1])
          AND (v.Project, v.TraceId) GLOBAL NOT IN (SELECT Project, TraceId FROM mast_tombstones)
        GROUP BY RunKey
        HAVING argMax(v.Method, (v.JudgedAt, v.Method != 'reading')) = 'reading'
        ORDER BY max(v.JudgedAt)
        LIMIT {limit:UInt64}
    )
) AS unread
SELECT * FROM mast_runs
WHERE (Project, TraceId) IN (SELECT arrayJoin(arrayMap(run -> (run.1, run.2), unread)))
  AND (Project, TraceId, Fingerprint) IN (SELECT arrayJoin(unread))
ORDER BY LastSeen
""".replace("{mine}", MINE.replace("{run}", "v.TraceId"))
_NESTED_QUIET = 30.0
"""Seconds without a new span after which a run inside an application's trace counts as finished."""
_MOST_BYTES = 128 * 1024 * 1024
"""Most bytes of the spans of several runs together; beyond them, each run is read alone."""
_SPANS = f"""
SELECT {RECORD_COLUMNS}, toString(Project) AS RunProject
FROM otel_traces
WHERE TraceId IN {{traces:Array(String)}} AND {{then}}
ORDER BY ReceivedAt DESC
LIMIT 1 BY Project, TraceId, SpanId
SETTINGS max_result_bytes = {_MOST_BYTES}
"""  # noqa: S608  # made of constants
_OF_PROJECT = "({project:Nullable(String)} IS NULL OR Project = {project:Nullable(String)})"
_OF_RUN = f"TraceId = {{trace_id:String}} AND {_OF_PROJECT}"


def runs_with(
    store: Store, attributes: Sequence[str], value: str, *, project: str | None = None
) -> list[tuple[str, str]]:
    """Return project and id of the runs with one of ``attributes`` on a span, a log record or a resource.

    With `USER` or `SESSION` and `of_runs` this erases the data of a person's runs. A run whose spans retention has
    left out is found by one user and one session alone, the last of its spans' in alphabetical order: a run of
    several persons is not found by the others.
    """
    found: set[tuple[str, str]] = set()
    for table, own in (("otel_traces", "SpanAttributes"), ("otel_logs", "LogAttributes")):
        rows = store.query(
            f"SELECT DISTINCT {_KEY} FROM {table} WHERE arrayExists(name -> "  # noqa: S608
            f"{own}[name] = {{value:String}} OR ResourceAttributes[name] = {{value:String}}, "
            f"{{names:Array(String)}}) AND TraceId != '' AND {_OURS}",
            {"names": list(attributes), "value": value, "project": project},
        )
        found.update((row["OfProject"], row["TraceId"]) for row in rows)
    for kept, spellings in (("UserId", USER), ("ConversationId", SESSION)):
        if not set(attributes).isdisjoint(spellings):
            rows = store.query(
                f"SELECT DISTINCT {_KEY} FROM mast_left_out WHERE {kept} = {{value:String}} AND {_OURS}",  # noqa: S608
                {"value": value, "project": project},
            )
            found.update((row["OfProject"], row["TraceId"]) for row in rows)
    return sorted(found)


@dataclass(frozen=True)
class RunSummary:
    """One run, as a row of ``mast_runs``.

    Attributes:
        fingerprint: changes when a span or the outcome changes.
        last_seen: arrival time of the newest span, or of the record of the beginning.
        has_root: whether the root span has arrived; without it the end is unknown.
        outcome: ``success``, ``failure`` or empty when none was recorded.
        kind: empty for a program's own run.
        totals: quality of the numbers: ``exact``, ``at least`` (more spans than are counted, a value that
            does not fit, or calls that the run's threads made outside of it), ``being counted`` (stored by an earlier version, and not
            counted anew yet) or ``about`` (the same, and the spans are gone).
        is_quiet: False in the answer of `finished_runs` where the root has just ended, and spans may still come.
    """

    project: str
    trace_id: str
    fingerprint: str
    name: str
    service: str
    framework: str
    conversation_id: str
    start: datetime
    end: datetime
    last_seen: datetime
    has_root: bool
    spans: int
    errors: int
    input_tokens: int
    output_tokens: int
    agents: tuple[str, ...]
    models: tuple[str, ...]
    outcome: str
    outcome_reason: str
    termination_reason: str
    kind: str = ""
    totals: str = "exact"
    is_quiet: bool = True


def finished_runs(
    store: Store,
    *,
    judge_version: str,
    quiet: float = 5.0,
    idle: float = 600.0,
    workers: Sequence[str] = (),
    limit: int = 100,
    lookback_days: int = 7,
    recent: float | None = None,
    just_ended: bool = False,
) -> list[RunSummary]:
    """Return programs' own runs that are finished and not judged with their present content, oldest first.

    A replay is none: it has a kind.

    Args:
        store: the database.
        judge_version: verdicts of other versions do not count.
        quiet: seconds without a new span after the root's end.
        idle: seconds without a new span where no root has arrived.
        workers: ids of those that divide the runs, the one that asks first; none: all runs.
        limit: most runs to return.
        lookback_days: runs without new spans for so many days are skipped.
        recent: only runs with new spans in so many seconds, which takes a fraction of the time,
            independent of the number of runs; all of them if None.
        just_ended: also runs without any verdict whose root has ended, however short ago.
    """
    of_runs = _ALL if recent is None else _OF_LATE
    rows = store.query(
        _FINISHED.replace("{candidates}", _CANDIDATES.replace("{of_runs}", of_runs)),
        {
            "recent_ms": round((recent or 0.0) * 1000),
            "skew_ms": round((_SKEW if recent is None else _SHORT_SKEW) * 1000),
            "judge_version": judge_version,
            "quiet_ms": round(quiet * 1000),
            "just_ended": just_ended,
            "nested_quiet_ms": round(max(quiet, min(idle, _NESTED_QUIET)) * 1000),
            "idle_ms": round(idle * 1000),
            "workers": list(workers),
            "limit": limit,
            "lookback_days": lookback_days,
        },
    )
    return [summary_of(row) for row in rows]


def unread_runs(
    store: Store, *, judge_version: str, workers: Sequence[str], limit: int, lookback_days: int
) -> list[RunSummary]:
    """Return runs whose newest verdict of a judge waits for a model's reading, and which have not changed since.

    Args:
        store: the database.
        judge_version: verdicts of other versions do not count.
        workers: see `finished_runs`; runs that the model of another one reads are left out.
        limit: most runs to return, the earliest judged.
        lookback_days: runs that ended earlier are left out.
    """
    rows = store.query(
        _UNREAD,
        {
            "judge_version": judge_version,
            "workers": list(workers),
            "away": round(WORKER_AWAY),
            "limit": limit,
            "lookback_days": lookback_days,
        },
    )
    return [summary_of(row) for row in rows]


def run_summary(store: Store, trace_id: str, *, project: str | None = None) -> RunSummary | None:
    """Return one run; None if there is none with this id."""
    rows = store.query(
        f"SELECT * FROM mast_runs WHERE {_OF_RUN} ORDER BY LastSeen DESC LIMIT 1",  # noqa: S608
        _of_run(trace_id, project),
    )
    return summary_of(rows[0]) if rows else None


def spans_of(
    store: Store, trace_ids: Sequence[str], times: Sequence[tuple[datetime, datetime]] = ()
) -> dict[tuple[str, str], list[SpanRecord]]:
    """Return the spans of some runs by project and trace id; of duplicate spans, the latest.

    Where only the beginning of a run is known, its start record replaces the root (`open_roots`).

    Args:
        store: the database.
        trace_ids: of the runs.
        times: start and end of each run, where they are known; see `around`.

    Raises:
        StorageError: the database does not answer, or the spans exceed the limit of memory:
            `RunSpans` reads any run.
    """
    spans: dict[tuple[str, str], list[SpanRecord]] = defaultdict(list)
    then, bounds = around((nanoseconds(start), nanoseconds(end)) for start, end in times)
    given = {"traces": sorted(set(trace_ids)), **bounds}
    for row in store.query(_SPANS.replace("{then}", then), given) if trace_ids else ():
        spans[row["RunProject"], row["TraceId"]].append(record(row))
    limits = {"max_result_bytes": _MOST_BYTES}
    for key, root in open_roots(store, trace_ids, times=times, settings=limits).items():
        spans[key].append(root)
    return spans


def find_run(
    store: Store, prefix: str, *, project: str | None = None, limit: int = 10
) -> list[str]:
    """Return the ids of runs that begin with ``prefix``, newest first."""
    sql = f"""
        SELECT TraceId FROM mast_run_states
        WHERE startsWith(TraceId, {{prefix:String}}) AND {_OF_PROJECT}
        GROUP BY TraceId ORDER BY max(LastSeen) DESC LIMIT {{limit:UInt64}}
    """  # noqa: S608  # made of constants
    params = {"prefix": prefix.strip().lower(), "project": project, "limit": limit}
    return [row["TraceId"] for row in store.query(sql, params)]


def projects_of(store: Store, trace_id: str, *, project: str | None = None) -> list[str]:
    """Return the projects that have a run of this id, in alphabetical order: whoever sends spans chooses their ids."""
    sql = f"SELECT DISTINCT Project FROM mast_run_states WHERE {_OF_RUN} ORDER BY Project"  # noqa: S608
    return [row["Project"] for row in store.query(sql, _of_run(trace_id, project))]


def record_outcome(
    store: Store,
    trace_id: str,
    outcome: Literal["success", "failure"],
    reason: str = "",
    *,
    project: str | None = None,
) -> bool:
    """Record a run's outcome; it overrides the outcome in the run's spans.

    The run's fingerprint changes, so it is judged again.

    Returns:
        False if there is no such run.

    Raises:
        RunErased: it was erased.
    """
    if outcome not in {"success", "failure"}:
        raise ValueError(f"an outcome is success or failure, not {outcome!r}")
    projects = projects_of(store, trace_id, project=project)
    refuse_erased(store, [(found, trace_id) for found in projects])
    for found in projects:
        store.command(
            "INSERT INTO mast_run_states (Project, TraceId, Said) "
            "SELECT {project:String}, {trace_id:String}, concat('1', leftPad(toString("
            "toUnixTimestamp64Nano(now64(9))), 19, '0'), {outcome:String}, '\\n', {reason:String})",
            {"project": found, "trace_id": trace_id, "outcome": outcome, "reason": reason},
        )
    return bool(projects)


def _of_run(trace_id: str, project: str | None) -> dict[str, Any]:
    return {"trace_id": trace_id, "project": project}


def summary_of(row: Mapping[str, Any]) -> RunSummary:
    """Read one row of ``mast_runs``."""
    return RunSummary(
        project=row["Project"],
        trace_id=row["TraceId"],
        fingerprint=row["Fingerprint"],
        name=row["Name"],
        service=row["ServiceName"],
        framework=row["Framework"],
        conversation_id=row["ConversationId"],
        start=row["Start"],
        end=row["End"],
        last_seen=row["LastSeen"],
        has_root=bool(row["RootSeen"]),
        spans=row["Spans"],
        errors=row["Errors"],
        input_tokens=row["InputTokens"],
        output_tokens=row["OutputTokens"],
        agents=tuple(row["Agents"]),
        models=tuple(row["Models"]),
        outcome=row["Outcome"],
        outcome_reason=row["OutcomeReason"],
        termination_reason=row["TerminationReason"],
        kind=row["Kind"],
        totals=row["Totals"],
        is_quiet=bool(row.get("Quiet", True)),
    )
