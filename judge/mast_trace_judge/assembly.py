"""Puts a verdict together from what the layers found."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from mast_trace_judge.layer_fusion import fuse_layers
from mast_trace_judge.llm.budget import Usage
from mast_trace_judge.verdict import RunFacts, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mast_trace.trajectory import Step, Trajectory
    from mast_trace_collector.storage.runs import RunSummary
    from mast_trace_judge.llm.verification import ModelReading
    from mast_trace_judge.local.layers import LocalFindings
    from mast_trace_judge.verdict import ModeFinding


def unscored(run: RunSummary, version: str, reason: str, *, steps: int = 0) -> Verdict:
    """Return the verdict that none could be reached; neither a pass nor a fail."""
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
    """Put the verdict together; agents and span ids follow from the steps.

    Args:
        run: where it comes from.
        trajectory: the run.
        local: what the local layers found.
        version: of the judge.
        reading: what the model made of the run, or why it could not; None if it was not asked.
        usage: what asking took.
    """
    usage = usage or Usage()
    more: dict[str, Any]
    if isinstance(reading, str):
        verdict = _put_together(run, trajectory, local, version)
        # Local findings stand, but where they leave the outcome open nobody has judged it.
        status = "ok" if local.outcome.known else "unscored"
        more = {"status": status, "status_reason": f"without the model: {reading}"}
    elif reading is not None:
        verdict = _put_together(run, trajectory, fuse_layers(trajectory, local, reading), version)
        verdict = _explained(verdict, reading)
        more = {
            "method": "fused" if local.attribution.candidates or local.modes else "llm",
            "status_reason": "; ".join([*reading.problems, *_disagreement(local, reading)]),
            "model": ", ".join(reading.models),
        }
    else:
        verdict, more = _put_together(run, trajectory, local, version), {}
    more["status_reason"] = "; ".join(
        filter(None, [more.get("status_reason"), _unread(trajectory)])
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
    run: RunSummary, trajectory: Trajectory, found: LocalFindings, version: str
) -> Verdict:
    outcome, attribution = found.outcome, found.attribution
    steps = trajectory.steps
    succeeded = outcome.outcome == "success"
    # A run that may well have succeeded has no decisive error, however clear its best candidate.
    named = outcome.outcome == "failure" or (found.suspect and not succeeded)
    decisive = attribution.decisive if named else None
    if decisive is not None:
        decisive = decisive.model_copy(update={"span_id": steps[decisive.step].span_id})
    candidates = tuple(
        candidate.model_copy(update={"span_id": steps[candidate.step].span_id})
        for candidate in attribution.candidates
    )
    return Verdict(
        **_identity(run, version),
        steps=len(steps),
        outcome=outcome.outcome,
        failure_probability=outcome.failure_probability,
        modes=tuple(_located(mode, steps) for mode in found.modes),
        decisive=decisive,
        abstained=not succeeded and decisive is None,
        candidates=() if succeeded else candidates,
    )


def _explained(verdict: Verdict, reading: ModelReading) -> Verdict:
    """Give the decisive error the model's reason and its fix."""
    decisive = verdict.decisive
    flip = reading.flips.get(decisive.step) if decisive else None
    if decisive is None or flip is None:
        return verdict
    told = {"reason": flip.reason, "minimal_fix": flip.minimal_fix}
    return verdict.model_copy(update={"decisive": decisive.model_copy(update=told)})


def _disagreement(local: LocalFindings, reading: ModelReading) -> list[str]:
    """Say where the model contradicts what the run itself shows; what the run shows counts."""
    known = local.outcome.outcome
    if reading.outcome in {"unknown", known}:
        return []
    if local.outcome.known:
        return [f"the model reads the run as a {reading.outcome}"]
    if reading.outcome == "success" and local.suspect:
        return ["the model reads the run as a success, against exact findings"]
    return []


def _unread(trajectory: Trajectory) -> str:
    """Say which steps were not judged; empty where all were."""
    if not trajectory.is_partial:
        return ""
    begin, end, count = trajectory.unread_from, trajectory.unread_to, len(trajectory.steps)
    return (
        f"the run is too long to be judged whole: of its {count:,} steps the judge read the first "
        f"{begin:,} and the last {count - end:,}, and not steps {begin} to {end - 1}"
    )


def _located(mode: ModeFinding, steps: Sequence[Step]) -> ModeFinding:
    return mode.model_copy(update={"span_ids": tuple(steps[index].span_id for index in mode.steps)})


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
    """The present, to the millisecond that is stored of it."""
    now = datetime.now(timezone.utc)
    return now.replace(microsecond=now.microsecond // 1000 * 1000)
