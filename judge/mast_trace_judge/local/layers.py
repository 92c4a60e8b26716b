"""The layers without a language model: rules, local attribution, and the outcome."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mast_trace_judge.local.addressing import Addressed, addressed_in
from mast_trace_judge.local.attribution import Attribution, attribute
from mast_trace_judge.local.outcome import RunOutcome, outcome_of, strongly_suspect
from mast_trace_judge.local.rules import examined_modes, find_modes, findings_by_rule

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mast_trace.trajectory import Trajectory
    from mast_trace_judge.local.attribution.profile import Profile
    from mast_trace_judge.local.contrast import FirstDifference
    from mast_trace_judge.plugins import OwnRule
    from mast_trace_judge.verdict import ModeFinding


TRANSCRIPTS = "import"
"""Service of runs that were imported as texts: their spans are synthetic, and prove nothing."""


@dataclass(frozen=True)
class LocalFindings:
    """The findings of rules and local attribution on a run.

    Attributes:
        modes: the failure modes that rules found.
        attribution: of the failure to a step.
        outcome: of the run.
        suspect: whether a finding is certain enough to seek a decisive step in any case.
        examined: codes of the failure modes that were looked for.
        addressed: where the run speaks to its judge.
        by_rule: the finding of each rule, with its name.
        contrast: the first difference from good runs of the program, where it was sought and tells anything.
    """

    modes: tuple[ModeFinding, ...]
    attribution: Attribution
    outcome: RunOutcome
    suspect: bool
    examined: tuple[str, ...] = ()
    addressed: Addressed = field(default_factory=Addressed)
    by_rule: tuple[tuple[str, ModeFinding], ...] = field(default=(), repr=False)
    contrast: FirstDifference | None = None

    @property
    def names_a_step(self) -> bool:
        """True if the verdict names a decisive step: the run failed, or probably did."""
        outcome = self.outcome.outcome
        sought = outcome == "failure" or (self.suspect and outcome != "success")
        return sought and self.attribution.decisive is not None


def judge_by_rules(
    trajectory: Trajectory, profiles: Sequence[Profile] = (), rules: Sequence[OwnRule] | None = None
) -> LocalFindings:
    """Apply the local layers.

    Args:
        trajectory: the run.
        profiles: the user's own, tried before the shipped ones.
        rules: the user's own, beside the judge's; those of plugins if not given.
    """
    trajectory = without_made_up_spans(trajectory)
    found = findings_by_rule(trajectory, rules)
    modes = find_modes(trajectory, found)
    return LocalFindings(
        modes=modes,
        by_rule=found,
        attribution=attribute(trajectory, modes, profiles),
        outcome=outcome_of(trajectory, modes),
        suspect=strongly_suspect(modes),
        examined=examined_modes(trajectory, rules),
        addressed=addressed_in(trajectory),
    )


def without_made_up_spans(trajectory: Trajectory) -> Trajectory:
    """Return an imported transcript as such; other runs unchanged."""
    if trajectory.service != TRANSCRIPTS:
        return trajectory
    steps = tuple(dataclasses.replace(step, span_id="") for step in trajectory.steps)
    return dataclasses.replace(trajectory, steps=steps)
