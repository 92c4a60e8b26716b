"""Plans of experiments in ``mast_replay_plans``: each is stored once and never changed."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Final

from mast_trace_collector.storage.tombstones import insert_of_run
from mast_trace_judge.store.verdict_rows import utc

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mast_trace_collector.storage.runs import RunSummary
    from mast_trace_collector.storage.store import Store

TABLE: Final = "mast_replay_plans"
CONFIRM: Final = "confirm"
"""Name of the one experiment of a run's lifetime."""
_LAST: Final = 2**62
_ID_DIGITS: Final = 32


@dataclass(frozen=True)
class ReplayPlan:
    """A plan of replays of one run.

    Attributes:
        project: of the run.
        trace_id: of the run.
        plan_id: equal for the same run and name, on every machine.
        name: `CONFIRM`, or that of another experiment, such as planted faults.
        fingerprint: of the run when it was planned; a run that has changed has other steps.
        service: of the run.
        run_end: end of the run, which decides how long replays are kept.
        text: all that the experiment needs to be resumed, such as JSON; opaque here.
    """

    project: str
    trace_id: str
    plan_id: str
    name: str
    fingerprint: str
    service: str
    run_end: datetime
    text: str = ""

    @property
    def key(self) -> dict[str, Any]:
        """The columns that the rows of its replays begin with."""
        return {"Project": self.project, "TraceId": self.trace_id, "PlanId": self.plan_id}


def plan_of(store: Store, run: RunSummary, text: str, *, name: str = CONFIRM) -> ReplayPlan:
    """Return the plan of a run, which is stored first if there is none.

    The first stored plan stays: an experiment is resumed and never restarted, so that its error
    probability holds for the run's lifetime. Compare the returned text and fingerprint with your own.

    Args:
        store: the database.
        run: the original run.
        text: of a new plan.
        name: of the experiment.

    Raises:
        StorageError: the database does not answer, or does not accept the plan.
    """
    known = stored_plan(store, run.project, run.trace_id, name=name)
    if known is not None:
        return known
    plan = ReplayPlan(
        project=run.project,
        trace_id=run.trace_id,
        plan_id=_plan_id(run.project, run.trace_id, name),
        name=name,
        fingerprint=run.fingerprint,
        service=run.service,
        run_end=utc(run.end),
        text=text,
    )
    now = datetime.now(timezone.utc)
    row = {
        **plan.key,
        "Name": name,
        "PlannedAt": now,
        "Fingerprint": plan.fingerprint,
        "ServiceName": plan.service,
        "RunEnd": plan.run_end,
        "Plan": text,
        "Precedence": precedence(now),
    }
    insert_of_run(store, TABLE, row)
    return stored_plan(store, run.project, run.trace_id, name=name) or plan


def stored_plan(
    store: Store, project: str, trace_id: str, *, name: str = CONFIRM
) -> ReplayPlan | None:
    """Return the stored plan of a run; None if there is none.

    Raises:
        StorageError: the database does not answer.
    """
    rows = store.query(
        f"SELECT * FROM {TABLE} FINAL WHERE Project = {{project:String}}"  # noqa: S608
        " AND TraceId = {trace:String} AND PlanId = {plan:String}",
        {"project": project, "trace": trace_id, "plan": _plan_id(project, trace_id, name)},
    )
    return _plan(rows[0]) if rows else None


def plans_of_run(
    store: Store, project: str, trace_id: str, *, prefix: str
) -> tuple[ReplayPlan, ...]:
    """Return the stored plans of a run whose names begin alike, the first planned one first.

    Raises:
        StorageError: the database does not answer.
    """
    rows = store.query(
        f"SELECT * FROM {TABLE} FINAL WHERE Project = {{project:String}}"  # noqa: S608
        " AND TraceId = {trace:String} AND startsWith(Name, {prefix:String})"
        " ORDER BY PlannedAt, PlanId",
        {"project": project, "trace": trace_id, "prefix": prefix},
    )
    return tuple(map(_plan, rows))


def precedence(moment: datetime, *, ended: bool = False) -> int:
    """Return the number by which one of several rows of a key stays: results first, then the earliest."""
    microseconds = int(utc(moment).timestamp() * 1e6)
    return _LAST - microseconds + (_LAST if ended else 0)


def _plan_id(project: str, trace_id: str, name: str) -> str:
    text = f"{project}\x00{trace_id}\x00{name}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_ID_DIGITS]


def _plan(row: Mapping[str, Any]) -> ReplayPlan:
    return ReplayPlan(
        project=row["Project"],
        trace_id=row["TraceId"],
        plan_id=row["PlanId"],
        name=row["Name"],
        fingerprint=row["Fingerprint"],
        service=row["ServiceName"],
        run_end=utc(row["RunEnd"]),
        text=row["Plan"],
    )
