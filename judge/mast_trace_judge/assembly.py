"""Assembles a verdict from the findings of the layers: a model adds to those of the local ones, and takes nothing away."""

from __future__ import annotations

import dataclasses
from collections import Counter
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from mast_trace.taxonomy import FAILURE_MODES
from mast_trace_judge.llm.budget import Usage
from mast_trace_judge.llm.prompts import prompt_of_readings
from mast_trace_judge.local.attribution import UNTRAINED, Attribution, summarise
from mast_trace_judge.local.attribution.calibration import ranked
from mast_trace_judge.local.layers import LocalFindings, without_made_up_spans
from mast_trace_judge.local.outcome import RunOutcome
from mast_trace_judge.look_first import places
from mast_trace_judge.verdict import SHOWN_FROM, Evidence, ModeFinding, RunFacts, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mast_trace.trajectory import Trajectory
    from mast_trace_collector.storage.runs import RunSummary
    from mast_trace_judge.llm.verification import ModelReading
    from mast_trace_judge.local.addressing import Addressed

_MOST_ALONE = SHOWN_FROM - 0.01
"""The most that a model's finding counts for in a run that nothing else shows to have failed: it is possible."""


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
        attribution=joined(trajectory, local, reading, failed=failed),
        outcome=_outcome(local.outcome, reading),
        examined=tuple(FAILURE_MODES),
    )


def joined(
    trajectory: Trajectory, local: LocalFindings, reading: ModelReading, *, failed: bool
) -> Attribution:
    """Order the steps by both opinions; the local one stands where it asserts a step, or the model has none.

    The order is that of the places to look at first, without a profile: a model whose word is not measured stands
    behind what the record shows and the rules that are evidence, and before all else. In a failed run, a model whose
    first steps were right often enough on blind labels asserts this one.
    """
    ours = local.attribution
    suggested = [each.step for each in reading.suggestions if each.step in ours.probabilities]
    if ours.decisive is not None or not suggested:
        return ours
    unplaced = dataclasses.replace(local, attribution=Attribution(), contrast=None)
    looked = places(without_made_up_spans(trajectory), unplaced, reading)
    asserted = [reading.asserted] if failed and reading.asserted is not None else []
    ordered = [
        *asserted,
        *(place.step for place in looked),
        *suggested,
        *ranked(ours.probabilities),
    ]
    ordered = [step for step in dict.fromkeys(ordered) if step in ours.probabilities]
    rules = {candidate.step: candidate.rule for candidate in ours.candidates}
    for step in suggested:
        rules[step] = " ".join(filter(None, [rules.get(step), "The model suggests it."]))
    # The local numbers are dealt out anew: how often a model's steps are right is known of labelled runs alone.
    numbers = sorted(ours.probabilities.values(), reverse=True)
    return summarise(
        trajectory,
        dict(zip(ordered, numbers, strict=True)),
        rules,
        profile=ours.profile,
        calibrated=False,
        shown=asserted,
    )


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


_LISTED = 10


def unscored(run: RunSummary, version: str, reason: str, *, steps: int = 0) -> Verdict:
    """Return the verdict for a run that could not be judged; it is neither a pass nor a fail."""
    return Verdict(**_identity(run, version), status="unscored", status_reason=reason, steps=steps)


def assemble(
    run: RunSummary,
    trajectory: Trajectory,
    local: LocalFindings,
    *,
    version: str,
    reading: ModelReading | str | None = None,
    usage: Usage | None = None,
) -> Verdict:
    """Assemble the verdict; agents and span ids are derived from the steps.

    Args:
        run: the source of the trajectory.
        trajectory: the run.
        local: the findings of the local layers.
        version: of the judge.
        reading: the model's reading of the run, or the reason why there is none; None if it was not
            asked.
        usage: tokens and cost of asking.
    """
    usage = usage or Usage()
    more: dict[str, Any]
    if isinstance(reading, str):
        verdict = _put_together(run, trajectory, local, version)
        # Local findings remain valid, but where they leave the outcome open nobody has judged it.
        status = "ok" if local.outcome.known else "unscored"
        more = {"status": status, "status_reason": f"without the model: {reading}"}
    elif reading is not None:
        found = fuse_layers(trajectory, local, reading)
        verdict = _put_together(run, trajectory, found, version, reading)
        verdict = _explained(verdict, reading)
        more = {
            "method": "fused" if local.attribution.candidates or local.modes else "llm",
            "status_reason": "; ".join(
                [*reading.problems, *_opinion(local, reading), *_split(reading)]
            ),
            "model": reading.name,
            "prompt": prompt_of_readings(),
            "model_step": reading.likeliest,
            "readings": len(reading.readings),
            "agreeing": sum(each.likeliest == reading.likeliest for each in reading.readings),
        }
    else:
        verdict, more = _put_together(run, trajectory, local, version), {}
    told = _addressing(local.addressed, withheld=bool(more.get("model")))
    more["status_reason"] = "; ".join(
        filter(None, [*told, more.get("status_reason"), _unread(trajectory)])
    )
    return verdict.model_copy(
        update={
            **more,
            "calls": usage.calls,
            "input_tokens": usage.tokens.input,
            "output_tokens": usage.tokens.output,
            "cost_usd": usage.cost_usd,
        }
    )


