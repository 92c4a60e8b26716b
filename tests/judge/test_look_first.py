"""The places to look at first: their order, their evidence, and the runs that have none."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.resources import files

import pytest
from invented_records import contrast
from judge.builders import RunBuilder
from judge.data import labelled_runs
from judge.store.verdicts import verdict

from mast_trace_judge.confirmation import Confirmation
from mast_trace_judge.llm.verification import ModelReading, Suggestion
from mast_trace_judge.local.attribution.heirs import Heirs, heirs
from mast_trace_judge.local.layers import judge_by_rules
from mast_trace_judge.look_first import STORED, Counts, Sign, measured, places, ranked
from mast_trace_judge.proof import as_shown
from mast_trace_judge.verdict import MOST_PLACES, Candidate, Place

FAILS = {"error": "TimeoutError: the shop does not answer"}


def trip(*, outcome, said="181"):
    """A team whose researcher misreads a price, which the answer rests on."""
    run = RunBuilder("What does a double room in Lisbon cost?", outcome=outcome).asks()
    run.calls("researcher", "hotel_price", {"city": "Lisbon"}, "Double room: 118 EUR per night")
    run.says("researcher", f"The hotel search says that a double room costs {said} EUR a night.")
    return run.says("planner", f"The room costs {said} EUR.").build()


def looked(run):
    return places(run, judge_by_rules(run))


def test_what_the_record_shows_comes_first_and_reaches_the_answer():
    (place,) = looked(trip(outcome="failure"))
    assert (place.step, place.agent, place.basis) == (2, "researcher", "record")
    assert place.reaches_answer
    assert "181" in place.why
    assert any("118" in quote for quote in place.quotes)


@pytest.mark.parametrize(
    ("after", "reaches"),
    [
        (lambda run: run.says("planner", "The room costs 181 EUR."), True),
        (lambda run: run.says("planner", "Three nights: 3 x 181 = 543 EUR."), True),
        (
            lambda run: run.calls("planner", "calculate", {"expression": "3 * 181"}, "543").says(
                "planner", "Three nights cost 543 EUR."
            ),
            True,
        ),
        (
            lambda run: run.calls(
                "planner", "search", {"below": 181}, "Rooms: 71, 72, 73, 74, 75, 76, 77 EUR"
            ).says("planner", "Take the room for 76 EUR."),
            False,
        ),
        (lambda run: run.says("planner", "Three nights at 181 EUR are 543 EUR."), True),
        (lambda run: run.says("planner", "Three nights: 3 x 118 = 354 EUR."), False),
        (lambda run: run.says("planner", "Not 181 but 118 EUR: three nights are 354 EUR."), False),
        (lambda run: run.says("planner", "It has 2 beds."), False),
    ],
    ids=[
        "passed on",
        "in an equation",
        "through a tool",
        "in a document",
        "in words",
        "put right",
        "doubted",
        "another",
    ],
)
def test_a_slip_is_decisive_where_its_figure_reaches_the_answer(after, reaches):
    """The record proves the slip alone; that it decided is said where the answer rests on its figure."""
    run = RunBuilder("What does a double room in Lisbon cost?", outcome="failure").asks()
    run.calls("researcher", "hotel_price", {"city": "Lisbon"}, "Double room: 118 EUR per night")
    run.says("researcher", "The hotel search says that a double room costs 181 EUR a night.")
    told = after(run).build()
    found = judge_by_rules(told)
    assert [place.step for place in places(told, found)][:1] == [2]
    assert found.names_a_step is reaches


def test_the_way_of_a_wrong_value_is_named_to_the_answer():
    """A figure that a tool returns by itself in the meantime may be another value."""
    run = RunBuilder("What do three nights in Lisbon cost?", outcome="failure").asks()
    run.calls("researcher", "hotel_price", {"city": "Lisbon"}, "Double room: 118 EUR per night")
    run.says("researcher", "The hotel search says that a double room costs 181 EUR a night.")
    run.says("planner", "Thanks.").calls("planner", "times", {"a": 3, "b": 181}, "543")
    run.calls("critic", "ask_desk", {"room": "double"}, "181 EUR on Saturdays")
    run.says("critic", "181 EUR is what they ask.").says("planner", "It is 543 EUR.")
    (place,) = looked(run.build())
    assert (place.step, place.heirs, place.possible_heirs) == (2, (4, 5, 6, 7), (5, 6))
    assert place.reaches_answer


def test_a_made_up_date_and_identifier_have_heirs():
    run = RunBuilder("Book the hall.").calls("clerk", "book", {"hall": 4}, "", **FAILS)
    run.says("clerk", "Hall 4 is booked for 3 May 2031, reference RF-4471.", to="head")
    run.says("head", "Fine.", to="user").says("head", "See you in the hall on 2031-05-03.")
    run.says("head", "Show RF-4471 at the door.")
    (place,) = looked(run.build())
    assert (place.step, place.heirs, place.possible_heirs) == (1, (3, 4), ())


def test_a_withheld_figure_is_no_wrong_one():
    """The figures of whoever passes on nothing may be right, and stand in the answer for that."""
    run = RunBuilder("What does the room cost?", outcome="failure").asks()
    run.calls("clerk", "look_up", {"item": "room"}, "room costs 27 EUR")
    run.says("clerk", "The lookup says 118 EUR.", to="writer")
    told = run.says("writer", "It costs 118 EUR.").build()
    (first, *_) = looked(told)
    assert first.why == "clerk states 118 where look_up returned 27."
    withheld = [each for each in judge_by_rules(told).modes if each.code == "2.4"]
    assert [heirs(told, 2, each).reaches_answer for each in withheld] == [False]


@pytest.mark.parametrize("outcome", ["success", None])
def test_a_good_end_that_the_record_contradicts_is_suspect(outcome):
    (place,) = looked(trip(outcome=outcome))
    assert (place.step, place.basis, place.reaches_answer) == (2, "record", True)


@pytest.mark.parametrize("outcome", ["failure", "success", None])
def test_what_contradicts_a_good_end_stands_above_other_signs(outcome):
    """A rule that may be wrong names the place, and asserts no decisive step."""
    run = RunBuilder("Buy ink.", outcome=outcome).asks().calls("lead", "ask_boss", {}, "", **FAILS)
    run.calls("buyer", "order_ink", {"bottles": 2}, "", **FAILS).says("buyer", "Ordered: RT-4402.")
    found = judge_by_rules(run.build())
    first, *_ = places(run.build(), found)
    assert (first.step, first.basis, found.names_a_step) == (3, "rule", False)


@pytest.mark.parametrize(
    ("again", "looks"), [("black ink", False), ("black inks", False), ("a rope", True)]
)
def test_a_failed_tool_run_that_was_repaired_is_no_place(again, looks):
    run = RunBuilder("Buy ink.", outcome="failure").calls(
        "buyer", "find", {"item": "black ink"}, "", **FAILS
    )
    run.calls("buyer", "find", {"item": again}, "shelf 4").says("buyer", "It is on shelf 4.")
    assert bool(looked(run.build())) == looks


def test_a_repaired_slip_of_a_success_is_none():
    run = RunBuilder("What does a double room in Lisbon cost?", outcome="success").asks()
    run.calls("researcher", "hotel_price", {"city": "Lisbon"}, "Double room: 118 EUR per night")
    run.says("researcher", "The hotel search says that a double room costs 181 EUR a night.")
    assert looked(run.says("planner", "No: the room costs 118 EUR.").build()) == ()


@pytest.mark.parametrize(
    "run",
    [
        trip(outcome="failure", said="118"),
        trip(outcome=None, said="118"),
        RunBuilder("Add it up.", outcome="failure").asks().says("clerk", "It is 7.").build(),
    ],
    ids=["failed without a sign", "healthy", "positions alone"],
)
def test_without_evidence_there_is_no_place(run):
    """Neither the first actor nor the first mention of the answer is evidence."""
    assert looked(run) == ()


def test_who_asked_for_the_first_failing_tool_run_is_a_place_with_its_counts():
    run = RunBuilder("Buy ink.", outcome="failure").asks()
    run.says("buyer", "I look it up.").calls("buyer", "find", {"item": "ink"}, "", **FAILS)
    run.says("buyer", "I could not find any.").says("lead", "Then no ink.")
    (place,) = looked(run.build())
    assert (place.step, place.why) == (2, "This is the first tool run that failed, of find.")
    counts = measured()["first failed tool run"]
    assert (place.basis, place.right, place.cases) == ("rule", counts.right, counts.cases)
    assert place.measured == f"right in {counts.right} of {counts.cases} labelled failures"


def test_a_repaired_failure_before_it_is_not_forgotten():
    run = RunBuilder("Buy ink.", outcome="failure").asks()
    run.calls("buyer", "stock", {"of": "ink"}, "", **FAILS).calls(
        "buyer", "stock", {"of": "ink"}, "7"
    )
    run.calls("buyer", "find", {"item": "ink"}, "", **FAILS)
    told = looked(run.says("buyer", "I could not find any.").build())
    why = "This is the first tool run that failed and was not repaired, of find."
    assert (3, why) in [(place.step, place.why) for place in told]


@pytest.mark.parametrize(
    ("rule", "calibrated", "named"),
    [
        ("first code of the run", True, True),
        ("2.6: states 181", True, False),
        ("it fails", False, False),
    ],
    ids=["its own", "a rule's finding", "a model's"],
)
def test_a_profile_speaks_for_its_own_step_alone(rule, calibrated, named):
    """Its counts are of the steps that it puts first itself, not of those that others have moved there."""
    run = trip(outcome="failure", said="118")
    found = judge_by_rules(run)
    first = Candidate(step=2, agent="researcher", probability=0.6, rule=rule)
    told = replace(
        found.attribution, candidates=(first,), profile="ag2-captain", calibrated=calibrated
    )
    keys = [(place.step, place.cases) for place in places(run, replace(found, attribution=told))]
    assert keys == ([(2, measured()["profile ag2-captain"].cases)] if named else [])


def test_the_order_is_the_verdicts_step_then_the_record_then_the_lower_bounds(monkeypatch):
    """Counts on natural failures come before those on planted ones, however good these are."""
    counts = {
        "natural": {"right": 8, "cases": 20},
        "planted": {"planted_right": 99, "planted_cases": 100},
        "few": {"right": 3, "cases": 4},
        "never": {"cases": 2},
        "no evidence": {"right": 1, "cases": 40, "is_evidence": False},
    }
    monkeypatch.setattr(
        "mast_trace_judge.look_first.measured",
        lambda: {key: Counts(**each) for key, each in counts.items()},
    )
    run = RunBuilder("Go.", outcome="failure").asks()
    for number in range(1, 8):
        run.says(f"agent {number}", f"Words {number}.")
    signs = [
        Sign("planted", 1, "rule", "planted"),
        Sign("few", 2, "rule", "three of four"),
        Sign("natural", 3, "rule", "eight of twenty"),
        Sign("no evidence", 4, "rule", "worse than a constant"),
        Sign("unknown", 5, "record", "reaches", way=Heirs((), (), reaches_answer=True)),
        Sign("planted", 6, "rule", "decisive"),
        Sign("few", 3, "rule", "three of four, of a step that has another sign"),
    ]
    found = ranked(run.build(), signs, decisive=6)
    assert [place.step for place in found] == [6, 5, 2]
    assert len(found) == MOST_PLACES
    rest = ranked(run.build(), signs[:4] + signs[6:])
    assert [place.step for place in rest] == [2, 3, 1]
    assert rest[1].why.startswith("three of four"), "the best sign of a step speaks for it"
    never = Sign("never", 1, "rule", "of two natural failures none")
    untried = Sign("model's", 4, "model", "nobody knows")
    assert [place.step for place in ranked(run.build(), [never, untried])] == [4, 1]


def test_the_contrast_comes_after_what_the_record_shows_of_the_answer_and_before_rules():
    """It was tried on runs of this program; a rule's plainer sentence is told of the same step."""
    run = RunBuilder("Go.", outcome="failure").asks()
    for number in range(1, 8):
        run.says(f"agent {number}", f"Words {number}.")
    proven = Sign("one", 5, "record", "reaches", way=Heirs((), (), reaches_answer=True))
    contrast = Sign("contrast", 4, "contrast", "differs")
    against = Sign("two", 2, "rule", "contradicts", contradicts=True)
    others = [Sign("three", step, "record", "a slip") for step in (1, 3)]
    read = Sign("model", 7, "model", "often right", counts=Counts(9, 10))
    found = ranked(run.build(), [against, *others, read, contrast, proven])
    assert [place.step for place in found] == [5, 4, 7]
    assert [place.step for place in ranked(run.build(), [read, contrast, against])] == [4, 2, 7]
    (same,) = ranked(run.build(), [replace(against, step=4), contrast])
    assert (same.basis, same.why) == ("rule", "contradicts")


