"""Joins the findings of the local layers and of the model: a model adds, and takes nothing away."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

from mast_trace.taxonomy import FAILURE_MODES
from mast_trace_judge.local.attribution import Attribution, summarise
from mast_trace_judge.local.outcome import RunOutcome
from mast_trace_judge.verdict import SHOWN_FROM, Evidence, ModeFinding

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mast_trace.trajectory import Trajectory
    from mast_trace_judge.llm.verification import ModelReading
    from mast_trace_judge.local.layers import LocalFindings

_MOST_ALONE = SHOWN_FROM - 0.01
"""The most that a model's finding counts for in a run that nothing else shows to have failed: it is possible."""


_HEARD = 0.3
"""Share of the likeliest step's probability that a suggested step has at least: in a run of hundreds of steps each has so
small a one that no factor would show it. The model's step does not come first by this share alone."""


def fuse_layers(
    trajectory: Trajectory, local: LocalFindings, reading: ModelReading
) -> LocalFindings:
    """Return the findings of both layers, as if one had made them.

    The outcome stays what the record says. A model cannot prove a success, and it cannot accuse alone: readers
    that are asked for errors find some in good runs as well.
    """
    failed = local.outcome.outcome == "failure"
    return dataclasses.replace(
        local,
        modes=_modes(local, reading, most=1.0 if failed else _MOST_ALONE),
        attribution=_attribution(trajectory, local.attribution, reading, failed=failed),
        outcome=_outcome(local.outcome, reading),
        examined=tuple(FAILURE_MODES),
    )


def _attribution(
    trajectory: Trajectory, ours: Attribution, reading: ModelReading, *, failed: bool
) -> Attribution:
    """Join both opinions of the steps; the local one stands where it asserts a step, or the model has none.

    In a failed run, a model whose first steps were right often enough on blind labels asserts this one.
    """
    weights = {each.step: each.weight for each in reading.suggestions}
    if ours.decisive is not None or not weights.keys() & ours.probabilities.keys():
        return ours
    rules = {candidate.step: candidate.rule for candidate in ours.candidates}
    for each in reading.suggestions:
        rules[each.step] = " ".join(filter(None, [rules.get(each.step), "The model suggests it."]))
    # The joined numbers order the steps; how often a model's are right is known of labelled runs alone.
    joined = pool(ours.probabilities, weights)
    asserted = joined.keys() & ({reading.asserted} if failed else ())
    for step in asserted:
        likeliest = max(joined, key=lambda each: joined[each])
        joined[step], joined[likeliest] = joined[likeliest], joined[step]
    return summarise(
        trajectory, joined, rules, profile=ours.profile, calibrated=False, shown=asserted
    )


def pool(probabilities: Mapping[int, float], weights: Mapping[int, float]) -> dict[int, float]:
    """Join a distribution over steps with a model's ranking: log p = log p_local + weight.

    The factor e for the model's first step gives more right first steps than it takes away, with a strong reader
    and with two 8B models (``benchmarks/judge/report.md``); a larger one follows the strong reader alone.

    Args:
        probabilities: the local ones, by step; empty if nobody acted, and then the result is empty.
        weights: of the steps that the model suggests: 1 for the first, a half for the second.
    """
    least = _HEARD * max(probabilities.values(), default=0.0)
    raised = {
        step: max(probability, least) * math.exp(weights[step]) if step in weights else probability
        for step, probability in probabilities.items()
    }
    total = sum(raised.values())
    return {step: value / total for step, value in raised.items()} if total else {}


def _outcome(known: RunOutcome, reading: ModelReading) -> RunOutcome:
    """Return the outcome that the run itself shows; a failure that a model quotes makes it likelier, not known."""
    if known.known or reading.outcome != "failure" or not reading.has_evidence:
        return known
    if reading.failure_probability <= known.failure_probability:
        return known
    return RunOutcome("unknown", round(reading.failure_probability, 4), "model")


def _modes(local: LocalFindings, reading: ModelReading, *, most: float) -> tuple[ModeFinding, ...]:
    """Return one finding for each mode: the rules' own remain, unless a model is surer than a heuristic."""
    by_code = {
        mode.code: mode.model_copy(update={"probability": min(mode.probability, most)})
        for mode in reading.modes
    }
    for mode in local.modes:
        other = by_code.get(mode.code)
        if other is None or mode.evidence is Evidence.EXACT or other.probability < mode.probability:
            by_code[mode.code] = mode
    return tuple(sorted(by_code.values(), key=lambda mode: (-mode.probability, mode.code)))
