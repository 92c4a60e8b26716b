"""The fitting of a profile, against second implementations without numpy."""

import math
import random
import statistics
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mast_trace_judge.study.logit import LogitExample, Stack, minimise
from mast_trace_judge.study.training import cross_fit, cross_validate, folds, probabilities, train

np = pytest.importorskip("numpy")


def example(rows, gold, blamed, group):
    count = len(rows)
    return LogitExample(np.array(rows), tuple(range(count)), ("a",) * count, gold, blamed, group)


def drawn(seed, runs=12, features=3, groups=6):
    """Runs in which a feature points at the labelled step; the last feature is always the same."""
    dice = random.Random(seed)
    found = []
    for number in range(runs):
        count = dice.randrange(2, 7)
        gold = dice.randrange(count)
        rows = [
            [dice.gauss(2.0 * (place == gold), 1.0)]
            + [dice.gauss(0, 3) for _ in range(features - 2)]
            + [1.0]
            for place in range(count)
        ]
        blamed = {gold, dice.randrange(count)}
        labelled = gold if dice.random() < 0.8 else None
        found.append(
            example(
                rows,
                labelled,
                tuple(sorted(blamed)) if labelled is None or dice.random() < 0.8 else (),
                f"q{number % groups}",
            )
        )
    return found


def softmax(scores):
    powers = [math.exp(score - max(scores)) for score in scores]
    return [power / sum(powers) for power in powers]


def dot(weights, row):
    return sum(weight * value for weight, value in zip(weights, row, strict=True))


def spreads(examples):
    """Each feature's standard deviation over all steps of all runs; 1 for a constant one."""
    columns = zip(*[row for each in examples for row in each.rows.tolist()], strict=True)
    return [statistics.pstdev(column) or 1.0 for column in columns]


def loss(examples, weights, ridge, share):
    """The loss of weights for features that are divided by their spread."""
    total = 0.0
    scaled = [w / s for w, s in zip(weights, spreads(examples), strict=True)]
    for each in examples:
        p = softmax([dot(scaled, row) for row in each.rows.tolist()])
        if each.gold is not None:
            total -= math.log(p[each.gold])
        if each.blamed:
            total -= share * math.log(sum(p[place] for place in each.blamed))
    return total / len(examples) + ridge / 2 * dot(weights, weights)


WEIGHTS = st.lists(st.floats(-2, 2), min_size=3, max_size=3)
SETTINGS = {"max_examples": 25, "deadline": None}


@given(st.integers(0, 50), WEIGHTS, st.floats(0.1, 4), st.floats(0, 1))
@settings(**SETTINGS)
def test_the_loss_and_its_slope(seed, weights, ridge, share):
    """The slope is what the loss changes by from a millionth to each side."""
    examples = drawn(seed)
    found, slope = Stack.of(examples).loss(np.array(weights), ridge, share)
    assert found == pytest.approx(loss(examples, weights, ridge, share))
    for place in range(3):
        sides = [
            loss(examples, [w + h * (i == place) for i, w in enumerate(weights)], ridge, share)
            for h in (1e-6, -1e-6)
        ]
        assert slope[place] == pytest.approx((sides[0] - sides[1]) / 2e-6, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("ridge", "share"), [(0.05, 0.3), (3.2, 1.0)])
def test_the_best_weights(seed, ridge, share):
    """No weights nearby are better, wherever the search begins; the loss has a single minimum."""
    examples = drawn(seed)
    stack = Stack.of(examples)
    best = minimise(stack, ridge, share)
    assert np.abs(stack.loss(best, ridge, share)[1]).max() < 1e-4
    least = loss(examples, best, ridge, share)
    for place in range(3):
        for shift in (0.02, -0.02):
            moved = [w + shift * (i == place) for i, w in enumerate(best)]
            assert loss(examples, moved, ridge, share) > least
    far = minimise(stack, ridge, share, np.array([30.0, -30.0, 5.0]))
    assert far == pytest.approx(best, abs=1e-2)


def test_a_run_without_a_clue_about_its_step_still_teaches_its_agent():
    """A label of an agent without a step raises all of that agent's steps alike."""
    rows = [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]
    examples = [example(rows, None, (0, 1), "q")]
    weights = minimise(Stack.of(examples), 0.1, 1.0)
    p = probabilities(np.array(rows) @ weights)
    assert p[0] == pytest.approx(p[1])
    assert p[0] > p[2]


@given(st.lists(st.floats(-700, 700), min_size=1, max_size=20))
@settings(deadline=None)
def test_probabilities(scores):
    assert probabilities(np.array(scores)) == pytest.approx(softmax(scores))


