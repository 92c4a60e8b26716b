"""The outcome of a run: whether it completed its task."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from mast_trace.semconv import Termination
from mast_trace_judge.verdict import Evidence, ModeFinding

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mast_trace.trajectory import Trajectory
    from mast_trace_collector.storage.runs import RunSummary

Outcome = Literal["success", "failure", "unknown"]

_STOPPED_BY_PEOPLE = {Termination.INTERRUPTED, Termination.CANCELLED, Termination.USER_ENDED}
_BROKEN_OFF = {
    Termination.ERROR,
    Termination.RECURSION_LIMIT,
    Termination.BUDGET,
    Termination.TIME_LIMIT,
}
_FAILING = {"3.1", "3.3"}
"""Modes that, shown exactly, imply that the result is missing or wrong. The others occur in
successful runs as well: nine in ten repetitions of one model were in successful runs.
"""
_WRONG = _FAILING | {"2.6"}
_CERTAIN = 0.7
_BASE_RATE = 0.2
_WEIGHTS = {Evidence.EXACT: 0.8, Evidence.MODEL: 0.8, Evidence.HEURISTIC: 0.35}


@dataclass(frozen=True)
class RunOutcome:
    """The outcome of a run with its source.

    Attributes:
        outcome: ``unknown`` without evidence.
        failure_probability: from 0 to 1.
        source: ``recorded``, ``error``, ``termination``, ``rules``, ``model`` or empty.
    """

    outcome: Outcome
    failure_probability: float
    source: str = ""

    @property
    def known(self) -> bool:
        """True if there is evidence for the outcome."""
        return self.outcome != "unknown"


def with_said_outcome(run: RunSummary, trajectory: Trajectory) -> Trajectory:
    """Return a run's trajectory with the outcome that was recorded last, if any."""
    if not run.outcome:
        return trajectory
    return replace(trajectory, outcome=run.outcome, outcome_reason=run.outcome_reason)


def outcome_of(trajectory: Trajectory, modes: Sequence[ModeFinding]) -> RunOutcome:
    """Decide without a model: a recorded outcome counts first, then the end of the run, then rules."""
    recorded = recorded_outcome(trajectory)
    if recorded is not None:
        return recorded
    if trajectory.termination_reason in _STOPPED_BY_PEOPLE:
        return RunOutcome("unknown", suspicion(modes))
    return _by_rules(modes)


def recorded_outcome(trajectory: Trajectory) -> RunOutcome | None:
    """Return the recorded outcome of the run, or that of its root span; None if there is neither."""
    if trajectory.outcome == "success":
        return RunOutcome("success", 0.0, "recorded")
    if trajectory.outcome == "failure":
        return RunOutcome("failure", 1.0, "recorded")
    if trajectory.termination_reason not in _STOPPED_BY_PEOPLE:
        if trajectory.error is not None:
            return RunOutcome("failure", 0.97, "error")
        if trajectory.termination_reason in _BROKEN_OFF:
            return RunOutcome("failure", 0.95, "termination")
    return None


def _by_rules(modes: Sequence[ModeFinding]) -> RunOutcome:
    decided = [
        mode.probability
        for mode in modes
        if mode.code in _FAILING
        and mode.evidence is Evidence.EXACT
        and mode.probability >= _CERTAIN
    ]
    if decided:
        return RunOutcome("failure", max(decided), "rules")
    return RunOutcome("unknown", suspicion(modes))


def suspicion(modes: Sequence[ModeFinding]) -> float:
    """Return the failure probability of a run with unknown outcome, from its failure modes alone."""
    fine = 1.0 - _BASE_RATE
    for mode in modes:
        fine *= 1.0 - _WEIGHTS[mode.evidence] * mode.probability
    return round(1.0 - fine, 4)


def strongly_suspect(modes: Sequence[ModeFinding]) -> bool:
    """Return whether a finding names a decisive step in a run of unknown outcome.

    It does if it is exact, of a mode that makes the result wrong. Repetition and lost context are
    facts, too, but agents recover from them.
    """
    return any(
        mode.code in _WRONG and mode.evidence is Evidence.EXACT and mode.probability >= _CERTAIN
        for mode in modes
    )
