"""Planted faults in ``mast_injections``: their labels, and the runs that they made."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Final

from mast_trace.trajectory import Trajectory, to_dict, trajectory_from_dict
from mast_trace_collector.storage.removal.tombstones import insert_living, insert_of_run
from mast_trace_judge.store.records import Columns, utc

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from mast_trace_collector.storage.runs import RunSummary
    from mast_trace_collector.storage.store import Store

TABLE: Final = "mast_injections"
PLAN: Final = "plan"
"""Name of the plan's id in a change. Another plan, such as one with another oracle, gives the same run another outcome."""


@dataclass(frozen=True)
class Injection:
    """One planted fault with its label.

    Attributes:
        project: of the original run.
        original: trace id of the original run; injections into one run are one group.
        fault_id: id of the fault.
        operator: name of the operator.
        mode: code of the failure mode; empty for a fault of the environment.
        level: ``answer``, ``request``, ``message`` or ``result``.
        step: index of the changed step; the same in the original and in the faulty run.
        agent: agent of that step.
        missed_by: agents that acted after the step in the faulty run, if it failed; without the one to blame.
        verdict: ``kept``, ``repaired``, ``survived``, ``unproved``, ``censored``, or ``open`` if it is not decided.
        decisive: whether the step may be called decisive; otherwise it is the origin.
        deterministic: whether all faulty replays, all restored ones, and those of the whole program made the same requests.
        faulty: replays with the fault that had an outcome.
        faulty_failures: those that failed.
        restored: replays with the recorded step that had an outcome.
        restored_successes: those that succeeded.
        e_value: evidence that restoring helps.
        success_after: success rate after the fault; None without an outcome.
        point_of_no_return: step after which runs hardly ever succeed if all up to it is kept; None if not known.
        phrasing: number of the phrasing.
        seed: by which the fault was chosen.
        service: of the original run.
        framework: likewise.
        run: the faulty run; None if none was recorded.
        change: the change, in a form that JSON can hold; its `PLAN` is the id of the plan by which it was replayed.
    """

    project: str
    original: str
    fault_id: str
    operator: str
    mode: str
    level: str
    step: int
    agent: str
    missed_by: tuple[str, ...] = ()
    verdict: str = ""
    decisive: bool = False
    deterministic: bool = False
    faulty: int = 0
    faulty_failures: int = 0
    restored: int = 0
    restored_successes: int = 0
    e_value: float = 0.0
    success_after: float | None = None
    point_of_no_return: int | None = None
    phrasing: int = 0
    seed: int = 0
    service: str = ""
    framework: str = ""
    run: Trajectory | None = None
    change: Mapping[str, Any] = dataclasses.field(default_factory=dict)


_COLUMNS: Final = Columns(
    Injection,
    names={"original": "TraceId", "service": "ServiceName"},
    but={"run", "change"},
)


def save_injection(store: Store, injection: Injection, original: RunSummary) -> None:
    """Store a planted fault; the same fault of the same run is stored once.

    Args:
        store: the database.
        injection: the fault.
        original: the original run, whose retention it follows.

    Raises:
        StorageError: the database does not accept it.
    """
    insert_of_run(store, TABLE, _row(injection, utc(original.end)))


def take_over(store: Store, taken: Iterable[tuple[Injection, datetime]]) -> tuple[int, int]:
    """Store planted faults of a set that another store has built.

    A fault that this store has stays as it is, and one of a run that was erased here is refused.

    Returns:
        The number of new faults, and of refused ones.

    Args:
        store: the database.
        taken: each fault, with the end of its run, whose retention it follows.

    Raises:
        StorageError: the database does not accept them.
    """
    new = refused = 0
    for injection, end in taken:
        key = {
            "project": injection.project,
            "run": injection.original,
            "fault": injection.fault_id,
        }
        known = store.query(
            f"SELECT 1 FROM {TABLE} WHERE Project = {{project:String}} AND TraceId = {{run:String}}"  # noqa: S608
            " AND FaultId = {fault:String} LIMIT 1",
            key,
        )
        if not known:
            stored = len(insert_living(store, TABLE, [_row(injection, utc(end))]))
            new, refused = new + stored, refused + 1 - stored
    return new, refused


def _row(injection: Injection, end: datetime) -> dict[str, Any]:
    return {
        **_COLUMNS.row(injection),
        "InjectedAt": datetime.now(timezone.utc),
        "SpanId": _span_id(injection),
        "Change": json.dumps(injection.change, ensure_ascii=False),
        "Run": "" if injection.run is None else json.dumps(to_dict(injection.run)),
        "RunEnd": end,
    }


def injections(store: Store, *, project: str | None = None) -> Iterator[Injection]:
    """Yield the planted faults of a store, by original run.

    Args:
        store: the database.
        project: only this project's.

    Raises:
        StorageError: the database does not answer.
    """
    condition = "WHERE Project = {project:String}" if project is not None else ""
    keys = store.query(
        f"SELECT Project, TraceId, FaultId FROM {TABLE} FINAL {condition}"  # noqa: S608
        " ORDER BY Project, TraceId, FaultId",
        {"project": project or ""},
    )
    for key in keys:  # one by one: each holds a whole run
        rows = store.query(
            f"SELECT * FROM {TABLE} FINAL WHERE Project = {{project:String}}"  # noqa: S608
            " AND TraceId = {run:String} AND FaultId = {fault:String}",
            {"project": key["Project"], "run": key["TraceId"], "fault": key["FaultId"]},
        )
        yield from map(_injection, rows)


def plans_of_faults(store: Store, project: str, original: str) -> Mapping[str, str]:
    """Return the ids of the stored faults of a run, each with the id of its plan; empty for faults of other stores.

    Raises:
        StorageError: the database does not answer.
    """
    rows = store.query(
        f"SELECT FaultId, JSONExtractString(Change, '{PLAN}') AS PlanId FROM {TABLE} FINAL"  # noqa: S608
        " WHERE Project = {project:String} AND TraceId = {run:String}",
        {"project": project, "run": original},
    )
    return {row["FaultId"]: row["PlanId"] for row in rows}


def stored_run(
    store: Store, project: str, original: str, fault_id: str, plan_id: str
) -> Trajectory | None:
    """Return the stored faulty run of a fault that a plan has made; None if there is none.

    Raises:
        StorageError: the database does not answer.
    """
    rows = store.query(
        f"SELECT Run FROM {TABLE} FINAL WHERE Project = {{project:String}}"  # noqa: S608
        " AND TraceId = {run:String} AND FaultId = {fault:String} AND Run != ''"
        f" AND JSONExtractString(Change, '{PLAN}') = {{plan:String}}",
        {"project": project, "run": original, "fault": fault_id, "plan": plan_id},
    )
    return trajectory_from_dict(json.loads(rows[0]["Run"])) if rows else None


def _span_id(injection: Injection) -> str:
    run = injection.run
    known = run is not None and injection.step < len(run.steps)
    return run.steps[injection.step].span_id if run is not None and known else ""


def _injection(row: Mapping[str, Any]) -> Injection:
    return _COLUMNS.record(
        row,
        run=trajectory_from_dict(json.loads(row["Run"])) if row["Run"] else None,
        change=json.loads(row["Change"]),
    )
