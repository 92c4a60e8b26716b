"""Conclusions of confirmations in ``mast_confirmations``: the latest one of each run."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Final

from mast_trace.taxonomy import FAILURE_MODES
from mast_trace_collector.storage.removal.tombstones import insert_living, insert_of_run
from mast_trace_judge.confirmation import Confirmation, Contrast, SuccessRate
from mast_trace_judge.proof import as_shown, has_effect, proved_step, refuted_steps
from mast_trace_judge.store.records import Columns, utc, verdict_of
from mast_trace_judge.store.records import row_of as verdict_row
from mast_trace_judge.store.replay_plans import ReplayPlan

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mast_trace_collector.storage.runs import RunSummary
    from mast_trace_collector.storage.store import Store

TABLE: Final = "mast_confirmations"
SHOWN: Final = "mast_findings"
"""The table of the verdicts as they are shown."""
CHANGED: Final = (
    "The run has changed since it was replayed, and its steps may be others: confirm it again."
)
"""The sentence where a conclusion is about an earlier state of the run."""

_FINDING: Final = (
    *("Project", "TraceId", "RunStart", "RunEnd", "RunSeen", "JudgedAt", "Fingerprint"),
    *("JudgeVersion", "Status", "StatusReason", "Method", "ServiceName", "Framework", "Name"),
    *("Steps", "Outcome", "Modes.Code", "Modes.Probability", "Modes.Evidence", "DecisiveStep"),
    *("DecisiveAgent", "DecisiveProbability", "DecisiveRule", "DecisiveReason", "DecisiveSpanId"),
    *("LookFirst.Step", "LookFirst.Agent", "LookFirst.Basis", "LookFirst.Why", "CostUsd"),
    *("RunSpans", "RunErrors", "RunInputTokens", "RunOutputTokens", "RunAgents", "RunModels"),
    *("RunOutcome", "RunOutcomeReason", "RunTermination", "Kind"),
)
"""The columns that ``mast_findings`` has of a verdict's row."""
_MISSING: Final = f"""SELECT c.Project AS Project, c.TraceId AS TraceId
FROM (SELECT Project, TraceId, RunKey, Fingerprint, ConfirmedAt FROM {TABLE} FINAL) AS c
INNER JOIN (
  SELECT RunKey, argMax(Fingerprint, (JudgedAt, ShownAt)) AS State,
    argMax(ShownAt, (JudgedAt, ShownAt)) AS Last
  FROM {SHOWN} WHERE RunKey GLOBAL IN (SELECT RunKey FROM {TABLE}) GROUP BY RunKey
) AS f ON f.RunKey = c.RunKey
WHERE f.State = c.Fingerprint AND f.Last < c.ConfirmedAt
LIMIT 1000"""  # noqa: S608


def record_confirmation(store: Store, plan: ReplayPlan, confirmation: Confirmation) -> Confirmation:
    """Store the conclusion about a run in place of the earlier one; return it as stored.

    The span of the origin is taken from the stored replays where the conclusion does not name it.

    Raises:
        StorageError: the database does not answer, or does not accept it.
        ValueError: it holds a number that JSON cannot hold, such as infinity.
    """
    stored = confirmation.model_copy(
        update={
            "plan_id": plan.plan_id,
            "origin_span_id": confirmation.origin_span_id or _span_of(store, plan, confirmation),
        }
    )
    stored = Confirmation.model_validate_json(stored.model_dump_json())
    insert_of_run(store, TABLE, row_of(stored, plan))
    show(store, [(plan.project, plan.trace_id)])
    return stored


def take_over(store: Store, run: RunSummary, confirmation: Confirmation) -> bool:
    """Store a conclusion that was reached elsewhere, unless the run has one; return whether it was stored.

    It has no plan, so it neither continues nor replaces an experiment of this store.

    Raises:
        StorageError: the database does not answer, or does not accept it.
    """
    if confirmations_of(store, [(run.project, run.trace_id)]):
        return False
    plan = ReplayPlan(
        project=run.project,
        trace_id=run.trace_id,
        plan_id="",
        name="",
        fingerprint=run.fingerprint,
        service=run.service,
        run_end=utc(run.end),
    )
    insert_of_run(store, TABLE, row_of(confirmation.model_copy(update={"plan_id": ""}), plan))
    show(store, [(plan.project, plan.trace_id)])
    return True


def show(store: Store, runs: Sequence[tuple[str, str]]) -> int:
    """Store the newest verdicts on runs after the effect of their replays, in ``mast_findings``.

    Each writer of a conclusion or a verdict calls it afterwards: of two at once, the one that comes second
    sees what the other has stored.

    Args:
        store: the database.
        runs: project and trace id of each.

    Returns:
        The number of verdicts that were stored: not those on runs that were erased meanwhile.

    Raises:
        StorageError: the database does not answer.
    """
    found = confirmations_of(store, runs)
    if not found:
        return 0
    rows = store.query(
        "SELECT * FROM mast_latest_verdicts WHERE TraceId IN {traces:Array(String)}",
        {"traces": sorted({trace_id for _, trace_id in found})},
    )
    shown = []
    for row in rows:
        confirmation, fingerprint = found.get((row["Project"], row["TraceId"]), (None, ""))
        if confirmation is not None and fingerprint == row["Fingerprint"]:
            shown.append(_shown_row(row, confirmation))
    return len(insert_living(store, SHOWN, shown))


