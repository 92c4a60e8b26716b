"""Conclusions come back whole, the latest of each run, and follow their run."""

from datetime import datetime, timedelta, timezone

import pytest
from invented_records import contrast
from judge.store.invented_replays import result, run
from judge.store.verdicts import verdict

from mast_trace_collector.storage.removal.erasure import erase, of_project, of_runs
from mast_trace_collector.storage.removal.retention import beyond_age, set_ttl
from mast_trace_judge.arms import Fix, ReplayArm
from mast_trace_judge.confirmation import Confirmation, SuccessRate
from mast_trace_judge.store import confirmations
from mast_trace_judge.store.confirmations import (
    confirmation_of,
    confirmations_of,
    record_confirmation,
    show_missing,
    take_over,
)
from mast_trace_judge.store.replay_plans import plan_of
from mast_trace_judge.store.replays import record_result, results_of
from mast_trace_judge.store.verdicts import load, load_judged, load_latest, save
from mast_trace_judge.verdict import Place

TRACE = run().trace_id
TABLES = ("mast_replay_plans", "mast_replays", "mast_confirmations")


def proof(**more):
    counts = {"fix_successes": 6, "pairs": 7, "censored": 1, "e_value": 85.5, "effect": 0.857}
    given = {
        "status": "repairable",
        "text": "Correcting step 3 helps; \u2603 the last chance was step 4.",
        "origin": 3,
        "origin_agent": "researcher",
        "point_of_no_return": 4,
        "point_agent": "planner",
        "curve": (
            SuccessRate(step=-1, successes=7, runs=8, low=0.53, high=0.98),
            SuccessRate(step=3, successes=0, runs=8, low=0.0, high=0.32),
        ),
        "contrasts": (contrast(3, agent="researcher", **counts),),
        "likely": ((3, 0.8), (4, 0.12)),
        "refuted": (1, 2),
        "planned_contrasts": 3,
        "replays": 31,
        "live_calls": 120,
        "cost_usd": None,
    }
    return Confirmation(**{**given, **more})


def stored(store, confirmation, *, of=None):
    """Record a conclusion with the one replay that it rests on."""
    of = of or run()
    plan = plan_of(store, of, "{}")
    fix = ReplayArm("fix", 3, Fix("person", "say 118"))
    record_result(store, plan, len(results_of(store, plan)), result(arm=fix), span_id="s3")
    return record_confirmation(store, plan, confirmation)


def test_a_conclusion_comes_back_as_it_was(store):
    fix = ReplayArm("fix", 3, Fix("person", "say 118"))
    bank = run(project="bank", fingerprint="f7")
    for of, name in ((run(), "by hand"), (bank, "confirm"), (run(2), "confirm")):
        record_result(store, plan_of(store, of, "{}", name=name), 0, result(arm=fix), span_id="s9")
    record_result(
        store, plan_of(store, run(), "{}"), 9, result(arm=ReplayArm("keep", 4)), span_id="s9"
    )
    told = stored(store, proof())
    assert (told.origin_span_id, len(told.plan_id)) == ("s3", 32)
    assert told == proof(origin_span_id="s3", plan_id=told.plan_id)
    assert confirmation_of(store, "shop", TRACE) == told
    assert confirmation_of(store, "shop", TRACE, fingerprint="f1") == told
    of_bank = proof(status="refuted", origin=None, origin_agent="")
    stored(store, of_bank, of=bank)
    found = confirmations_of(store, [("shop", TRACE), ("bank", TRACE), ("shop", "none")])
    assert {key: of for key, (_, of) in found.items()} == {
        ("shop", TRACE): "f1",
        ("bank", TRACE): "f7",
    }
    assert (found["shop", TRACE][0], found["bank", TRACE][0].status) == (told, "refuted")


def test_a_conclusion_of_another_store_is_taken_where_there_is_none(store):
    """It belongs to no plan, and replaces nothing."""
    assert take_over(store, run(), proof(plan_id="theirs"))
    assert confirmation_of(store, "shop", TRACE) == proof(plan_id="")
    assert not take_over(store, run(), proof(status="refuted"))
    assert confirmation_of(store, "shop", TRACE) == proof(plan_id="")
    assert take_over(store, run(project="bank"), proof(status="refuted"))


