"""Scoring against labels, on invented predictions and on a small invented set."""

import io
import json
import xml.etree.ElementTree as ET
from collections import Counter

import pytest
from invented_records import failure_set
from judge.builders import RunBuilder
from rich.console import Console

from mast_trace.exceptions import ConfigurationError
from mast_trace_judge.study.bench import run_bench
from mast_trace_judge.study.bench.methods import (
    best_fixed_step,
    fixed_step,
    left_out_of,
    random_step,
    rule_recall,
)
from mast_trace_judge.study.bench.rendering import tables, to_json, write_markdown
from mast_trace_judge.study.bench.scoring import Prediction, score
from mast_trace_judge.study.labelled import LabelledRun, read_injected
from mast_trace_judge.study.training import fit


def _labelled(step: int, agent: str = "b", group: str = "q", marked: frozenset[int] = frozenset()):
    run = RunBuilder(outcome="failure")
    for place in range(14):
        run.says("abcd"[place % 4], f"Remark {place}.")
    return LabelledRun("made-up", group, run.build(), group, step, agent, marked)


def test_calibration_error_is_the_weighted_distance_per_bin():
    """Ten predictions at 0.85 with nine right, ten at 0.25 with none right: (0.05 + 0.25) / 2."""
    runs = [_labelled(5)] * 20
    sure = [[Prediction((5 if i else 6,), "b", probability=0.85)] for i in range(10)]
    unsure = [[Prediction((6,), "b", probability=0.25)] for _ in range(10)]
    found = score("judge", "made-up", runs, [*sure, *unsure])
    assert found.calibration_error == pytest.approx(0.15)
    assert len(found.reliability) == 2
    assert found.step_errors == {0: 9, 1: 11}
    coin = [Prediction((5,), "b", probability=0.5)] * 50  # they fall together
    assert score("x", "y", runs[:1], [coin]).error_by_chance == pytest.approx(0.5)
    assert score("x", "y", runs[:1], [[Prediction((5,), "b")]]).error_by_chance is None


def test_random_is_scored_as_an_expectation():
    """The expected shares are 1/14 for the step, 3/14 for the first three, and 4/14 for the agent."""
    shares = score("random", "made-up", [_labelled(5)], random_step([_labelled(5)])).shares
    assert shares["step"].value == pytest.approx(1 / 14)
    assert shares["top 3"].value == pytest.approx(3 / 14)
    assert shares["agent"].value == pytest.approx(4 / 14)


def test_a_constant_position_is_chosen_on_other_questions():
    runs = [_labelled(3, group="q1"), _labelled(3, group="q1"), _labelled(7, group="q2")]
    assert [given[0].steps[0] for given in best_fixed_step(runs)] == [7, 7, 3]
    assert fixed_step(runs, 99)[0][0].steps == (13,)


@pytest.fixture
def data(tmp_path):
    return failure_set(tmp_path, 12)


def test_a_benchmark_scores_baselines_and_local_methods(data):
    report = run_bench(data, ["local"], repeats=1)
    rows = {found.method: found for found in report.scores}
    assert "random step" in rows
    assert "cascade, untrained" in rows
    assert rows["profile, cross-validated"].shares["step"].value > 0.8
    assert set(report.milliseconds) == {"rules", "attribution"}


def test_another_judge_gets_a_row_of_its_own(data):
    """Any method that predicts a step can be measured beside the local layers."""
    report = run_bench(data, ["rules"], {"always 2": lambda _: Prediction((2,), "Worker2_Expert")})
    name = "always 2, out of sample: all 12 runs"
    (row,) = [found for found in report.scores if found.method == name]
    assert row.shares["step"].value == pytest.approx(1 / 3)


def _shipped(report, subset="proved by replay"):
    return {
        found.method: (found.runs, found.in_sample)
        for found in report.scores
        if found.subset == subset and found.method.startswith("as shipped")
    }


def test_a_foreign_set_is_out_of_sample(data):
    """No shipped profile has seen a run of it."""
    report = run_bench(data, ["local"], repeats=1)
    assert report.in_sample == {"proved by replay": 0}
    expected = {"as shipped, out of sample (cascade 12): all 12 runs": (12, 0)}
    assert _shipped(report) == expected
    (title, *_) = (table.title for table in tables(report))
    assert "none of them in the training of a shipped profile" in title


def test_one_s_own_profile_is_known_by_its_runs(data):
    """Runs that `judge fit` has learned from are in sample for a judge with that profile."""
    runs = read_injected(data)
    own = fit(runs[:10], name="own", repeats=1)
    judges = {"judge": lambda _: Prediction((2,), "b")}
    report = run_bench(data, ["rules"], judges, profiles=[own])
    rows = {found.method: found.in_sample for found in report.scores if "judge" in found.method}
    inside, outside = "judge, in sample: 10 of 12 runs", "judge, out of sample: 2 of 12 runs"
    assert rows == {inside: 10, outside: 0}


def test_an_unknown_layer_and_an_empty_folder_are_refused(data, tmp_path_factory):
    with pytest.raises(ConfigurationError, match="unknown layers"):
        run_bench(data, ["psychic"])
    with pytest.raises(ConfigurationError, match="no failures"):
        run_bench(tmp_path_factory.mktemp("empty"))


def test_a_report_is_shown_as_tables_json_and_markdown(data, tmp_path):
    report = run_bench(data, ["local"], repeats=1)
    console = Console(width=200, record=True, file=io.StringIO())
    for table in tables(report):
        console.print(table)
    assert "cascade, untrained" in console.export_text()
    assert json.loads(json.dumps(to_json(report)))["scores"][0]["method"] == "random step"
    path = write_markdown(report, tmp_path / "report")
    text = path.read_text(encoding="utf-8")
    drawn = sorted(file.name for file in path.parent.glob("*.svg"))
    assert drawn == ["proved by replay-reliability.svg", "proved by replay-step-errors.svg"]
    for name in drawn:
        assert f"({name})" in text
        assert ET.parse(path.parent / name).getroot().tag.endswith("svg")


def test_a_folder_without_a_set_has_no_planted_faults(tmp_path):
    assert (rule_recall(tmp_path), left_out_of(tmp_path)) == ([], Counter())
