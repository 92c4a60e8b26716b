"""Which agent and which step decided a failure, without a model of language."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mast_trace_judge.local.attribution.cascade import cascade, weigh
from mast_trace_judge.local.attribution.mode_votes import votes
from mast_trace_judge.local.attribution.profile import Profile, choose_profile
from mast_trace_judge.verdict import Candidate, DecisiveError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mast_trace.trajectory import Trajectory
    from mast_trace_judge.verdict import ModeFinding

UNTRAINED = "cascade"
"""Stands in for a profile's name where none was used."""
ABSTAIN_BELOW = 0.25
"""Below this probability the best candidate is a hint, not a verdict."""


@dataclass(frozen=True)
class Attribution:
    """A probability over the steps of a run.

    Attributes:
        probabilities: of each step that somebody can answer for, by its index; they add up to 1.
        agents: the sum over each agent's steps.
        candidates: the three likeliest steps, likeliest first.
        decisive: the first candidate; None where the run succeeded or the judge abstains.
        abstained: the first candidate is below `ABSTAIN_BELOW`, or there is none.
        rule: what speaks for the first candidate.
        profile: the trained profile that was used; ``cascade`` for none.
    """

    probabilities: Mapping[int, float] = field(default_factory=dict)
    agents: Mapping[str, float] = field(default_factory=dict)
    candidates: tuple[Candidate, ...] = ()
    decisive: DecisiveError | None = None
    abstained: bool = True
    rule: str = ""
    profile: str = UNTRAINED


def attribute(
    trajectory: Trajectory,
    modes: Iterable[ModeFinding] = (),
    profiles: Sequence[Profile] = (),
) -> Attribution:
    """Say which step decided the failure, as far as the run's structure and findings tell.

    A run whose outcome is a success has no decisive error.

    Args:
        trajectory: the run.
        modes: the findings of the rules; exact ones weigh most.
        profiles: the user's own, tried before the shipped ones; without a profile that is meant
            for such runs, the untrained cascade decides.
    """
    if trajectory.outcome == "success":
        return Attribution()
    profile = choose_profile(trajectory, profiles)
    mass, reasons = profile.distribution(trajectory) if profile else cascade(trajectory)
    mass, reasons = weigh(mass, reasons, votes(modes, trajectory, mass))
    return summarise(trajectory, mass, reasons, profile=profile.name if profile else UNTRAINED)


def summarise(
    trajectory: Trajectory,
    probabilities: Mapping[int, float],
    reasons: Mapping[int, str],
    *,
    profile: str,
) -> Attribution:
    """Turn a distribution over steps into an attribution; equal steps count from the first on."""
    agents: dict[str, float] = defaultdict(float)
    for step, probability in probabilities.items():
        agents[trajectory.steps[step].agent] += probability
    ranked = sorted(probabilities, key=lambda step: (-probabilities[step], step))[:3]
    candidates = tuple(
        Candidate(
            step=step,
            agent=trajectory.steps[step].agent,
            probability=round(probabilities[step], 4),
            rule=reasons.get(step, ""),
        )
        for step in ranked
    )
    abstained = not candidates or candidates[0].probability < ABSTAIN_BELOW
    best = candidates[0] if candidates else None
    return Attribution(
        probabilities=dict(probabilities),
        agents=dict(sorted(agents.items(), key=lambda item: -item[1])),
        candidates=candidates,
        decisive=None
        if best is None or abstained
        else DecisiveError(
            step=best.step,
            agent=best.agent,
            probability=best.probability,
            rule=best.rule,
            reason=best.rule,
        ),
        abstained=abstained,
        rule=best.rule if best else "",
        profile=profile,
    )
