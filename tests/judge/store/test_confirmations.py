"""Conclusions come back whole, the latest of each run, and follow their run."""

from datetime import datetime, timedelta, timezone

import pytest
from judge.store.invented_replays import result, run
from judge.store.verdicts import verdict

from mast_trace_collector.storage.erasure import erase, of_project, of_runs
from mast_trace_collector.storage.retention import beyond_age, set_ttl
from mast_trace_judge.arms import Arm, Fix
from mast_trace_judge.confirmation import Confirmation, Contrast, SuccessRate
from mast_trace_judge.store.confirmations import confirmation_of, record_confirmation
from mast_trace_judge.store.replays import plan_of, record_result, results_of
from mast_trace_judge.store.verdicts import load, load_judged, load_latest, save

TRACE = run().trace_id
TABLES = ("mast_replay_plans", "mast_replays", "mast_confirmations")


def proof(**more):
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
        "contrasts": (
            Contrast(
                step=3,
                agent="researcher",
                source="person",
                fix_text="say 118",
                fix_successes=6,
                keep_successes=0,
                pairs=7,
                censored=1,
                e_value=85.5,
                threshold=60.0,
                effect=0.857,
            ),
        ),
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
    fix = Arm("fix", 3, Fix("person", "say 118"))
    record_result(store, plan, len(results_of(store, plan)), result(arm=fix), span_id="s3")
    return record_confirmation(store, plan, confirmation)


def test_a_conclusion_comes_back_as_it_was(store):
    """With its plan, and with the span of its step."""
    told = stored(store, proof())
    assert (told.origin_span_id, len(told.plan_id)) == ("s3", 32)
    assert told == proof(origin_span_id="s3", plan_id=told.plan_id)
    assert confirmation_of(store, "shop", TRACE) == told
    assert confirmation_of(store, "shop", TRACE, fingerprint="f1") == told


def test_a_number_that_json_cannot_hold_is_refused_at_once(store):
    """Otherwise nobody could read the conclusion again."""
    endless = proof().contrasts[0].model_copy(update={"e_value": float("inf")})
    with pytest.raises(ValueError, match="e_value"):
        stored(store, proof(contrasts=(endless,)))
    assert confirmation_of(store, "shop", TRACE) is None


def test_columns_have_what_queries_need(store):
    """Counts, intervals and e-values can be read without the JSON."""
    stored(store, proof())
    (row,) = store.query("SELECT *, RunKey FROM mast_confirmations")
    assert (row["Status"], row["OriginStep"], row["PointOfNoReturn"]) == ("repairable", 3, 4)
    assert (row["Curve.Step"], row["Curve.Runs"], row["Curve.High"]) == (
        [-1, 3],
        [8, 8],
        [0.98, 0.32],
    )
    assert (row["Contrasts.EValue"], row["Contrasts.Censored"]) == ([85.5], [1])
    assert (row["Refuted"], row["CostUsd"], row["Replays"]) == ([1, 2], None, 31)
    assert row["RunKey"] == store.query(f"SELECT halfMD5('shop', '{TRACE}') AS k")[0]["k"]


def test_columns_hold_no_step_that_was_not_proved(store):
    """A query cannot call a step decisive that Python does not."""
    stored(store, proof(status="not isolated"))
    (row,) = store.query("SELECT * FROM mast_confirmations")
    assert (row["OriginStep"], row["OriginAgent"], row["Refuted"]) == (None, "", [])


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


def test_a_changed_run_has_its_conclusion_no_more(store):
    """Its steps may have other numbers: the cost alone is left."""
    told = stored(store, proof())
    other = confirmation_of(store, "shop", TRACE, fingerprint="f2")
    assert (other.status, other.origin, other.refuted, other.curve) == ("untested", None, (), ())
    assert (other.replays, other.live_calls, other.plan_id) == (31, 120, told.plan_id)
    assert "confirm it again" in other.text


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


def test_erasing_a_run_erases_its_replays(store):
    """Texts of fixes and answers quote the run."""
    for number in (1, 2):
        stored(store, proof(), of=run(number))
    erase(store, *of_runs(store, [TRACE]))
    assert left(store) == {key: {"2"} for key in TABLES}
    assert confirmation_of(store, "shop", TRACE) is None


def test_erasing_a_project_erases_its_replays(store):
    """And those of no other."""
    stored(store, proof())
    stored(store, proof(), of=run(2, project="bank"))
    erase(store, of_project(store, "shop"))
    assert left(store) == {key: {"2"} for key in TABLES}


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
