"""Attribution of a failure to an agent and a step, without a language model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mast_trace_judge.local.attribution.calibration import ranked
from mast_trace_judge.local.attribution.cascade import cascade, inheritance, weigh
from mast_trace_judge.local.attribution.mode_votes import proven, reaching, votes
from mast_trace_judge.local.attribution.profile import Profile, choose_profile
from mast_trace_judge.verdict import Candidate, DecisiveError, ModeFinding

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from mast_trace.trajectory import Trajectory

UNTRAINED = "cascade"
"""Replaces a profile's name where none was used."""
NEVER = 1.0
"""The threshold of a profile that asserts nothing."""


@dataclass(frozen=True)
class Attribution:
    """A probability over the steps of a run.

    Attributes:
        probabilities: of each attributable step, by its index; they add up to 1.
        candidates: the three likeliest steps, likeliest first.
        decisive: the first candidate; None where the run succeeded or the judge abstains.
        calibrated: whether the probabilities were measured on runs like this one.
        profile: the trained profile that was used; ``cascade`` for none.
    """

    probabilities: Mapping[int, float] = field(default_factory=dict)
    candidates: tuple[Candidate, ...] = ()
    decisive: DecisiveError | None = None
    profile: str = UNTRAINED
    calibrated: bool = False


def attribute(
    trajectory: Trajectory,
    modes: Iterable[ModeFinding] = (),
    profiles: Sequence[Profile] = (),
) -> Attribution:
    """Name the step that decided the failure, as far as the run's structure and findings show it.

    A run whose outcome is a success has no decisive error, and a step that only passes on the final
    answer is none: its origin is.

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
    return conclude(trajectory, mass, reasons, modes, profile)


def conclude(
    trajectory: Trajectory,
    mass: Mapping[int, float],
    reasons: Mapping[int, str],
    modes: Iterable[ModeFinding],
    profile: Profile | None,
) -> Attribution:
    """Join a distribution over steps with the rules' findings, and say which step is decisive.

    Args:
        trajectory: a run that has not succeeded.
        mass: the probability of each attributable step.
        reasons: of each step.
        modes: the findings of the rules.
        profile: the profile that the distribution comes from; None for the untrained cascade.
    """
    found = list(modes)
    shown = proven(found, trajectory, mass)
    inherited = inheritance(trajectory, mass)
    mass, reasons = weigh(mass, reasons, inherited.moved(votes(found, trajectory, mass)))
    return summarise(
        trajectory,
        inherited.origin_first(mass, shown),
        reasons,
        profile=profile.name if profile else UNTRAINED,
        calibrated=profile is not None,
        # A profile whose hits were not counted asserts nothing.
        least=(profile.abstain_below if profile else 0.0) or NEVER,
        shown=reaching(found, trajectory, mass),
    )


def summarise(
    trajectory: Trajectory,
    probabilities: Mapping[int, float],
    reasons: Mapping[int, str],
    *,
    profile: str,
    calibrated: bool = True,
    least: float = NEVER,
    shown: Collection[int] = (),
) -> Attribution:
    """Turn a distribution over steps into an attribution; equal steps count as they are given.

    Args:
        trajectory: the run.
        probabilities: of its steps.
        reasons: of each step.
        profile: the trained profile behind them, or `UNTRAINED`.
        calibrated: whether the probabilities were measured on runs like this one.
        least: the probability from which the likeliest step is decisive, if so.
        shown: steps that are decisive whatever their probability, should one be the likeliest.
    """
    candidates = tuple(
        Candidate(
            step=step,
            agent=trajectory.steps[step].agent,
            probability=round(probabilities[step], 4),
            rule=reasons.get(step, ""),
        )
        for step in ranked(probabilities)[:3]
    )
    best = candidates[0] if candidates else None
    likely = best is not None and calibrated and least <= best.probability and least < NEVER
    return Attribution(
        probabilities=dict(probabilities),
        candidates=candidates,
        decisive=None
        if best is None or not (likely or best.step in shown)
        else DecisiveError(
            step=best.step,
            agent=best.agent,
            probability=best.probability,
            rule=best.rule,
            reason=best.rule,
        ),
        profile=profile,
        calibrated=calibrated and best is not None,
    )
