"""Agreement between annotators, against values computed by hand."""

import pytest
from judge.data import labelled_runs

from mast_trace_judge.study.agreement import (
    ALL_MODES,
    FEWEST_POSITIVES,
    agreement,
    cohen_kappa,
    compare,
    gwet_ac1,
    step_agreement,
    wilson,
)
from mast_trace_judge.study.datasets.mast import read_mast_v0


def _table(both: int, first: int, second: int, neither: int) -> tuple[list[bool], list[bool]]:
    """Return the answers of two annotators with this table of yes and no."""
    one = [True] * (both + first) + [False] * (second + neither)
    other = [True] * both + [False] * first + [True] * second + [False] * neither
    return one, other


@pytest.mark.parametrize(
    ("table", "kappa", "ac1"),
    [
        # 0.7 observed; chance 0.5 * 0.6 + 0.5 * 0.4 = 0.5; AC1's chance 2 * 0.55 * 0.45 = 0.495
        ((20, 5, 10, 15), 0.4, 0.205 / 0.505),
        # The paradox of rare answers: 0.944 observed; chance 0.94528, AC1's chance 0.054432
        ((118, 5, 2, 0), -0.00128 / 0.05472, 0.889568 / 0.945568),
        ((10, 0, 0, 10), 1.0, 1.0),
        ((0, 10, 10, 0), -1.0, -1.0),
        ((5, 5, 5, 5), 0.0, 0.0),
    ],
)
def test_kappa_and_ac1_are_those_of_the_formulas(table, kappa, ac1):
    """Cohen 1960 and Gwet 2008, by hand."""
    assert cohen_kappa(*_table(*table)) == pytest.approx(kappa)
    assert gwet_ac1(*_table(*table)) == pytest.approx(ac1)


def test_kappa_does_not_exist_where_chance_explains_everything():
    """Two annotators who always say no agree by chance; AC1 still tells that they agree."""
    assert cohen_kappa(*_table(0, 0, 0, 20)) is None
    assert gwet_ac1(*_table(0, 0, 0, 20)) == 1.0
    assert cohen_kappa([], []) is None
    assert gwet_ac1([], []) is None


def test_kappa_works_for_names_as_well():
    """Three agents: 3 of 4 equal; chance 0.5 * 0.25 + 0.25 * 0.5 + 0.25 * 0.25 = 0.3125."""
    assert cohen_kappa(["a", "a", "b", "c"], ["a", "b", "b", "c"]) == pytest.approx(0.4375 / 0.6875)


def test_no_kappa_under_five_positives():
    """Four positives of one annotator are too few, whatever the other says."""
    few = compare("1.3", ("a", "b"), *_table(4, 0, 6, 40))
    assert (few.kappa, few.kappa_interval) == (None, None)
    assert few.ac1 is not None
    enough = compare("1.3", ("a", "b"), *_table(FEWEST_POSITIVES, 0, 6, 40))
    assert enough.kappa is not None


def test_counts_and_prevalence_are_reported():
    """The counts behind a kappa."""
    found = compare("1.3", ("a", "b"), *_table(6, 2, 4, 28))
    assert (found.items, found.positives, found.both, found.observed) == (40, (8, 10), 6, 0.85)
    assert found.prevalence == pytest.approx(18 / 80)


def test_the_bootstrap_interval_holds_kappa_and_narrows_with_runs():
    """The same answers give the same interval; four times the runs give about half of it."""
    small = compare("1.3", ("a", "b"), *_table(20, 5, 10, 15))
    large = compare("1.3", ("a", "b"), *_table(80, 20, 40, 60))
    assert small == compare("1.3", ("a", "b"), *_table(20, 5, 10, 15))
    assert small.kappa_interval.low < 0.4 < small.kappa_interval.high
    # The standard error of kappa at n = 50 is about 0.13: two of them to each side.
    width = small.kappa_interval.high - small.kappa_interval.low
    assert width == pytest.approx(0.5, abs=0.12)
    assert large.kappa_interval.high - large.kappa_interval.low == pytest.approx(width / 2, rel=0.2)


def test_every_pair_of_raters_is_compared():
    """Three annotators make three pairs; each by mode, by category and over all modes."""
    runs = {f"run {i}": {"1.3": i % 2 == 0, "3.1": i % 3 == 0} for i in range(20)}
    found = agreement({"ann": runs, "bob": runs, "judge": runs})
    assert len({agreed.annotators for agreed in found}) == 3
    subjects = [agreed.subject for agreed in found if agreed.annotators == ("ann", "bob")]
    assert subjects == ["1.3", "3.1", "Specification issues", "Task verification", ALL_MODES]
    assert {agreed.kappa for agreed in found} == {1.0}


def test_only_what_both_rated_counts():
    """A mode that an annotator did not look at is not a no."""
    one = {"x": {"1.3": True, "2.1": True}, "y": {"1.3": False}}
    other = {"x": {"1.3": True}, "z": {"1.3": True}}
    by_subject = {agreed.subject: agreed for agreed in agreement({"a": one, "b": other})}
    assert by_subject["1.3"].items == 1
    assert "2.1" not in by_subject
    assert by_subject[ALL_MODES].items == 1


def test_steps_agree_exactly_nearly_or_not():
    """Distances 0, 1, 3 and 9; three of four agents, one in another case."""
    one = [(4, "WebSurfer"), (4, "Coder"), (4, "Coder"), (4, "Coder")]
    other = [(4, "websurfer"), (5, "Coder"), (1, "Coder"), (13, "Planner")]
    found = step_agreement(one, other)
    assert (found.exact, found.within_one, found.within_three, found.agent) == (
        0.25,
        0.5,
        0.75,
        0.75,
    )


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [(5, 10, 0.2366, 0.7634), (0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (0, 0, 0.0, 1.0)],
)
def test_wilson_intervals_are_those_of_the_formula(successes, trials, low, high):
    """Intervals are never outside 0 to 1, not even at the ends."""
    found = wilson(successes, trials)
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-4)


def test_models_agree_little_with_the_people_of_masts_first_round():
    """The agreement of a published judge on these traces is weak, and is reported as such."""
    runs = read_mast_v0(labelled_runs())
    ratings = {
        "people": {run.name: run.modes for run in runs},
        "o1": {run.name: run.annotators["o1, few examples"] for run in runs},
    }
    (total,) = [agreed for agreed in agreement(ratings) if agreed.subject == ALL_MODES]
    assert total.items > 600
    assert total.kappa < 0.3
