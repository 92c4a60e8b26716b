"""Limits of an experiment, and the trials that it asks for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mast_trace_judge.arms import ReplayArm


@dataclass(frozen=True)
class ExperimentLimits:
    """Sizes of an experiment.

    `max_calls`, `max_cost_usd` and `pair_runs` only end an experiment: it may be continued with larger
    ones. The others are part of its plan: stored results fit only the same values.

    Attributes:
        verifications: replays that change nothing, before all others.
        scores: times that the oracle is asked about the recorded answer; 0 leaves that out.
        start_runs: replays of the whole program with which the search begins.
        screening_runs: replays for the search, those of the start included.
        search_calls: live model calls after which the search ends; None for no limit.
        batch: replays that are planned together, so that they may run at the same time.
        pair_runs: replays for the proof, two a pair. A joint fix, and fixes of a program that fails from
            the start, may use besides what the search has left.
        pairs: pairs for one fix at one step.
        steps: steps at which fixes are tried.
        joint: tries the fixes of the examined steps together where no single one ever helped.
        max_calls: live model calls in all; None for no limit.
        max_cost_usd: cost of live calls in all; None for no limit.
    """

    verifications: int = 1
    scores: int = 5
    start_runs: int = 4
    screening_runs: int = 64
    search_calls: int | None = None
    batch: int = 2
    pair_runs: int = 40
    pairs: int = 20
    steps: int = 3
    joint: bool = True
    max_calls: int | None = None
    max_cost_usd: float | None = None

    def __post_init__(self) -> None:
        """Refuse sizes with which an experiment would never end.

        Raises:
            ValueError: a size is negative, or a batch has no replay.
        """
        sizes = (self.verifications, self.scores, self.start_runs, self.screening_runs)
        if min(*sizes, self.pair_runs, self.pairs, self.steps) < 0 or self.batch < 1:
            raise ValueError(
                f"sizes of an experiment are not negative, and a batch has a replay: {self}"
            )


@dataclass(frozen=True)
class ReplayTrial:
    """One replay that an experiment asks for.

    Attributes:
        arm: its arm.
        phase: ``verify``, ``score``, ``start``, ``screening`` or ``pairs``.
        pair: number of the pair, from 0 over the whole experiment; -1 outside of ``pairs``.
        calls: live model calls that it is expected to make.
        longest: live model calls of a program that begins its work again, which count as expected where it is ended;
            0 for ``calls``.
    """

    arm: ReplayArm
    phase: str
    pair: int = -1
    calls: int = 0
    longest: int = 0


class ResultMismatch(ValueError):
    """A told result does not belong to the trial that the experiment asks for."""
