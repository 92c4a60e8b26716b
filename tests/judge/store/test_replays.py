"""Replays are stored in order, once each, and their cost survives a killed process."""

from datetime import timezone

import pytest
from judge.store.invented_replays import result, run

from mast_trace.exceptions import StorageError
from mast_trace_judge.arms import ArmResult, Fix, ReplayArm
from mast_trace_judge.store import replays
from mast_trace_judge.store.replay_plans import plan_of, plans_of_run, stored_plan
from mast_trace_judge.store.replays import (
    record_result,
    reservations_of,
    reserve,
    result_at,
    results_of,
)

RESULT = Fix("person", "118", result=True)
FIX = ReplayArm("fix", 5, Fix("person", "say 118 \u2603"))


def test_the_first_plan_of_a_run_stays(store):
    """A second process, or a later day, resumes the experiment that was planned first."""
    assert stored_plan(store, "shop", run().trace_id) is None
    first = plan_of(store, run(), '{"seed": 1}')
    second = plan_of(store, run(fingerprint="f2"), '{"seed": 2}')
    assert second == first == stored_plan(store, "shop", run().trace_id)
    assert (first.text, first.fingerprint, first.run_end) == ('{"seed": 1}', "f1", run().end)


def test_plans_of_other_runs_projects_and_names_are_others(store):
    plans = [
        plan_of(store, run(), "a"),
        plan_of(store, run(project="bank"), "b"),
        plan_of(store, run(2), "c"),
        plan_of(store, run(), "d", name="by hand"),
    ]
    assert [plan.text for plan in plans] == ["a", "b", "c", "d"]
    assert len({plan.plan_id for plan in plans}) == 4
    for prefix, found in (("", [plans[0], plans[3]]), ("by", [plans[3]]), ("hand", [])):
        assert [*plans_of_run(store, "shop", run().trace_id, prefix=prefix)] == found
    for plan in plans:
        assert reserve(store, plan, 1, FIX, live_calls=1, cost_usd=0.1, holder=plan.text)
        assert record_result(store, plan, 0, result(answer=plan.text))
    for plan in plans:
        assert [each.answer for each in results_of(store, plan)] == [plan.text]
        assert [each.holder for each in reservations_of(store, plan)] == [plan.text]


@pytest.mark.parametrize(
    "stored",
    [
        result(),
        result(arm=FIX, success=False, reason="wrong sum", phase="pairs", pair=3),
        result(arm=ReplayArm("resample", 2, Fix("resample"), hold=True), cost_usd=None, models=()),
        result(
            arm=ReplayArm("fix", 1, Fix("stronger model", model="big-1")), answer="\u20ac 118\n\x00"
        ),
        result(
            arm=ReplayArm(
                "fix", 1, FIX.fix, also=((5, Fix("stronger model", model="b")), (7, FIX.fix))
            )
        ),
        result(arm=ReplayArm("result", 1, RESULT, also=((5, FIX.fix), (5, RESULT)))),
        result(arm=ReplayArm("result", 1, RESULT)),
        ArmResult(ReplayArm("verify"), "diverged", reason="step 3: another tool"),
    ],
)
def test_a_result_comes_back_as_it_was(store, stored):
    plan = plan_of(store, run(), "")
    assert record_result(store, plan, 0, stored, span_id="s5")
    assert results_of(store, plan) == (stored,)
    (row,) = store.query("SELECT SpanId, ServiceName, RunEnd FROM mast_replays")
    assert (row["SpanId"], row["ServiceName"]) == ("s5", "travel")
    assert row["RunEnd"].replace(tzinfo=timezone.utc) == run().end


def test_results_are_in_the_order_of_their_numbers(store):
    """Several at once may end in another order."""
    plan = plan_of(store, run(), "")
    for number in (2, 0, 1):
        record_result(store, plan, number, result(answer=str(number)))
    assert [each.answer for each in results_of(store, plan)] == ["0", "1", "2"]


