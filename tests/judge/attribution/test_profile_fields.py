"""For which runs a profile is meant, what it says of a step, and what fitting writes into it."""

import json
import math
import random
from statistics import fmean

import pytest
from judge.builders import RunBuilder

from mast_trace.exceptions import ConfigurationError
from mast_trace_judge.local.attribution import attribute
from mast_trace_judge.local.attribution.features import FEATURES, features
from mast_trace_judge.local.attribution.profile import Profile
from mast_trace_judge.study.labelled import LabelledRun
from mast_trace_judge.study.logit import LogitExample
from mast_trace_judge.study.training import _scores, cross_validate, fit, to_example


@pytest.mark.parametrize(
    ("frameworks", "fits"),
    [((), False), (("ag2",), True), (("crewai", "ag2"), True), (("crewai",), False)],
)
def test_for_which_runs_a_profile_is_meant(frameworks, fits):
    run = RunBuilder(framework="ag2").says("lead", "Go.").says("coder", "Yes.").build()
    assert Profile("p", {}, frameworks).fits(run) is fits


def test_a_run_of_an_unknown_framework_is_not_meant():
    assert not Profile("p", {}, ("",)).fits(RunBuilder().says("lead", "Go.").build())


RUN = (
    RunBuilder(outcome="failure", framework="mine")
    .asks()
    .says("lead", "Let us see: 12, 13 and 14 are here.", to="coder")
    .says("coder", "Sorry, an error.")
    .says("tester", "It is wrong, I cannot confirm.")
    .build()
)
SAID = {
    "first_actor": (1, "first actor"),
    "last_actor": (3, "last actor"),
    "log_numbers": (1, "the figures it states"),
    "verification_words": (3, "it speaks of checking"),
    "instructs": (1, "it instructs another agent"),
    "worker": (2, "a worker's reply"),
}


@pytest.mark.parametrize("name", SAID)
def test_what_speaks_for_a_step(name):
    """The feature by which its weight lifts it most above the run's mean."""
    step, reason = SAID[name]
    profile = Profile("p", {name: 2.0, "trouble_words": 0.001}, frameworks=("mine",))
    assert profile.distribution(RUN)[1][step] == reason
    lowered = Profile("p", {name: -2.0}, frameworks=("mine",)).distribution(RUN)[1]
    assert lowered[step] == ""


def test_the_probability_of_a_step():
    """Powers of e of what its features weigh together, divided by their sum."""
    weights = {"log_position": 0.7, "trouble_words": -1.3, "instructs": 2.0}
    actors, rows = features(RUN)
    sums = [
        sum(weights.get(name, 0.0) * x for name, x in zip(FEATURES, row, strict=True))
        for row in rows
    ]
    powers = [math.exp(each) for each in sums]
    expected = {step: power / sum(powers) for step, power in zip(actors, powers, strict=True)}
    profile = Profile("p", weights, frameworks=("mine",))
    assert profile.distribution(RUN)[0] == pytest.approx(expected)
    assert attribute(RUN, (), [profile]).profile == "p"
    assert profile.distribution(RunBuilder().asks().build()) == ({}, {})
    huge = Profile("p", {"first_actor": 2000.0}).distribution(RUN)[0]
    assert huge == pytest.approx({1: 1.0, 2: 0.0, 3: 0.0})


def test_a_profile_is_read_as_it_was_written():
    full = Profile("Käufer", {"worker": 1.5}, ("ag2",), "runs", 12, {"step": 0.5}, {"r": 1})
    assert Profile.from_json(full.to_json()) == full
    assert "Käufer" in full.to_json()
    assert full.to_json().endswith("}\n")
    assert Profile.from_json('{"name": "x", "weights": {}}') == Profile("x", {})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '{"name": "x", "weights": {"height": 1.0}}',
            r"^profile x has unknown features \['height'\]$",
        ),
        ("", "^this is no attribution profile: Expecting value"),
        ('{"x": 1}', "^this is no attribution profile: .*x"),
    ],
)
def test_what_is_no_profile_is_said(text, message):
    with pytest.raises(ConfigurationError, match=message):
        Profile.from_json(text)


def labelled(step, agent="", group="g", run=RUN):
    return LabelledRun("made-up", "n", run, group, step, agent)


@pytest.mark.parametrize(
    ("step", "agent", "gold", "blamed"),
    [
        (2, "", 1, (1,)),  # the agent of the step, where nobody is named
        (2, "Tester (thought)", 1, (2,)),
        (None, "lead", None, (0,)),
        (0, "lead", None, (0,)),  # a step for which nobody answers
        (2, "nobody", 1, ()),
    ],
)
def test_a_labelled_run_in_numbers(step, agent, gold, blamed):
    pytest.importorskip("numpy")
    found = to_example(labelled(step, agent))
    assert (found.steps, found.agents) == ((1, 2, 3), ("lead", "coder", "tester"))
    assert (found.gold, found.blamed, found.group) == (gold, blamed, "g")
    assert found.rows.tolist() == features(RUN)[1]


def test_a_run_without_a_group_is_one_of_its_own():
    pytest.importorskip("numpy")
    assert to_example(labelled(2, group="")).group == RUN.trace_id


def test_runs_that_teach_nothing():
    assert to_example(labelled(None)) is None
    assert to_example(labelled(0, run=RunBuilder().asks().build())) is None


def test_scores():
    """Shares of runs and repeats: the likeliest step's agent, that step, one of the first three."""
    one = LogitExample([], (0, 1, 2, 3), ("a", "b", "b", "c"), 2, (1, 2), "g")
    other = LogitExample([], (0, 1), ("a", "b"), None, (0,), "h")
    repeats = [
        [[0.1, 0.6, 0.2, 0.1], [0.9, 0.1]],
        [[0.1, 0.2, 0.6, 0.1], [0.1, 0.9]],
        [[0.4, 0.3, 0.1, 0.2], [0.9, 0.1]],
    ]
    expected = {"agent": fmean([1, 1, 1, 0, 0, 1]), "step": 1 / 6, "top 3": 2 / 6}
    assert _scores([one, other], repeats) == {
        measure: round(share, 3) for measure, share in expected.items()
    }


def test_what_fitting_writes_down():
    pytest.importorskip("numpy")
    dice = random.Random(16)
    runs = [
        labelled(
            dice.choice([1, 2, 3, dice.choice([1, 3])]),
            group=f"q{number // 2}",
            run=RunBuilder(f"Task {number}", outcome="failure")
            .asks()
            .says("a", dice.choice(["Sorry, an error.", f"Part {number}."]), to="b")
            .says("b", dice.choice(["Sorry, an error.", f"{number} parts."]), to="a")
            .says("c", dice.choice(["Sorry, an error.", "Done."]))
            .build(),
        )
        for number in range(10)
    ]
    labels = {"name": "n", "frameworks": ("ag2",), "trained_on": "runs"}
    found = fit([*runs, labelled(None)], **labels, seed=3, repeats=2)
    assert {name: getattr(found, name) for name in labels} == labels
    assert (found.labels, set(found.weights)) == (10, set(FEATURES))
    examples = [to_example(run) for run in runs]
    held_out = [cross_validate(examples, seed) for seed in (3, 4)]
    assert found.scores == _scores(examples, held_out)
    assert json.loads(found.to_json())["settings"] == found.settings
