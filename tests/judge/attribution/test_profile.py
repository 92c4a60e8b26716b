"""Trained profiles: fitting, refusing, choosing and scoring."""

import json
from dataclasses import replace

import pytest
from judge.builders import RunBuilder

from mast_trace.exceptions import ConfigurationError
from mast_trace_judge.local.attribution import attribute
from mast_trace_judge.local.attribution.features import FEATURES, features
from mast_trace_judge.local.attribution.profile import Profile, choose_profile, shipped_profiles
from mast_trace_judge.study.datasets.labelled import LabelledRun
from mast_trace_judge.study.training import FEWEST_LABELS, cross_validate, fit, to_example


def _run(number: int, guilty: int) -> LabelledRun:
    """A run of five agents in which the guilty one admits trouble, at a place that varies."""
    run = RunBuilder(f"Task {number}", outcome="failure").asks()
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


@pytest.fixture(scope="module")
def profile() -> Profile:
    pytest.importorskip("numpy")
    return fit(RUNS, name="made-up", agents=("^agent0$",), trained_on="invented runs", repeats=2)


def test_a_profile_learns_what_the_labels_share(profile):
    """The held-out score and the score on new runs show it."""
    assert profile.labels == 24
    assert profile.scores["step"] > 0.9
    new = _run(99, 3)
    found = attribute(new.trajectory, (), [profile])
    assert (found.candidates[0].step, found.profile) == (4, "made-up")
    assert found.rule == "it speaks of trouble"


def test_too_few_labels_are_refused():
    """Nine labels are noise; the text says how many are needed."""
    with pytest.raises(ConfigurationError, match=f"{FEWEST_LABELS} at least"):
        fit(RUNS[: FEWEST_LABELS - 1], name="small")


def test_runs_without_a_label_do_not_count():
    """An unlabelled run teaches nothing."""
    unlabelled = [replace(run, step=None, agent="") for run in RUNS]
    with pytest.raises(ConfigurationError, match=r"^0 labelled runs"):
        fit(unlabelled, name="empty")


def test_a_label_may_name_the_agent_only():
    """Its steps share the blame."""
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
    """The same runs give the same weights."""
    assert (
        fit(RUNS, name="made-up", agents=("^agent0$",), trained_on="invented runs", repeats=2)
        == profile
    )


def test_a_profile_survives_json(profile):
    """What is written is read back, in about two kilobytes."""
    assert Profile.from_json(profile.to_json()) == replace(
        profile, weights=dict(profile.weights), scores=dict(profile.scores)
    )
    assert len(profile.to_json()) < 2500


@pytest.mark.parametrize(
    "text", ["", "[]", '{"weights": {}}', '{"name": "x", "weights": {"height": 1.0}}', '{"x": 1}']
)
def test_other_json_is_refused(text):
    """A file that is no profile does not become one."""
    with pytest.raises(ConfigurationError):
        Profile.from_json(text)


def test_shipped_profiles_say_what_they_were_trained_on():
    """Names, sources, label counts and cross-validated scores."""
    shipped = {profile.name: profile for profile in shipped_profiles()}
    assert set(shipped) == {"ag2-captain", "magentic-one"}
    for profile in shipped.values():
        assert "Who&When" in profile.trained_on
        assert profile.labels >= FEWEST_LABELS
        assert set(profile.scores) == {"agent", "step", "top 3"}
        assert set(profile.weights) == set(FEATURES)
        assert len(json.dumps(profile.to_json())) < 3000


def test_profiles_are_chosen_by_agents_and_the_own_ones_first(profile):
    """A run of other agents gets none."""
    captain = RunBuilder().says("Data_Expert", "Yes.").build()
    magentic = RunBuilder().says("MagenticOneOrchestrator", "Go.").says("WebSurfer", "Ok.").build()
    assert choose_profile(captain).name == "ag2-captain"
    assert choose_profile(magentic).name == "magentic-one"
    assert choose_profile(RunBuilder().says("Orchestrator", "Go.").build()) is None
    assert choose_profile(RUNS[0].trajectory, [profile]) is profile
    assert choose_profile(RUNS[0].trajectory) is None


def test_features_have_one_value_each_and_stay_small():
    """No feature grows with the length of a run or a text beyond a logarithm."""
    run = RunBuilder()
    for number in range(300):
        run.says(f"a{number % 3}", "word 12 " * 2000 + str(number), to="b")
    actors, rows = features(run.build())
    assert len(actors) == 300
    assert all(len(row) == len(FEATURES) for row in rows)
    assert max(abs(value) for row in rows for value in row) < 20
