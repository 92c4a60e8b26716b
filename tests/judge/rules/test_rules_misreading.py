"""Mode 2.6: figures of a result under each other's names."""

import json

import pytest
from judge.builders import RunBuilder

from mast_trace_judge.local.rules.misreading import (
    labelled_values,
    misattributed_value,
    mislabelled_value,
    swapped_values,
)
from mast_trace_judge.verdict import Evidence

YEARS = '{"2019": 120, "2020": 150}'
LOAD = '{"avg_load": 41, "max_load": 97}'


def said(result, text, *more):
    run = RunBuilder("How did it go?").calls("reader", "stats", {"q": 1}, result)
    for other in more:
        run.calls("reader", "stats", {"q": other}, other)
    return run.says("reader", text).build()


@pytest.mark.parametrize(
    ("result", "named"),
    [
        (YEARS, {"2019": 120, "2020": 150}),
        (
            '[{"year": 2019, "sales": 120}, {"year": 2020, "sales": 150}]',
            {"2019": 120, "2020": 150},
        ),
        ('{"rows": [{"city": "Oslo", "people": 7}]}', {"oslo": 7}),
        (LOAD, {"avg load": 41, "max load": 97}),
        ("Revenue 2019: 120, revenue 2020: 150", {"2019": 120, "2020": 150}),
        ("north: 120 EUR; south = 150 EUR", {"north": 120, "south": 150}),
        ('{"a": {"b": 1}, "c": {"b": 2}}', {}),
        ('{"open": true, "note": "seen 3 or 4 times"}', {}),
        ("nothing here", {}),
        (f"x: 1{' ' * 3996}", {"x": 1}),
        (f"x: 1{' ' * 3997}", {}),
        (json.dumps({f"n{n}": n for n in range(40)}), {f"n{n}": n for n in range(40)}),
        (json.dumps({f"n{n}": n for n in range(41)}), {}),
        (json.dumps({"a": f"{'x' * 28} 7", "b": f"{'x' * 29} 7", "c": True}), {"a": 7}),
        ('[{"year": 1900, "n": 5}, {"year": 2100, "n": 6}]', {"1900": 5, "2100": 6}),
        ('{"year": 1899, "n": 5}', {"year": 1899, "n": 5}),
        ('{"year": 2101, "n": 5}', {"year": 2101, "n": 5}),
    ],
)
def test_the_names_of_figures(result, named):
    """JSON, rows, and lines; a name that comes twice is of no use."""
    assert {name: max(each) for name, each in labelled_values(result).items()} == named


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (YEARS, "In 2019 revenue was 150 and in 2020 it was 120."),
        (YEARS, "It fell from 150 in 2019 to 120 in 2020."),
        (YEARS, "2019: 150\n2020: 120"),
        ("north: 1.200,50 EUR, south: 1.500 EUR", "South: 1200,50 EUR, north: 1500 EUR"),
    ],
)
def test_swapped_values(result, text):
    (found,) = swapped_values(said(result, text))
    assert (found.code, found.evidence, found.steps) == ("2.6", Evidence.HEURISTIC, (0, 1))
    assert found.probability >= 0.5


@pytest.mark.parametrize(
    ("text", "more"),
    [
        ("In 2019 revenue was 120 and in 2020 it was 150.", ()),
        ("It rose from 120 in 2019 to 150 in 2020.", ()),
        ("Compared to 2019, 150 in 2020 was more than 120.", ()),
        ("2019 and 2020: 120 and 150.", ()),
        ("Do not say that 2019 was 150 and 2020 was 120.", ()),
        ("In 2019 it was 1.5 times 100, and in 2020 120 % of 125.", ()),
        ("Costs in 2019 were 150, and in 2020 they were 120.", ('{"costs": [150, 120]}',)),
        ("In 2020 it was 150, and 120 in 2019.", ()),
        ("```\n2019: 150\n2020: 120\n```", ()),
        ("The parts of 2020 are: 120, 80 and 40.", ()),
        ("Less than in 2020: sales of 120.", ()),
    ],
)
def test_values_that_may_be_where_they_belong(text, more):
    """Other orders, denials, another result that holds the figures, code."""
    run = said(YEARS, text, *more)
    assert [*swapped_values(run), *misattributed_value(run)] == []


def test_a_peak_given_as_the_average():
    (found,) = mislabelled_value(said(LOAD, "The average load was 97 %."))
    assert (found.code, found.steps) == ("2.6", (0, 1))
    assert "largest" in found.reason
    (found,) = mislabelled_value(said("average: 41 ms, peak: 97 ms", "The peak was 41 ms."))
    assert "average" in found.reason


@pytest.mark.parametrize(
    "text",
    [
        "The average load was 41 %.",
        "The average was 41 %, the peak 97 %.",
        "The average is well below the peak of 97 %.",
        "The average rose to 97 % of the maximum.",
        "The average was not 97 %.",
        "The average, unlike the maximum of 97, is fine.",
        "Durchschnittlich waren es 41,0 %.",
        "At most 97 % were used.",
        "The average was 0.41, with 97 % as the top.",
    ],
)
def test_kinds_that_may_be_right(text):
    """The right one, both, denials and other units."""
    assert mislabelled_value(said(LOAD, text)) == []


def looked_back(results):
    """A peak as the average of the first result, and so many others in between."""
    others = (f'{{"avg_b": {1000 + n}, "max_b": {2000 + n}}}' for n in range(results))
    return said(LOAD, "The average load was 97 %.", *others)


@pytest.mark.parametrize(
    ("rule", "found", "beyond"),
    [
        (mislabelled_value, looked_back(7), looked_back(8)),
        *(
            (mislabelled_value, said(LOAD, f"average {'x' * n} 97."), said(LOAD, f"average {'x' * n}x 97."))
            for n in [38]
        ),
        *(
            (misattributed_value, *(said(f"north: 120, south: 150{' ' * m}", "The north is 150 strong.") for m in (n, n + 1)))
            for n in [278]
        ),
    ],
)  # fmt: skip
def test_at_a_limit_and_beyond_it(rule, found, beyond):
    """The eighth result back, 40 characters between a name and its figure, a result of 300 characters."""
    assert [len(rule(found)), len(rule(beyond))] == [1, 0]


def test_another_result_may_have_it_otherwise():
    assert mislabelled_value(said(LOAD, "The average was 97.", '{"other": 97}')) == []


def test_a_figure_of_one_for_the_other():
    """Only one of the two is given."""
    (found,) = misattributed_value(said(YEARS, "In 2020 the revenue was 120 million."))
    assert (found.code, found.steps) == ("2.6", (0, 1))
    for before in ("", "The north is 120 strong. ", "The north is 150, not 120. "):
        text = f"{before}The east is 150 strong."
        (found,) = misattributed_value(said("north: 120, south: 150, east: 90", text))
        assert "150 for east" in found.reason
        assert "returned for south" in found.reason


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (YEARS, "In 2020 the revenue was 150 million."),
        (YEARS, "In 2020 it was 30 million more."),
        (YEARS, "In 2020 it was 120 more than nothing."),
        (YEARS, "2020 was, in the end, above the 120 of 2019."),
        (YEARS, "Had 2020 not been, 120 would do."),
        ('{"price": 90, "price_difference": 17}', "The price difference of 17 is the price of 17."),
        ('{"price": 90, "price_difference": 17}', "The price was 17."),
        ('{"a": 120, "b": 120}', "a was 120."),
    ],
)
def test_a_figure_that_may_be_its_own(result, text):
    """The right one, a difference, names that share a word, equal figures."""
    assert misattributed_value(said(result, text)) == []
