"""The probabilities that a verdict shows, computed a second time from the files that ship."""

import itertools
import json
import math
from dataclasses import replace
from importlib.resources import files

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judge.builders import RunBuilder

from mast_trace_judge.assembly import fuse_layers
from mast_trace_judge.llm.verification import ModelReading, Suggestion
from mast_trace_judge.local.attribution import attribute, summarise
from mast_trace_judge.local.attribution.calibration import Calibration, fit_calibration
from mast_trace_judge.local.attribution.profile import Likeness
from mast_trace_judge.local.layers import judge_by_rules

SHIPPED = json.loads(
    files("mast_trace_judge.local.attribution").joinpath("calibrations.json").read_text("utf-8")
)
DISTRIBUTIONS = st.lists(st.floats(1e-6, 1.0), min_size=1, max_size=30).map(
    lambda weights: {3 * step: weight / sum(weights) for step, weight in enumerate(weights)}
)


def calibrated(probabilities, share, first):
    """Share of a run of powers, which add up to 1, rank by rank; the rest as it was."""
    order = sorted(probabilities, key=lambda step: (-probabilities[step], step))
    powers = [first * (1 - first) ** rank for rank in range(len(order))]
    return {
        step: (1 - share) * probabilities[step] + share * power / sum(powers)
        for step, power in zip(order, powers, strict=True)
    }


def undecided(agents=("planner", "writer")):
    """A run of six remarks in which nothing speaks for any step but the first actor's."""
    run = RunBuilder(outcome="failure").asks()
    for agent, _ in zip(itertools.cycle(agents), range(6), strict=False):
        run.says(agent, "What does everybody think of it?")
    return run.build()


@given(DISTRIBUTIONS, st.floats(0, 1), st.floats(0.01, 0.99))
def test_calibration(probabilities, share, first):
    found = Calibration(share, first).apply(probabilities)
    assert found == pytest.approx(calibrated(probabilities, share, first))


@given(st.lists(st.tuples(DISTRIBUTIONS, st.integers(-1, 30)), min_size=1, max_size=6))
@settings(max_examples=15, deadline=None)
def test_the_fitted_calibration_is_the_likeliest(samples):
    """No other pair of the grid gives the labelled steps a greater probability."""
    labelled = [
        (distribution, 3 * step) for distribution, step in samples if 3 * step in distribution
    ]

    def likelihood(share, first):
        return sum(
            math.log(calibrated(distribution, share, first)[step])
            for distribution, step in labelled
        )

    found = fit_calibration(labelled)
    grid = [(i / 20, j / 20) for i in range(17) for j in range(2, 13)]
    best = max((likelihood(*pair) for pair in grid), default=0.0)
    assert likelihood(found.share, found.first) == pytest.approx(best)


def test_of_the_cascade():
    weights = dict.fromkeys(range(1, 7), 0.8 / 6)
    weights[1] += 0.15
    raw = {step: weight / sum(weights.values()) for step, weight in weights.items()}
    shipped = SHIPPED["cascade"]
    found = attribute(undecided())
    assert found.probabilities == pytest.approx(calibrated(raw, shipped["share"], shipped["first"]))
    assert found.candidates[0].probability == round(found.probabilities[1], 4)


@pytest.mark.parametrize("first", [0.5, 0.5 - 1e-3])
def test_the_judge_abstains_below_a_half_not_at_it(first):
    given_ones = {1: first, 2: 0.24, 3: 0.24, 4: 1 - first - 0.48 - 0.02, 5: 0.02}
    given_ones[4] = min(given_ones[4], first - 1e-6)
    found = summarise(undecided(), given_ones, {1: "a reason"}, profile="mine", least=0.5)
    assert (found.decisive is None) is (first < 0.5)
    assert found.candidates[0].rule == "a reason"
    if found.decisive is not None:
        assert (found.decisive.rule, found.decisive.reason) == ("a reason", "a reason")
    assert summarise(undecided(), {}, {}, profile="cascade").candidates == ()


def test_who_wrote_the_code_that_survives_is_named():
    code = "```python\n{}\nprint(total)\n```"
    run = RunBuilder(outcome="failure").asks().says("lead", "Please compute it.")
    run.says("coder", code.format("total = sum(prices)")).says("critic", "Hm.")
    found = attribute(run.says("tester", code.format("total = sum(prices)")).build())
    assert found.candidates[0].step == 2
    assert found.candidates[0].rule == "first writer of the code that survives"


def test_no_percentage_of_a_step_that_a_model_helped_to_choose(monkeypatch):
    """Nothing is known of a model's share of right steps before its runs were labelled."""
    monkeypatch.setattr(Likeness, "covers", lambda *_: True)
    run = replace(undecided(), framework="ag2")
    local = judge_by_rules(run)
    assert local.attribution.calibrated
    reading = ModelReading("failure", 0.9, (Suggestion(2, ""),))
    assert not fuse_layers(run, local, reading).attribution.calibrated
    silent = ModelReading("failure", 0.9)
    assert fuse_layers(run, local, silent).attribution.calibrated, "the profile's own numbers"
