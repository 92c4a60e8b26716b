"""The plan of an experiment: what is fixed before the first outcome is seen."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from mast_trace.experiment.assignment import ARMS, FEEDBACK, HASH, NONE, PAIRS, PLACEBO
from mast_trace_lab.feedback.statistics.size import Size, planned_size

THRESHOLD: Final = 20.0
"""The e-value from which one contrast counts as decided: it is reached falsely in at most 5 %."""


@dataclass(frozen=True)
class Plan:
    """An experiment's plan.

    Attributes:
        name: of the experiment.
        arms: as the program gives them to `mast_trace.assign`; the first is the control.
        design: ``hash`` or ``pairs``.
        repeats: runs of a task in an arm that count; a task counts when they have outcomes.
        baseline: expected success rate of the control; None where none was given.
        effect: difference to be found.
        workflow: name of the workflow whose runs teach the frozen lessons; empty for all.
        version: of the frozen lessons; empty if there are none.
        late: number of runs that had been recorded before the plan was made.
    """

    name: str
    arms: tuple[str, ...] = ARMS
    design: str = HASH
    repeats: int = 1
    baseline: float | None = None
    effect: float = 0.1
    workflow: str = ""
    version: str = field(default="")
    late: int = 0

    def __post_init__(self) -> None:
        """Refuse plans that cannot be carried out.

        Raises:
            ValueError: fewer than two arms, an arm twice, an unknown design or a wrong number.
        """
        if len(self.arms) < 2 or len(set(self.arms)) != len(self.arms) or not all(self.arms):
            raise ValueError("an experiment needs two or more different arms")
        if self.design not in (HASH, PAIRS):
            raise ValueError(f"a design is {HASH!r} or {PAIRS!r}, not {self.design!r}")
        if not 1 <= self.repeats <= 1000:
            raise ValueError("the runs of a task in an arm are 1 to 1000")
        if self.baseline is not None:
            self.size()

    @property
    def paired(self) -> bool:
        """True if each task goes through all arms."""
        return self.design == PAIRS

    @property
    def contrasts(self) -> tuple[tuple[str, str], ...]:
        """Pairs of treatment and control, in the order in which they may be decided."""
        if set(self.arms) == set(ARMS):
            return (FEEDBACK, PLACEBO), (FEEDBACK, NONE)
        return tuple((arm, self.arms[0]) for arm in self.arms[1:])

    @property
    def in_order(self) -> bool:
        """True if a contrast is decided only after those before it; otherwise they share the level."""
        return set(self.arms) == set(ARMS)

    @property
    def threshold(self) -> float:
        """The e-value from which a contrast counts as decided."""
        return THRESHOLD if self.in_order else THRESHOLD * len(self.contrasts)

    def size(self, baseline: float | None = None) -> Size:
        """Return the number of tasks that the plan needs; a baseline of .6 is taken without one.

        Raises:
            ValueError: baseline and effect are no two rates between 0 and 1.
        """
        rate = self.baseline if baseline is None else baseline
        return planned_size(
            0.6 if rate is None else rate,
            self.effect,
            arms=len(self.arms),
            pairs=self.paired,
            repeats=self.repeats,
            threshold=self.threshold,
        )