@given(st.integers(0, 30), st.integers(1, 12), st.integers(2, 6), st.integers(0, 5))
@settings(**SETTINGS)
def test_folds(seed, groups, count, shuffled):
    examples = drawn(seed, runs=2 * groups, groups=groups)
    found = folds(examples, count, shuffled)
    assert found == folds(examples, count, shuffled)
    if groups == 1:
        assert found == [], "a fold needs others to learn from"
        return
    assert sorted(place for fold in found for place in fold) == list(range(len(examples)))
    fold_of = {place: number for number, fold in enumerate(found) for place in fold}
    for place, each in enumerate(examples):
        for other, another in enumerate(examples):
            if each.group == another.group:
                assert fold_of[place] == fold_of[other]
    sizes = [len({examples[place].group for place in fold}) for fold in found]
    assert len(found) == min(groups, count)
    assert max(sizes) - min(sizes) <= 1


def test_folds_are_the_same_everywhere_and_others_for_another_seed():
    """Published scores can be had again."""
    examples = drawn(1, runs=8, groups=8)
    assert folds(examples, 3, 0) == [{0, 1, 4}, {2, 3, 6}, {5, 7}]
    assert folds(examples, 3, 1) != folds(examples, 3, 0)


RIDGES, SHARES = (3.2, 1.6, 0.8, 0.4, 0.2, 0.1), (0.3, 1.0)
TEMPERATURES = [0.6 + 0.05 * step for step in range(60)]


def held_out(examples, ridge, share, seed):
    """Each run's scores by weights that were fitted without its group."""
    scores = {}
    for fold in folds(examples, 4, seed):
        others = [each for place, each in enumerate(examples) if place not in fold]
        scaled = minimise(Stack.of(others), ridge, share) / spreads(others)
        for place in fold:
            scores[place] = [dot(scaled, row) for row in examples[place].rows.tolist()]
    return scores


def chosen(examples, seed):
    """Ridge, share and temperature: the likeliest labels, then the most honest first steps."""

    def surprise(scores):
        labels = [
            -math.log(softmax(scores[place])[each.gold])
            for place, each in enumerate(examples)
            if each.gold is not None
        ]
        return statistics.fmean(labels)

    tried = {
        (ridge, share): held_out(examples, ridge, share, seed)
        for share in SHARES
        for ridge in RIDGES
    }
    best = min(tried, key=lambda setting: surprise(tried[setting]))

    def dishonesty(temperature):
        claimed = right = 0.0
        for place, each in enumerate(examples):
            p = softmax([score / temperature for score in tried[best][place]])
            claimed += max(p)
            right += p.index(max(p)) == each.gold
        return abs(claimed - right)

    return best, min(TEMPERATURES, key=dishonesty), tried[best]


@pytest.mark.parametrize("seed", range(4))
def test_training(seed):
    examples = drawn(seed, runs=16, groups=8)
    weights, found, inner = train(examples, seed)
    (ridge, share), temperature, scores = chosen(examples, seed)
    assert found == {"ridge": ridge, "agent_share": share, "temperature": round(temperature, 2)}
    fitted = minimise(Stack.of(examples), ridge, share)
    scaled = [w / s / temperature for w, s in zip(fitted, spreads(examples), strict=True)]
    assert weights == pytest.approx(scaled, abs=2e-3)
    assert weights == [round(weight, 4) for weight in weights]
    for place, p in enumerate(inner):
        calibrated = softmax([score / temperature for score in scores[place]])
        assert p == pytest.approx(calibrated, abs=2e-3)


def test_a_single_group_is_trained_on_itself():
    examples = drawn(3, runs=10, groups=1)
    weights, found, inner = train(examples, 0)
    assert found == {"ridge": 3.2, "agent_share": 0.3, "temperature": 0.6}
    for each, p in zip(examples, inner, strict=True):
        assert p == pytest.approx(softmax([dot(weights, row) for row in each.rows.tolist()]))


def test_cross_fitting():
    examples = drawn(5, runs=16, groups=8)
    found = cross_fit(examples, 7)
    assert Counter(place for fold in found for place in fold.own) == Counter(range(16))
    assert [set(fold.own) for fold in found] == folds(examples, 5, 1007)
    for fold in found:
        others = [place for place in range(16) if place not in fold.own]
        assert list(fold.others) == others
        weights, _, inner = train([examples[place] for place in others], 7)
        assert list(fold.others.values()) == inner
        for place, p in fold.own.items():
            scores = [dot(weights, row) for row in examples[place].rows.tolist()]
            assert p == pytest.approx(softmax(scores))
    own = {place: p for fold in found for place, p in fold.own.items()}
    assert cross_validate(examples, 7) == [own[place] for place in range(16)]