def show_missing(store: Store) -> int:
    """Show conclusions that their own writers have not shown.

    Returns:
        Their number.

    Raises:
        StorageError: the database does not answer.
    """
    rows = store.query(_MISSING)
    return show(store, [(row["Project"], row["TraceId"]) for row in rows])


def confirmation_of(
    store: Store, project: str, trace_id: str, *, fingerprint: str = ""
) -> Confirmation | None:
    """Return the latest conclusion about a run; None if there is none.

    Args:
        store: the database.
        project: of the run.
        trace_id: of the run.
        fingerprint: of the run whose steps are meant. A conclusion about another state of the run
            comes back as ``untested``, with `CHANGED` as its text.

    Raises:
        StorageError: the database does not answer.
    """
    found = confirmations_of(store, [(project, trace_id)])
    if not found:
        return None
    told, of = found[project, trace_id]
    return told if not fingerprint or of == fingerprint else outdated(told)


def confirmations_of(
    store: Store, runs: Sequence[tuple[str, str]]
) -> dict[tuple[str, str], tuple[Confirmation, str]]:
    """Return the latest conclusions about runs, each with the fingerprint that its run had.

    Args:
        store: the database.
        runs: project and trace id of each.

    Raises:
        StorageError: the database does not answer.
    """
    rows = store.query(
        f"SELECT Project, TraceId, Fingerprint, Json FROM {TABLE} FINAL"  # noqa: S608
        " WHERE TraceId IN {traces:Array(String)}",
        {"traces": sorted({trace_id for _, trace_id in runs})},
    )
    found = {
        (row["Project"], row["TraceId"]): (
            Confirmation.model_validate_json(row["Json"]),
            row["Fingerprint"],
        )
        for row in rows
    }
    return {run: found[run] for run in runs if run in found}


def outdated(confirmation: Confirmation) -> Confirmation:
    """Return a conclusion about an earlier state of the run: its cost alone is left."""
    return Confirmation(
        text=CHANGED,
        plan_id=confirmation.plan_id,
        planned_contrasts=confirmation.planned_contrasts,
        replays=confirmation.replays,
        live_calls=confirmation.live_calls,
        cost_usd=confirmation.cost_usd,
    )


def _shown_row(row: Mapping[str, Any], confirmation: Confirmation) -> dict[str, Any]:
    verdict = as_shown(verdict_of(row), confirmation)
    told = verdict_row(verdict)
    columns = {name: told[name] for name in _FINDING if name in told}
    examined = sum(1 << bit for bit, code in enumerate(FAILURE_MODES) if code in verdict.examined)
    return columns | {
        # After replays the judge's probability is none of the shown step.
        "Calibrated": verdict.calibrated and not has_effect(confirmation),
        "Confirmation": confirmation.status,
        "ExaminedBits": examined,
        "ShownAt": datetime.now(timezone.utc),
    }


def row_of(confirmation: Confirmation, plan: ReplayPlan) -> dict[str, Any]:
    """Return the row of a conclusion about the run of a plan.

    Its columns have what takes effect (`mast_trace_judge.proof`); ``Json`` has all of it.
    """
    contrasts = confirmation.contrasts
    step = proved_step(confirmation)
    return {
        "Project": plan.project,
        "TraceId": plan.trace_id,
        "ConfirmedAt": datetime.now(timezone.utc),
        "Fingerprint": plan.fingerprint,
        "PlanId": confirmation.plan_id,
        "Status": confirmation.status,
        "Text": confirmation.text,
        "OriginStep": step,
        "OriginAgent": "" if step is None else confirmation.origin_agent,
        "OriginSpanId": "" if step is None else confirmation.origin_span_id,
        "PointOfNoReturn": confirmation.point_of_no_return,
        "PointAgent": confirmation.point_agent,
        "Refuted": list(refuted_steps(confirmation)),
        **_CURVE.nested(confirmation.curve),
        **_CONTRASTS.nested(contrasts),
        "Contrasts.Source": [each.sources for each in contrasts],
        "PlannedContrasts": confirmation.planned_contrasts,
        "Replays": confirmation.replays,
        "LiveCalls": confirmation.live_calls,
        "CostUsd": confirmation.cost_usd,
        "Json": confirmation.model_dump_json(),
        "ServiceName": plan.service,
        "RunEnd": plan.run_end,
    }


_CURVE: Final = Columns(SuccessRate, "Curve.")
_CONTRASTS: Final = Columns(Contrast, "Contrasts.", but={"source", "fix_text", "result", "also"})


def _span_of(store: Store, plan: ReplayPlan, confirmation: Confirmation) -> str:
    if confirmation.origin is None:
        return ""
    rows = store.query(
        "SELECT max(SpanId) AS SpanId FROM mast_replays WHERE Project = {project:String}"
        " AND TraceId = {trace:String} AND PlanId = {plan:String} AND Step = {step:Int32}",
        {
            "project": plan.project,
            "trace": plan.trace_id,
            "plan": plan.plan_id,
            "step": confirmation.origin,
        },
    )
    return str(rows[0]["SpanId"])