def _put_together(
    run: RunSummary,
    trajectory: Trajectory,
    found: LocalFindings,
    version: str,
    reading: ModelReading | None = None,
) -> Verdict:
    outcome, attribution = found.outcome, found.attribution
    steps = trajectory.steps
    succeeded = outcome.outcome == "success"
    # A run that probably succeeded has no decisive error, however clear its best candidate.
    decisive = attribution.decisive if found.names_a_step else None
    if decisive is not None:
        decisive = decisive.model_copy(update={"span_id": steps[decisive.step].span_id})
    candidates = tuple(
        candidate.model_copy(update={"span_id": steps[candidate.step].span_id})
        for candidate in attribution.candidates
    )
    looked = places(without_made_up_spans(trajectory), found, reading)
    return Verdict(
        **_identity(run, version),
        steps=len(steps),
        outcome=outcome.outcome,
        failure_probability=outcome.failure_probability,
        modes=tuple(
            mode.model_copy(
                update={"span_ids": tuple(steps[index].span_id for index in mode.steps)}
            )
            for mode in found.modes
        ),
        decisive=decisive,
        abstained=not succeeded and decisive is None,
        candidates=() if succeeded else candidates,
        look_first=tuple(
            place.model_copy(update={"span_id": steps[place.step].span_id}) for place in looked
        ),
        examined=tuple(sorted({*found.examined, *(mode.code for mode in found.modes)})),
        # Probabilities were measured on such runs where a profile matches.
        calibrated=attribution.calibrated and attribution.profile != UNTRAINED and not succeeded,
    )


def _explained(verdict: Verdict, reading: ModelReading) -> Verdict:
    """Give the decisive error the model's fix, where the model suggests that step too."""
    decisive = verdict.decisive
    own = next(
        (each for each in reading.suggestions if decisive and each.step == decisive.step), None
    )
    if decisive is None or own is None:
        return verdict
    told = {"minimal_fix": own.minimal_fix, "corrected": own.corrected}
    return verdict.model_copy(update={"decisive": decisive.model_copy(update=told)})


def _opinion(local: LocalFindings, reading: ModelReading) -> list[str]:
    """Return the model's opinion on the outcome where the run itself does not confirm it, and on the step."""
    said = [reading.undecided] if reading.undecided else []
    if reading.outcome in {"unknown", local.outcome.outcome}:
        return said
    opinion = f"the model reads the run as a {reading.outcome}"
    if local.outcome.known:
        return [opinion, *said]
    if reading.outcome == "success" and local.suspect:
        return [f"{opinion}, against exact findings"]
    if reading.outcome == "failure" and not reading.has_evidence:
        return [f"{opinion}, and quotes nothing of it that went wrong", *said]
    step = f" and suggests step {reading.likeliest}" if reading.likeliest is not None else ""
    return [f"{opinion}{step}; no outcome was recorded, so this is an opinion", *said]


def _split(reading: ModelReading) -> list[str]:
    """Return the votes on the outcome and on the step, where the readings differ on them."""
    steps = ["none" if one.likeliest is None else one.likeliest for one in reading.readings]
    told = []
    for what, said in (("outcome", [one.outcome for one in reading.readings]), ("step", steps)):
        if len(votes := Counter(said)) > 1:
            counted = ", ".join(f"{one} in {count}" for one, count in votes.most_common())
            told.append(f"{len(said)} readings differ on the {what}: {counted}")
    return told


def _unread(trajectory: Trajectory) -> str:
    """Return which steps were not judged; empty where all were."""
    if not trajectory.is_partial:
        return ""
    begin, end, count = trajectory.unread_from, trajectory.unread_to, len(trajectory.steps)
    return (
        f"the run is too long to be judged whole: of its {count:,} steps the judge read the first "
        f"{begin:,} and the last {count - end:,}, and not steps {begin} to {end - 1}"
    )


def _addressing(found: Addressed, *, withheld: bool) -> list[str]:
    """Say where the run speaks to its judge, and whether that was kept from a model."""
    done = "were withheld" if withheld else "were found"
    said = []
    if found.task:
        passages = (
            "passages of the task, or of what was recorded of the end, that address the judge"
        )
        said.append(f"{passages} {done}")
    if found.steps:
        passages = f"passages that address the judge {done}"
        said.append(f"{passages}: steps {_listed(found.steps)}")
    if found.split:
        said.append(f"read one after the other, steps {_listed(found.split)} address the judge")
    return said


def _listed(steps: Sequence[int]) -> str:
    more = f" and {len(steps) - _LISTED} more" if len(steps) > _LISTED else ""
    return ", ".join(map(str, steps[:_LISTED])) + more


def _identity(run: RunSummary, version: str) -> dict[str, Any]:
    return {
        "trace_id": run.trace_id,
        "fingerprint": run.fingerprint,
        "judge_version": version,
        "judged_at": _now(),
        "project": run.project,
        "service": run.service,
        "framework": run.framework,
        "name": run.name,
        "run_start": run.start,
        "run_end": run.end,
        "run": _facts(run),
    }


def _facts(run: RunSummary) -> RunFacts:
    return RunFacts(
        seen=run.last_seen,
        spans=run.spans,
        errors=run.errors,
        input_tokens=run.input_tokens,
        output_tokens=run.output_tokens,
        agents=run.agents,
        models=run.models,
        outcome=run.outcome,
        outcome_reason=run.outcome_reason,
        termination_reason=run.termination_reason,
        kind=run.kind,
    )


def _now() -> datetime:
    """Return the present time, to the millisecond that is stored."""
    now = datetime.now(timezone.utc)
    return now.replace(microsecond=now.microsecond // 1000 * 1000)
