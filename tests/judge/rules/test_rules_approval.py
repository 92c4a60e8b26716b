"""Mode 3.3: what is approved although the record contradicts it."""

import pytest
from judge.builders import RunBuilder

from mast_trace_judge.local.rules.approval import approved_a_contradiction
from mast_trace_judge.verdict import Evidence

WRONG = {
    "an equation": (("120 EUR", "80 EUR"), "Total: 120 + 80 = 210 EUR."),
    "a slip": (("4711 rows",), "There are 4171 rows."),
    "years": (('{"2019": 120, "2020": 150}',), "In 2019 it was 150 and in 2020 it was 120."),
    "a peak": (('{"average": 41, "peak": 97}',), "The average was 97."),
    "a name": (("north: 120, south: 150",), "North is 150."),
    "a total": (("1203.5 EUR", "880.25 EUR", "1411 EUR"), "The total is 3,594.75 EUR."),
}


def reviewed(results, text, review="Verified. It is correct.", by="reviewer"):
    run = RunBuilder("Find out.")
    for number, result in enumerate(results):
        run.calls("clerk", "lookup", {"page": "abc"[number]}, result)
    return run.says("clerk", text).says(by, review)


@pytest.mark.parametrize("fault", WRONG)
def test_a_checker_passes_what_is_wrong(fault):
    """The statement comes first, the approval is the next word on it."""
    results, text = WRONG[fault]
    run = reviewed(results, text)
    if fault in {"an equation", "a total"}:
        run.says("boss", text)
    (found,) = approved_a_contradiction(run.build())
    assert (found.code, found.evidence) == ("3.3", Evidence.HEURISTIC)
    assert found.steps == (len(results), len(results) + 1)
    assert found.probability >= 0.5
    assert found.quotes[-1] == "It is correct."


@pytest.mark.parametrize(
    ("text", "review", "by"),
    [
        ("There are 4711 rows.", "Verified. It is correct.", "reviewer"),
        ("There are 4171 rows.", "Verified. It is correct.", "boss"),
        ("There are 4171 rows.", "That is not correct: it is not verified.", "reviewer"),
        ("There are 4171 rows.", "I shall look at it tomorrow.", "reviewer"),
    ],
    ids=["right", "no checker", "refused", "put off"],
)
def test_a_checker_that_passes_nothing_wrong(text, review, by):
    run = reviewed(("4711 rows",), text, review, by)
    assert approved_a_contradiction(run.build()) == []


def test_an_approval_of_a_later_version():
    run = RunBuilder().calls("clerk", "count", {}, "4711 rows")
    run.says("clerk", "There are 4171 rows.")
    run.says("reviewer", "Look again.").says("clerk", "4711 rows.").says("reviewer", "Approved.")
    assert approved_a_contradiction(run.build()) == []