def test_a_number_that_json_cannot_hold_is_refused_at_once(store):
    """Otherwise nobody could read the conclusion again."""
    endless = proof().contrasts[0].model_copy(update={"e_value": float("inf")})
    with pytest.raises(ValueError, match="e_value"):
        stored(store, proof(contrasts=(endless,)))
    assert confirmation_of(store, "shop", TRACE) is None


@pytest.mark.parametrize(
    ("status", "proved"),
    [
        ("repairable", (3, "researcher", "s3", [1, 2])),
        ("refuted", (None, "", "", [1, 2])),
        ("not isolated", (None, "", "", [])),
    ],
)
def test_columns_have_what_queries_need(store, status, proved):
    """Counts, intervals and e-values can be read without the JSON, and no step is decisive that Python calls none."""
    told = stored(store, proof(status=status, cost_usd=0.5))
    (row,) = store.query("SELECT *, RunKey FROM mast_confirmations")
    key = store.query(f"SELECT halfMD5('shop', '{TRACE}') AS k")[0]["k"]
    expected = {
        "Project": "shop",
        "TraceId": TRACE,
        "Fingerprint": "f1",
        "PlanId": told.plan_id,
        "Status": status,
        "Text": proof().text,
        "PointOfNoReturn": 4,
        "PointAgent": "planner",
        "Curve.Step": [-1, 3],
        "Curve.Successes": [7, 0],
        "Curve.Runs": [8, 8],
        "Curve.Low": [0.53, 0.0],
        "Curve.High": [0.98, 0.32],
        "Contrasts.Step": [3],
        "Contrasts.Agent": ["researcher"],
        "Contrasts.Source": ["person"],
        "Contrasts.FixSuccesses": [6],
        "Contrasts.KeepSuccesses": [0],
        "Contrasts.Pairs": [7],
        "Contrasts.Censored": [1],
        "Contrasts.EValue": [85.5],
        "Contrasts.Threshold": [60.0],
        "Contrasts.Effect": [0.857],
        "PlannedContrasts": 3,
        "Replays": 31,
        "LiveCalls": 120,
        "CostUsd": 0.5,
        "ServiceName": "travel",
        "RunKey": key,
    }
    assert {name: row[name] for name in expected} == expected
    named = ("OriginStep", "OriginAgent", "OriginSpanId", "Refuted")
    assert tuple(row[name] for name in named) == proved
    assert row["RunEnd"].replace(tzinfo=timezone.utc) == run().end


@pytest.mark.parametrize("merged", [False, True])
def test_the_latest_conclusion_of_a_run_counts(store, merged):
    """An experiment that goes on replaces its earlier conclusion."""
    stored(store, Confirmation(status="inconclusive", replays=10))
    stored(store, proof())
    if merged:
        store.command("OPTIMIZE TABLE mast_confirmations FINAL")
    assert confirmation_of(store, "shop", TRACE).status == "repairable"
    assert confirmation_of(store, "bank", TRACE) is None
    assert confirmation_of(store, "shop", "f" * 32) is None


NEWEST = """SELECT DecisiveStep, DecisiveSpanId, Confirmation, Calibrated, ModeBits, ExaminedBits,
    `LookFirst.Step` AS Places, `LookFirst.Basis` AS Bases FROM mast_findings
    ORDER BY JudgedAt DESC, ShownAt DESC LIMIT 1"""


