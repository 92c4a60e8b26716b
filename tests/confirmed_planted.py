"""Confirms a planted error as `mast-trace confirm` does: the same experiment, replayed in this process.

The models make no errors at random, so that the search needs fewer replays.
"""

from __future__ import annotations

import importlib
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from mast_trace_lab.confirm.fixes import Sources, planned_fixes
from mast_trace_lab.confirm.preparation import check, verify
from mast_trace_lab.confirm.statistics import Experiment, ExperimentLimits
from mast_trace_lab.program.budget import ReplayAllowance
from mast_trace_lab.program.conducting import not_isolated
from mast_trace_lab.program.setup import Setup
from mast_trace_lab.replay.arm_runner import executing

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import stock
    from interventions import Failure, Stage

    from mast_trace.trajectory import Trajectory
    from mast_trace_judge.confirmation import Confirmation
    from mast_trace_judge.decision_points import DecisionPoint

    Confirm = Callable[[Trajectory, tuple[DecisionPoint, ...], Setup], Confirmation]

_BENCHMARK = Path(__file__).parents[1] / "benchmarks" / "replay"
_ENOUGH = ReplayAllowance(100, None)
LIMITS = replace(ExperimentLimits(), verifications=1, scores=0, start_runs=2, screening_runs=6)
"""Sizes of the experiments."""


def check_confirmed(
    stage: Stage,
    error: stock.Error,
    confirm: Confirm | None = None,
    frameworks: Sequence[str] | None = None,
) -> None:
    """Assert that a planted error is proved by asking the model again, and that it is the earliest step.

    Args:
        stage: the team.
        error: the planted error, of which the model of the replays is cured.
        confirm: runs the experiment; without a store by default.
        frameworks: those to record; all that are installed if absent.
    """
    failure = stage.record(error)
    planted = failure.points[failure.planted]
    setup = setup_of(stage, frameworks)
    points = check(failure.run, setup)
    told = (confirm or confirmed)(failure.run, points, setup)
    assert told.status == "confirmed", told.text
    assert (told.origin, told.origin_agent) == (planted.step, error.agent)
    assert told.point_of_no_return in {None, planted.step}
    assert "behaved alike" in told.text
    _check_curve(told, failure)


def setup_of(stage: Stage, frameworks: Sequence[str] | None = None) -> Setup:
    """Return the setup in which a stage's program is replayed in this process.

    All tools may be executed: a corrected choice calls one with other arguments. They change nothing.
    """
    sys.path.append(str(_BENCHMARK))
    try:
        module = importlib.import_module("in_process")
    finally:
        sys.path.remove(str(_BENCHMARK))
    parent = module.InProcess(stage.program, frameworks)
    return Setup(("in this process",), parent=parent, live_tools=("*",), reset=("true",))


def confirmed(
    recorded: Trajectory, points: tuple[DecisionPoint, ...], setup: Setup
) -> Confirmation:
    """Verify, plan and run the experiment of a run to its end; nothing is stored."""
    verify(recorded, setup)
    fixes, refused = planned_fixes(recorded, points, Sources(person={}, resample=setup.resample))
    assert refused == ()
    experiment = Experiment(points, prior={}, sources=fixes, limits=LIMITS, seed=1)
    execute = executing(recorded, setup)
    while trial := experiment.ask():
        done = replace(execute(trial, _ENOUGH), phase=trial.phase, pair=trial.pair)
        assert not_isolated(recorded, done, setup) == ""
        experiment.tell(done)
    return experiment.conclusion()


def _check_curve(told: Confirmation, failure: Failure) -> None:
    """Assert that all replays succeed which keep less than the error, and that no other one does."""
    planted = failure.points[failure.planted].step
    for each in told.curve:
        assert each.runs > 0
        assert each.successes == (each.runs if each.step < planted else 0), each
    assert not any(each.censored for each in told.contrasts)
