"""Words that are an operator's fingerprint, steps that can be told by their looks, intervals, and abstention."""

import random
from dataclasses import replace

import pytest
from planted_runs import CHECKED, OPERATORS, planted, planted_set

from mast_trace_judge.local.attribution import NEVER
from mast_trace_judge.local.attribution.calibration import Calibration
from mast_trace_judge.local.attribution.recorded import ALL_FEATURES
from mast_trace_lab.fit import decision
from mast_trace_lab.fit.decision import cross_fitted, fit_threshold
from mast_trace_lab.fit.detector import FEWEST_PAIRS, detect, fingerprints
from mast_trace_lab.fit.labels import INJECTION, PERSON, labels_from, units_of
from mast_trace_lab.fit.models import Recipe, concluded
from mast_trace_lab.fit.scoring import interval, macro

np = pytest.importorskip("numpy")
pytest.importorskip("scipy")

PLAIN_NAMES = ("log_position", "trouble_words", "tool_failed", "empty_result", "dropped_figures")
RECIPE = Recipe(PLAIN_NAMES, 1.0, {}, 0)


def with_text(run, step, text):
    """The run with another text at a step."""
    steps = list(run.trajectory.steps)
    steps[step] = replace(steps[step], text=text)
    return replace(run, trajectory=replace(run.trajectory, steps=tuple(steps)))


@pytest.mark.parametrize(("operators", "bound"), [(OPERATORS, 0.1), (OPERATORS[3:], 0.2)])
def test_a_vague_phrase_of_one_operator_is_refused_and_named(operators, bound):
    """Every fault of one operator has the phrase, and no other failure has it; two others are enough to compare."""
    runs = [
        with_text(run, CHECKED, "We need to plan: first, let's go on. Next, the plan.")
        if run.extra["operator"] == "3.2-unchecked"
        else run
        for run in planted_set(operators)
    ]
    labels = labels_from(runs)
    names = ("log_position", "plan_words", "tool_failed", "empty_result", "dropped_figures")
    recipe = replace(RECIPE, names=names)
    found = {each.feature: each for each in fingerprints(labels, units_of(labels)[0], recipe)}
    assert set(found) == {"plan_words"}
    assert found["plan_words"].operator == "3.2-unchecked"
    assert found["plan_words"].gain > bound > found["plan_words"].elsewhere


def test_words_that_mark_failures_of_all_operators_are_kept():
    runs = [
        with_text(run, run.step, f"{run.trajectory.steps[run.step].text} Sorry, an error.")
        for run in planted_set()
    ]
    labels = labels_from(runs)
    recipe = replace(RECIPE, names=("log_position", "trouble_words"))
    assert fingerprints(labels, units_of(labels)[0], recipe) == []


def test_two_operators_cannot_be_compared():
    labels = labels_from(planted_set(OPERATORS[:2]))
    assert fingerprints(labels, units_of(labels)[0], RECIPE) == []


def replayed(run, *, mark):
    """The run with an answer at the planted step as natural as the others, or one without tokens."""
    steps = [
        replace(
            step,
            text=f"Word {step.index}.",
            arguments="",
            error=None,
            input_tokens=0 if mark and step.index == run.step else 100,
            output_tokens=20,
        )
        for step in run.trajectory.steps
    ]
    return replace(run, trajectory=replace(run.trajectory, steps=tuple(steps)))


def test_steps_without_tokens_give_their_making_away():
    """A detector that has not seen an operator recognises its steps by the missing tokens."""
    found = detect(labels_from(replayed(run, mark=True) for run in planted_set()))
    known = [each for each in found if each.auc is not None]
    assert len(known) >= 4
    assert all(each.uncertain for each in known)
    natural = detect(labels_from(replayed(run, mark=False) for run in planted_set()))
    assert not any(each.uncertain for each in natural)
    assert {each.auc for each in natural if each.pairs >= FEWEST_PAIRS} == {0.5}


def test_few_steps_say_nothing_of_an_operator():
    runs = [*planted_set(OPERATORS[:3]), planted("2.6-number", 1)]
    found = {each.operator: each for each in detect(labels_from(runs))}
    assert (found["2.6-number"].auc, found["2.6-number"].uncertain) == (None, False)


