"""The judge on published sets, as `benchmarks/judge/bench.py` scores it."""

from dataclasses import replace

import pytest
from bench import attributed_runs, mode_agreement, scored
from invented_records import failure_set
from judge.data import labelled_runs
from published.agentrx import read_agentrx
from published.mast import read_ag2_coding, read_mast_v0, read_mathchat
from published.opinions import paired_rows, recorded_answers
from published.tau_retail import read_tau_retail
from published.who_and_when import SUBSETS, read_who_and_when

from mast_trace_judge.study.bench import score_parts
from mast_trace_judge.study.bench.methods import held_out, places_seen
from mast_trace_judge.study.bench.rendering import tables
from mast_trace_judge.study.bench.scoring import Prediction
from mast_trace_judge.study.labelled import read_injected


def test_runs_of_a_profile_are_told_from_others_in_one_set(tmp_path):
    """Published runs among foreign ones, under another name, are found by what they hold."""
    known = read_who_and_when(labelled_runs(), "algorithm-generated")[:20]
    foreign = read_injected(failure_set(tmp_path, 12))
    runs = [replace(run, subset="mixed") for run in (*known, *foreign)]
    judges = {"judge": lambda _: Prediction((2,), "b")}
    report = score_parts({"mixed": runs}, ["local"], judges, repeats=1)
    assert report.in_sample == {"mixed": 20}
    shipped = {
        found.method: (found.runs, found.in_sample)
        for found in report.scores
        if found.method.startswith("as shipped")
    }
    inside, outside = shipped
    assert inside.endswith(": 20 of 32 runs")
    assert "in sample (ag2-captain " in inside
    assert outside == "as shipped, out of sample (cascade 12): 12 of 32 runs"
    assert list(shipped.values()) == [(20, 20), (12, 0)]
    names = [found.method for found in report.scores if found.method.startswith("judge")]
    assert names == ["judge, in sample: 20 of 32 runs", "judge, out of sample: 12 of 32 runs"]
    (title, *_) = (table.title for table in tables(report))
    assert "32 runs, 20 of them in the training of a shipped profile" in title


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


@pytest.mark.slow
def test_joining_loses_no_more_of_a_models_right_answers_than_it_gains():
    """Steps and agents of a strong reader and of two small models, under the labels of either team."""
    data = labelled_runs()
    answers = recorded_answers(data)
    compared = [
        (subset, *row)
        for subset, runs in attributed_runs(data).items()
        for row in paired_rows(runs, answers, held_out(runs, 3))[1:]
    ]
    assert len(compared) == 18
    losing = set()
    for subset, model, _, kind, *_, against in compared:
        gained, lost = (abs(float(each)) for each in against.split())
        if gained < lost:
            losing.add((subset, model, kind))
    # These two name agents that do not act at their steps; a verdict's agent is that of its step.
    assert losing <= {("hand-crafted", each, "agents") for each in ("qwen3-8b", "llama-3.1-8b")}


@pytest.mark.slow
def test_the_judge_reaches_what_is_promised_of_it():
    """Cross-validated, grouped by question; the targets are those of the documentation."""
    data = labelled_runs()
    report = scored(attributed_runs(data), data)
    rows = {(found.subset, found.method): found for found in report.scores}
    captain = rows["algorithm-generated", "profile, cross-validated"].shares
    magentic = rows["hand-crafted", "profile, cross-validated"].shares
    assert captain["agent"].value >= 0.58
    assert captain["step"].value >= 0.37
    assert captain["top 3"].value >= 0.68
    assert magentic["agent"].value >= 0.60
    assert magentic["step"].value >= 0.20
    joined = "profile + llama-3.1-8b"
    # Weights that were fitted to this model's answers reached 0.43: they took right answers from better models.
    assert rows["algorithm-generated", joined].shares["step"].value >= 0.39
    assert rows["hand-crafted", joined].shares["step"].value >= 0.27
    for subset in ("algorithm-generated", "hand-crafted"):
        alone = rows[subset, "llama-3.1-8b alone"].shares["step"].value
        assert rows[subset, joined].shares["step"].value >= alone
        for method in ("profile, cross-validated", joined):
            assert rows[subset, method].calibration_error <= 0.08
    agreed = mode_agreement([*read_mast_v0(data), *read_ag2_coding(data)])
    kappas = {found.subject: found.kappa for found in agreed if "rules" in found.annotators}
    assert kappas["2.1"] >= 0.7
    assert kappas["1.3"] >= 0.35
    for (subset, method), found in rows.items():
        if method == "cascade, untrained" and subset != "agentrx":
            random = rows[subset, "random step"].shares["step"].value
            assert found.shares["step"].value > 2 * random
