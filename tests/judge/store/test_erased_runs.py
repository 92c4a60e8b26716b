"""Everybody who writes about a run is refused once it is erased."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING

import pytest
from judge.worker.stored_runs import invoice_run, write

from mast_trace.exceptions import RunErased
from mast_trace_collector.storage.removal import erasure
from mast_trace_collector.storage.runs import record_outcome, run_summary
from mast_trace_judge.arms import ArmResult, ReplayArm
from mast_trace_judge.confirmation import Confirmation
from mast_trace_judge.store import confirmations, injections, labels, replays
from mast_trace_judge.store.ledger import JudgeCall, StoreLedger
from mast_trace_judge.store.replay_plans import plan_of
from mast_trace_lab.feedback import store as experiments

if TYPE_CHECKING:
    from mast_trace_collector.storage import Store
    from mast_trace_collector.storage.runs import RunSummary

GONE = f"{1:032x}"
NOW = datetime.now(timezone.utc)


def _plan(store: Store, run: RunSummary, name: str = "confirm") -> replays.ReplayPlan:
    return replays.ReplayPlan(
        run.project, run.trace_id, "p", name, run.fingerprint, run.service, NOW
    )


def _injection(run: RunSummary) -> injections.Injection:
    return injections.Injection(run.project, run.trace_id, "f", "operator", "1.1", "", 0, "agent")


def _lessons(store: Store, run: RunSummary) -> None:
    lesson = experiments.FrozenLesson(trace_id=run.trace_id, text="words", run_end=NOW)
    experiments.freeze(store, run.project, "e", "1", [lesson])


def _call(store: Store, run: RunSummary) -> None:
    ledger = StoreLedger(store)
    ledger._waiting.append(
        JudgeCall(
            project=run.project,
            trace_id=run.trace_id,
            judge_version="v",
            stage="s",
            model="m",
            started_at=NOW,
            duration_ms=1,
            status="ok",
            answer="their words",
        )
    )
    ledger._write()
    assert ledger._waiting == []


RAISING = {
    "label": lambda store, run: labels.save_labels(
        store, [labels.HumanLabel(run.trace_id, "ann", "failure", project=run.project)]
    ),
    "outcome": lambda store, run: record_outcome(store, run.trace_id, "success"),
    "plan": lambda store, run: plan_of(store, run, "text"),
    "reservation": lambda store, run: replays.reserve(
        store, _plan(store, run), 0, ReplayArm("control"), live_calls=1, cost_usd=None
    ),
    "result": lambda store, run: replays.record_result(
        store, _plan(store, run), 0, ArmResult(ReplayArm("control"), "error")
    ),
    "confirmation": lambda store, run: confirmations.record_confirmation(
        store, _plan(store, run), Confirmation(status="untested", text="t")
    ),
    "conclusion of another store": lambda store, run: confirmations.take_over(
        store, run, Confirmation(status="untested", text="t")
    ),
    "planted fault": lambda store, run: injections.save_injection(store, _injection(run), run),
}
DROPPING = {"lessons": _lessons, "judge's call": _call}


def rows(store: Store) -> dict[str, int]:
    (erased,) = erasure.of_runs(store, [GONE])
    return {table: count for table, count in erased.rows(store).items() if count}


@pytest.mark.parametrize("who", [*RAISING, *DROPPING])
def test_a_writer_is_refused_once_the_run_is_erased(store: Store, who: str) -> None:
    write(store, invoice_run(1), invoice_run(2))
    run, other = run_summary(store, GONE), run_summary(store, f"{2:032x}")
    assert run is not None
    assert other is not None
    writer = {**RAISING, **DROPPING}[who]
    erasure.erase(store, *erasure.of_runs(store, [GONE]))
    write(store, invoice_run(1))  # a late span: the run seems to be there
    arrived = rows(store)
    if who in RAISING:
        with pytest.raises(RunErased, match=GONE):
            writer(store, run)
    else:
        writer(store, run)
    assert rows(store) == arrived
    writer(store, replace(other))


def test_faults_of_an_erased_run_are_refused_one_by_one(store: Store) -> None:
    write(store, invoice_run(1), invoice_run(2))
    found = [run_summary(store, f"{number:032x}") for number in (1, 2)]
    erasure.erase(store, *erasure.of_runs(store, [GONE]))
    taken = [(_injection(run), NOW) for run in found if run is not None]
    assert injections.take_over(store, taken) == (1, 1)
    assert injections.take_over(store, taken) == (0, 1)