@pytest.mark.parametrize("merged", [False, True])
def test_a_number_has_one_result_the_first(store, merged):
    plan = plan_of(store, run(), "")
    assert record_result(store, plan, 0, result(success=False), holder="a/1")
    assert not record_result(store, plan, 0, result(success=True), holder="a/1")
    assert not record_result(store, plan, 0, result(success=True), holder="b/2")
    assert not reserve(store, plan, 0, FIX, live_calls=9, cost_usd=1.0)
    if merged:
        store.command("OPTIMIZE TABLE mast_replays FINAL")
    assert [each.success for each in results_of(store, plan)] == [False]
    assert result_at(store, plan, 0) == result(success=False)


def see_nothing_at_first(monkeypatch):
    """Have the first look at a number find no row, as if another process had not written it yet."""
    look, looks = replays._at, []

    def at(*given, **more):
        looks.append(1)
        return look(*given, **more) if len(looks) > 1 else []

    monkeypatch.setattr(replays, "_at", at)


@pytest.mark.parametrize("clock", ["right", "behind"])
def test_of_two_processes_that_reserve_at_once_the_later_waits(store, monkeypatch, clock):
    """Both saw nothing and wrote a row; by a clock that is behind, the later one's is the earlier."""
    plan = plan_of(store, run(), "")
    assert reserve(store, plan, 0, FIX, live_calls=1, cost_usd=0.1, holder="a/1")
    see_nothing_at_first(monkeypatch)
    if clock == "behind":
        monkeypatch.setattr(replays, "precedence", lambda *_given, **_more: 2**63)
    assert not reserve(store, plan, 0, FIX, live_calls=1, cost_usd=0.1, holder="b/2")
    holder = {"right": "a/1", "behind": "b/2"}[clock]
    assert [each.holder for each in reservations_of(store, plan)] == [holder]


def test_of_two_results_at_once_the_earlier_stays(store, monkeypatch):
    """Both saw nothing and wrote a row: one counts, the same for both."""
    plan = plan_of(store, run(), "")
    assert record_result(store, plan, 0, result(answer="early"), holder="a/1")
    see_nothing_at_first(monkeypatch)
    assert not record_result(store, plan, 0, result(answer="late"), holder="b/2")
    assert [each.answer for each in results_of(store, plan)] == ["early"]


def test_what_a_killed_process_reserved_stays_spent(store):
    """The reservation counts with all that it may have cost, until its result is known."""
    plan = plan_of(store, run(), "")
    given = {"live_calls": 9, "cost_usd": 0.9, "phase": "pairs", "pair": 2}
    assert reserve(store, plan, 0, FIX, **given, holder="a/1")
    assert reserve(store, plan, 0, FIX, **given, holder="a/1"), "its own one it may take up again"
    assert (results_of(store, plan), result_at(store, plan, 0)) == ((), None)
    (left,) = reservations_of(store, plan)
    assert (left.sequence, left.arm, left.phase, left.pair) == (0, FIX, "pairs", 2)
    assert (left.live_calls, left.cost_usd, left.holder) == (9, 0.9, "a/1")
    assert not reserve(store, plan, 0, FIX, **given, holder="b/2")
    assert record_result(store, plan, 0, result(arm=FIX, live_calls=4, cost_usd=0.4), holder="b/2")
    assert not reserve(store, plan, 0, FIX, **given, holder="b/2"), "it has its result"
    assert reservations_of(store, plan) == ()
    assert record_result(store, plan, 2, result(answer="third"))
    assert not reserve(store, plan, 2, FIX, **given), "nor its own one that has a result"
    found = [result_at(store, plan, number) for number in (0, 1, 2)]
    assert [each and each.answer for each in found] == ["118 EUR", None, "third"]


def test_a_database_that_is_away_is_an_error(store, monkeypatch):
    """Nothing may be started whose cost cannot be written down."""
    plan = plan_of(store, run(), "")

    def failing(*_arguments, **_options):
        raise StorageError("the database is away")

    monkeypatch.setattr(store, "insert", failing)
    with pytest.raises(StorageError):
        reserve(store, plan, 0, FIX, live_calls=1, cost_usd=None)
