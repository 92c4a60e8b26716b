"""A model's percentages are shares of the labelled runs that it has read; too few give none."""

from datetime import datetime, timedelta, timezone

import pytest

from mast_trace_judge.store.labels import HumanLabel, labels_of, save_labels
from mast_trace_judge.store.verdicts import save
from mast_trace_judge.study.model_calibration import calibration_of, model_calibrations
from mast_trace_judge.verdict import Candidate, DecisiveError, Verdict

NOW = datetime(2026, 3, 1, tzinfo=timezone.utc)


def verdict(number, *, steps=(1, 2, 3), named=True, model="m", framework="ag2", **more):
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
        "framework": framework,
        "model": model,
        "candidates": tuple(Candidate(step=s, agent="b", probability=0.3) for s in steps),
        "decisive": DecisiveError(step=steps[0], agent="b", probability=0.3) if named else None,
        "abstained": not named,
    }
    return Verdict(**{**values, **more})


def label(number, step, annotator="ada", project="shop"):
    return HumanLabel(
        f"{number:032x}",
        annotator,
        "failure",
        decisive_step=step,
        decisive_agent="b",
        project=project,
    )


def test_shares_are_of_the_labelled_runs_that_the_model_read(store):
    """In twelve runs a step is named: nine right, two second; in three runs the model is unsure."""
    save(store, [verdict(n) for n in range(12)])
    save(store, [verdict(n, named=False) for n in range(12, 15)])
    save(store, [verdict(n) for n in range(15, 40)])  # not labelled
    steps = [1] * 9 + [2] * 2 + [7] + [3, 3, 1]
    save_labels(store, [label(n, step) for n, step in enumerate(steps)])
    found = calibration_of(store, verdict(99))
    assert (found.model, found.framework, found.project) == ("m", "ag2", "shop")
    assert (found.named.runs, found.named.right) == (12, (9, 2, 0))
    assert (found.unsure.runs, found.unsure.right) == (3, (1, 0, 2))
    assert found.named.is_enough
    assert not found.unsure.is_enough
    assert found.of(verdict(99)) is found.named
    assert found.of(verdict(99, named=False)) is found.unsure
    interval = found.named.interval(0)
    assert 0.4 < interval.low < found.named.share(0) == 0.75 < interval.high < 0.95


@pytest.mark.parametrize(
    "other",
    [
        {"model": "n"},
        {"framework": "crewai"},
        {"project": "bank"},
        {"model": "m, n"},
        {"model": ""},
    ],
)
def test_one_models_record_is_no_other_s(store, other):
    """Calibrations are separate by model, framework, project and panel; rules alone have none."""
    save(store, [verdict(n) for n in range(12)])
    save_labels(store, [label(n, 1) for n in range(12)])
    assert calibration_of(store, verdict(99, **other)) is None
    assert calibration_of(store, None) is None


def test_the_newest_verdict_of_the_model_and_most_annotators_count(store):
    """The newest verdict of each model and the most frequent label count, after other models' too."""
    later = NOW + timedelta(hours=1)
    save(store, [verdict(0, steps=(5, 6, 7))])
    save(store, [verdict(0, judge_version="w", judged_at=later)])
    save(
        store,
        [
            verdict(
                0, steps=(8, 6, 7), model="n", judge_version="x", judged_at=later + (later - NOW)
            )
        ],
    )
    save_labels(store, [label(0, 5, "ada"), label(0, 1, "bob"), label(0, 1, "cy")])
    save_labels(store, [HumanLabel(f"{1:032x}", "ada", "failure", ("1.3",), project="shop")])
    save(store, [verdict(1), verdict(2, status="unscored")])
    save_labels(store, [label(2, 1)])
    found = {each.model: each for each in model_calibrations(store, labels_of(store))}
    assert (found["m"].named.runs, found["m"].named.right) == (1, (1, 0, 0))
    assert (found["n"].named.runs, found["n"].named.right) == (1, (0, 0, 0))
