"""The word that the outcomes of an experiment allow: better, worse, or not decided."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Final, Literal

from mast_trace.experiment.assignment import arm_of
from mast_trace_judge.intervals import wilson
from mast_trace_lab.feedback.statistics.betting import PAIRED, centres_of, log_evidence, lower_bound

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mast_trace_lab.feedback.statistics.plan import ExperimentPlan

_LEVEL: Final = 0.95

Word = Literal["better", "worse", "not decided"]
_UNEQUAL: Final = 4.0
"""Standard deviations by which the number of an arm's tasks may differ from its share."""
_LARGEST: Final = 700.0
"""Logarithm beyond which an e-value is not written out."""


@dataclass(frozen=True)
class Rate:
    """A success rate.

    Attributes:
        value: mean over tasks of the share of successes; None without tasks.
        low: lower end of the 95 % interval.
        high: upper end.
    """

    value: float | None
    low: float
    high: float


def clustered_rate(tasks: Sequence[tuple[int, int]]) -> Rate:
    """Return the success rate over tasks with a 95 % interval for a single look.

    The tasks are the independent units. Wilson's interval is taken at the number of independent runs that
    would have the variance of the tasks' means, with the quantile of Student's t; where all means
    are equal that number is the number of tasks.

    Args:
        tasks: successes and outcomes of each task; tasks without an outcome are left out.
    """
    means = [successes / runs for successes, runs in tasks if runs]
    if not means:
        return Rate(None, 0.0, 1.0)
    count, runs = len(means), sum(runs for _, runs in tasks)
    rate = sum(means) / count
    effective = float(count)
    if count > 1:
        variance = sum((mean - rate) ** 2 for mean in means) / (count - 1) / count
        if variance > 0:
            # Between the runs, all independent, and the tasks, all runs of which are alike.
            effective = min(float(runs), max(rate * (1 - rate) / variance, 1.0))
    low, high = wilson(rate * effective, effective, _t_quantile(0.5 + _LEVEL / 2, count - 1))
    return Rate(rate, low, high)


def _t_quantile(probability: float, freedom: int) -> float:
    """Return a quantile of Student's t, by the expansion of Abramowitz and Stegun (26.7.5).

    Below three degrees of freedom it is too small; then that of three is taken, and an interval
    of so few tasks is wide in any case.
    """
    z = NormalDist().inv_cdf(probability)
    n = max(3, freedom)
    return (
        z
        + (z**3 + z) / (4 * n)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * n**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * n**3)
    )


@dataclass(frozen=True)
class TaskRun:
    """One run of an experiment.

    Attributes:
        arm: its arm, as recorded.
        task: key of its task.
        start: its start, in nanoseconds since the epoch.
        success: the recorded outcome; None if there is none.
        repetition: number of the run among those of its task, as recorded.
        delivered: whether it was given a text.
    """

    arm: str
    task: str
    start: int
    success: bool | None
    repetition: int = 0
    delivered: bool = False


@dataclass(frozen=True)
class ArmRuns:
    """The runs of one arm.

    Attributes:
        arm: its name.
        tasks: tasks with a run in the arm.
        runs: runs.
        successes: runs with the outcome success.
        missing: runs without an outcome.
        delivered: runs that were given a text.
        rate: success rate over tasks, with its interval for a single look.
    """

    arm: str
    tasks: int
    runs: int
    successes: int
    missing: int
    delivered: int
    rate: Rate


@dataclass(frozen=True)
class ArmContrast:
    """The comparison of a treatment with a control.

    Attributes:
        treatment: name of the arm.
        control: likewise.
        word: ``better``, ``worse`` or ``not decided``, of the treatment.
        difference: of the success rates, as observed; None if an arm has no outcome.
        low: lower end of an interval that holds at every look; missing outcomes count against it.
        high: upper end.
        better: e-value of "the treatment does not help".
        worse: e-value of "the treatment does not harm".
        tasks: tasks that count.
        open: tasks whose planned outcomes are not all there.
        reason: why it is not decided; empty otherwise.
    """

    treatment: str
    control: str
    word: Word
    difference: float | None
    low: float
    high: float
    better: float
    worse: float
    tasks: int
    open: int
    reason: str = ""


