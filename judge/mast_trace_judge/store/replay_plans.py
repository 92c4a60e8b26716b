"""Plans of experiments in ``mast_replay_plans``, each stored once and never changed, and the rows of results of replays."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Final

from mast_trace_collector.storage.removal.tombstones import insert_of_run
from mast_trace_judge.arms import ArmResult, Fix, ReplayArm
from mast_trace_judge.store.records import Columns, utc

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mast_trace_collector.storage.runs import RunSummary
    from mast_trace_collector.storage.store import Store


JOINT: Final = "joint"
"""``FixSource`` of a fix of several steps."""

_OUTCOMES: Final[Mapping[bool | None, str]] = {True: "success", False: "failure", None: ""}
_SUCCESSES: Final[Mapping[str, bool | None]] = {
    text: success for success, text in _OUTCOMES.items()
}


_RESULT: Final = Columns(ArmResult, but={"arm", "success"})


def row_of_result(result: ArmResult) -> dict[str, Any]:
    """Return the columns that hold a result.

    A joint fix is a list in ``FixText``, which names its steps; see `arm_of`.
    """
    fix = result.arm.fix
    also = result.arm.also
    return {
        **_RESULT.row(result),
        "Arm": result.arm.operator,
        "Step": result.arm.step,
        "FixSource": JOINT if also else fix.source if fix else "",
        "FixHash": _hash_of(result.arm),
        "FixText": _joint_text(result.arm) if also else fix.text if fix else "",
        "FixModel": fix.model if fix else "",
        "Hold": result.arm.hold,
        "Outcome": _OUTCOMES[result.success],
    }


def arm_of(row: Mapping[str, Any]) -> ReplayArm:
    """Return the arm of a row."""
    hold = bool(row["Hold"])
    if row["FixSource"] == JOINT:
        (_, first), *others = [
            (
                each["step"],
                Fix(each["source"], each["text"], each["model"], each.get("result", False)),
            )
            for each in json.loads(row["FixText"])
        ]
        return ReplayArm(row["Arm"], row["Step"], first, hold, tuple(others))
    fix = None
    if row["FixHash"]:
        is_result = row["Arm"] == "result"
        fix = Fix(row["FixSource"], row["FixText"], row["FixModel"], is_result)
    return ReplayArm(row["Arm"], row["Step"], fix, hold)


def result_of(row: Mapping[str, Any]) -> ArmResult:
    """Return the result of a row."""
    return _RESULT.record(row, arm=arm_of(row), success=_SUCCESSES[row["Outcome"]])


def _joint_text(arm: ReplayArm) -> str:
    fixes = [(arm.step, arm.fix), *arm.also]
    shapes = [{"step": step, **asdict(fix)} for step, fix in fixes if fix is not None]
    for shape in shapes:
        if not shape["result"]:  # as it was before there were results: the hash stays
            del shape["result"]
    return json.dumps(shapes, ensure_ascii=False)


def _hash_of(arm: ReplayArm) -> str:
    if arm.fix is None:
        return ""
    return fix_hash(Fix(arm.fix.source, _joint_text(arm)) if arm.also else arm.fix)


def fix_hash(fix: Fix) -> str:
    """Return a short digest of a fix, equal for the same source, text and model."""
    text = f"{fix.source}\x00{fix.text}\x00{fix.model}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


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


_PLAN: Final = Columns(ReplayPlan, names={"service": "ServiceName", "text": "Plan"})


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
        **_PLAN.row(plan),
        "PlannedAt": now,
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
    return _PLAN.record(rows[0]) if rows else None


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
    return tuple(map(_PLAN.record, rows))


MASKS: Final = "masks"
"""Beginning of the names of the plans that hold masks of a run's prompts."""


def masks_of(store: Store, project: str, trace_id: str) -> tuple[tuple[str, str], ...]:
    """Return the masks that are kept with a run, as pairs of a pattern and a name.

    Raises:
        StorageError: the database does not answer.
    """
    plans = plans_of_run(store, project, trace_id, prefix=MASKS)
    return tuple((pattern, name) for plan in plans for pattern, name in json.loads(plan.text))


def precedence(moment: datetime, *, ended: bool = False) -> int:
    """Return the number by which one of several rows of a key stays: results first, then the earliest."""
    microseconds = int(utc(moment).timestamp() * 1e6)
    return _LAST - microseconds + (_LAST if ended else 0)


def _plan_id(project: str, trace_id: str, name: str) -> str:
    text = f"{project}\x00{trace_id}\x00{name}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_ID_DIGITS]
