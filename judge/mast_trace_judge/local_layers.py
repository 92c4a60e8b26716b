"""The layers that need no model: rules, local attribution, and what they say of the outcome."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mast_trace_judge.attribution import Attribution, attribute
from mast_trace_judge.outcome import RunOutcome, outcome_of, strongly_suspect
from mast_trace_judge.rules import find_modes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mast_trace.trajectory import Trajectory
    from mast_trace_judge.attribution.profile import Profile
    from mast_trace_judge.verdict import ModeFinding


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
    modes = find_modes(trajectory)
    return LocalFindings(
        modes=modes,
        attribution=attribute(trajectory, modes, profiles),
        outcome=outcome_of(trajectory, modes),
        suspect=strongly_suspect(modes),
    )
