"""A whole fit: labels in, a profile and its report out."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from planted_runs import HANDED, OPERATORS, person, planted, planted_set

from mast_trace.exceptions import ConfigurationError
from mast_trace_judge.local.attribution import attribute
from mast_trace_judge.local.attribution.features import FEATURES
from mast_trace_judge.local.attribution.profile import Profile, run_hash
from mast_trace_judge.local.attribution.recorded import ALL_FEATURES
from mast_trace_lab.fit.fit_on import UNTRAINED, fit_on
from mast_trace_lab.fit.models import JOINT, OPERATOR, PLAIN, SCENARIO

if TYPE_CHECKING:
    from mast_trace_lab.fit.report import FitReport

pytest.importorskip("numpy")
pytest.importorskip("scipy")

RUNS = planted_set(scenarios=5)


@pytest.fixture(scope="module")
def report() -> FitReport:
    """The report on planted faults alone."""
    return fit_on(RUNS, name="ours", trained_on="invented runs", repeats=1)


def test_every_way_of_holding_out_is_reported(report):
    by_scheme = {score.scheme: score for score in report.scores}
    assert list(by_scheme) == [UNTRAINED, PLAIN, SCENARIO, OPERATOR, JOINT]
    assert {score.runs for score in report.scores} == {len(RUNS)}
    assert by_scheme[PLAIN].step > by_scheme[UNTRAINED].step
    assert by_scheme[JOINT].step <= by_scheme[SCENARIO].step
    assert {row.operator for row in report.operators} == set(OPERATORS)
    assert all(set(row.by_scheme) == {PLAIN, SCENARIO, OPERATOR, JOINT} for row in report.operators)
    assert (report.scenarios, report.originals, report.unit) == (5, 5, "task")


def test_tool_failures_that_it_has_not_seen_are_recognised(report):
    """Time-outs, learned from errors, and the other way round."""
    joint = {row.operator: row.by_scheme[JOINT] for row in report.operators}
    assert joint["tool-error"] == joint["tool-timeout"] == 1.0


def test_the_profile_is_loaded_and_used_like_any_other(report):
    profile = Profile.from_json(report.profile.to_json())
    assert profile == replace(
        report.profile,
        weights=dict(profile.weights),
        settings=dict(profile.settings),
        scores=dict(profile.scores),
    )
    assert set(profile.weights) <= set(ALL_FEATURES)
    assert (profile.sources, profile.injection_only) == ({"injection": len(RUNS)}, True)
    assert profile.frameworks == ("mine",)
    assert profile.runs == tuple(sorted({run_hash(run.trajectory) for run in RUNS}))
    new = planted("tool-empty", 9)
    found = attribute(new.trajectory, (), [profile])
    assert (found.profile, found.candidates[0].step) == ("ours", new.step)
    assert found.candidates[0].rule == "the tool gave nothing"


def test_runs_before_and_after_are_given_for_tables_of_ones_own(report):
    assert len(report.held_out) == len(RUNS)
    rows = {row.name: row for row in report.held_out}
    assert set(rows) == {run.name for run in RUNS}
    row = rows["tool-error 2 0"]
    assert (row.source, row.operator, row.mode, row.step) == ("injection", "tool-error", "", 2)
    told = report.abstention
    assert told.runs == len(RUNS)
    assert told.named == sum(row.after_named for row in report.held_out)
    assert told.right == sum(row.after_named and row.after == row.step for row in report.held_out)


def test_the_gate_says_which_conditions_are_missing(report):
    status = {each.name: each.status for each in report.gate}
    assert status["Size, mine"] == "failed"
    assert status["No worse on people's labels"] == "not examined"
    assert not report.passed
    assert report.people is None
    assert report.decision.compared_with == "the judge without a profile of yours"


def test_a_fit_is_the_same_each_time(report):
    again = fit_on(list(reversed(RUNS)), name="ours", trained_on="invented runs", repeats=1)
    assert again.profile.weights == pytest.approx(report.profile.weights, abs=2e-3)
    assert again.decision.better == report.decision.better


def test_the_same_labels_again_replace_nothing(report):
    """A refit to equal labels is no better than the old profile, which is fitted anew without each run."""
    again = fit_on(RUNS, name="ours", old=report.profile, repeats=1)
    assert again.decision.compared_with == "profile ours"
    assert not again.decision.better
    assert again.decision.old == pytest.approx(again.decision.new, abs=0.15)


def wrong_hand_over(scenario: int, number: int = 0):
    """A failure that began with the hand-over to an agent that has no tool."""
    run = planted("2.6-number", scenario, number)
    steps = list(run.trajectory.steps)
    steps[HANDED] = replace(steps[HANDED], tool="transfer_to_poet", handoff_to="poet")
    steps[2] = replace(
        steps[0], index=2, agent="poet", role="assistant", text=f"An ode to bill {scenario}."
    )
    return replace(
        run,
        name=f"hand {scenario} {number}",
        step=HANDED,
        agent="lead",
        modes={"2.3": True},
        trajectory=replace(run.trajectory, steps=tuple(steps)),
        extra={**run.extra, "operator": "2.3-wrong-agent"},
    )


def test_wrong_hand_overs_are_learned():
    """The untrained cascade cannot name one."""
    runs = [*planted_set(OPERATORS[:4], 5), *(wrong_hand_over(n, 0) for n in range(1, 6))]
    found = fit_on(runs, repeats=1)
    row = next(row for row in found.operators if row.operator == "2.3-wrong-agent")
    assert (row.untrained, row.by_scheme[SCENARIO]) == (0.0, 1.0)


def test_peoples_labels_alone_are_fitted_as_ever():
    """Their profile needs no features of recorded runs, and is no injection's."""
    found = fit_on([person(n) for n in range(14)], repeats=1)
    assert set(found.profile.weights) == set(FEATURES)
    assert not found.profile.injection_only
    assert found.profile.injected_weight is None
    assert [score.scheme for score in found.scores] == [UNTRAINED, PLAIN, SCENARIO]
    assert (found.gate, found.people.runs) == ((), 14)
    assert found.decision.better
    assert found.decision.on == "people's labels"