@dataclass(frozen=True)
class Conclusion:
    """The state of an experiment at one look.

    Attributes:
        arms: the arms in their order.
        contrasts: in the order of the plan.
        tasks: tasks in all arms.
        runs: runs in all arms.
        objections: sentences because of which nothing is decided.
        without_task: runs without a usable key, which do not count.
        beyond: runs beyond the planned repeats, which count in the arms' intervals alone.
    """

    arms: tuple[ArmRuns, ...]
    contrasts: tuple[ArmContrast, ...]
    tasks: int
    runs: int
    objections: tuple[str, ...] = ()
    without_task: int = 0
    beyond: int = 0


def conclude(plan: ExperimentPlan, trials: Sequence[TaskRun]) -> Conclusion:
    """Return what the runs of an experiment allow to say.

    Args:
        plan: of the experiment.
        trials: its runs, in any order.
    """
    known = [each for each in trials if each.task]
    by_arm: dict[str, dict[str, list[TaskRun]]] = {arm: defaultdict(list) for arm in plan.arms}
    for each in sorted(known, key=lambda trial: (trial.start, trial.repetition)):
        if each.arm in by_arm:
            by_arm[each.arm][each.task].append(each)
    objections = tuple(_objections(plan, known, by_arm))
    contrasts: list[ArmContrast] = []
    for treatment, control in plan.contrasts:
        found = _contrast(plan, treatment, control, by_arm)
        first = contrasts[0] if contrasts and plan.in_order else None
        contrasts.append(_worded(plan, found, objections, first))
    return Conclusion(
        arms=tuple(_arm_result(arm, tasks) for arm, tasks in by_arm.items()),
        contrasts=tuple(contrasts),
        tasks=len({each.task for each in known}),
        runs=len(trials),
        objections=objections,
        without_task=len(trials) - len(known),
        beyond=sum(
            max(0, len(runs) - plan.repeats) for tasks in by_arm.values() for runs in tasks.values()
        ),
    )


def _objections(
    plan: ExperimentPlan, trials: Sequence[TaskRun], by_arm: Mapping[str, Mapping[str, object]]
) -> Iterable[str]:
    """Yield the reasons why the arms are not comparable."""
    strangers = sorted({each.arm for each in trials} - set(plan.arms))
    if strangers:
        yield (
            f"Runs are in arms that the plan does not have: {', '.join(map(repr, strangers[:5]))}. Give "
            "mast_trace.assign() the arms of the plan, in its order."
        )
    wrong = sum(
        each.arm in by_arm
        and each.arm
        != arm_of(plan.name, each.task, plan.arms, design=plan.design, repetition=each.repetition)
        for each in trials
    )
    if wrong:
        yield (
            f"{wrong} runs are in another arm than mast_trace.assign() gives their task with the design "
            f"{plan.design!r} and the arms {', '.join(plan.arms)}, in this order."
        )
    counts = {arm: len(tasks) for arm, tasks in by_arm.items()}
    total, share = sum(counts.values()), 1 / len(plan.arms)
    for arm, count in counts.items():
        spread = math.sqrt(total * share * (1 - share))
        if not plan.paired and spread and abs(count - total * share) > _UNEQUAL * spread:
            yield (
                f"The arm {arm!r} has {count} of {total} tasks, which chance does not explain: are runs of "
                "some arm not recorded, or were tasks chosen by their arm?"
            )


