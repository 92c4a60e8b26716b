"""Verdicts as rows of ``mast_verdicts``."""

from __future__ import annotations

import hashlib
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from mast_trace_judge.verdict import (
    Candidate,
    DecisiveError,
    Evidence,
    ModeFinding,
    RunFacts,
    Verdict,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mast_trace_collector.storage.store import Store

TABLE = "mast_verdicts"


def save(store: Store, verdicts: Sequence[Verdict]) -> None:
    """Store verdicts; one of the same run, content and judge version takes the place of its own.

    Raises:
        StorageError: the database does not take them.
    """
    rows = [_row(verdict) for verdict in verdicts]
    if rows:
        store.insert(TABLE, rows, token=_token(verdicts))


def load(
    store: Store, trace_id: str, *, project: str | None = None, judge_version: str | None = None
) -> list[Verdict]:
    """Return all verdicts on a run, newest first.

    Raises:
        StorageError: the database does not answer.
    """
    conditions = ["TraceId = {trace:String}"]
    if project is not None:
        conditions.append("Project = {project:String}")
    if judge_version is not None:
        conditions.append("JudgeVersion = {version:String}")
    rows = store.query(
        f"SELECT * FROM {TABLE} FINAL WHERE {' AND '.join(conditions)} ORDER BY JudgedAt DESC",  # noqa: S608
        {"trace": trace_id, "project": project or "", "version": judge_version or ""},
    )
    return [verdict_of(row) for row in rows]


def load_latest(store: Store, trace_id: str, *, project: str | None = None) -> Verdict | None:
    """Return the newest verdict on a run; None if there is none.

    Raises:
        StorageError: the database does not answer.
    """
    return next(iter(load(store, trace_id, project=project)), None)


def load_version(
    store: Store, judge_version: str, *, since: datetime | None = None
) -> list[Verdict]:
    """Return the newest verdict of one judge version on each run, by the run's end.

    Args:
        store: where they are.
        judge_version: of the judge.
        since: only runs that ended then or later.

    Raises:
        StorageError: the database does not answer.
    """
    rows = store.query(
        f"SELECT * FROM {TABLE} FINAL WHERE JudgeVersion = {{version:String}}"  # noqa: S608
        " AND RunEnd >= fromUnixTimestamp64Nano({since:Int64})"
        " ORDER BY JudgedAt DESC LIMIT 1 BY Project, TraceId",
        {"version": judge_version, "since": _nanoseconds(since)},
    )
    verdicts = [verdict_of(row) for row in rows]
    return sorted(verdicts, key=lambda verdict: verdict.run_end)


def verdict_of(row: Mapping[str, Any]) -> Verdict:
    """Read one row of ``mast_verdicts``."""
    modes = tuple(
        ModeFinding(
            code=code,
            probability=_probability(probability),
            evidence=Evidence(evidence),
            reason=reason,
            steps=tuple(steps),
            quotes=tuple(quotes),
            span_ids=tuple(spans),
        )
        for code, probability, evidence, reason, steps, spans, quotes in zip(
            *(row[f"Modes.{name}"] for name in _MODE_COLUMNS), strict=True
        )
    )
    candidates = tuple(
        Candidate(
            step=step, span_id=span, agent=agent, probability=_probability(probability), rule=rule
        )
        for step, span, agent, probability, rule in zip(
            *(row[f"Candidates.{name}"] for name in _CANDIDATE_COLUMNS), strict=True
        )
    )
    return Verdict(
        trace_id=row["TraceId"],
        fingerprint=row["Fingerprint"],
        judge_version=row["JudgeVersion"],
        judged_at=_utc(row["JudgedAt"]),
        status=row["Status"],
        status_reason=row["StatusReason"],
        method=row["Method"],
        project=row["Project"],
        service=row["ServiceName"],
        framework=row["Framework"],
        name=row["Name"],
        run_start=_utc(row["RunStart"]),
        run_end=_utc(row["RunEnd"]),
        steps=row["Steps"],
        outcome=row["Outcome"],
        failure_probability=_probability(row["FailureProbability"]),
        modes=modes,
        decisive=_decisive(row),
        abstained=bool(row["Abstained"]),
        candidates=candidates,
        model=row["Model"],
        calls=row["Calls"],
        input_tokens=row["InputTokens"],
        output_tokens=row["OutputTokens"],
        cost_usd=row["CostUsd"],
        run=_facts(row),
    )


_MODE_COLUMNS = ("Code", "Probability", "Evidence", "Reason", "Steps", "SpanIds", "Quotes")
_CANDIDATE_COLUMNS = ("Step", "SpanId", "Agent", "Probability", "Rule")
_UNKNOWN = RunFacts(seen=datetime.fromtimestamp(0, timezone.utc))
"""Stored where a verdict does not say what the run was, as those of earlier versions did not."""


def _facts(row: Mapping[str, Any]) -> RunFacts | None:
    seen = _utc(row["RunSeen"])
    if seen == _UNKNOWN.seen:
        return None
    return RunFacts(
        seen=seen,
        spans=row["RunSpans"],
        errors=row["RunErrors"],
        input_tokens=row["RunInputTokens"],
        output_tokens=row["RunOutputTokens"],
        agents=tuple(row["RunAgents"]),
        models=tuple(row["RunModels"]),
        outcome=row["RunOutcome"],
        outcome_reason=row["RunOutcomeReason"],
        termination_reason=row["RunTermination"],
        kind=row["Kind"],
    )


def _decisive(row: Mapping[str, Any]) -> DecisiveError | None:
    if row["DecisiveStep"] is None:
        return None
    return DecisiveError(
        step=row["DecisiveStep"],
        span_id=row["DecisiveSpanId"],
        agent=row["DecisiveAgent"],
        probability=_probability(row["DecisiveProbability"]),
        rule=row["DecisiveRule"],
        reason=row["DecisiveReason"],
        minimal_fix=row["MinimalFix"],
    )


def _row(verdict: Verdict) -> dict[str, Any]:
    decisive = verdict.decisive
    modes, candidates = verdict.modes, verdict.candidates
    run = verdict.run or _UNKNOWN
    return {
        "Project": verdict.project,
        "TraceId": verdict.trace_id,
        "Fingerprint": verdict.fingerprint,
        "JudgeVersion": verdict.judge_version,
        "JudgedAt": verdict.judged_at,
        "Status": verdict.status,
        "StatusReason": verdict.status_reason,
        "Method": verdict.method,
        "ServiceName": verdict.service,
        "Framework": verdict.framework,
        "Name": verdict.name,
        "RunStart": verdict.run_start,
        "RunEnd": verdict.run_end,
        "Steps": verdict.steps,
        "Outcome": verdict.outcome,
        "FailureProbability": verdict.failure_probability,
        "Modes.Code": [mode.code for mode in modes],
        "Modes.Probability": [mode.probability for mode in modes],
        "Modes.Evidence": [mode.evidence.value for mode in modes],
        "Modes.Reason": [mode.reason for mode in modes],
        "Modes.Steps": [list(mode.steps) for mode in modes],
        "Modes.SpanIds": [list(mode.span_ids) for mode in modes],
        "Modes.Quotes": [list(mode.quotes) for mode in modes],
        "Abstained": verdict.abstained,
        "DecisiveStep": decisive.step if decisive else None,
        "DecisiveSpanId": decisive.span_id if decisive else "",
        "DecisiveAgent": decisive.agent if decisive else "",
        "DecisiveProbability": decisive.probability if decisive else 0.0,
        "DecisiveRule": decisive.rule if decisive else "",
        "DecisiveReason": decisive.reason if decisive else "",
        "MinimalFix": decisive.minimal_fix if decisive else "",
        "Candidates.Step": [candidate.step for candidate in candidates],
        "Candidates.SpanId": [candidate.span_id for candidate in candidates],
        "Candidates.Agent": [candidate.agent for candidate in candidates],
        "Candidates.Probability": [candidate.probability for candidate in candidates],
        "Candidates.Rule": [candidate.rule for candidate in candidates],
        "Model": verdict.model,
        "Calls": verdict.calls,
        "InputTokens": verdict.input_tokens,
        "OutputTokens": verdict.output_tokens,
        "CostUsd": verdict.cost_usd,
        "RunSeen": run.seen,
        "RunSpans": run.spans,
        "RunErrors": run.errors,
        "RunInputTokens": run.input_tokens,
        "RunOutputTokens": run.output_tokens,
        "RunAgents": list(run.agents),
        "RunModels": list(run.models),
        "RunOutcome": run.outcome,
        "RunOutcomeReason": run.outcome_reason,
        "RunTermination": run.termination_reason,
        "Kind": run.kind,
    }


def _token(verdicts: Sequence[Verdict]) -> str:
    """Name an insert by its content, so that one repeated after a lost answer stores nothing."""
    digest = hashlib.sha256()
    for verdict in verdicts:
        digest.update(verdict.model_dump_json().encode())
    return digest.hexdigest()[:32]


def _probability(stored: float) -> float:
    """Undo what storing as Float32 added behind the sixth digit."""
    return round(stored, 6)


def _utc(moment: datetime) -> datetime:
    return moment.replace(tzinfo=timezone.utc) if moment.tzinfo is None else moment


def _nanoseconds(moment: datetime | None) -> int:
    return 0 if moment is None else int(_utc(moment).timestamp() * 1e9)
