"""Mode 2.6: results that contradict the figures that they are computed from."""

from dataclasses import replace

import pytest
from judge.builders import RunBuilder

from mast_trace_judge.local.arithmetic import derived, in_other_unit, near, reachable, slip
from mast_trace_judge.local.equations import equations
from mast_trace_judge.local.figures import figures
from mast_trace_judge.local.rules.calculation import (
    _is_amount,
    _is_quantity,
    _no_average,
    _no_total,
    false_equation,
    wrong_total,
)
from mast_trace_judge.verdict import Evidence


@pytest.mark.parametrize(
    "text",
    [
        "120 + 80 = 210",
        "In all: $120 + $80 = $210",
        "The total is 1,200 + 800 = 2,100 EUR.",
        "- 12,50 + 7,50 = 21,00",
        "12.50 + 7.50 = 21",
        "300 - 45 = 265",
        "12 x 35 = 430",
        "合计:120 + 80 = 210",
        "1.200,50 + 300,50 = 1.600,00",
        # Beyond what rounding explains: of a share, of a last digit, of a product.
        "49 + 49 = 100",
        "12.50 + 7.50 = 20.02",
        "2.5 * 4 = 10.3",
        "10 / 3 = 4",
        "7 - 2 * 3 = 2",
        "1 + " * 11 + "1 = 13",
    ],
)
def test_an_equation_that_is_false(text):
    (found,) = equations(text)
    assert not found.holds()


@pytest.mark.parametrize(
    "text",
    [
        "120 + 80 = 200",
        "502 + 361 + 2 * 165 + 2 * 270 = $1733",
        "12,50 + 7,50 = 20,00",
        "12,50 + 7,50 = 20",
        "1.200 + 300 = 1.500",
        "1,200 + 300 = 1,500",
        "1 200 000 + 300 000 = 1.5 million",
        "33 + 33 + 33 = 100",
        "33.3 + 33.3 + 33.3 = 100",
        "3 + 4 * 2 = 14",
        "60 + 30 = 1.5 hours",
        "1/3 = 0.33",
        "10 / 4 = 3",
        "4 / 0 = 3",
        "80 - 120 = -40",
        "2019-2024 = 5 years",
        "12.345 + 0.005 = 12.35",
        "100 * 1.609 = 161 km",
        "5 + 3 = 4 + 4",
        "x + 3 + 4 = 9",
        "2 nights x 165 + 270 = 600",
        "f(2) + 3 = 7",
        "12:30 - 1 = 11:30",
        "120 + 80 = 2k",
        "3 * 10^4 + 1 = 30001",
        "2x + 3 = 9",
        "(12 - 2) * 3 = 31",
        "120 + 10 % = 132",
        "681 + 383 = 1,and so on",
        "49.5 + 49 = 100",
        "12.50 + 7.50 = 20.01",
        "2.5 * 4 = 10.2",
        "10 / 4 = 2",
        "7 - 2 * 3 = 15",
        "1 + " * 12 + "1 = 14",
    ],
)
def test_an_equation_that_may_be_true(text):
    """Rounding, units, orders of evaluation and spellings are allowed for; formulas are left out."""
    assert all(found.holds() for found in equations(text))


def bills(text="The total is 120 + 80 = 210.", **attributes):
    run = RunBuilder("What do we owe?", **attributes)
    run.calls("clerk", "bill", {"of": "north"}, "120 EUR")
    run.calls("clerk", "bill", {"of": "south"}, "80 EUR")
    return run.says("clerk", text, to="boss")


@pytest.mark.parametrize("outcome", ["", "failure"])
def test_a_false_equation_is_exact_in_a_failed_run(outcome):
    """The finding is heuristic elsewhere, as the run may reach its goal; it names the first agent."""
    run = bills(outcome=outcome).says("boss", "We owe 210 EUR.")
    (found,) = false_equation(run.build())
    assert (found.code, found.steps) == ("2.6", (2,))
    assert found.evidence is (Evidence.EXACT if outcome else Evidence.HEURISTIC)
    assert found.probability >= 0.8
    assert found.quotes == ("The total is 120 + 80 = 210.",)
    assert "200" in found.reason


def test_who_states_it_first_is_named_wherever_its_figures_are_from():
    run = RunBuilder("Do the sum.", outcome="failure").says("pupil", "It is 312 + 415 = 747.")
    run.says("teacher", "All right: 312 + 415 = 747.")
    (found,) = false_equation(run.build())
    assert found.steps == (0,)


def test_a_transcript_proves_nothing():
    (found,) = false_equation(bills(outcome="failure", spans=False).build())
    assert found.evidence is Evidence.HEURISTIC


