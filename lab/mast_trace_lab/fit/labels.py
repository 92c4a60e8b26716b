"""Labelled runs as the fit sees them: their source, operator and scenario, with features and findings.

Weights of labels: scenarios count alike, modes as often as people see them, planted faults as chosen.

A scenario with a hundred planted faults is still one scenario, and a generator that plants one mode more often than
people meet it would teach the judge its own habits.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from mast_trace_judge.local.attribution.recorded import ALL_FEATURES, all_features
from mast_trace_judge.local.rules import find_modes
from mast_trace_judge.study.labelled import LabelledRun, same_agent
from mast_trace_judge.study.logit import LogitExample
from mast_trace_judge.study.numeric import numpy_module
from mast_trace_lab.inject.dataset import SOURCES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mast_trace.trajectory import Trajectory
    from mast_trace_judge.verdict import ModeFinding

PERSON: Final = "person"
REPLAY: Final = "replay"
INJECTION: Final = "injection"
"""Sources of labels: people, confirmed replays of real failures, planted faults."""
LEAST_UNITS: Final = 5
"""Number of tasks, or of original runs, below which a partition into folds would say little."""
COLUMNS: Final = {name: place for place, name in enumerate(ALL_FEATURES)}
"""Place of each feature in a label's rows."""

OF_INJECTED: Final = (0.0, 0.1, 0.3, 1.0)
"""Weights of planted faults beside people's labels that are tried."""
_SMALLEST: Final = 0.02
"""Prevalence that a mode has at least: people who label few runs miss the rare ones."""


@dataclass(frozen=True)
class Label:
    """A run whose decisive step is known.

    Attributes:
        run: the run with its label.
        source: one of `SOURCES`.
        operator: operator of `mast-trace inject` that planted the fault; empty for other sources.
        mode: its failure mode; empty for a fault of the environment and for other sources.
        scenario: runs of one task share it.
        origin: the original run; for other sources the run itself.
        example: the run as numbers, with all features of recorded runs.
        findings: findings of the rules.
    """

    run: LabelledRun
    source: str
    operator: str
    mode: str
    scenario: str
    origin: str
    example: LogitExample
    findings: tuple[ModeFinding, ...]

    @property
    def framework(self) -> str:
        """The framework of the run."""
        return self.run.trajectory.framework

    @property
    def trajectory(self) -> Trajectory:
        """The run without its outcome where it calls itself a success: the label says that it failed."""
        own = self.run.trajectory
        return replace(own, outcome="failure") if own.outcome == "success" else own


def source_of(run: LabelledRun) -> str:
    """Return the source of a label; people are the source of all that none of `SOURCES` is named for."""
    return run.subset if run.subset in SOURCES else PERSON


def labels_from(runs: Iterable[LabelledRun], sources: Iterable[str] = SOURCES) -> list[Label]:
    """Return the labels of these sources; runs without a label, or in which nobody acts, are left out.

    A planted fault of the environment has a step, and nobody to blame for it.
    """
    wanted = frozenset(sources)
    read = (_label(run) for run in runs if source_of(run) in wanted)
    return [label for label in read if label is not None]


def _label(run: LabelledRun) -> Label | None:
    actors, rows = all_features(run.trajectory)
    if not actors or (run.step is None and not run.agent):
        return None
    source = source_of(run)
    names = tuple(run.trajectory.steps[index].agent for index in actors)
    planted = source == INJECTION
    agent = run.agent or ("" if planted or run.step is None else _agent_at(run, run.step))
    blamed = tuple(i for i, other in enumerate(names) if agent and same_agent(other, agent))
    own = run.group or run.trajectory.trace_id
    task = " ".join(run.trajectory.task.split())
    scenario = own if source == PERSON else task or own
    origin = own if planted else f"{run.subset} {run.name}"
    return Label(
        run=run,
        source=source,
        operator=str(run.extra.get("operator", "")) if planted else "",
        mode=next((code for code, shown in run.modes.items() if shown), "") if planted else "",
        scenario=scenario,
        origin=origin,
        example=LogitExample(
            rows=numpy_module().array(rows, dtype=float),
            steps=tuple(actors),
            agents=names,
            gold=actors.index(run.step) if run.step in actors else None,
            blamed=blamed,
            group=scenario,
        ),
        findings=tuple(find_modes(replace(run.trajectory, outcome="failure"))),
    )


def _agent_at(run: LabelledRun, step: int) -> str:
    steps = run.trajectory.steps
    return steps[step].agent if step < len(steps) else ""


def units_of(labels: Sequence[Label]) -> tuple[list[str], str]:
    """Return the unit that no fold divides for each label, and its name.

    It is the task where there are `LEAST_UNITS` of them, else the original run; with a single original run
    nothing can be held out, and the name is ``none``.
    """
    if len({label.scenario for label in labels}) >= LEAST_UNITS:
        return [label.scenario for label in labels], "task"
    origins = [label.origin for label in labels]
    return origins, "run" if len(set(origins)) > 1 else "none"


def prevalence(labels: Sequence[Label]) -> dict[str, float]:
    """Return the share of each failure mode among those that people named; empty if they named none."""
    seen = Counter(
        code
        for label in labels
        if label.source == PERSON
        for code, shown in label.run.modes.items()
        if shown
    )
    total = sum(seen.values())
    return {code: count / total for code, count in seen.items()}


def weigh_labels(
    labels: Sequence[Label], of_injected: float, seen_by_people: Mapping[str, float]
) -> list[float]:
    """Return the weight of each label; those of a scenario add up to 1, for planted faults and others apart.

    Args:
        labels: of all sources.
        of_injected: weight of planted faults beside the other sources.
        seen_by_people: share of each mode among people's, to which planted faults are weighed; without it all
            operators count alike. Modes that people did not name, and faults of the environment, which
            have no mode, keep a small share.
    """
    counts = Counter(_kind(label, seen_by_people) for label in labels)
    raw = [
        1.0
        if label.source != INJECTION
        else _wanted(label, seen_by_people) / counts[_kind(label, seen_by_people)]
        for label in labels
    ]
    sizes: dict[tuple[str, bool], float] = defaultdict(float)
    for label, weight in zip(labels, raw, strict=True):
        sizes[_scenario(label)] += weight
    return [
        weight / sizes[_scenario(label)] * (of_injected if label.source == INJECTION else 1.0)
        for label, weight in zip(labels, raw, strict=True)
    ]


def _kind(label: Label, seen_by_people: Mapping[str, float]) -> str:
    """Return what a planted fault is counted by: its mode where people named modes, else its operator."""
    if label.source != INJECTION:
        return ""
    return f"mode {label.mode}" if seen_by_people else f"operator {label.operator}"


def _wanted(label: Label, seen_by_people: Mapping[str, float]) -> float:
    return max(seen_by_people.get(label.mode, 0.0), _SMALLEST) if seen_by_people else 1.0


def _scenario(label: Label) -> tuple[str, bool]:
    return label.scenario, label.source == INJECTION
