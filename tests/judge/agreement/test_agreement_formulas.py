"""Agreement and Wilson's interval against second implementations, from the definitions."""

import random
from collections import Counter
from fractions import Fraction
from itertools import product
from statistics import NormalDist

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mast_trace.taxonomy import FAILURE_MODES
from mast_trace_judge.study.agreement import (
    ALL_MODES,
    agreement,
    cohen_kappa,
    compare,
    gwet_ac1,
    step_agreement,
    wilson,
)

PAIRS = st.one_of(
    st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60),
    st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("abcd")), min_size=1, max_size=60),
)
Z = NormalDist().inv_cdf(0.975)
FEW = [(True, True)] * 3 + [(True, False)] + [(False, True)] + [(False, False)] * 5


def observed_and_shares(pairs):
    """The share of equal answers, and each annotator's shares by answer, in whole numbers."""
    count = len(pairs)
    table = Counter(pairs)
    answers = {answer for pair in pairs for answer in pair}
    equal = Fraction(sum(table[answer, answer] for answer in answers), count)
    rows = {a: Fraction(sum(table[a, b] for b in answers), count) for a in answers}
    columns = {b: Fraction(sum(table[a, b] for a in answers), count) for b in answers}
    return equal, rows, columns


def kappa_of(pairs):
    """Cohen (1960): what is equal beyond two annotators who guess at their own rates."""
    equal, rows, columns = observed_and_shares(pairs)
    chance = sum(
        (rows[a] * columns[b] for a, b in product(rows, columns) if a == b), start=Fraction(0)
    )
    return None if chance == 1 else float((equal - chance) / (1 - chance))


def ac1_of(pairs):
    """Gwet (2008): chance is that an answer is a guess among q, times that guesses are equal."""
    equal, rows, columns = observed_and_shares(pairs)
    if len(rows) == 1:
        return 1.0
    means = [(rows[answer] + columns[answer]) / 2 for answer in rows]
    chance = (1 - sum(mean * mean for mean in means)) / (len(rows) - 1)
    return float((equal - chance) / (1 - chance))


@given(PAIRS)
def test_kappa(pairs):
    """For yes and no, and for names."""
    found = cohen_kappa(*zip(*pairs, strict=True))
    assert found == (None if kappa_of(pairs) is None else pytest.approx(kappa_of(pairs)))


@given(PAIRS)
def test_ac1(pairs):
    """Likewise."""
    assert gwet_ac1(*zip(*pairs, strict=True)) == pytest.approx(ac1_of(pairs))


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=40))
@settings(max_examples=15, deadline=None)
def test_a_comparison_reports_these_numbers(pairs):
    """Kappa where both annotators say yes five times at least; AC1, counts and shares always."""
    found = compare("1.3", ("ann", "bob"), *zip(*pairs, strict=True))
    yes = tuple(sum(pair[annotator] for pair in pairs) for annotator in (0, 1))
    kappa = kappa_of(pairs) if min(yes) >= 5 else None
    assert found.kappa == (None if kappa is None else pytest.approx(kappa))
    assert found.ac1 == pytest.approx(ac1_of(pairs))
    assert found.observed == pytest.approx(sum(a == b for a, b in pairs) / len(pairs))
    assert (found.items, found.positives) == (len(pairs), yes)
    assert found.both == sum(a and b for a, b in pairs)
    assert found.prevalence == pytest.approx(sum(yes) / (2 * len(pairs)))
    assert (found.kappa_interval is None) == (kappa is None)
    if kappa is not None:
        assert -1 <= found.kappa_interval.low <= found.kappa_interval.high <= 1


TABLE = [(True, True)] * 61 + [(True, False)] * 17 + [(False, True)] * 29 + [(False, False)] * 93


def test_the_interval_of_kappa():
    """The middle 95 % of the kappas of 200 runs drawn with replacement, here by another generator."""
    drawing = random.Random(1)
    drawn = sorted(kappa_of(drawing.choices(TABLE, k=len(TABLE))) for _ in range(2000))
    found = compare("1.3", ("ann", "bob"), *zip(*TABLE, strict=True)).kappa_interval
    low, high = drawn[50], drawn[-51]
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.03 * (high - low))


def test_the_interval_of_kappa_is_the_same_everywhere():
    """By which two people can see that they compare the same answers: 25 draws lie on each side."""
    found = compare("1.3", ("ann", "bob"), *zip(*TABLE, strict=True)).kappa_interval
    assert (found.low, found.high) == pytest.approx((0.412062848, 0.645533725))


def test_answers_about_one_run_are_drawn_together():
    """Fourteen answers that follow from one another tell no more than one."""
    generator = random.Random(2)
    runs = [generator.choices(FEW, k=1) * 14 for _ in range(150)]
    drawn = sorted(
        kappa_of([pair for run in generator.choices(runs, k=len(runs)) for pair in run])
        for _ in range(400)
    )
    answers = [pair for run in runs for pair in run]
    about = [number for number in range(len(runs)) for _ in range(14)]
    found = compare("all", ("ann", "bob"), *zip(*answers, strict=True), about).kappa_interval
    low, high = drawn[10], drawn[-11]
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.2 * (high - low))
    apart = compare("all", ("ann", "bob"), *zip(*answers, strict=True)).kappa_interval
    assert found.high - found.low > 3 * (apart.high - apart.low)


