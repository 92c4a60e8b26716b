"""A model's step is asserted after blind labels of what it has read itself, and after nothing else."""

from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest
from judge.llm.scripted_judge import PRICES_OF_TWO, WRONG_STEP, JudgeScript, judged, trip

from mast_trace_judge.confirmation import Confirmation
from mast_trace_judge.llm.prompts import prompt_of_readings
from mast_trace_judge.proof import rank_of
from mast_trace_judge.store.confirmations import record_confirmation
from mast_trace_judge.store.labels import HumanLabel, labels_of, save_labels
from mast_trace_judge.store.ledger import StoreLedger
from mast_trace_judge.store.model_records import record_behind
from mast_trace_judge.store.replay_plans import ReplayPlan
from mast_trace_judge.store.verdicts import save
from mast_trace_judge.verdict import Candidate, RunFacts, Verdict

NOW = datetime(2026, 3, 1, tzinfo=timezone.utc)
OTHER = timedelta(hours=1)


def verdict(number, **more):
    values = {
        "trace_id": f"{number:032x}",
        "project": "shop",
        "fingerprint": "f",
        "judge_version": "v",
        "judged_at": NOW,
        "run_start": NOW,
        "run_end": NOW,
        "steps": 9,
        "method": "fused",
        "outcome": "failure",
        "framework": "ag2",
        "model": "scripted",
        "prompt": prompt_of_readings(),
        "model_step": 1,
        "candidates": (Candidate(step=7, agent="b", probability=0.3),),
    }
    return Verdict(**{**values, **more})


def label(number, step=1, annotator="ada", *, blind=True):
    return HumanLabel(
        f"{number:032x}", annotator, "failure", (), step, "b", project="shop", blind=blind
    )


def read(store, cases, right, *, blind=True, **more):
    """Let a model have read so many failed runs, each with a label that says whether its step was right."""
    save(store, [verdict(n, **more) for n in range(cases)])
    save_labels(store, [label(n, 1 if n < right else 7, blind=blind) for n in range(cases)])


def of_replays(**more):
    return {"run": RunFacts(seen=NOW, kind="replay"), **more}


@pytest.mark.parametrize(
    ("given", "outcome", "asserted"),
    [
        ({"cases": 20, "right": 20}, "failure", True),
        ({"cases": 20, "right": 17}, "failure", True),
        ({"cases": 20, "right": 16}, "failure", False),
        ({"cases": 20, "right": 0}, "failure", False),
        ({"cases": 19, "right": 19}, "failure", False),
        ({"cases": 20, "right": 20, "blind": False}, "failure", False),
        ({"cases": 20, "right": 20, "model": "scripted-2"}, "failure", False),
        ({"cases": 20, "right": 20, "model": "scripted, other"}, "failure", False),
        ({"cases": 20, "right": 20, "prompt": "before"}, "failure", False),
        ({"cases": 20, "right": 20, "framework": "crewai"}, "failure", False),
        ({"cases": 20, "right": 20, "project": "bank"}, "failure", False),
        ({"cases": 20, "right": 20, **of_replays()}, "failure", False),
        ({"cases": 20, "right": 20, "model_step": None}, "failure", False),
        ({"cases": 20, "right": 20, "outcome": "unknown"}, "failure", False),
        ({"cases": 20, "right": 20, "status": "unscored"}, "failure", False),
        ({"cases": 20, "right": 20}, "", False),
        ({"cases": 20, "right": 20}, "success", False),
    ],
)
async def test_a_step_is_asserted_after_enough_blind_labels_alone(store, given, outcome, asserted):
    read(store, **given)
    run = trip(outcome=outcome, prices=PRICES_OF_TWO)
    found = (await judged(JudgeScript(), run, ledger=StoreLedger(store))).verdict
    assert (found.model_step is None) == (outcome == "success")
    assert (found.decisive is not None) == asserted
    if asserted:
        assert (found.decisive.step, rank_of(found)) == (WRONG_STEP, "model")
        assert found.candidates[0].step == found.look_first[0].step == WRONG_STEP
        assert (found.look_first[0].right, found.look_first[0].cases) == (given["right"], 20)


def test_sources_count_apart_and_each_run_once(store):
    """The newest verdict with the prompt counts, and the step that most of its labels name, the earliest of several."""
    save(store, [verdict(n, model_step=5) for n in range(4)])
    save(store, [verdict(n, judge_version="w", judged_at=NOW + OTHER) for n in range(4)])
    save(store, [verdict(4, model_step=None), verdict(6), verdict(7)])
    save_labels(
        store, [label(4), label(0), label(1, 5, "ada"), label(1, 1, "bob"), label(1, 1, "cy")]
    )
    save_labels(store, [label(6, 5, "ada"), label(6, 1, "bob")])
    save_labels(store, [label(7, 5, "ada"), label(7, 5, "bob"), label(7, 1, "cy")])
    # Another project has a run of this id.
    save_labels(store, [replace(label(0, 7, "eve"), project="bank")])
    save_labels(store, [label(2, blind=False), HumanLabel(f"{3:032x}", "ada", project="shop")])
    plan = ReplayPlan("shop", f"{0:032x}", "p", name="", fingerprint="f", service="", run_end=NOW)
    for number, origin in ((0, 5), (1, 0), (2, 1)):
        proved = Confirmation(status="confirmed", origin=origin)
        record_confirmation(store, replace(plan, trace_id=f"{number:032x}"), proved)
    record = record_behind(store, verdict(99))
    assert record.cases == {"blind": 4, "beside": 1, "replays": 3}
    assert record.hits == {"blind": 3, "beside": 1, "replays": 1}
    assert "4 of 20" in record.standing
    assert record_behind(store, None) is record_behind(store, verdict(99, model="")) is None
    assert record_behind(store, verdict(99, model="n")).blind == (0, 0)


def test_a_label_given_again_beside_the_verdict_is_not_blind(store):
    save(store, [verdict(0)])
    save_labels(store, [label(0)])
    assert [each.blind for each in labels_of(store)] == [True]
    save_labels(store, [label(0, blind=False)])
    assert record_behind(store, verdict(0)).cases == {"beside": 1}