@pytest.mark.parametrize("blind", [0, 100])
@pytest.mark.parametrize("suggested", [(1, 2, 3), (4, 1, 2), (5, 6, 7)])
def test_a_model_puts_out_nothing_that_the_record_shows(blind, suggested):
    """However often it was right, at steps of its own or at those of the record."""
    run = RunBuilder("Go.", outcome="failure").asks()
    for number in range(1, 8):
        run.says(f"agent {number}", f"Words {number}.")
    ours = [Sign("a rule", 3, "rule", "first", contradicts=True)]
    ours += [Sign("the record", step, "record", "a slip") for step in (4, 5)]
    counts = Counts(blind, blind)
    said = [Sign("model", step, "model", "a guess", counts=counts) for step in suggested]
    both = [*ours, *said, Sign("model", 4, "model", "again")]
    alone, found = (ranked(run.build(), signs) for signs in (ours, both))
    assert [each.step for each in alone] == [3, 4, 5]
    assert {each.step: each for each in found if each.basis == "record"} == {
        each.step: each for each in alone[1:]
    }


def test_the_counts_of_a_model_are_of_its_first_suggestion():
    said = (Suggestion(2, "first"), Suggestion(1, "second"))
    run = RunBuilder("Go.", outcome="failure").asks().says("a", "One.").says("b", "Two.").build()
    reading = ModelReading("failure", 0.9, suggestions=said, right=18, cases=20)
    found = places(run, judge_by_rules(run), reading)
    told = [(each.step, each.right, each.cases) for each in found if each.basis == "model"]
    assert told == [(2, 18, 20), (1, 0, 0)]


