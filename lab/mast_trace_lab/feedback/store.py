"""Experiments in the store: their runs, plans, looks and frozen lessons."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Final

from mast_trace_collector.storage.removal.tombstones import insert_living
from mast_trace_judge.store.records import Columns, utc
from mast_trace_judge.store.replay_plans import precedence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mast_trace_collector.storage.store import Store

RUNS: Final = "mast_experiment_runs"
PLANS: Final = "mast_experiments"
LOOKS: Final = "mast_experiment_looks"
LESSONS: Final = "mast_lessons"

_RUNS = f"""
SELECT r.TraceId AS TraceId, r.Arm AS Arm, r.Task AS Task, r.Repetition AS Repetition, r.Design AS Design,
    r.FeedbackId AS FeedbackId, toUnixTimestamp64Nano(r.Start) AS StartNs, m.Outcome AS Outcome,
    m.ConversationId AS ConversationId, m.RootSeen AS RootSeen
FROM (SELECT * FROM {RUNS} FINAL
    WHERE Project = {{project:String}} AND Experiment = {{name:String}}
    ORDER BY Start, SpanId LIMIT 1 BY TraceId) AS r
LEFT JOIN (SELECT TraceId, Outcome, ConversationId, RootSeen, Kind FROM mast_runs
    WHERE Project = {{project:String}} AND TraceId GLOBAL IN
        (SELECT TraceId FROM {RUNS} WHERE Project = {{project:String}} AND Experiment = {{name:String}})) AS m
    ON r.TraceId = m.TraceId
WHERE m.Kind = '' -- a replay of a run is no further run
ORDER BY StartNs, TraceId
"""  # noqa: S608  # made of constants


@dataclass(frozen=True)
class ExperimentRun:
    """One run of an experiment, as its program has marked it.

    Attributes:
        trace_id: of the run.
        arm: name of its arm.
        task: key of its task.
        repetition: number of the run among those of its task.
        design: ``hash`` or ``pairs``.
        feedback_id: id of the text that it was given; empty if it was given none.
        start: in nanoseconds since the epoch.
        outcome: ``success``, ``failure`` or empty if none was recorded.
        conversation_id: of the run; empty if it has none.
        has_ended: whether its root span has arrived.
    """

    trace_id: str
    arm: str
    task: str
    repetition: int
    design: str
    feedback_id: str
    start: int
    outcome: str
    conversation_id: str
    has_ended: bool


_RUN_COLUMNS: Final = Columns(ExperimentRun, names={"start": "StartNs", "has_ended": "RootSeen"})


@dataclass(frozen=True)
class FrozenLesson:
    """A lesson as an experiment froze it.

    Attributes:
        trace_id: of the run that teaches it.
        run_end: end of that run, whose retention the row follows.
        text: the lesson, as JSON.
    """

    trace_id: str
    run_end: datetime
    text: str


def experiment_runs(store: Store, project: str, name: str) -> list[ExperimentRun]:
    """Return the runs of an experiment, the earliest first.

    Raises:
        StorageError: the database does not answer.
    """
    return [
        _RUN_COLUMNS.record(row) for row in store.query(_RUNS, {"project": project, "name": name})
    ]


def save_plan(store: Store, project: str, name: str, text: str) -> str:
    """Store the plan of an experiment, unless it has one; return the stored plan.

    Raises:
        StorageError: the database does not answer, or does not accept it.
    """
    known = plan_text(store, project, name)
    if known is not None:
        return known
    now = datetime.now(timezone.utc)
    row = {
        "Project": project,
        "Name": name,
        "PlannedAt": now,
        "Plan": text,
        "Precedence": precedence(now),
    }
    store.insert(PLANS, [row])
    return plan_text(store, project, name) or text


def plan_text(store: Store, project: str, name: str) -> str | None:
    """Return the stored plan of an experiment; None if there is none.

    Raises:
        StorageError: the database does not answer.
    """
    rows = store.query(
        f"SELECT Plan FROM {PLANS} FINAL WHERE Project = {{project:String}} AND Name = {{name:String}}",  # noqa: S608
        {"project": project, "name": name},
    )
    return str(rows[0]["Plan"]) if rows else None


def projects_with(store: Store, name: str) -> list[str]:
    """Return the projects that have an experiment of this name, planned or running.

    Raises:
        StorageError: the database does not answer.
    """
    rows = store.query(
        f"SELECT DISTINCT Project FROM {PLANS} WHERE Name = {{name:String}} UNION DISTINCT "  # noqa: S608
        f"SELECT DISTINCT Project FROM {RUNS} WHERE Experiment = {{name:String}}",
        {"name": name},
    )
    return sorted(str(row["Project"]) for row in rows)


def record_look(
    store: Store, project: str, name: str, *, tasks: int, runs: int, words: Sequence[str]
) -> int:
    """Store that somebody looked at an experiment; return the number of looks so far.

    Raises:
        StorageError: the database does not answer, or does not accept it.
    """
    row = {
        "Project": project,
        "Name": name,
        "LookedAt": datetime.now(timezone.utc),
        "Tasks": tasks,
        "Runs": runs,
        "Words": list(words),
    }
    store.insert(LOOKS, [row])
    (counted,) = store.query(
        f"SELECT uniqExact(LookedAt) AS looks FROM {LOOKS} WHERE Project = {{project:String}}"  # noqa: S608
        " AND Name = {name:String}",
        {"project": project, "name": name},
    )
    return int(counted["looks"])


def freeze(
    store: Store, project: str, name: str, version: str, lessons: Sequence[FrozenLesson]
) -> None:
    """Store the lessons of an experiment's version.

    Raises:
        StorageError: the database does not accept them.
    """
    now = datetime.now(timezone.utc)
    rows: list[dict[str, Any]] = [
        {
            "Project": project,
            "TraceId": lesson.trace_id,
            "Experiment": name,
            "Number": number,
            "Version": version,
            "FrozenAt": now,
            "Lesson": lesson.text,
            "RunEnd": utc(lesson.run_end),
        }
        for number, lesson in enumerate(lessons)
    ]
    insert_living(store, LESSONS, rows)


def frozen(store: Store, project: str, name: str, version: str) -> list[FrozenLesson]:
    """Return the lessons of an experiment's version, the first ones first; without erased ones.

    Raises:
        StorageError: the database does not answer.
    """
    rows = store.query(
        f"SELECT TraceId, RunEnd, Lesson FROM {LESSONS} FINAL WHERE Project = {{project:String}}"  # noqa: S608
        " AND Experiment = {name:String} AND Version = {version:String} ORDER BY Number",
        {"project": project, "name": name, "version": version},
    )
    return [FrozenLesson(row["TraceId"], utc(row["RunEnd"]), row["Lesson"]) for row in rows]
