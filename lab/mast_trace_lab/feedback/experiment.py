"""One experiment of a store: its plan, which freezes the lessons, and its state at a look."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from mast_trace.exceptions import ConfigurationError
from mast_trace.experiment.assignment import FEEDBACK
from mast_trace_lab.feedback import store as stored
from mast_trace_lab.feedback.lessons import RunLesson, taught
from mast_trace_lab.feedback.statistics.conclusion import Conclusion, TaskRun, conclude
from mast_trace_lab.feedback.statistics.plan import ExperimentPlan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mast_trace_collector.storage.store import Store

MOST_FROZEN = 50
"""Lessons that an experiment freezes, the latest ones: each task gets three of other tasks at most."""


@dataclass(frozen=True)
class Look:
    """The state of an experiment.

    Attributes:
        plan: its plan.
        conclusion: what its runs allow to say.
        looks: number of looks so far, this one included; 0 if it was not counted.
        lessons: number of frozen lessons that are left.
        warnings: sentences about what the numbers cannot show.
    """

    plan: ExperimentPlan
    conclusion: Conclusion
    looks: int = 0
    lessons: int = 0
    warnings: tuple[str, ...] = ()


def make_plan(store: Store, project: str, plan: ExperimentPlan) -> ExperimentPlan:
    """Store the plan of an experiment with the lessons as they are now; return it as stored.

    Raises:
        ConfigurationError: the experiment has a plan, or has begun.
        StorageError: the database does not answer.
    """
    if stored.plan_text(store, project, plan.name) is not None:
        raise ConfigurationError(
            f"the experiment {plan.name!r} has a plan, which cannot be changed: its outcomes may be "
            "known. Give a new experiment another name"
        )
    if stored.experiment_runs(store, project, plan.name):
        raise ConfigurationError(
            f"the experiment {plan.name!r} has runs already, so a plan would come too late. Look at it "
            "without --plan, or give a new experiment another name"
        )
    if FEEDBACK in plan.arms:
        found = taught(store, project=project, workflow=plan.workflow, untouched=True)
        lessons = [
            stored.FrozenLesson(each.lesson.run, each.run_end, each.lesson.model_dump_json())
            for _, each in zip(range(MOST_FROZEN), found, strict=False)
        ]
        version = hashlib.sha256("\n".join(each.text for each in lessons).encode()).hexdigest()[:12]
        plan = replace(plan, version=version if lessons else "")
        if lessons:
            stored.freeze(store, project, plan.name, version, lessons)
    return _plan(stored.save_plan(store, project, plan.name, json.dumps(asdict(plan))))


def plan_of(store: Store, project: str, name: str) -> ExperimentPlan | None:
    """Return the stored plan of an experiment; None if there is none.

    Raises:
        StorageError: the database does not answer.
    """
    text = stored.plan_text(store, project, name)
    return None if text is None else _plan(text)


def frozen_lessons(store: Store, project: str, plan: ExperimentPlan) -> list[RunLesson]:
    """Return the lessons that an experiment has frozen, without those of erased runs.

    Raises:
        StorageError: the database does not answer.
    """
    if not plan.version:
        return []
    rows = stored.frozen(store, project, plan.name, plan.version)
    return [RunLesson.model_validate_json(row.text) for row in rows]


def look_at(store: Store, project: str, name: str, *, count: bool = True) -> Look:
    """Return the state of an experiment, and count the look.

    An experiment without a plan gets the default one at its first look, which is marked as late.

    Args:
        store: the database.
        project: of the experiment.
        name: of the experiment.
        count: whether the look is stored.

    Raises:
        ConfigurationError: there is no such experiment, or its arms cannot be known.
        StorageError: the database does not answer.
    """
    plan = plan_of(store, project, name)
    runs = stored.experiment_runs(store, project, name)
    if plan is None:
        plan = _late_plan(name, runs)
        if count:
            text = json.dumps(asdict(plan))
            plan = _plan(stored.save_plan(store, project, name, text))
    conclusion = conclude(plan, [_trial(each) for each in runs])
    looks = 0
    if count and runs:
        looks = stored.record_look(
            store,
            project,
            name,
            tasks=conclusion.tasks,
            runs=conclusion.runs,
            words=[each.word for each in conclusion.contrasts],
        )
    lessons = len(frozen_lessons(store, project, plan))
    return Look(plan, conclusion, looks, lessons, tuple(_warnings(plan, runs, lessons)))


def _late_plan(name: str, runs: Sequence[stored.ExperimentRun]) -> ExperimentPlan:
    if not runs:
        raise ConfigurationError(
            f"there is no experiment {name!r}: `mast-trace experiment {name} --plan` makes a plan, which "
            "prints the size that it needs, before the first run"
        )
    arms = {each.arm for each in runs}
    if not arms <= set(ExperimentPlan(name).arms):
        raise ConfigurationError(
            f"the experiment {name!r} has no plan, and arms of its own ({', '.join(sorted(arms))}), whose "
            "order is not known: plan it with --plan and --arm under a new name, before its first run"
        )
    return ExperimentPlan(
        name, design=runs[0].design or ExperimentPlan(name).design, late=len(runs)
    )


def _trial(run: stored.ExperimentRun) -> TaskRun:
    return TaskRun(
        arm=run.arm,
        task=run.task,
        start=run.start,
        success={"success": True, "failure": False}.get(run.outcome),
        repetition=run.repetition,
        delivered=bool(run.feedback_id),
    )


def _warnings(
    plan: ExperimentPlan, runs: Sequence[stored.ExperimentRun], lessons: int
) -> list[str]:
    told = []
    if plan.late:
        told.append(
            f"There was no plan before the first {plan.late} runs: the default one is taken, and no lessons "
            "were frozen."
        )
    elif FEEDBACK in plan.arms and not lessons:
        told.append(
            "No lessons are frozen, so the arm 'feedback' gets none: no failed run of the workflow has a "
            "confirmed, labelled or exact finding, or their runs were erased."
        )
    by_conversation: dict[str, set[tuple[str, str]]] = {}
    for each in runs:
        if each.conversation_id:
            by_conversation.setdefault(each.conversation_id, set()).add((each.task, each.arm))
    if any(len(shared) > 1 for shared in by_conversation.values()):
        told.append(
            "Runs of different tasks or arms share a conversation: without a fresh memory one arm tells "
            "the other what it was told."
        )
    running = sum(not each.has_ended for each in runs)
    if running:
        told.append(f"{running} runs have not ended, or were killed.")
    return told


def _plan(text: str) -> ExperimentPlan:
    fields: dict[str, Any] = json.loads(text)
    return ExperimentPlan(**{**fields, "arms": tuple(fields["arms"])})