def test_the_record_speaks_whatever_the_counts_of_its_rule(monkeypatch):
    monkeypatch.setattr(
        "mast_trace_judge.look_first.measured",
        lambda: {"one": Counts(1, 40, is_evidence=False)},
    )
    run = RunBuilder("Go.", outcome="failure").asks().says("a", "One.").says("b", "Two.").build()
    found = ranked(run, [Sign("one", 1, "record", "a slip"), Sign("one", 2, "rule", "a guess")])
    assert [(each.step, each.basis) for each in found] == [(1, "record")]


def test_replays_put_their_step_first_and_take_refuted_ones_out():
    first, other = (
        Place(step=3, agent="researcher", basis="record", why="states 181", span_id="s3"),
        Place(step=4, agent="planner", basis="rule", why="fails", right=3, cases=9),
    )
    given = verdict(look_first=(first, other))
    told = Confirmation(
        status="confirmed", text="It helps.", origin=1, origin_agent="lead", contrasts=(contrast(),)
    )
    shown = as_shown(given, told).look_first
    assert [(place.step, place.basis) for place in shown] == [
        *((1, "confirmed"), (3, "record"), (4, "rule")),
    ]
    refuted = Confirmation(status="refuted", text="It does not.", refuted=(3,))
    assert as_shown(given, refuted).look_first == (other,)