def test_runs_count_with_as_many_answers_as_they_have():
    """Here runs have one to nine answers, and long ones are answered otherwise than short ones."""
    generator = random.Random(5)
    runs = [
        generator.choices(FEW if length < 5 else FEW[::-1][:6], k=length)
        for length in (generator.randrange(1, 10) for _ in range(120))
    ]
    drawn = sorted(
        kappa_of([pair for run in generator.choices(runs, k=len(runs)) for pair in run])
        for _ in range(600)
    )
    answers = [pair for run in runs for pair in run]
    about = [number for number, run in enumerate(runs) for _ in run]
    found = compare("all", ("ann", "bob"), *zip(*answers, strict=True), about).kappa_interval
    low, high = drawn[15], drawn[-16]
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.1 * (high - low))


def test_draws_that_have_no_kappa_are_left_out():
    answers, about = [True] * 5 + [False] * 2, [1] * 5 + [2, 3]
    found = compare("all", ("ann", "bob"), answers, answers, about).kappa_interval
    assert (found.low, found.high) == (1.0, 1.0)


def test_every_answer_is_about_a_run():
    """An answer more than there are runs named for is a mistake of the caller."""
    with pytest.raises(ValueError, match="shorter"):
        compare("all", ("ann", "bob"), [True] * 5 + [False], [True] * 5 + [False], list("abcde"))


def test_agreement_draws_runs_not_answers():
    """Over all modes, of each pair of annotators."""
    generator = random.Random(3)
    pairs = [generator.choice(FEW) for _ in range(150)]
    ratings = {
        annotator: {
            str(run): dict.fromkeys(FAILURE_MODES, pair[place]) for run, pair in enumerate(pairs)
        }
        for place, annotator in enumerate(("ann", "bob"))
    }
    found = {each.subject: each.kappa_interval for each in agreement(ratings)}
    assert found[ALL_MODES] == found["1.1"]


def test_thousands_of_labels_are_compared():
    generator = random.Random(4)
    ratings = {
        annotator: {
            str(run): {code: generator.random() < 0.2 for code in FAILURE_MODES}
            for run in range(5000)
        }
        for annotator in ("ann", "bob")
    }
    assert agreement(ratings)[-1].items == 5000 * len(FAILURE_MODES)


@given(st.integers(1, 5000), st.floats(0, 1))
@example(1, 0.0)
@example(1, 1.0)
@example(5000, 0.0)
def test_wilson(trials, share):
    """The interval's ends are the rates from which the observed share is just 1.96 standard errors away."""
    successes = round(share * trials)
    found = wilson(successes, trials)
    seen = successes / trials

    def errors_away(rate):
        return abs(seen - rate) - Z * (rate * (1 - rate) / trials) ** 0.5

    def root(inside, outside):
        for _ in range(200):
            middle = (inside + outside) / 2
            inside, outside = (middle, outside) if errors_away(middle) < 0 else (inside, middle)
        return inside

    inner = min(max(seen, 1e-12), 1 - 1e-12)
    low = 0.0 if successes == 0 else root(inner, 0.0)
    high = 1.0 if successes == trials else root(inner, 1.0)
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-6)


def test_wilson_at_both_ends():
    """A share of all or of none has itself for an end, whatever rounding makes of the formula."""
    assert (wilson(0, 0).low, wilson(0, 0).high) == (0.0, 1.0)
    for trials in range(1, 200):
        assert 0 < wilson(trials, trials).low < wilson(trials, trials).high <= 1
        assert 0 <= wilson(0, trials).low < wilson(0, trials).high < 1


@pytest.mark.parametrize("measure", [cohen_kappa, gwet_ac1])
def test_answers_to_different_runs_are_refused(measure):
    """One annotator with more answers than the other has rated other runs; no answers agree in nothing."""
    assert measure([], []) is None
    with pytest.raises(ValueError, match="3 answers of one annotator, 2 of the other"):
        measure([True, False, True], [True, False])


BLAMED = st.tuples(st.integers(0, 12), st.sampled_from(["Coder", "coder", "Planner"]))


@given(st.lists(st.tuples(BLAMED, BLAMED), max_size=30))
@settings(deadline=None)
def test_agreement_on_steps(pairs):
    one, other = [a for a, _ in pairs], [b for _, b in pairs]
    found = step_agreement(one, other)
    apart = Counter(abs(a[0] - b[0]) for a, b in pairs)
    names = [(a[1].lower(), b[1].lower()) for a, b in pairs]
    count = len(pairs) or 1
    assert (found.runs, found.exact) == (len(pairs), pytest.approx(apart[0] / count))
    assert found.within_one == pytest.approx((apart[0] + apart[1]) / count)
    assert found.within_three == pytest.approx(sum(apart[each] for each in range(4)) / count)
    assert found.agent == pytest.approx(sum(a == b for a, b in names) / count)
    kappa = kappa_of(names) if names else None
    assert found.agent_kappa == (None if kappa is None else pytest.approx(kappa))


def test_of_several_decisive_steps_the_nearest_count():
    """A person who calls two steps decisive agrees with a judge that names either."""
    found = step_agreement([((1, 9), "a"), ((4,), "a")], [(9, "a"), ((0, 2), "a")])
    assert (found.exact, found.within_one, found.within_three) == (0.5, 0.5, 1.0)


def test_decisive_steps_of_different_runs_are_refused():
    with pytest.raises(ValueError, match="argument"):
        step_agreement([(1, "a"), (2, "a")], [(1, "a")])
