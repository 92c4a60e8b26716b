"""Simulated teams in experiments: tasks of several difficulties, several runs of a task, and lessons that help or not.

The arms are those of `mast_trace.assign`, and every word is that of the shipped e-process, looked at after each task.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from mast_trace.experiment.assignment import ARMS, HASH, PAIRS, arm_of
from mast_trace_lab.feedback.statistics.betting import PAIRED, centres_of, path
from mast_trace_lab.feedback.statistics.plan import ExperimentPlan


@dataclass(frozen=True)
class Team:
    """A kind of experiment.

    Attributes:
        name: for tables.
        tasks: number of tasks.
        rate: mean success rate over tasks.
        alike: the sum of the parameters of the beta distribution of the tasks' rates: the smaller, the more
            runs of one task are alike; 0 for tasks that all have the mean rate.
        effect: what the lessons add to a task's rate; negative for a team that they harm.
        placebo: what the placebo adds.
        design: ``hash`` or ``pairs``.
        repeats: runs of a task in an arm.
        baseline: the rate that the plan expects; None for a plan without one.
        drift: what the last task's rate is below the first one's.
    """

    name: str
    tasks: int
    rate: float = 0.6
    alike: float = 0.0
    effect: float = 0.0
    placebo: float = 0.0
    design: str = HASH
    repeats: int = 1
    baseline: float | None = 0.6
    drift: float = 0.0

    @property
    def plan(self) -> ExperimentPlan:
        """The plan of its experiments."""
        expected = abs(self.effect) if self.effect else 0.1
        return ExperimentPlan(
            self.name,
            design=self.design,
            repeats=self.repeats,
            baseline=self.baseline,
            effect=expected,
        )


@dataclass(frozen=True)
class Simulated:
    """One simulated experiment.

    Attributes:
        team: the kind.
        name: of the experiment, by which arms are assigned.
        arms: the arm of each task; in pairs empty.
        means: mean outcome of each task, in the arm of the task or in each of the arms.
    """

    team: Team
    name: str
    arms: tuple[str, ...]
    means: np.ndarray


def simulated(team: Team, seed: int) -> Simulated:
    """Run an experiment: draw the tasks, assign the arms, draw the outcomes."""
    random = np.random.default_rng([seed, *team.name.encode()])
    name = f"{team.name} {seed}"
    if team.alike:
        rates = random.beta(team.rate * team.alike, (1 - team.rate) * team.alike, team.tasks)
    else:
        rates = np.full(team.tasks, team.rate)
    rates = rates - team.drift * np.linspace(0, 1, team.tasks) + team.drift / 2
    added = np.array([0.0, team.placebo, team.effect])  # in the order of ARMS
    by_arm = np.clip(rates[:, None] + added, 0, 1)
    means = random.binomial(team.repeats, by_arm) / team.repeats
    if team.design == PAIRS:
        return Simulated(team, name, (), means)
    arms = tuple(arm_of(name, str(task), ARMS) for task in range(team.tasks))
    places = [ARMS.index(arm) for arm in arms]
    return Simulated(team, name, arms, means[np.arange(team.tasks), places])


def evidence(found: Simulated, *, worse: bool = False, control: str = "placebo") -> np.ndarray:
    """Return the logarithm of the e-value of feedback against a control after each of their tasks."""
    team = found.team
    sign = -1 if worse else 1
    if team.design == PAIRS:
        difference = found.means[:, 2] - found.means[:, ARMS.index(control)]
        return path([1] * len(difference), list(sign * difference), PAIRED)
    chosen = [n for n, arm in enumerate(found.arms) if arm in ("feedback", control)]
    signs = [sign if found.arms[n] == "feedback" else -sign for n in chosen]
    plan = team.plan
    expected = None if plan.baseline is None else plan.baseline + plan.effect / 2
    return path(signs, [float(found.means[n]) for n in chosen], centres_of(expected))


def decided(found: Simulated) -> str:
    """Return the word that is said first, if it is looked after each task: feedback against placebo."""
    threshold = math.log(found.team.plan.threshold)
    reached = {}
    for word, worse in (("better", False), ("worse", True)):
        (places,) = np.nonzero(evidence(found, worse=worse) >= threshold)
        if len(places):
            reached[word] = places[0]
    return min(reached, key=lambda word: reached[word]) if reached else "not decided"


def tasks_until(found: Simulated) -> int:
    """Return the tasks of both arms together after which "better" is said; all of them if it never is."""
    logs = evidence(found)
    (places,) = np.nonzero(logs >= math.log(found.team.plan.threshold))
    return int(places[0]) + 1 if len(places) else len(logs)


AA: Final = (
    Team("A/A, hash", 1000),
    Team("A/A, hash, no baseline", 1000, baseline=None),
    Team("A/A, hash, wrong baseline", 1000, rate=0.9, baseline=0.3),
    Team("A/A, hash, clustered, 10 runs a task", 90, alike=1.0, repeats=10),
    Team("A/A, hash, drift .9 to .1", 1000, rate=0.5, drift=0.8),
    Team("A/A, pairs", 500, design=PAIRS),
    Team("A/A, pairs, clustered, 10 runs a task", 60, alike=1.0, repeats=10, design=PAIRS),
)
"""Experiments in which the arms do not differ."""
DEAF: Final = (
    Team("deaf, placebo helps alike", 1000, effect=0.1, placebo=0.1),
    Team("deaf, placebo helps alike, pairs", 400, effect=0.1, placebo=0.1, design=PAIRS),
)
"""Teams that do not hear what the lessons say; any text helps them as much."""
HELPED: Final = (
    Team("helped .6 to .7, planned size", 1770, effect=0.1),
    Team("helped .6 to .7, pairs, planned size", 593, effect=0.1, design=PAIRS),
    Team("helped .6 to .7, pairs, alike tasks", 593, effect=0.1, alike=1.0, design=PAIRS),
    Team("helped .3 to .6, planned size", 213, rate=0.3, baseline=0.3, effect=0.3),
)
"""Teams that the lessons help."""
HARMED: Final = (Team("harmed .7 to .5", 700, rate=0.7, baseline=0.7, effect=-0.2),)
"""Teams that the lessons harm."""
