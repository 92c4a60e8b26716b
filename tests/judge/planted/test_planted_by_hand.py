"""Faults of agents that people trace by hand, each with its clean twin."""

from dataclasses import replace

import pytest
from judge.planted.planted_faults import blamed, twins

import mast_trace
from mast_trace_judge.local.layers import judge_by_rules
from mast_trace_judge.local.rules import MOST_EXPLAINED
from mast_trace_judge.verdict import SHOWN_FROM, Evidence

PROGRAMS = {}
"""Programs with a fault, by name: the mode, whether it is exact without an outcome, whom it blames."""


def program(code, agent, *, exact=False, told=False):
    def enter(function):
        PROGRAMS[function.__name__] = (function, code, agent, exact, told)
        return function

    return enter


def call(name, result, /, **arguments):
    with mast_trace.tool(name, arguments) as made:
        made.result(result)


@program("2.6", "clerk")
def a_sum(faulty):
    with mast_trace.run("bills", input="What do we owe?"):
        with mast_trace.agent("clerk"):
            call("bill", "120 EUR", of="north")
            call("bill", "80 EUR", of="south")
        mast_trace.message("clerk", "lead", f"Total: 120 + 80 = {210 if faulty else 200} EUR.")
        mast_trace.message("lead", "user", f"We owe {210 if faulty else 200} EUR.")


@program("2.6", "lead")
def a_total_of_three(faulty):
    with mast_trace.run("sales", input="What was sold in all?"):
        for region, sold in {"north": "1203.5", "south": "880.25", "west": "1411"}.items():
            with mast_trace.agent(f"{region}_analyst"):
                call("regional_sales", f"{sold} EUR", region=region)
            mast_trace.message(f"{region}_analyst", "lead", f"{region}: {sold} EUR")
        mast_trace.message(
            "lead", "user", f"The total is {'3594.75' if faulty else '3494.75'} EUR."
        )


@program("2.6", "analyst")
def two_years(faulty):
    one, other = (150, 120) if faulty else (120, 150)
    with mast_trace.run("growth", input="Did we grow?"):
        with mast_trace.agent("analyst"):
            call("revenue", {"2019": 120, "2020": 150}, unit="million")
        mast_trace.message("analyst", "editor", f"It was {one} in 2019 and {other} in 2020.")
        mast_trace.message("editor", "user", f"Revenue: {one} in 2019 and {other} in 2020.")


@program("2.6", "operator")
def a_peak(faulty):
    with mast_trace.run("load", input="How busy are we?"):
        with mast_trace.agent("operator"):
            call("load", {"average_load": 41, "peak_load": 97}, host="db1")
        mast_trace.message("operator", "lead", f"The average load is {97 if faulty else 41} %.")
        mast_trace.message("lead", "user", f"We are at {97 if faulty else 41} %.")


@program("2.6", "reader", exact=True)
def a_price_that_all_pass_on(faulty):
    price = "181" if faulty else "118"
    with mast_trace.run("room", input="What is the room?"):
        with mast_trace.agent("reader"):
            call("room_price", "118 EUR per night", city="Lisbon")
        mast_trace.message("reader", "writer", f"A night costs {price} EUR.")
        mast_trace.message("writer", "lead", f"The price is {price} EUR.")
        mast_trace.message("lead", "user", f"FINAL ANSWER: {price}")


@program("3.3", "reader")
def a_checker_that_passes_it(faulty):
    price = "181" if faulty else "118"
    with mast_trace.run("room", input="What is the room?"):
        with mast_trace.agent("reader"):
            call("room_price", "118 EUR per night", city="Lisbon")
        mast_trace.message("reader", "checker", f"A night costs {price} EUR.")
        mast_trace.message("checker", "lead", f"{price} EUR is correct.")
        mast_trace.message("lead", "user", f"FINAL ANSWER: {price}")


@program("3.2", "")
def claimed_tests(faulty):
    with mast_trace.run("fix", input="Fix the sum."):
        with mast_trace.agent("coder"):
            call("read_file", "def f(): return 1", path="a.py")
            call("write_file", "saved", path="a.py", text="def f(): return 2")
        claim = "I ran the full test suite, and it is fine." if faulty else "It is not yet run."
        mast_trace.message("coder", "lead", claim)
        mast_trace.message("lead", "user", "It is fixed.")


@program("2.4", "", told=True)
def a_name_that_is_kept_back(faulty):
    with mast_trace.run("meeting", input="Where do we meet?"):
        with mast_trace.agent("finder"):
            call("calendar", "The meeting is in the Aurora room.", day="today")
        found = "I looked it up." if faulty else "It is the Aurora room."
        mast_trace.message("finder", "helper", found)
        mast_trace.message("helper", "user", "See you there.")


@program("2.5", "writer", exact=True)
def a_message_that_is_not_handed_on(faulty):
    sold, demand = "The north sold 1203 pieces, and it grew.", "Do not name any of the customers."
    with mast_trace.run("report", input="Write the report."):
        mast_trace.message("researcher", "writer", sold)
        mast_trace.message("lawyer", "writer", demand)
        with mast_trace.agent("writer", input=[sold] if faulty else [sold, demand]) as agent:
            agent.reply("The north has sold 1203 pieces.")


@program("2.1", "desk")
def a_history_that_falls_back(faulty):
    asked = "I have a blue lamp, and it does not go on."
    said = [asked, "Which lamp is it?", "The blue one, as I said."]
    with mast_trace.run("desk", input=asked):
        for shown in ([asked], said, [asked] if faulty else [*said, "Thank you."]):
            with mast_trace.agent("desk", input=shown) as agent:
                agent.reply(f"I have {len(shown)} of your lines.")


@twins
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_by_hand(captured_spans, name, faulty):
    """The fault's mode is shown although nobody says how the run ended, or possible where that is told; the twin's is not."""
    function, code, agent, exact, told = PROGRAMS[name]
    function(faulty)
    run = captured_spans.trajectory()
    judged = judge_by_rules(replace(run, outcome="failure") if told and faulty else run)
    least = MOST_EXPLAINED if told else SHOWN_FROM
    shown = {mode.code: mode for mode in judged.modes if mode.probability >= least}
    if not faulty:
        assert judged.modes == ()
        return
    assert code in shown
    assert (shown[code].evidence is Evidence.EXACT) is exact
    if agent:
        assert blamed(run).agent == agent
