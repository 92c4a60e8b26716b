"""The layers that need no model: rules, local attribution, and what they say of the outcome."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mast_trace_judge.local.attribution import Attribution, attribute
from mast_trace_judge.local.outcome import RunOutcome, outcome_of, strongly_suspect
from mast_trace_judge.local.rules import find_modes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mast_trace.trajectory import Trajectory
    from mast_trace_judge.local.attribution.profile import Profile
    from mast_trace_judge.verdict import ModeFinding


TRANSCRIPTS = "import"
"""Service of runs that were imported as texts: their spans were made up, and prove nothing."""


@dataclass(frozen=True)
class LocalFindings:
    """What rules and local attribution say of a run.

    Attributes:
        modes: the failure modes that rules found.
        attribution: which step decided the failure.
        outcome: how the run ended.
        suspect: a finding is certain enough to look for a decisive step in any case.
    """

    modes: tuple[ModeFinding, ...]
    attribution: Attribution
    outcome: RunOutcome
    suspect: bool


def judge_by_rules(trajectory: Trajectory, profiles: Sequence[Profile] = ()) -> LocalFindings:
    """Apply the local layers.

    Args:
        trajectory: the run.
        profiles: the user's own, tried before the shipped ones.
    """
    trajectory = _without_made_up_spans(trajectory)
    modes = find_modes(trajectory)
    return LocalFindings(
        modes=modes,
        attribution=attribute(trajectory, modes, profiles),
        outcome=outcome_of(trajectory, modes),
        suspect=strongly_suspect(modes),
    )


def _without_made_up_spans(trajectory: Trajectory) -> Trajectory:
    """Return an imported transcript as what it is; other runs as they are."""
    if trajectory.service != TRANSCRIPTS:
        return trajectory
    steps = tuple(dataclasses.replace(step, span_id="") for step in trajectory.steps)
    return dataclasses.replace(trajectory, steps=steps)