def test_counts_are_those_of_the_labelled_runs():
    """`benchmarks/judge/evidence.py` has been run on this state of the rules."""
    from evidence import right, signs
    from published.agent_loops import read_agent_loops
    from published.tau_retail import read_tau_retail
    from published.who_and_when import SUBSETS, read_who_and_when

    data = labelled_runs()
    natural = [run for subset in SUBSETS for run in read_who_and_when(data, subset)]
    tried = signs([*natural, *read_tau_retail(data)]), signs(read_agent_loops(data))
    stored = json.loads(
        (files("mast_trace_judge.local.attribution") / STORED).read_text(encoding="utf-8")
    )
    for key, told in stored.items():
        if not key.startswith("profile "):
            counted = [(right(each.get(key, [])), len(each.get(key, []))) for each in tried]
            kept = [(told["right"], told["cases"]), (told["planted_right"], told["planted_cases"])]
            assert counted == kept, key
    assert {key for each in tried for key in each} <= stored.keys()


def test_labelled_failures_are_found_more_often_than_by_the_best_constant():
    from published.who_and_when import read_who_and_when

    runs = read_who_and_when(labelled_runs(), "algorithm-generated")
    named = [(looked(replace(run.trajectory, outcome="failure")), run.step) for run in runs]
    first = sum(bool(found) and found[0].step == step for found, step in named)
    constant = max(sum(step == fixed for _, step in named) for fixed in range(50))
    assert first > constant