@pytest.mark.parametrize(
    "run",
    [
        bills("The total is 120 + 80 = 200."),
        bills("It is not true that it is 120 + 80 = 210."),
        bills('He wrote "the total is 120 + 80 = 210".'),
        bills("If we take 90, then it is 120 + 80 = 210."),
        bills("```python\nassert f(x) == 1  # 120 + 80 = 210\n```\nIt is 210."),
        bills().says("boss", "Sorry: it is 200 EUR."),
        bills("It is 120 + 80 = 210. No: 200."),
        bills().says("boss", "We owe a lot."),
        bills("As a joke: 77 + 88 = 210."),
        bills("On a clock 9 + 4 = 1.").says("boss", "It is 1."),
        bills("Pos. 1 + 2 = 210.").says("boss", "It is 210."),
        bills("Short: 12/5 = 12 May").says("boss", "On 12 May."),
        bills("We are open 9-5 = 8 hours").says("boss", "8 hours."),
    ],
    ids=[
        *("true", "denied", "quoted", "supposed", "code", "corrected", "at once"),
        *("unused", "unknown", "hours", "positions", "a date", "from nine to five"),
    ],
)
def test_an_equation_that_accuses_nobody(run):
    """True, doubted, corrected, without effect, or of figures that the run does not hold: no finding."""
    assert false_equation(run.build()) == []


def sales(text, *results, task="What was sold in all?", tool="sales"):
    run = RunBuilder(task)
    for number, result in enumerate(results or ("1203.5 EUR", "880.25 EUR", "1411 EUR")):
        run.calls("analyst", tool, {"region": "nws"[number % 3]}, result)
    return run.says("lead", text).build()


def test_a_total_that_the_results_do_not_make():
    """The three results add up to 3494.75, not to the stated total."""
    (found,) = wrong_total(sales("The total is 3,594.75 EUR."))
    assert (found.code, found.evidence, found.steps) == ("2.6", Evidence.HEURISTIC, (3,))
    assert found.quotes == ("The total is 3,594.75 EUR.",)
    (found,) = wrong_total(sales("In all 3.594,75 EUR were sold."))
    assert "3.594,75" in found.reason


def test_an_average_outside_of_its_figures():
    """A weighted mean lies between its smallest and its largest figure."""
    (found,) = wrong_total(sales("The average is 1,725.25 EUR."))
    assert "average" in found.reason


@pytest.mark.parametrize(
    "text",
    [
        "The total is 3494.75 EUR.",
        "Insgesamt 3.494,75 EUR.",
        "In total 3,495 EUR.",
        "The total is about 3,600 EUR.",
        "The total is 4,158.75 EUR including VAT.",
        "The total of north and south is 2,083.75 EUR.",
        "The average is 1,164.92 EUR.",
        "The weighted average is 1,300.10 EUR.",
        "The total is 3.49 thousand EUR.",
        "The total is 3,594.75 EUR, 100 more than the 3,494.75 EUR of last year.",
        "The total population is 8,400,123.",
        "Sold.",
    ],
)
def test_a_total_that_may_be_right(text):
    assert wrong_total(sales(text)) == []


def test_quantities_of_the_task_may_multiply():
    """A quantity of the task, such as three nights, may multiply a figure."""
    results = ("$328", "$788", "$209/night")
    asked = "Two flights and 3 nights, please."
    assert wrong_total(sales("The total is $1743.", *results, task=asked)) == []
    (found,) = wrong_total(sales("The total is $1955.", *results, task=asked))
    assert found.steps == (3,)


@pytest.mark.parametrize(
    "results",
    [
        ("1203.5 EUR",),
        ("1203.5", "no answer"),
        ("1203.5", "880.25", f"{'x' * 121}"),
        tuple(f"{100 + 17 * number}.25" for number in range(9)),
    ],
    ids=["one", "one has none", "a document", "many"],
)
def test_results_from_which_nothing_can_be_recomputed(results):
    """A listing, or too few figures, cannot be recomputed."""
    assert wrong_total(sales("The total is 1,999.5 EUR.", *results)) == []


@pytest.mark.parametrize(
    "run",
    [
        sales("The total is 1,999.5 EUR.", "1203.5", "880.25", f"12.75 {'x' * 114}"),
        sales("The total is 1,999.5 EUR.", *(f"{100 + 17 * number}.25" for number in range(8))),
    ],
)
def test_as_many_and_as_long_results_as_can_be_recomputed(run):
    assert [found.code for found in wrong_total(run)] == ["2.6"]


def test_a_failed_call_leaves_the_total_open():
    """A figure that a failed call did not return may have come from elsewhere, so nothing is found."""
    run = sales("The total is 3,594.75 EUR.")
    steps = (replace(run.steps[0], error="timeout"), *run.steps[1:])
    assert wrong_total(replace(run, steps=steps)) == []


SALES = [1203.5, 880.25, 1411.0]


