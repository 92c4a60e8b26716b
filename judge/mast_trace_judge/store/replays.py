"""Results of replays in ``mast_replays``, and what replays have cost.

A replay is reserved before its program starts and settled by its result. A process that is killed
between the two leaves the reservation, which counts with all that the replay might have cost.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mast_trace_collector.storage.removal.tombstones import insert_of_run
from mast_trace_judge.arms import ArmResult, ReplayArm
from mast_trace_judge.store.records import Columns
from mast_trace_judge.store.replay_plans import (
    ReplayPlan,
    arm_of,
    precedence,
    result_of,
    row_of_result,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mast_trace_collector.storage.store import Store

_STARTED: Final = 19
"""Place of the start time among the fields of ``/proc/PID/stat`` behind the name; see proc(5)."""

TABLE: Final = "mast_replays"
RESERVED: Final = "reserved"
_OF_PLAN: Final = (
    "Project = {project:String} AND TraceId = {trace:String} AND PlanId = {plan:String}"
)


def holder_of_this_process() -> str:
    """Return the name of this process among the holders of reservations: host, number, start."""
    return _name(os.getpid())


def is_on_another_machine(holder: str) -> bool:
    """Return whether a holder is a process of another machine, of which nothing else is known."""
    return holder.partition("/")[0] != socket.gethostname()


def is_running_elsewhere(holder: str) -> bool:
    """Return whether a holder is another process of this machine that runs.

    Nothing is known of a process on another machine; see `is_on_another_machine`.
    """
    host, _, rest = holder.partition("/")
    number = rest.partition("/")[0]
    if host != socket.gethostname() or not number.isdecimal() or int(number) == os.getpid():
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass
    # The number may belong to another process by now.
    return _name(int(number)) == holder


def _name(process: int) -> str:
    return f"{socket.gethostname()}/{process}/{_start_of(process)}"


def _start_of(process: int) -> str:
    """Return when a process started, in ticks since the machine did; empty where there is no ``/proc``."""
    with suppress(OSError, IndexError):
        stat = Path(f"/proc/{process}/stat").read_text("utf-8", "replace")
        return stat.rpartition(")")[2].split()[_STARTED]
    return ""


@dataclass(frozen=True)
class Reservation:
    """A replay that was started and has no result.

    Attributes:
        sequence: number of the replay in its plan, from 0.
        arm: its arm.
        phase: of the experiment.
        pair: number of its pair; -1 outside of pairs.
        live_calls: most model calls that it may send to a model.
        cost_usd: most US dollars that it may cost; None if unknown.
        started_at: in UTC.
        holder: the process that runs it.
    """

    sequence: int
    arm: ReplayArm
    phase: str
    pair: int
    live_calls: int
    cost_usd: float | None
    started_at: datetime
    holder: str


_RESERVATION: Final = Columns(Reservation, but={"arm"})


def reserve(
    store: Store,
    plan: ReplayPlan,
    sequence: int,
    arm: ReplayArm,
    *,
    live_calls: int,
    cost_usd: float | None,
    phase: str = "",
    pair: int = -1,
    span_id: str = "",
    holder: str = "",
) -> bool:
    """Write down that a replay is about to start.

    Args:
        store: the database.
        plan: of the replay.
        sequence: its number in the plan, from 0.
        arm: its arm.
        live_calls: most model calls that it may send to a model.
        cost_usd: most US dollars that it may cost; None if unknown.
        phase: of the experiment.
        pair: number of its pair.
        span_id: of the step.
        holder: the process that runs it; this one by default.

    Returns:
        False where this number has a result already or belongs to another process: do not start it.
        Two processes that reserve one number at the same moment may both be told so: clocks of
        machines differ, so that neither can know to be the first.

    Raises:
        RunErased: the run was erased.
        StorageError: the database does not answer, or does not accept it: do not start it either.
    """
    holder = holder or holder_of_this_process()
    if any(
        row["Holder"] != holder or row["Status"] != RESERVED for row in _at(store, plan, sequence)
    ):
        return False
    now = datetime.now(timezone.utc)
    asked = ArmResult(
        arm,
        "error",
        phase=phase,
        pair=pair,
        live_calls=live_calls,
        cost_usd=cost_usd,
        started_at=now,
    )
    row = {**row_of_result(asked), "Status": RESERVED}
    insert_of_run(store, TABLE, _row(plan, sequence, row, holder=holder, span_id=span_id))
    mine = all(row["Holder"] == holder for row in _at(store, plan, sequence, merged=False))
    return mine and all(row["Holder"] == holder for row in _at(store, plan, sequence))


def record_result(
    store: Store,
    plan: ReplayPlan,
    sequence: int,
    result: ArmResult,
    *,
    span_id: str = "",
    holder: str = "",
) -> bool:
    """Store the result of a replay; a number has one result, which is the first.

    Args:
        store: the database.
        plan: of the replay.
        sequence: its number in the plan, from 0.
        result: of the replay.
        span_id: of the arm's step.
        holder: the process that ran it; this one by default.

    Returns:
        False where the number has a result already, which stays.

    Raises:
        RunErased: the run was erased.
        StorageError: the database does not answer, or does not accept it.
    """
    if any(row["Status"] != RESERVED for row in _at(store, plan, sequence)):
        return False
    holder = holder or holder_of_this_process()
    row = _row(plan, sequence, row_of_result(result), holder=holder, span_id=span_id, ended=True)
    insert_of_run(store, TABLE, row)
    return all(row["Holder"] == holder for row in _at(store, plan, sequence))


def result_at(store: Store, plan: ReplayPlan, sequence: int) -> ArmResult | None:
    """Return the result of a number; None if it has none.

    Raises:
        StorageError: the database does not answer.
    """
    rows = [row for row in _rows(store, plan) if row["Sequence"] == sequence]
    return next((result_of(row) for row in rows if row["Status"] != RESERVED), None)


def results_of(store: Store, plan: ReplayPlan) -> tuple[ArmResult, ...]:
    """Return the results of a plan in the order of their numbers.

    Raises:
        StorageError: the database does not answer.
    """
    return tuple(result_of(row) for row in _rows(store, plan) if row["Status"] != RESERVED)


def reservations_of(store: Store, plan: ReplayPlan) -> tuple[Reservation, ...]:
    """Return the replays of a plan that have no result, in the order of their numbers.

    Those whose holder does not run any more (`is_running_elsewhere`) were interrupted: record each as
    an ``error`` with the reserved calls, so that the experiment goes on after it.

    Raises:
        StorageError: the database does not answer.
    """
    return tuple(
        _RESERVATION.record(row, arm=arm_of(row))
        for row in _rows(store, plan)
        if row["Status"] == RESERVED
    )


def _row(
    plan: ReplayPlan,
    sequence: int,
    columns: Mapping[str, Any],
    *,
    holder: str,
    span_id: str,
    ended: bool = False,
) -> dict[str, Any]:
    return {
        **plan.key,
        "Sequence": sequence,
        **columns,
        "SpanId": span_id,
        "Holder": holder,
        "ServiceName": plan.service,
        "RunEnd": plan.run_end,
        "Precedence": precedence(datetime.now(timezone.utc), ended=ended),
    }


def _of(plan: ReplayPlan) -> dict[str, Any]:
    return {"project": plan.project, "trace": plan.trace_id, "plan": plan.plan_id}


def _rows(store: Store, plan: ReplayPlan) -> list[dict[str, Any]]:
    sql = f"SELECT * FROM {TABLE} FINAL WHERE {_OF_PLAN} ORDER BY Sequence"  # noqa: S608
    return store.query(sql, _of(plan))


def _at(
    store: Store, plan: ReplayPlan, sequence: int, *, merged: bool = True
) -> list[dict[str, Any]]:
    """Return the row of a number; all that are still there if they are not to be merged."""
    final = "FINAL" if merged else ""
    sql = (
        f"SELECT Status, Holder FROM {TABLE} {final} WHERE {_OF_PLAN}"  # noqa: S608
        " AND Sequence = {sequence:UInt32}"
    )
    return store.query(sql, {**_of(plan), "sequence": sequence})
