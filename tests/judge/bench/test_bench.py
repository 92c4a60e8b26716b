"""Scoring against labels, on invented predictions and on a small invented data folder."""

import io
import json
import xml.etree.ElementTree as ET

import pytest
from invented_records import failure_logs
from judge.builders import RunBuilder
from judge.data import labelled_runs
from rich.console import Console

from mast_trace.exceptions import ConfigurationError
from mast_trace_judge.study.bench import run_bench
from mast_trace_judge.study.bench.held_out import places_seen
from mast_trace_judge.study.bench.methods import best_fixed_step, fixed_step, random_step
from mast_trace_judge.study.bench.rendering import tables, to_json, write_markdown
from mast_trace_judge.study.bench.scoring import Prediction, score
from mast_trace_judge.study.datasets.agentrx import read_agentrx
from mast_trace_judge.study.datasets.labelled import LabelledRun
from mast_trace_judge.study.datasets.mast import read_ag2_coding, read_mast_v0, read_mathchat
from mast_trace_judge.study.datasets.tau_retail import read_tau_retail
from mast_trace_judge.study.datasets.who_and_when import SUBSETS, read_who_and_when
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
    return failure_logs(tmp_path, 12)


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


def _shipped(report, subset="algorithm-generated"):
    return {
        found.method: (found.runs, found.in_sample)
        for found in report.scores
        if found.subset == subset and found.method.startswith("as shipped")
    }


def test_a_foreign_set_is_out_of_sample(data):
    """No shipped profile has seen a run of it; the notes claim nothing of runs that are in sample."""
    report = run_bench(data, ["local"], repeats=1)
    assert report.in_sample == {"algorithm-generated": 0}
    expected = {"as shipped, out of sample (cascade 12): all 12 runs": (12, 0)}
    assert _shipped(report) == expected
    assert not any("fitted to them" in note for note in report.notes)
    (title, *_) = (table.title for table in tables(report))
    assert "none of them in the training of a shipped profile" in title


def test_runs_of_a_profile_are_told_from_others_in_one_set(data):
    """Copies of published runs among foreign ones, under other names, are found by what they hold."""
    source = labelled_runs() / "who-and-when" / "algorithm-generated"
    for number, path in enumerate(sorted(source.glob("*.json"))[:20]):
        target = data / "who-and-when" / "algorithm-generated" / f"copy{number}.json"
        target.write_bytes(path.read_bytes())
    report = run_bench(data, ["local"], {"judge": lambda _: Prediction((2,), "b")}, repeats=1)
    assert report.in_sample == {"algorithm-generated": 20}
    inside, outside = _shipped(report)
    assert inside.endswith(": 20 of 32 runs")
    assert "in sample (ag2-captain " in inside
    assert outside == "as shipped, out of sample (cascade 12): 12 of 32 runs"
    assert list(_shipped(report).values()) == [(20, 20), (12, 0)]
    names = [found.method for found in report.scores if found.method.startswith("judge")]
    assert names == ["judge, in sample: 20 of 32 runs", "judge, out of sample: 12 of 32 runs"]
    assert any("fitted to them" in note for note in report.notes)
    (title, *_) = (table.title for table in tables(report))
    assert "32 runs, 20 of them in the training of a shipped profile" in title


def test_one_s_own_profile_is_known_by_its_runs(data):
    """Runs that `judge fit` has learned from are in sample for a judge with that profile."""
    runs = read_who_and_when(data, "algorithm-generated")
    own = fit(runs[:10], name="own", repeats=1)
    judges = {"judge": lambda _: Prediction((2,), "b")}
    report = run_bench(data, ["rules"], judges, profiles=[own])
    rows = {found.method: found.in_sample for found in report.scores if "judge" in found.method}
    inside, outside = "judge, in sample: 10 of 12 runs", "judge, out of sample: 2 of 12 runs"
    assert rows == {inside: 10, outside: 0}


def _who_and_when(data):
    return [run for subset in SUBSETS for run in read_who_and_when(data, subset)]


@pytest.mark.parametrize("read", [_who_and_when, read_agentrx])
def test_all_published_runs_here_are_in_sample(read):
    """Runs of the published sets are in sample for the shipped profiles, under either team's labels."""
    runs = read(labelled_runs())
    assert len(runs) > 20
    assert len(places_seen(runs)) == len(runs)


@pytest.mark.parametrize("read", [read_mast_v0, read_ag2_coding, read_mathchat, read_tau_retail])
def test_no_run_of_other_sets_is_in_sample(read):
    assert places_seen(read(labelled_runs())) == frozenset()


def test_an_unknown_layer_and_an_empty_folder_are_refused(data, tmp_path_factory):
    with pytest.raises(ConfigurationError, match="unknown layers"):
        run_bench(data, ["psychic"])
    with pytest.raises(ConfigurationError, match="no labelled runs"):
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
    assert drawn == ["algorithm-generated-reliability.svg", "algorithm-generated-step-errors.svg"]
    for name in drawn:
        assert f"({name})" in text
        assert ET.parse(path.parent / name).getroot().tag.endswith("svg")


@pytest.mark.slow
def test_the_judge_reaches_what_is_promised_of_it():
    """Cross-validated, grouped by question; the targets are those of the documentation."""
    report = run_bench(labelled_runs())
    rows = {(found.subset, found.method): found for found in report.scores}
    captain = rows["algorithm-generated", "profile, cross-validated"].shares
    magentic = rows["hand-crafted", "profile, cross-validated"].shares
    assert captain["agent"].value >= 0.58
    assert captain["step"].value >= 0.37
    assert captain["top 3"].value >= 0.68
    assert magentic["agent"].value >= 0.60
    assert magentic["step"].value >= 0.20
    joined = "profile + qwen3-8b + llama-3.1-8b"
    assert rows["algorithm-generated", joined].shares["step"].value >= 0.43
    assert rows["hand-crafted", joined].shares["step"].value >= 0.27
    for subset in ("algorithm-generated", "hand-crafted"):
        for method in ("profile, cross-validated", joined):
            assert rows[subset, method].calibration_error <= 0.08
    kappas = {found.subject: found.kappa for found in report.modes if "rules" in found.annotators}
    assert kappas["2.1"] >= 0.7
    assert kappas["1.3"] >= 0.35
    for (subset, method), found in rows.items():
        if method == "cascade, untrained" and subset != "agentrx":
            random = rows[subset, "random step"].shares["step"].value
            assert found.shares["step"].value > 2 * random
