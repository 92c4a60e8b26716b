"""Trained profiles: fitting, refusing, choosing and scoring."""

import json
from dataclasses import replace

import pytest
from judge.builders import RunBuilder
from judge.data import labelled_runs
from published.agent_loops import read_agent_loops
from published.mast import read_mathchat
from published.tau_retail import read_tau_retail
from published.who_and_when import SUBSETS, read_who_and_when

from mast_trace.exceptions import ConfigurationError
from mast_trace_judge.local.attribution import attribute
from mast_trace_judge.local.attribution.features import FEATURES, features
from mast_trace_judge.local.attribution.profile import (
    Profile,
    choose_profile,
    run_hash,
    shipped_profiles,
)
from mast_trace_judge.study.labelled import LabelledRun
from mast_trace_judge.study.training import FEWEST_LABELS, cross_validate, fit, to_example


def _run(number: int, guilty: int) -> LabelledRun:
    """A run of five agents in which the guilty one admits trouble, at a place that varies."""
    run = RunBuilder(f"Task {number}", outcome="failure", framework="mine").asks()
    for place in range(5):
        trouble = (
            "Sorry, an error, unfortunately wrong. "
            if place == guilty
            else "All of it is as fine as one may wish. "
        )
        run.says(f"agent{place}", trouble + f"Part {place} of report {number}.", to="lead")
    return LabelledRun(
        subset="made-up",
        name=str(number),
        trajectory=run.build(),
        group=f"question {number // 2}",
        step=guilty + 1,
        agent=f"agent{guilty}",
    )


RUNS = [_run(number, number * 7 % 5) for number in range(24)]
MADE_UP = {"name": "made-up", "frameworks": ("mine",), "trained_on": "invented runs", "repeats": 2}


@pytest.fixture(scope="module")
def profile() -> Profile:
    pytest.importorskip("numpy")
    return fit(RUNS, **MADE_UP)


def test_a_profile_learns_what_the_labels_share(profile):
    assert profile.labels == 24
    assert profile.scores["step"] > 0.9
    new = _run(99, 3)
    found = attribute(new.trajectory, (), [profile])
    assert (found.candidates[0].step, found.profile) == (4, "made-up")
    assert found.candidates[0].rule == "it speaks of trouble"


def test_too_few_labels_are_refused():
    with pytest.raises(ConfigurationError, match=f"{FEWEST_LABELS} at least"):
        fit(RUNS[: FEWEST_LABELS - 1], name="small")


def test_runs_without_a_label_do_not_count():
    unlabelled = [replace(run, step=None, agent="") for run in RUNS]
    with pytest.raises(ConfigurationError, match=r"^0 labelled runs"):
        fit(unlabelled, name="empty")


def test_a_label_may_name_the_agent_only():
    """A label without a step spreads the blame over the agent's steps."""
    example = to_example(replace(RUNS[0], step=None))
    assert example is not None
    assert example.gold is None
    assert example.blamed == (0,)


def test_cross_validation_never_divides_a_group():
    """The two runs of a question get the same score when one is a copy of the other."""
    pytest.importorskip("numpy")
    doubled = [example for run in RUNS[::2] for example in (to_example(run), to_example(run))]
    held_out = cross_validate([example for example in doubled if example], seed=0)
    assert all(held_out[i] == held_out[i + 1] for i in range(0, len(held_out), 2))


def test_fitting_is_deterministic(profile):
    assert fit(RUNS, **MADE_UP) == profile


def test_a_profile_survives_json(profile):
    assert Profile.from_json(profile.to_json()) == replace(
        profile, weights=dict(profile.weights), scores=dict(profile.scores)
    )
    assert len(profile.to_json()) < 4000


@pytest.mark.parametrize(
    "text", ["", "[]", '{"weights": {}}', '{"name": "x", "weights": {"height": 1.0}}', '{"x": 1}']
)
def test_other_json_is_refused(text):
    with pytest.raises(ConfigurationError):
        Profile.from_json(text)


def test_shipped_profiles_say_what_they_were_trained_on():
    shipped = {profile.name: profile for profile in shipped_profiles()}
    assert set(shipped) == {"ag2-captain", "magentic-one"}
    for profile in shipped.values():
        assert "Who&When" in profile.trained_on
        assert profile.labels >= FEWEST_LABELS
        assert set(profile.scores) == {"agent", "step", "top 3"}
        assert set(profile.weights) == set(FEATURES)
        assert len(json.dumps(profile.to_json())) < 5000
        assert len(profile.runs) == profile.labels


def test_profiles_are_chosen_by_framework_and_shape_and_the_own_ones_first(profile):
    """Names of agents say nothing, and a run unlike those of a profile gets none."""
    new = _run(99, 3).trajectory
    assert choose_profile(new, [profile]) is profile
    assert choose_profile(new) is None
    assert choose_profile(replace(new, framework=""), [profile]) is profile
    assert choose_profile(replace(new, framework="crewai"), [profile]) is None
    longer = RunBuilder(framework="mine")
    for number in range(60):
        longer.calls("agent0", "search", {"q": number}, "```\ncode\n```")
    assert choose_profile(longer.build(), [profile]) is None


def test_an_expert_of_another_framework_gets_no_profile():
    crew = RunBuilder(framework="crewai").asks().says("Travel Expert", "Lisbon is fine.")
    team = RunBuilder().says("Orchestrator", "Go.").says("WebSurfer", "Ok.")
    assert choose_profile(crew.build()) is None
    assert choose_profile(team.build()) is None


def test_shipped_profiles_are_meant_for_runs_like_those_that_they_saw():
    """Shipped profiles apply to hardly any other of the labelled runs."""
    data = labelled_runs()
    for name, subset in (("ag2-captain", SUBSETS[0]), ("magentic-one", SUBSETS[1])):
        runs = read_who_and_when(data, subset)
        chosen = [choose_profile(run.trajectory) for run in runs]
        assert sum(p is not None and p.name == name for p in chosen) >= 0.9 * len(runs)
        assert {run_hash(run.trajectory) for run in runs} == set(chosen[0].runs)
    strangers = [*read_tau_retail(data), *read_agent_loops(data), *read_mathchat(data)]
    assert not any(choose_profile(run.trajectory) for run in strangers)


def test_runs_of_one_task_are_divided_by_run():
    """There is no other task to hold out; the profile says so."""
    pytest.importorskip("numpy")
    found = fit([replace(run, group="one") for run in RUNS], name="one", repeats=1)
    assert found.folded_by == "run"
    assert found.scores["step"] > 0.9


def test_features_have_one_value_each_and_stay_small():
    """No feature grows with the length of a run or a text beyond a logarithm."""
    run = RunBuilder()
    for number in range(300):
        run.says(f"a{number % 3}", "word 12 " * 2000 + str(number), to="b")
    actors, rows = features(run.build())
    assert len(actors) == 300
    assert all(len(row) == len(FEATURES) for row in rows)
    assert max(abs(value) for row in rows for value in row) < 20
