"""Storage of verdicts in ``mast_verdicts``."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from mast_trace_collector.storage.moments import nanoseconds
from mast_trace_collector.storage.removal.tombstones import insert_living
from mast_trace_judge.proof import as_shown
from mast_trace_judge.store.confirmations import confirmation_of, show
from mast_trace_judge.store.records import row_of, verdict_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from mast_trace_collector.storage.store import Store
    from mast_trace_judge.verdict import Verdict

TABLE = "mast_verdicts"


def save(store: Store, verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Store verdicts; one of the same run, content and judge version replaces the earlier one.

    Returns:
        Those that were stored: not those on runs that were erased meanwhile.

    Raises:
        StorageError: the database does not accept them.
        ValueError: a verdict was changed by what replays have shown, and is the judge's no more.
    """
    if any(verdict.confirmation is not None for verdict in verdicts):
        raise ValueError("a verdict that was joined with its confirmation cannot be stored")
    rows = [row_of(verdict) for verdict in verdicts]
    stored = insert_living(store, TABLE, rows, token=_token(verdicts))
    living = {(row["Project"], row["TraceId"]) for row in stored}
    show(store, sorted(living))
    return [verdict for verdict in verdicts if (verdict.project, verdict.trace_id) in living]


def load(
    store: Store, trace_id: str, *, project: str | None = None, judge_version: str | None = None
) -> list[Verdict]:
    """Return all verdicts on a run as the judge gave them, newest first.

    Raises:
        StorageError: the database does not answer.
    """
    conditions = ["TraceId = {trace:String}"]
    if project is not None:
        conditions.append("Project = {project:String}")
    if judge_version is not None:
        conditions.append("JudgeVersion = {version:String}")
    rows = store.query(
        f"SELECT * FROM {TABLE} FINAL WHERE {' AND '.join(conditions)} ORDER BY JudgedAt DESC",  # noqa: S608
        {"trace": trace_id, "project": project or "", "version": judge_version or ""},
    )
    return [verdict_of(row) for row in rows]


def load_latest(store: Store, trace_id: str, *, project: str | None = None) -> Verdict | None:
    """Return the newest verdict on a run as it is shown, with what replays have shown; None if there is none.

    See `mast_trace_judge.proof.as_shown`.

    Raises:
        StorageError: the database does not answer.
    """
    verdict = load_judged(store, trace_id, project=project)
    if verdict is None:
        return None
    confirmation = confirmation_of(
        store, verdict.project, trace_id, fingerprint=verdict.fingerprint
    )
    return as_shown(verdict, confirmation)


def load_judged(store: Store, trace_id: str, *, project: str | None = None) -> Verdict | None:
    """Return the newest verdict on a run as the judge gave it; None if there is none.

    An experiment takes its candidates from here: those of `load_latest` hold what replays have shown.

    Raises:
        StorageError: the database does not answer.
    """
    return next(iter(load(store, trace_id, project=project)), None)


def load_version(
    store: Store, judge_version: str, *, since: datetime | None = None
) -> list[Verdict]:
    """Return the newest verdict of one judge version on each run, by the run's end.

    Args:
        store: the database.
        judge_version: of the judge.
        since: only runs that ended then or later.

    Raises:
        StorageError: the database does not answer.
    """
    rows = store.query(
        f"SELECT * FROM {TABLE} FINAL WHERE JudgeVersion = {{version:String}}"  # noqa: S608
        " AND RunEnd >= fromUnixTimestamp64Nano({since:Int64})"
        " ORDER BY JudgedAt DESC LIMIT 1 BY Project, TraceId",
        {"version": judge_version, "since": 0 if since is None else nanoseconds(since)},
    )
    verdicts = [verdict_of(row) for row in rows]
    return sorted(verdicts, key=lambda verdict: verdict.run_end)


def _token(verdicts: Sequence[Verdict]) -> str:
    """Return an insert's token by its content, so that a repetition after a lost answer stores nothing."""
    digest = hashlib.sha256()
    for verdict in verdicts:
        digest.update(verdict.model_dump_json().encode())
    return digest.hexdigest()[:32]