@pytest.mark.parametrize(
    ("check", "wrong", "right"),
    [
        # A total is half to twice the sum, and no sum of parts, in cents or, where it is whole, in units.
        (lambda each: _no_total(each, SALES, set()), "1747.4 6989.4 3494.76 3496 3493", "1747.3 6989.6 3494.756 3495"),
        (lambda each: _no_total(each, SALES, {3.0}), "5901.76", "5901.75 3610.5 3494.75"),
        (lambda each: _no_average(each, SALES), "293.5 880.2 1411.1 4232.9", "293.3 880.3 1411 4233.1"),
        (_is_amount, "32 31.5 1,234", "31 7"),
        (lambda each: not _is_quantity(each), "32 31.0 -3", "31 2"),
    ],
)  # fmt: skip
def test_figures_on_both_sides_of_a_limit(check, wrong, right):
    assert {text: check(figures(text)[0]) for text in wrong.split()} == dict.fromkeys(
        wrong.split(), True
    )
    assert {text: check(figures(text)[0]) for text in right.split()} == dict.fromkeys(
        right.split(), False
    )


@pytest.mark.parametrize(
    ("relation", "holds", "fails"),
    [
        (near, [(100, 99.1), (100, 100.9), (100, 1000), (100, 0.1), (-5, 5), (0, 0)], [(100, 99), (100, 101.1), (100, 31), (0, 5)]),
        (near, [(-118, 118), (3.14, 3.14159), (1.25, 1.25e6), (1.25e6, 1.25), (40, 0.4), (9.99, 1)], [(5, 0), (100, 102), (102, 100), (98, 100), (5, 1), (1, 5)]),
        (lambda value, _: derived(value, {10.0, 25.0}), [(each, 0) for each in (35, 15, 11, 9, 2.5, 0.4, 250, 300)], [(12, 0), (310, 0), (77, 0)]),
        (derived, [(each, {118, 12}) for each in (130, 106, -106)], [(6323, {118, 0}), (6323, set())]),
        (derived, [(each, {118}) for each in (118.5, 236, 354, 3540, 59, 118 / 30)], [(3658, {118}), (118 / 31.7, {118})]),
        (derived, [(0.42, {0.13, 0.29}), (0.16, {0.13, 0.29}), (0.39, {0.13}), (0.3703701, {0.1234567})], []),
        (derived, [(5.8888888, {0.1234567, 5.7654321}), (5.6419754, {0.1234567, 5.7654321})], []),
        (derived, [(1534, {118, 13}), (118 / 13, {118, 13}), (1534, {118, 0})], []),
        (in_other_unit, [(37.8, 100), (38.3, 100), (212.5, 100), (162.5, 100), (62.1, 100), (6000, 100)], [(38.5, 100), (212.7, 100), (162.6, 100)]),
        (slip, [("4711", "4171"), ("4711", "4712"), ("1,234", "1243"), ("123", "124")], [("47", "74"), ("4711", "7141"), ("1234", "12345"), ("471", "471")]),
        (slip, [("118", "181"), ("118", "119"), ("1,118", "1119"), ("1119", "1,118"), ("12.5", "12.6"), ("1234", "1243")], []),
        (slip, [], [("118", "811"), ("118", "118"), ("18", "19"), ("118", "1118"), ("1,118", "1118"), ("1.5", "1.6")]),
        (slip, [], [("1234", "1256"), ("1234", "2143"), ("1234", "3214")]),
    ],
)  # fmt: skip
def test_relations_of_numbers(relation, holds, fails):
    """Rounded, following by one step, of another unit, or miswritten; and next to that.

    Two numbers are near if they differ by less than 1 % or by a power of ten. A number follows by one
    sum or difference, or by one product with a known or small number. A slip is one changed digit or
    two exchanged neighbours, in figures of three digits or more.
    """
    assert [pair for pair in holds if not relation(*pair)] == []
    assert [pair for pair in fails if relation(*pair)] == []


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("[21.4,23.0,20.1]", [21.4, 23.0, 20.1]),
        ('{"boxes":[310,255,-135],"n":3}', [310, 255, -135, 3]),
        ("[[1,2],[1.5,3]]", [1, 2, 1.5, 3]),
        ("a[1] + 1,234.5", [1, 1234.5]),
    ],
)
def test_numbers_of_a_list_are_its_own_however_closely_they_stand(text, values):
    found = figures(text)
    assert len(found) == len(values)
    assert all(value in each.readings for value, each in zip(values, found, strict=True))
    assert [text[slice(*each.span)] for each in found] == [each.literal for each in found]


@pytest.mark.parametrize(("count", "follows"), [(400, False), (401, True)])
def test_of_very_many_numbers_everything_follows(count, follows):
    assert derived(5500.77, {1000 + number / 1000 for number in range(1, count + 1)}) is follows


def test_too_many_sums_say_nothing():
    """With too many possible sums nearly every figure equals one, so the total counts as reachable."""
    parts = [float(7919 * i % 100_003) + 0.37 * i for i in range(1, 9)]
    assert reachable(1.0, parts, {2.0, 3.0, 5.0, 7.0, 11.0})
    assert not reachable(3594.75, [1203.5, 880.25, 1411.0], set())


@pytest.mark.parametrize(("value", "found"), [(8, True), (2, True), (50, False), (47, False)])
def test_a_part_is_added_or_taken_away_once(value: float, found: bool) -> None:
    assert reachable(value, [5.0, 3.0], ()) is found