@pytest.mark.parametrize("merged", [False, True])
@pytest.mark.parametrize("order", ["verdict first", "conclusion first", "between", "killed"])
def test_lists_show_a_conclusion_whoever_stored_first(store, monkeypatch, order, merged):
    """Either writer looks for the other's row after its own; where one is killed, a sweep comes after it."""
    places = (
        Place(step=5, agent="planner", basis="rule", why="fails", span_id="s5"),
        Place(step=2, agent="lead", basis="record", why="refuted", span_id="s2"),
    )
    judged = verdict(fingerprint=run().fingerprint, trace_id=TRACE, look_first=places)
    judged = judged.model_copy(update={"examined": ("1.3", "2.6"), "calibrated": True})
    if order != "conclusion first":
        save(store, [judged])
    if order == "killed":
        monkeypatch.setattr(confirmations, "show", lambda _store, _runs: 0)
    stored(store, proof())
    if order in {"conclusion first", "between"}:
        save(store, [judged.model_copy(update={"judged_at": judged.judged_at + timedelta(1)})])
    monkeypatch.undo()
    assert [show_missing(store), show_missing(store)] == [int(order == "killed"), 0]
    if merged:
        store.command("OPTIMIZE TABLE mast_findings FINAL")
    (row,) = store.query(NEWEST)
    assert row == {
        "DecisiveStep": 3,
        "DecisiveSpanId": "s3",
        "Confirmation": "repairable",
        "Calibrated": False,
        "ModeBits": row["ExaminedBits"],
        "ExaminedBits": (1 << 2) + (1 << 10),
        "Places": [3, 5],
        "Bases": ["confirmed", "rule"],
    }
    assert load_judged(store, TRACE).look_first == places, "the judge's own verdict stays"
    assert load_latest(store, TRACE).look_first[0].basis == "confirmed"


def test_a_changed_run_has_its_conclusion_no_more(store):
    """Its steps may have other numbers: the cost alone is left, and no list shows more."""
    save(store, [verdict(fingerprint="f2", trace_id=TRACE)])
    told = stored(store, proof(cost_usd=0.5))
    assert [row["Confirmation"] for row in store.query(NEWEST)] == [""]
    other = confirmation_of(store, "shop", TRACE, fingerprint="f2")
    assert "confirm it again" in other.text
    assert other == Confirmation(
        text=other.text,
        plan_id=told.plan_id,
        planned_contrasts=3,
        replays=31,
        live_calls=120,
        cost_usd=0.5,
    )


def test_a_verdict_that_is_read_has_the_conclusion(store):
    """The verdicts of the judge stay as they were; the shown one names the confirmed step."""
    named = verdict(decisive=None, abstained=True)
    save(store, [named])
    stored(store, proof(origin=4, origin_agent="planner"))
    shown = load_latest(store, TRACE)
    assert (shown.decisive.step, shown.rank) == (4, "confirmed by replay")
    assert load(store, TRACE) == [named]
    assert load_judged(store, TRACE) == named
    with pytest.raises(ValueError, match="cannot be stored"):
        save(store, [shown])


def test_judging_again_keeps_the_conclusion(store):
    """The proof is about the run, whichever judge reads it."""
    save(store, [verdict()])
    told = stored(store, proof())
    save(store, [verdict(version="v2", hours=5)])
    shown = load_latest(store, TRACE)
    assert (shown.judge_version, shown.confirmation) == ("v2", told)


def left(store):
    return {
        table: {row["TraceId"][-1] for row in store.query(f"SELECT TraceId FROM {table}")}
        for table in TABLES
    }


@pytest.mark.parametrize("other", [{}, {"project": "bank"}])
def test_erasing_a_run_erases_its_replays(store, other):
    stored(store, proof())
    stored(store, proof(), of=run(2, **other))
    erase(store, *([of_project(store, "shop")] if other else of_runs(store, [TRACE])))
    assert left(store) == {key: {"2"} for key in TABLES}
    assert confirmation_of(store, "shop", TRACE) is None


def test_retention_follows_the_original_run(store):
    """Replays of today, of a run that ended long ago, go with the run."""
    now = datetime.now(timezone.utc)
    stored(store, proof(), of=run(end=now - timedelta(days=40)))
    stored(store, proof(), of=run(2, end=now - timedelta(days=1)))
    assert beyond_age(store, 30).rows == dict.fromkeys(TABLES, 1)
    set_ttl(store, 30)
    for table in TABLES:
        store.command(f"OPTIMIZE TABLE {table} FINAL", settings={"mutations_sync": 2})
    assert left(store) == {key: {"2"} for key in TABLES}
