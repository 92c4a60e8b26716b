"""Fusion of the findings of the local layers and of the model."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

from mast_trace.taxonomy import FAILURE_MODES
from mast_trace_judge.local.attribution import summarise
from mast_trace_judge.local.attribution.calibration import fused_calibration
from mast_trace_judge.local.layers import without_made_up_spans
from mast_trace_judge.local.outcome import RunOutcome, suspicion
from mast_trace_judge.local.rules import find_modes
from mast_trace_judge.verdict import Evidence, ModeFinding

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mast_trace.trajectory import Trajectory
    from mast_trace_judge.llm.verification import Flip, ModelReading
    from mast_trace_judge.local.attribution import Attribution
    from mast_trace_judge.local.layers import LocalFindings

_UNCONFIRMED = 0.5
"""Factor for a heuristic finding that the model, having read the run, does not report."""
_TRUSTED_HEURISTICS = {"1.3", "2.1"}
"""Modes whose text rules agree with people better than models do, so that a model's silence on them
means little.
"""
_WEIGHT = 1.5
"""Exponent of e by which a certain flip multiplies a step's odds. A flip of 0.8 then counts as much
as a model's naming of the step outright, whose exponent is fitted in `opinions`.
"""
_SHOWN_FROM = 0.25
"""Joined probability from which a step is decisive if the model quotes an error in it."""
_LIKELY = 0.5
"""Weight of a flip from which the correction would more likely than not have saved the run."""
_TRUST = 0.8
"""Weight of a model's reading of an outcome that nobody recorded; the remainder is the rules'."""
_SHARE = 0.4
"""Weight of the model's own distribution beside the log-linear one, at a certain flip. In a run of
hundreds of steps each has so small a local probability that multiplying it changes nothing."""


def fuse_layers(
    trajectory: Trajectory, local: LocalFindings, reading: ModelReading
) -> LocalFindings:
    """Return the findings of both layers, as if one had made them."""
    modes = _modes(local.modes, reading)
    outcome = _outcome(local, reading, modes)
    if outcome.outcome == "failure" and not local.outcome.known:
        # Rules that explain failures are applied now that there is a failure to explain.
        failed = dataclasses.replace(without_made_up_spans(trajectory), outcome="failure")
        modes = _modes(find_modes(failed), reading)
    return dataclasses.replace(
        local,
        modes=modes,
        attribution=_attribution(trajectory, local, reading),
        outcome=outcome,
        examined=tuple(FAILURE_MODES),
    )


def _attribution(
    trajectory: Trajectory, local: LocalFindings, reading: ModelReading
) -> Attribution:
    """Join both opinions of the steps; the local one stands where the model has none."""
    ours, grounded = local.attribution, reading.grounded
    weights = {step: reading.weight(step) for step in reading.flips}
    if not any(weights.values()):
        return ours
    fused = fused_calibration(ours.profile).apply(pool(ours.probabilities, weights))
    rules = {candidate.step: candidate.rule for candidate in ours.candidates}
    rules |= {step: _rule(rules.get(step, ""), flip) for step, flip in reading.flips.items()}
    shown = {ours.decisive.step} if ours.decisive else set()
    shown |= {
        step
        for step in grounded & fused.keys()
        if reading.is_shared(step)
        and (
            weights.get(step, 0.0) >= _LIKELY or (weights.get(step) and fused[step] >= _SHOWN_FROM)
        )
    }
    found = summarise(
        trajectory,
        fused,
        rules,
        profile=ours.profile,
        calibrated=ours.calibrated,
        shown=shown,
    )
    # The joined numbers order the steps; how often a model's are right is known of labelled runs alone.
    return dataclasses.replace(found, calibrated=False)


def _outcome(
    local: LocalFindings, reading: ModelReading, modes: Sequence[ModeFinding]
) -> RunOutcome:
    """Return the outcome that the run itself shows; if it shows none, a failure that the model quotes.

    A success is never taken from a model: no quote proves it, a text in the run may have influenced
    the model, and nobody would check again. It lowers the probability of a failure, unless exact
    findings or a text that addresses the judge contradict it.
    """
    if local.outcome.known:
        return local.outcome
    if reading.outcome == "failure" and reading.has_evidence:
        return RunOutcome("failure", reading.failure_probability, "model")
    doubt = suspicion(modes)
    if reading.outcome == "success" and not local.suspect and not reading.addressed:
        joined = _TRUST * reading.failure_probability + (1.0 - _TRUST) * doubt
        return RunOutcome("unknown", round(joined, 4), "model")
    return RunOutcome("unknown", doubt)


def _modes(ruled: Sequence[ModeFinding], reading: ModelReading) -> tuple[ModeFinding, ...]:
    """Return one finding for each mode: exact ones remain, a heuristic one raises a model's.

    Silence counts only from a model that has quoted an error; otherwise it may not have read the
    run, or may have been instructed not to.
    """
    silence_counts = reading.has_evidence and not reading.addressed
    by_code = {mode.code: mode for mode in reading.modes}
    for mode in ruled:
        other = by_code.get(mode.code)
        if mode.evidence is Evidence.EXACT:
            by_code[mode.code] = mode
        elif other is not None:
            both = 1.0 - (1.0 - other.probability) * (1.0 - _UNCONFIRMED * mode.probability)
            by_code[mode.code] = other.model_copy(update={"probability": round(both, 4)})
        elif mode.code in _TRUSTED_HEURISTICS or not silence_counts:
            by_code[mode.code] = mode
        else:
            halved = round(_UNCONFIRMED * mode.probability, 4)
            by_code[mode.code] = mode.model_copy(update={"probability": halved})
    return tuple(sorted(by_code.values(), key=lambda mode: (-mode.probability, mode.code)))


def pool(probabilities: Mapping[int, float], flips: Mapping[int, float]) -> dict[int, float]:
    """Pool both opinions: log p = log p_local + weight x flip, mixed with the flips themselves.

    Args:
        probabilities: the local ones, by step; empty if nobody acted, and then the result is empty.
        flips: probability that a step's correction would have saved the run, for the steps tried.
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
    return " ".join(part for part in (rule, said if flip.weight >= _LIKELY else "") if part)
