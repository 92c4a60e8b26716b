"""Brings together what the local layers and the model found."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

from mast_trace_judge.local.attribution import summarise
from mast_trace_judge.local.attribution.calibration import fused_calibration
from mast_trace_judge.local.outcome import RunOutcome, suspicion
from mast_trace_judge.verdict import Evidence, ModeFinding

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mast_trace.trajectory import Trajectory
    from mast_trace_judge.llm.verification import Flip, ModelReading
    from mast_trace_judge.local.layers import LocalFindings

_UNCONFIRMED = 0.5
"""What a heuristic finding is worth that the model, having read the run, does not report."""
_TRUSTED_HEURISTICS = {"1.3", "2.1"}
"""Modes whose text rules agree with people better than models do, so that a model's silence on
them says little."""
_WEIGHT = 1.5
"""How much a certain flip multiplies a step's odds by, as the exponent of e. A flip of 0.8 then says
as much as a model's naming of the step outright, whose exponent is fitted in `fusion`."""
_SHARE = 0.4
"""Weight of the model's own distribution beside the log-linear one, at a certain flip. In a run of
hundreds of steps each has so small a local probability that multiplying it changes nothing."""


def fuse_layers(
    trajectory: Trajectory, local: LocalFindings, reading: ModelReading
) -> LocalFindings:
    """Return the findings of both layers, as if one had made them."""
    modes = _modes(local.modes, reading.modes)
    profile = local.attribution.profile
    weights = {step: flip.weight for step, flip in reading.flips.items()}
    fused = pool(local.attribution.probabilities, weights)
    if any(weights.values()):
        fused = fused_calibration(profile).apply(fused)
    rules = {candidate.step: candidate.rule for candidate in local.attribution.candidates}
    rules |= {step: _rule(rules.get(step, ""), flip) for step, flip in reading.flips.items()}
    return dataclasses.replace(
        local,
        modes=modes,
        attribution=summarise(trajectory, fused, rules, profile=profile),
        outcome=_outcome(local, reading, modes),
    )


def _outcome(
    local: LocalFindings, reading: ModelReading, modes: Sequence[ModeFinding]
) -> RunOutcome:
    """What the run itself shows counts first; the model decides where that leaves it open.

    A pass is not taken from the model against exact findings: a text in the run may have won it
    over, and nobody would look again.
    """
    if local.outcome.known:
        return local.outcome
    if reading.outcome == "failure":
        return RunOutcome("failure", reading.failure_probability, "model")
    if reading.outcome == "success" and not local.suspect:
        return RunOutcome("success", reading.failure_probability, "model")
    return RunOutcome("unknown", suspicion(modes))


def _modes(ruled: Sequence[ModeFinding], read: Sequence[ModeFinding]) -> tuple[ModeFinding, ...]:
    """One finding for each mode: exact ones stand, a model's is raised by a heuristic one."""
    by_code = {mode.code: mode for mode in read}
    for mode in ruled:
        other = by_code.get(mode.code)
        if mode.evidence is Evidence.EXACT:
            by_code[mode.code] = mode
        elif other is not None:
            both = 1.0 - (1.0 - other.probability) * (1.0 - _UNCONFIRMED * mode.probability)
            by_code[mode.code] = other.model_copy(update={"probability": round(both, 4)})
        elif mode.code in _TRUSTED_HEURISTICS:
            by_code[mode.code] = mode
        else:
            halved = round(_UNCONFIRMED * mode.probability, 4)
            by_code[mode.code] = mode.model_copy(update={"probability": halved})
    return tuple(sorted(by_code.values(), key=lambda mode: (-mode.probability, mode.code)))


def pool(probabilities: Mapping[int, float], flips: Mapping[int, float]) -> dict[int, float]:
    """Pool both opinions: log p = log p_local + weight x flip, mixed with the flips themselves.

    Args:
        probabilities: the local ones, by step; empty if nobody acted, and then so is the result.
        flips: how likely each step's correction would have saved the run, for the steps tried.
    """
    weights = {step: flip for step, flip in flips.items() if step in probabilities}
    raised = {
        step: probability * math.exp(_WEIGHT * weights.get(step, 0.0))
        for step, probability in probabilities.items()
    }
    total, tried = sum(raised.values()), sum(weights.values())
    if not total:
        return {}
    share = _SHARE * max(weights.values(), default=0.0)
    return {
        step: (1.0 - share) * value / total
        + (share * weights.get(step, 0.0) / tried if tried else 0.0)
        for step, value in raised.items()
    }


def _rule(rule: str, flip: Flip) -> str:
    said = "By the model's reading its correction would have saved the run."
    return " ".join(part for part in (rule, said if flip.weight >= 0.5 else "") if part)
