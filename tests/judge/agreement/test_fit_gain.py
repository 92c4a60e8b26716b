"""The gain of a fitted profile is measured on the labels of a store."""

import re
from dataclasses import replace
from pathlib import Path

from judge.builders import RunBuilder
from judge.data import labelled_runs
from published.agent_loops import read_agent_loops
from published.who_and_when import SUBSETS, read_who_and_when

from mast_trace_judge.study import numeric
from mast_trace_judge.study.agreement import Interval
from mast_trace_judge.study.labelled import LabelledRun
from mast_trace_lab.fit import fit_gain
from mast_trace_lab.fit.fit_gain import ELSEWHERE, FitGain, FitOffer, fit_words, measured_gain

REPORT = Path(__file__).parents[3] / "benchmarks" / "judge" / "report.md"


def _runs(count, *, outcome="failure", task="Task {}"):
    """Make runs in which the agent that says sorry is at fault, which only labels show."""
    found = []
    for number in range(count):
        guilty = 1 + number % 3
        run = RunBuilder(task.format(number), outcome=outcome)
        for place in range(5):
            text = "Sorry, an error." if place == guilty else f"Part {place} of {number} is done."
            run.says("abcde"[place], text, to="boss")
        built = run.build()
        found.append(LabelledRun("s", str(number), built, built.task, guilty, "abcde"[guilty]))
    return found


def test_what_labels_teach_is_a_gain():
    gain = measured_gain(_runs(15))
    assert gain.runs == 15
    assert gain.fitted > 0.9
    assert gain.shipped < 0.5
    assert 0 < gain.difference.low <= gain.fitted - gain.shipped <= gain.difference.high
    assert gain.helps
    assert gain.folded_by == "task"


def test_labels_that_say_nothing_are_no_gain():
    """Labels drawn independently of the run give no gain above chance."""
    runs = [
        replace(run, step=n * 7 % 5, agent="abcde"[n * 7 % 5]) for n, run in enumerate(_runs(20))
    ]
    same = [
        replace(run, trajectory=replace(run.trajectory, steps=_alike(run.trajectory.steps)))
        for run in runs
    ]
    gain = measured_gain(same)
    assert not gain.helps
    said = " ".join(fit_words(FitOffer(20, 0, gain)))
    assert "cannot be told from chance" in said or "would do harm" in said


def _alike(steps):
    return tuple(replace(step, text="Done.") for step in steps)


def test_labels_that_one_step_tells_are_no_gain():
    """The third to speak is at fault in each run: whoever always names the third needs no profile."""
    third = [run for run in _runs(45) if run.step == 2]
    gain = measured_gain(third)
    assert (gain.fitted, gain.constant) == (1.0, 1.0)
    assert not gain.helps
    assert "no more than one step, always named" in " ".join(fit_words(FitOffer(15, 0, gain)))


def test_runs_of_one_task_are_folded_one_by_one():
    gain = measured_gain(_runs(12, task="The same."))
    assert gain.folded_by == "run"
    assert "other runs of nearly the same task" in " ".join(fit_words(FitOffer(12, 0, gain)))


def test_runs_that_succeeded_or_that_a_shipped_profile_has_seen_do_not_count():
    assert measured_gain(_runs(15, outcome="success")) is None
    data = labelled_runs()
    seen = [run for subset in SUBSETS for run in read_who_and_when(data, subset)]
    assert measured_gain(seen) is None
    assert measured_gain([*seen[:30], *_runs(12)]).runs == 12


def test_a_real_gain_on_runs_of_others():
    """The gain is measured on loops of one agent, on which no shipped profile was trained."""
    loops = [run for run in read_agent_loops(labelled_runs()) if run.step is not None][:60]
    gain = measured_gain(loops)
    assert gain.runs == 60
    assert gain.difference.low < gain.fitted - gain.shipped < gain.difference.high


def test_without_scipy_the_reason_is_given(monkeypatch):
    def missing():
        raise numeric.ConfigurationError("fitting a profile needs scipy")

    monkeypatch.setattr("mast_trace_judge.study.logit.optimize_module", missing)
    monkeypatch.setattr(fit_gain, "labelled_runs", lambda *_, **__: _runs(12))
    monkeypatch.setattr(fit_gain, "named_steps", lambda _: dict.fromkeys(range(12)))
    offer = fit_gain.fit_offer(None, [])
    assert (offer.labels, offer.missing, offer.gain) == (12, 0, None)
    assert "could not be measured: fitting a profile needs scipy" in " ".join(fit_words(offer))


def test_words_say_what_is_missing_and_what_was_measured():
    assert "7 runs have a label with a decisive step; with 3 more" in " ".join(
        fit_words(FitOffer(7, 3))
    )
    gain = FitGain(20, 0.25, 0.4, Interval(0.05, 0.25), "task", 0.3)
    said = " ".join(fit_words(FitOffer(31, 0, gain, learned=12)))
    assert "Measured on 20 of these runs" in said
    assert "40 %" in said
    assert "25 %" in said
    assert "+15 points, 95 %: +5 to +25" in said
    assert "Not used for that" in said
    assert "fitted to 12 of them" in said
    assert "chance" not in said
    harm = replace(gain, difference=Interval(-0.3, -0.1))
    assert "would do harm" in " ".join(fit_words(FitOffer(20, 0, harm)))


def test_the_figures_from_elsewhere_are_the_reports():
    """The sentence gives the report's figures for each set: with a profile, without one, labels."""
    page = REPORT.read_text(encoding="utf-8")
    said = [int(number) for number in re.findall(r"\d+", ELSEWHERE)]
    found = []
    for subset in SUBSETS:
        part = page.partition(f"## {subset} (")[2].partition("\n## ")[0]
        rows = [line.split(" | ") for line in part.splitlines()]
        steps = {
            row[0].strip("| "): round(float(row[3].split()[0]))
            for row in rows
            if len(row) > 9 and "(" in row[3]
        }
        found += [
            steps["profile, cross-validated"],
            steps["cascade, untrained"],
            int(part.split()[0]),
        ]
    assert said == found
