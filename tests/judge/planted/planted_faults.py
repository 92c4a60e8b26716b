"""Faults that scripted agents commit on every framework, and what must be found of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mast_trace_judge.attribution import attribute
from mast_trace_judge.rules import find_modes
from mast_trace_judge.verdict import Evidence, ModeFinding

if TYPE_CHECKING:
    from mast_trace.trajectory import Step, Trajectory

STOCK = "Stock of item 7: 4711 pieces"
"""What the tool `stock_level` returns in every program."""
FAILED_TEST = "the total is wrong"
"""What the tool `run_tests` raises in every program."""


def exact(trajectory: Trajectory) -> dict[str, ModeFinding]:
    """Return the exact findings by mode, after checking that each shows its evidence."""
    modes = find_modes(trajectory)
    for mode in modes:
        texts = [trajectory.steps[step].text for step in mode.steps]
        assert all(any(quote in text for text in texts) for quote in mode.quotes)
    return {mode.code: mode for mode in modes if mode.evidence is Evidence.EXACT}


def tools_of(trajectory: Trajectory, mode: ModeFinding) -> list[str]:
    """Return the tools of the steps that a finding names."""
    return [trajectory.steps[step].tool for step in mode.steps]


def blamed(trajectory: Trajectory) -> Step:
    """Return the decisive step."""
    found = attribute(trajectory, find_modes(trajectory))
    assert found.decisive is not None
    return trajectory.steps[found.decisive.step]
