"""Failure modes that spans and texts show without a model.

Every rule is a pure function from a run to its findings. Those tagged `Evidence.EXACT` follow from
ids, arguments, results and states; the others read texts. Modes are those of MAST (arXiv
2503.13657).
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from typing import TYPE_CHECKING, Final

import mast_trace_judge.local.rules.approval
import mast_trace_judge.local.rules.calculation
import mast_trace_judge.local.rules.choice
import mast_trace_judge.local.rules.claimed_checks
import mast_trace_judge.local.rules.clarification
import mast_trace_judge.local.rules.corrections
import mast_trace_judge.local.rules.cycles
import mast_trace_judge.local.rules.forbidden
import mast_trace_judge.local.rules.inter_agent
import mast_trace_judge.local.rules.invention
import mast_trace_judge.local.rules.lost_context
import mast_trace_judge.local.rules.miscopying
import mast_trace_judge.local.rules.mismatch
import mast_trace_judge.local.rules.misreading
import mast_trace_judge.local.rules.premature_end
import mast_trace_judge.local.rules.repetition
import mast_trace_judge.local.rules.reset
import mast_trace_judge.local.rules.termination
import mast_trace_judge.local.rules.unsupported
import mast_trace_judge.local.rules.verification
import mast_trace_judge.local.rules.withholding
from mast_trace_judge.local.acts import has_failed
from mast_trace_judge.local.rules._registry import (
    Reach,
    Rule,
    code_of,
    contradicts_good_end,
    explains_failures,
    name_of,
    needs_end,
    reach_of,
    registered,
    rule,
)
from mast_trace_judge.plugins import own_rules
from mast_trace_judge.verdict import Evidence, ModeFinding

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mast_trace.trajectory import Trajectory
    from mast_trace_judge.plugins import OwnRule

# Each rule has registered itself when its module was imported above.
RULES: tuple[Rule, ...] = registered()
"""Every rule, by the taxonomy's order of its mode."""

_IN_SUCCESS = 0.5
"""Factor for a finding in a run that succeeded, where most repetition and haste is benign."""
_UNREAD = 0.6
"""Factor for a finding that an unread part of the run might refute."""
MOST_EXPLAINED: Final = 0.45
"""Most that a heuristic explanation of a failure counts for: the run is only told to have failed, and the record
does not show the mode, so that it is possible and not shown."""
_LEAST = 0.2
_SHOWN = 12
_MOST_STEPS = 1000
"""Number of steps that a finding lists."""


def findings_by_rule(
    trajectory: Trajectory, own: Iterable[OwnRule] | None = None
) -> tuple[tuple[str, ModeFinding], ...]:
    """Apply every rule, and return each finding with the name of its rule.

    Args:
        trajectory: the run.
        own: rules beside the judge's; those of plugins if not given.
    """
    return tuple(
        (name_of(each), found)
        for each in _applied(trajectory, own)
        for found in _found_by(each, trajectory)
    )


def find_modes(
    trajectory: Trajectory, found: Iterable[tuple[str, ModeFinding]] | None = None
) -> tuple[ModeFinding, ...]:
    """Return one finding per failure mode, most probable first.

    Args:
        trajectory: the run.
        found: the result of `findings_by_rule`, if the rules have been applied already.

    Where a mode has exact evidence, only that is shown for it. In a run whose outcome is a success
    probabilities are halved, and weak heuristics are left out. Rules that explain failures are
    applied only to runs that are known to have failed, and what the record does not show is possible at most. In a run of which steps were not read nothing
    is exact that they might take back. A run of which no end was seen, for its process was killed or
    it waits for somebody, is accused of nothing that may still come.
    """
    by_code: dict[str, list[ModeFinding]] = defaultdict(list)
    for _, each in findings_by_rule(trajectory) if found is None else found:
        by_code[each.code].append(each)
    merged = [_shortened(_merge(of_mode)) for of_mode in by_code.values()]
    if trajectory.outcome == "success":
        merged = [
            each.model_copy(update={"probability": each.probability * _IN_SUCCESS})
            for each in merged
        ]
        merged = [each for each in merged if each.probability >= _LEAST]
    return tuple(sorted(merged, key=lambda each: (-each.probability, each.code)))


def examined_modes(trajectory: Trajectory, own: Iterable[OwnRule] | None = None) -> tuple[str, ...]:
    """Return the codes of the failure modes that the rules look for in a run, in their order.

    The other modes are not examined unless a model reads the run.
    """
    return tuple(sorted({code_of(each) for each in _applied(trajectory, own)}))


def _applied(trajectory: Trajectory, own: Iterable[OwnRule] | None) -> list[Rule]:
    """Return the rules that are applied to a run."""
    failed = has_failed(trajectory)
    ours = [
        each
        for each in RULES
        if (failed or not explains_failures(each)) and (trajectory.finished or not needs_end(each))
    ]
    beside = own_rules() if own is None else own
    return ours + [rule(each.code)(each) for each in beside if not each.is_stopped]


def _found_by(asked: Rule, trajectory: Trajectory) -> list[ModeFinding]:
    found = _reached(asked, trajectory)
    if not explains_failures(asked):
        return found
    return [
        each
        if each.evidence is Evidence.EXACT
        else each.model_copy(update={"probability": min(each.probability, MOST_EXPLAINED)})
        for each in found
    ]


def _reached(asked: Rule, trajectory: Trajectory) -> list[ModeFinding]:
    """Apply a rule to as much of a run as its findings may follow from."""
    if not trajectory.is_partial or reach_of(asked) is Reach.END:
        return asked(trajectory)
    if reach_of(asked) is Reach.BACK:
        return asked(_beginning(trajectory))
    return [
        found.model_copy(
            update={"evidence": Evidence.HEURISTIC, "probability": found.probability * _UNREAD}
        )
        for found in asked(trajectory)
    ]


def _beginning(trajectory: Trajectory) -> Trajectory:
    """Return a run up to the first step that was not read."""
    end = trajectory.steps[trajectory.unread_from].start
    return dataclasses.replace(
        trajectory,
        steps=trajectory.steps[: trajectory.unread_from],
        invocations=tuple(call for call in trajectory.invocations if call.start < end),
        unread_to=0,
    )


def _shortened(found: ModeFinding) -> ModeFinding:
    """Return a finding with a limited number of steps; its reason mentions the limit."""
    if len(found.steps) <= _MOST_STEPS:
        return found
    more = f"The first {_MOST_STEPS:,} of {len(found.steps):,} such steps are listed."
    reason = f"{found.reason} {more}"
    return found.model_copy(update={"steps": found.steps[:_MOST_STEPS], "reason": reason})


def _merge(findings: Iterable[ModeFinding]) -> ModeFinding:
    ordered = sorted(findings, key=lambda found: -found.probability)
    exact = [found for found in ordered if found.evidence is Evidence.EXACT]
    kept = exact or ordered
    strongest = kept[0]
    if len(kept) == 1:
        return strongest
    steps = sorted({step for found in kept for step in found.steps})
    quotes = dict.fromkeys(text for found in kept for text in found.quotes)
    return strongest.model_copy(
        update={
            "steps": tuple(steps),
            "quotes": tuple(quotes)[:_SHOWN],
            "reason": " ".join(dict.fromkeys(found.reason for found in kept[:3])),
        }
    )