def test_planted_faults_are_in_no_figure_of_people():
    """Ten labels of people are ten, with any number of planted faults beside them."""
    people = [person(n) for n in range(10)]
    found = fit_on([*people, *RUNS], repeats=1)
    assert found.people.runs == 10
    assert found.profile.injected_weight in {0.0, 0.1, 0.3, 1.0}
    assert not found.profile.injection_only
    assert found.people.fitted >= found.people.before
    condition = found.gate[-1]
    assert condition.name == "No worse on people's labels"
    assert "on 10 runs" in condition.found


def test_one_task_for_all_runs_is_fitted_run_by_run():
    found = fit_on([person(n, task="The same.") for n in range(12)], repeats=1)
    assert found.unit == found.profile.folded_by == "run"
    assert found.people.difference.low > 0
    assert found.decision.better


def test_faults_in_a_single_run_show_nothing():
    """Nothing can be held out, so nothing is claimed; the profile is there all the same."""
    found = fit_on(planted_set(scenarios=1, each=2), repeats=1)
    assert (found.unit, found.abstention, found.decision.better) == ("none", None, False)
    assert [score.scheme for score in found.scores] == [UNTRAINED, OPERATOR]
    assert {each.status for each in found.gate} == {"failed", "not examined"}
    assert found.profile.abstain_below == 1.0


def test_reserved_operators_are_scored_and_not_learned_from():
    reserved = [planted("tool-empty", n) for n in range(1, 6)]
    runs = [run for run in RUNS if run.extra["operator"] != "tool-empty"]
    found = fit_on(runs, reserved=reserved, repeats=1)
    assert [score.runs for score in found.reserved] == [5, 5]
    assert not {run_hash(run.trajectory) for run in reserved} & set(found.profile.runs)


def test_sources_are_chosen_and_too_few_labels_are_refused():
    with pytest.raises(ConfigurationError, match=r"^3 labelled runs are too few"):
        fit_on([*RUNS, *(person(n) for n in range(3))], sources=["person"])


def test_a_run_with_control_characters_and_no_figures_is_survived():
    """A label may be of a run of one step, or name a step beyond its end."""
    odd = [
        replace(RUNS[0], name="odd 1", step=99),
        replace(RUNS[1], name="odd 2", trajectory=replace(RUNS[1].trajectory, steps=())),
    ]
    found = fit_on([*RUNS, *odd], repeats=1)
    assert found.labels_without_step == 1
    assert json.loads(found.profile.to_json())["labels"] == len(RUNS) + 1
