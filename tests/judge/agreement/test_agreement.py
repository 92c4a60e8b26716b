"""Agreement between annotators, against values computed by hand."""

import sys

import pytest
from judge.data import labelled_runs
from published.mast import read_mast_v0

from mast_trace.exceptions import ConfigurationError
from mast_trace_judge.store.labels import HumanLabel
from mast_trace_judge.study.agreement import ALL_MODES, agreement, compare
from mast_trace_judge.study.labelled import named_modes, named_steps
from mast_trace_judge.study.numeric import numpy_module, optimize_module, special_module


def _table(both: int, first: int, second: int, neither: int) -> tuple[list[bool], list[bool]]:
    """Return the answers of two annotators with this table of yes and no."""
    one = [True] * (both + first) + [False] * (second + neither)
    other = [True] * both + [False] * first + [True] * second + [False] * neither
    return one, other


def test_no_kappa_under_five_positives():
    """Four positives of one annotator are too few, whatever the other says."""
    few = compare("1.3", ("a", "b"), *_table(4, 0, 6, 40))
    assert (few.kappa, few.kappa_interval) == (None, None)
    assert few.ac1 is not None
    enough = compare("1.3", ("a", "b"), *_table(5, 0, 6, 40))
    assert enough.kappa is not None


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
    in_category = {"w": {"1.3": False, "1.1": True}}, {"w": {"1.3": False}}
    by_subject = {agreed.subject: agreed for agreed in agreement({"a": one, "b": other})}
    assert by_subject["1.3"].items == 1
    assert "2.1" not in by_subject
    assert by_subject[ALL_MODES].items == 1
    apart = agreement(dict(zip("ab", in_category, strict=True)))
    assert {(each.observed, each.both) for each in apart} == {(1.0, 0)}


def test_the_labels_of_a_run_are_joined_by_what_most_say():
    """A mode of half of those who named any; who saw none is among them, and is no mode."""
    given = ((("1.3",), 2), (("none",), 5), ((), 5), (("none",), None), (("1.3", "2.6"), None))
    labels = [
        HumanLabel("r", f"p{number}", "failure", modes, step, f"agent {step}", project="one")
        for number, (modes, step) in enumerate(given)
    ]
    labels.append(HumanLabel("r", "p", "failure", ("3.1",), 7, "z", project="two"))
    one, two = ("one", "r"), ("two", "r")
    assert named_modes(labels) == {one: {"1.3": True}, two: {"3.1": True}}
    assert named_steps(labels) == {one: (5, "agent 5"), two: (7, "z")}


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


@pytest.mark.parametrize(
    ("load", "package", "extra"),
    [
        (numpy_module, "numpy", "judge"),
        (special_module, "scipy", "fit"),
        (optimize_module, "scipy", "fit"),
    ],
)
def test_a_missing_package_is_named_with_its_extra(load, package, extra, monkeypatch):
    # Another test may have imported parts of it.
    for name in [package, *(each for each in sys.modules if each.startswith(f"{package}."))]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ConfigurationError, match=rf"needs? {package}: pip .*\[{extra}\]"):
        load()