def _arm_result(arm: str, tasks: Mapping[str, Sequence[TaskRun]]) -> ArmRuns:
    runs = [each for runs in tasks.values() for each in runs]
    counts = [
        (sum(bool(each.success) for each in runs), sum(each.success is not None for each in runs))
        for runs in tasks.values()
    ]
    return ArmRuns(
        arm=arm,
        tasks=len(tasks),
        runs=len(runs),
        successes=sum(successes for successes, _ in counts),
        missing=sum(each.success is None for each in runs),
        delivered=sum(each.delivered for each in runs),
        rate=clustered_rate(counts),
    )


@dataclass(frozen=True)
class _Mean:
    """A task's mean outcome: as observed, and with missing outcomes as failures or as successes."""

    observed: float | None
    low: float
    high: float

    @property
    def is_open(self) -> bool:
        return self.low != self.high


def _mean(runs: Sequence[TaskRun], repeats: int) -> _Mean:
    counted = [each.success for each in runs[:repeats] if each.success is not None]
    successes, missing = sum(counted), repeats - len(counted)
    observed = successes / len(counted) if counted else None
    return _Mean(observed, successes / repeats, (successes + missing) / repeats)


def _contrast(
    plan: ExperimentPlan,
    treatment: str,
    control: str,
    by_arm: Mapping[str, Mapping[str, Sequence[TaskRun]]],
) -> ArmContrast:
    with_it, without = (
        {task: _mean(runs, plan.repeats) for task, runs in by_arm[arm].items()}
        for arm in (treatment, control)
    )
    if plan.paired:
        tasks = sorted(with_it.keys() | without.keys())
        unknown = _Mean(None, 0.0, 1.0)
        both = [(with_it.get(task, unknown), without.get(task, unknown)) for task in tasks]
        signs = [1] * len(tasks)
        for_it = [x.low - y.high for x, y in both]
        against = [y.low - x.high for x, y in both]
        is_open = sum(x.is_open or y.is_open for x, y in both)
        known = [
            x.observed - y.observed
            for x, y in both
            if x.observed is not None and y.observed is not None
        ]
        difference = sum(known) / len(known) if known else None
        centres = PAIRED
    else:
        arms = [(1, each) for each in with_it.values()] + [(-1, each) for each in without.values()]
        signs = [sign for sign, _ in arms]
        for_it = [each.low if sign > 0 else each.high for sign, each in arms]
        against = [each.high if sign > 0 else each.low for sign, each in arms]
        is_open = sum(each.is_open for _, each in arms)
        one, other = (
            [each.observed for each in found.values() if each.observed is not None]
            for found in (with_it, without)
        )
        difference = sum(one) / len(one) - sum(other) / len(other) if one and other else None
        centres = centres_of(None if plan.baseline is None else plan.baseline + plan.effect / 2)
    opposite = signs if plan.paired else [-sign for sign in signs]
    threshold = plan.threshold
    return ArmContrast(
        treatment=treatment,
        control=control,
        word="not decided",
        difference=difference,
        low=lower_bound(signs, for_it, centres, threshold),
        high=-lower_bound(opposite, against, centres, threshold),
        better=math.exp(min(_LARGEST, log_evidence(signs, for_it, centres))),
        worse=math.exp(min(_LARGEST, log_evidence(opposite, against, centres))),
        tasks=len(signs),
        open=is_open,
    )


def _worded(
    plan: ExperimentPlan, found: ArmContrast, objections: Sequence[str], first: ArmContrast | None
) -> ArmContrast:
    word: Word = "not decided"
    reason = ""
    if objections:
        reason = "the arms are not comparable"
    elif first is not None and first.word == "not decided":
        reason = f"{first.treatment} against {first.control} is not decided, and comes first"
    elif found.better >= plan.threshold:
        word = "better"
    elif found.worse >= plan.threshold:
        word = "worse"
    elif found.open:
        reason = (
            f"{found.open} of {found.tasks} tasks lack planned outcomes, which count against both"
        )
    else:
        reason = "the difference may be none" if found.tasks else "there are no runs"
    return ArmContrast(**{**vars(found), "word": word, "reason": reason})