def test_the_mean_over_operators_counts_each_alike():
    assert macro([1.0, 1.0, 1.0, 0.0], ["a", "a", "a", "b"]) == 0.5
    assert macro([], []) == 0.0


def test_an_interval_holds_its_mean_and_needs_five_scenarios():
    values, kinds = [0.2, 0.9, 0.4, 0.7, 0.1, 0.5, 0.3, 0.8, 0.6, 0.4], ["a", "b"] * 5
    scenarios = [name for name in "vwxyz" for _ in range(2)]
    found = interval(values, kinds, scenarios)
    assert found.low < macro(values, kinds) < found.high
    assert interval(values, kinds, [*"vvwwxxyyyy"]) is None
    assert interval([1.0] * 10, kinds, scenarios) == type(found)(1.0, 1.0)


def test_the_interval_says_more_than_0_rarely_where_there_is_nothing():
    """The runs of a scenario are right or wrong together: an interval over runs would err often."""
    dice = random.Random(1)
    false = 0
    for _ in range(150):
        shared = [dice.choice((-1.0, 0.0, 1.0)) for _ in range(12)]
        values = [each for each in shared for _ in range(8)]
        scenarios = [str(place) for place in range(12) for _ in range(8)]
        kinds = [f"operator {place}" for _ in range(12) for place in range(8)]
        false += interval(values, kinds, scenarios).low > 0
    assert false <= 12


def likeliest(label, first, probability=0.9):
    """A distribution in which a step has a probability, and the others share the rest."""
    steps = label.example.steps
    rest = (1 - probability) / (len(steps) - 1)
    return {step: probability if step == first else rest for step in steps}


def masses(labels, right):
    """Distributions whose likeliest step has 0.9, and is the labelled one in a share of the runs."""
    dice = random.Random(3)
    found = {}
    for place, label in enumerate(labels):
        steps = list(label.example.steps)
        first = label.run.step
        if dice.random() >= right:
            first = next(step for step in reversed(steps) if step != label.run.step)
        found[place] = likeliest(label, first)
    return found


def natural(source=PERSON):
    """Return labels of a person, or of another source, for runs in which rules find nothing."""
    return [
        replace(each, findings=(), source=source)
        for _ in range(3)
        for each in labels_from(planted_set())
    ]


def test_planted_faults_let_no_profile_name_a_step():
    labels = natural(INJECTION)
    assert fit_threshold(labels, masses(labels, 1.0)).least == NEVER


@pytest.mark.parametrize(("right", "abstains"), [(0.1, True), (1.0, False)])
def test_a_profile_abstains_where_it_was_mostly_wrong(right, abstains):
    labels = natural()
    found = fit_threshold(labels, masses(labels, right))
    assert (found.least == NEVER) == abstains
    label = labels[-1]
    told = concluded(label, masses(labels, right)[len(labels) - 1], found.calibration, found.least)
    assert (told.decisive is None) == abstains


@pytest.mark.parametrize(
    ("wrong", "right", "least"),
    [
        *[(0.4, 0.97, 0.5), (0.51, 0.97, 0.55), (0.76, 0.97, 0.8), (0.91, 0.97, 0.95)],
        (0.96, 0.99, NEVER),
    ],
)
def test_a_threshold_is_the_lowest_that_leaves_out_wrong_names(wrong, right, least, monkeypatch):
    """In steps of a twentieth from a half on."""
    labels = natural()
    found = {}
    for place, label in enumerate(labels):
        other = next(step for step in label.example.steps if step != label.run.step)
        told = (label.run.step, right) if place % 2 else (other, wrong)
        found[place] = likeliest(label, *told)
    monkeypatch.setattr(decision, "fit_calibration", lambda _: Calibration())
    assert fit_threshold(labels, found).least == least


def test_thresholds_of_a_scenario_come_from_the_others():
    labels = natural()
    given = masses(labels, 1.0)
    units, _ = units_of(labels)
    spoiled = {place: given[place] for place in given if units[place] != units[0]}
    wrong = {
        place: {step: 0.9 if step != labels[place].run.step else 0.01 for step in given[place]}
        for place in given
        if units[place] == units[0]
    }
    found = cross_fitted(labels, {**spoiled, **wrong}, units, 0)
    assert all(found[place].least < NEVER for place in wrong)
    assert isinstance(found[0].calibration, Calibration)
    assert set(ALL_FEATURES) > set(PLAIN_NAMES)
