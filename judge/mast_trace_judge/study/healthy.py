"""False accusations: verdicts on healthy runs, in every shape in which they may be recorded.

Their outcome is withheld, because most runs of users are healthy and have no recorded outcome.
Modes that people labelled do not count, for a run may reach its goal and show them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mast_trace_judge.local.layers import judge_by_rules
from mast_trace_judge.study.datasets.agent_loops import read_agent_loops
from mast_trace_judge.study.datasets.mast import read_ag2_coding, read_mast_v0, read_mathchat
from mast_trace_judge.study.datasets.tau_retail import read_tau_retail
from mast_trace_judge.study.shapes import SHAPES
from mast_trace_judge.verdict import SHOWN_FROM, Evidence

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from mast_trace_judge.study.datasets.labelled import LabelledRun


@dataclass(frozen=True)
class HealthyRates:
    """Counts of a set's healthy runs that are accused, in one shape.

    Attributes:
        subset: the set.
        shape: of `SHAPES`.
        runs: in the set.
        possible: runs with any mode.
        shown: runs with a mode from `SHOWN_FROM` on.
        exact: runs with an exact finding.
        decisive: runs in which a step is called decisive.
    """

    subset: str
    shape: str
    runs: int
    possible: int
    shown: int
    exact: int
    decisive: int


def healthy_runs(data: Path) -> dict[str, list[LabelledRun]]:
    """Read the healthy runs of every set that the folder holds.

    Some of the loops without a fault and with unknown outcome fail by themselves: they are a set of
    their own.
    """
    found: dict[str, list[LabelledRun]] = {}
    if (data / "tau-retail").is_dir():
        found["tau-retail, succeeded"] = [run for run in read_tau_retail(data) if run.success]
    if (data / "agent-loops").is_dir():
        loops = [run for run in read_agent_loops(data) if not run.extra["fault"]]
        found["agent-loops, succeeded"] = [run for run in loops if run.success]
        found["agent-loops, undisturbed"] = [run for run in loops if run.success is None]
    if (data / "ag2-mathchat").is_dir():
        found["ag2-mathchat, correct"] = [run for run in read_mathchat(data) if run.success]
    if (data / "mast-v0").is_dir():
        found["mast-v0, solved"] = [run for run in read_mast_v0(data) if run.success]
    if (data / "ag2-coding").is_dir():
        coding = read_ag2_coding(data)
        found["ag2-coding, no mode"] = [run for run in coding if not any(run.modes.values())]
    return found


def accused(sets: Mapping[str, Sequence[LabelledRun]]) -> list[HealthyRates]:
    """Judge every run without its outcome, in every shape, and count accusations."""
    return [
        _rates(subset, shape, runs) for subset, runs in sets.items() for shape in SHAPES if runs
    ]


def _rates(subset: str, shape: str, runs: Sequence[LabelledRun]) -> HealthyRates:
    possible = shown = exact = decisive = 0
    for run in runs:
        trajectory = SHAPES[shape](replace(run.trajectory, outcome="", outcome_reason=""))
        found = judge_by_rules(trajectory)
        modes = [mode for mode in found.modes if not run.modes.get(mode.code)]
        possible += bool(modes)
        shown += any(mode.probability >= SHOWN_FROM for mode in modes)
        exact += any(mode.evidence is Evidence.EXACT for mode in modes)
        decisive += found.names_a_step
    return HealthyRates(subset, shape, len(runs), possible, shown, exact, decisive)
