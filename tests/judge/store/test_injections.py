"""Planted faults come back as they were: of their project, of their run, and with the run of their plan alone."""

from judge.store.invented_replays import run

from mast_trace.trajectory import Step, StepKind, Trajectory
from mast_trace_judge.store.injections import (
    PLAN,
    Injection,
    injections,
    plans_of_faults,
    save_injection,
    stored_run,
)

FAULTY = Trajectory(
    "f" * 32,
    (Step(0, StepKind.MESSAGE, "planner", text="go", span_id="a" * 16),),
    outcome="failure",
)


def test_faults_are_kept_apart_by_project_run_and_plan(store):
    def fault(of, identity, plan, made=None):
        planted = ("operator", "1.1", "answer", 0, "planner")
        kept = Injection(
            of.project, of.trace_id, identity, *planted, run=made, change={PLAN: plan, "text": "x"}
        )
        save_injection(store, kept, of)
        return kept

    shop, bank = run(), run(project="bank")
    first, theirs = fault(shop, "f1", "p1", FAULTY), fault(bank, "f1", "p2")
    second, other = fault(shop, "f2", "p3"), fault(run(2), "f1", "p1")
    assert [*injections(store)] == [theirs, first, second, other]
    assert [*injections(store, project="shop")] == [first, second, other]
    assert plans_of_faults(store, "shop", shop.trace_id) == {"f1": "p1", "f2": "p3"}
    assert plans_of_faults(store, "bank", bank.trace_id) == {"f1": "p2"}
    assert stored_run(store, "shop", shop.trace_id, "f1", "p1") == FAULTY
    for project, number, identity, plan in (
        ("bank", 1, "f1", "p1"),
        ("bank", 1, "f1", "p2"),
        ("shop", 2, "f1", "p1"),
        ("shop", 1, "f2", "p1"),
        ("shop", 1, "f1", "p3"),
    ):
        assert stored_run(store, project, f"{number:032x}", identity, plan) is None
    rows = store.query("SELECT SpanId, ServiceName FROM mast_injections WHERE Run != ''")
    assert rows == [{"SpanId": "a" * 16, "ServiceName": ""}]
