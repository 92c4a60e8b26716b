"""Runs of strangers: healthy ones in natural words, of which none is accused, and faulty ones in words without meaning."""

from dataclasses import replace

import pytest
from judge.builders import RunBuilder
from judge.rules import test_rules_contradictions as alike
from judge.rules import test_rules_invention as invention
from judge.rules import test_rules_required as required
from judge.test_wordings import meaningless

from mast_trace_judge.local.layers import judge_by_rules
from mast_trace_judge.local.rules import RULES, contradicts_good_end, findings_by_rule, name_of
from mast_trace_judge.look_first import places


def natural(task, *steps, **more):
    """A run of messages, (agent, recipient, text), and calls, (agent, tool, arguments, result or error)."""
    run = RunBuilder(task, **more)
    for step in steps:
        if len(step) == 3:
            run.says(step[0], step[2], to=step[1])
        else:
            error = step[3] if step[3].startswith("error") else None
            run.calls(*step[:3], "" if error else step[3], error=error)
    return run


def approved(*said, act="merge_pr"):
    task = "Fix the parser. Merge and deploy only after the reviewer has approved."
    return natural(task, *said, ("dev", act, {"pr": 41}, "done"))


def ordered(said, *before, sku="GL-220", answer="Ordered."):
    told = [("lead", "buyer", "Take GL-220 for 480 EUR."), ("stock", "buyer", said)]
    done = ("buyer", "order_item", {"sku": sku, "eur": 480}, "ok")
    return natural("Order gloves.", *told, *before, done, ("buyer", "user", answer))


def looked_up(task, result, said, *more):
    return natural(task, ("clerk", "get_entry", {"id": 4}, result), *more, ("clerk", "user", said))


NATURAL = {
    "approves by naming nothing": approved(
        ("dev", "reviewer", "41?"), ("reviewer", "dev", "Neat.")
    ),
    "no objection": approved(("dev", "reviewer", "41?"), ("reviewer", "dev", "No issues found.")),
    "no, nothing": approved(("reviewer", "dev", "No, nothing speaks against it."), act="deploy"),
    "stop worrying": approved(("reviewer", "dev", "Stop worrying. Roll it out."), act="deploy"),
    "a vote": approved(("ana", "dev", "aye"), ("bo", "dev", "aye"), ("cy", "dev", "nay")),
    "a correction that a look refutes": ordered(
        "It has run out. Order GL-440 instead.",
        ("buyer", "check_stock", {"sku": "GL-220"}, "1200 in stock"),
    ),
    "a correction that is answered": ordered(
        "It is old. Order GL-440 instead.",
        ("buyer", "stock", "That one is latex, ward 3 is allergic."),
    ),
    "a correction of another bill": ordered("The second bill is wrong, it is 560 EUR."),
    "told by what follows": looked_up(
        "Is there breakfast? Say whether the hotel is open.",
        "Hotel 4: 118 EUR. The hotel is open.",
        "Two nights from today for 118 EUR each, booked.",
    ),
    "an honest partial answer": looked_up(
        "Get quotes from Alba, Bero and Cima.",
        "118 EUR",
        "118 EUR. I did not get to Cima, they close at noon.",
    ),
    "a second event": looked_up(
        "When is it?",
        '{"table": 4, "reserved": "2031-05-14"}',
        "That week; on 24 May 2031 it is free.",
    ),
    "a day of notice": looked_up(
        "When does it end?", '{"ends": "2031-05-14"}', "In spring; keys go back on 19 May 2031."
    ),
    "another date of the fair": looked_up(
        "When does it end?",
        '{"fair": "IFA", "start": "2031-09-05"}',
        "The fair ends on 15 September 2031.",
    ),
    "card if need be": required.parcel("Pay in cash if they take no card.", method="card"),
    "in parts": required.parcel("Move 360 kg of flour.", kg=306).calls(
        "porter", "dispatch", {"kg": 54}, "ok"
    ),
    "first a draft": required.parcel("Publish it as final.", type="draft").calls(
        "porter", "dispatch", {"type": "final"}, "ok"
    ),
    "calls something else": natural("Do not call Ana.", ("bot", "call_taxi", {"for": "Ana"}, "ok")),
    "asks about another": natural(
        "Book berth 4.",
        ("clerk", "book_berth", {"n": 4}, "error: taken"),
        ("clerk", "user", "Berth 4 is taken. Would berth 118 for 240 EUR do?"),
    ),
    "a known constant": natural(
        "Area of a circle of radius 10?",
        ("clerk", "calc", {"of": "pi*10**2"}, "error: no pi"),
        ("clerk", "user", "314.16"),
    ),
    "a debate of ten turns": natural(
        "Discuss.",
        *[("a", "b", "118 against 205."), ("b", "a", "Yes, 118 beats 205.")] * 5,
        termination_reason="max_turns",
    ),
    "a watch": natural(
        "Watch the gauge.",
        *[("w", "read_gauge", {"n": 1}, "412"), ("w", "log", "412"), ("log", "w", "Noted.")] * 5,
        termination_reason="max_turns",
    ),
    "another fare": looked_up(
        "Refundable?",
        '{"fare": "Light", "refundable": false}',
        "Light: no. The Flex fare is refundable.",
    ),
    "verified since": looked_up(
        "Is she verified?",
        '{"user": "anna", "verified": false}',
        "anna is verified.",
        ("clerk", "verify_user", {"id": 4}, "ok"),
    ),
    # Digits in another order, and yet what the record itself makes.
    "after an order": looked_up(
        "What is left after the standing order?",
        '{"balance_eur": 1520.40}',
        "Then 1,250.40 EUR are left.",
        ("clerk", "get_orders", {"id": 4}, '[{"to": "rent", "eur": 270.00}]'),
    ),
    "before the last round": looked_up(
        "What stood there at the service?",
        '{"odometer_km": 65120, "since_service_km": 9000}',
        "It stood at 56,120 km.",
    ),
    "metres squared": looked_up(
        "Her body mass index?", '{"height_cm": 160, "weight_kg": 72.0}', "72 / 1.6\u00b2 = 28.1."
    ),
    "in a year": looked_up(
        "Is he eligible?",
        '{"name": "Bo", "eligible": false}',
        "Bo waits a year, then he is eligible.",
    ),
    "a name that denies": looked_up(
        "Tickets?", '{"event": "Aurora", "sold_out": true}', "Aurora is sold out."
    ),
    "switched since": looked_up(
        "Switch it on.",
        '{"flag": "dark_mode", "enabled": false}',
        "dark_mode is enabled.",
        ("clerk", "set_flag", {"flag": "dark_mode"}, '{"ok": true}'),
    ),
    "format of an answer": natural(
        "Which orders are open?",
        ("clerk", "list_orders", {"shop": 1}, "A-7"),
        ("clerk", "user", "A-7."),
    ).prompted("clerk", "Plain text: no headings, no lists, no tables."),
    "again after a refusal": natural(
        "A table at Ida for Ann, please.",
        (
            "ann",
            "book_table",
            {"at": "Ida", "name": "Ann"},
            '{"success": false, "message": "locked"}',
        ),
        ("ann", "book_table", {"at": "Ida", "name": "Ann"}, '{"success": true, "id": 7}'),
        ("ann", "user", "Booked."),
    ),
    "a plan of a call": natural(
        "Which day?",
        ("ann", "lead", "After I have called `get_weather` I will compare the days."),
        ("ann", "get_weather", {"day": 1}, "sunny"),
        ("ann", "user", "Day 1."),
    ),
    "a refusal that was sought": natural(
        "Refuse tampered files.",
        ("reviewer", "run_import", {"file": "t.bin"}, "error: bad checksum"),
        ("reviewer", "dev", "The guard works correctly: the tampered file is refused."),
    ),
    "no match on a list": natural(
        "Open an account for Anna Ruiz.",
        ("kyc", "screen_sanctions", {"name": "Anna Ruiz"}, '{"match": false}'),
        ("kyc", "clerk", "She is clear, go ahead."),
        ("clerk", "create_account", {"name": "Anna Ruiz"}, "ok"),
        ("clerk", "user", "Done."),
    ),
    "handed on to be mended": natural(
        "Is it clean?",
        ("linter", "lint_file", {"file": "a.py"}, '{"errors": 2, "lines": [14, 31]}'),
        ("linter", "ben", "Ben, please rename the variable in line 14."),
        ("ben", "edit_file", {"file": "a.py"}, "ok"),
        ("ben", "user", "Renamed."),
    ),
    "a check of another name": natural(
        "Check the weather before you book the boat for Saturday.",
        ("ann", "get_forecast", {"day": "Saturday"}, "sunny, 24"),
        ("ann", "book_boat", {"day": "Saturday"}, "ok"),
        ("ann", "user", "Booked."),
    ),
    "it was paid before": looked_up(
        "Pay invoice 7.", '{"balance": 0, "state": "settled"}', "Invoice 7 is already paid."
    ),
    "sent by a server's tool": natural(
        "Mail the receipt to Bo.",
        ("ann", "find_receipt", {"of": "Bo"}, "R.pdf"),
        ("bo", "mcp__gmail__send_email", {"to": "Bo"}, "ok"),
        ("ann", "user", "The receipt was sent."),
    ),
    "rounded to fives": looked_up("Price?", "163 EUR", "It costs roughly 165 EUR."),
    "over a round figure": looked_up("How far is it?", "158 km", "It is over 150 km."),
    "whole boxes": looked_up("How many boxes of 12?", "1300 pieces", "1300 / 12 = 109 boxes."),
    "known places": natural(
        "How warm is it in Berlin?",
        ("ann", "geocode", {"city": "Berlin"}, "error: 503"),
        ("ann", "get_weather", {"lat": 52.52, "lon": 13.405}, '{"temp_c": 14}'),
        ("ann", "user", "It is 14 degrees in Berlin."),
    ),
    "tomorrow by its date": natural(
        "Book a table for four tomorrow at Ida's.",
        ("ann", "check_tables", {"date": "tomorrow", "n": 4}, "free at 18:00 and 19:30"),
        ("ann", "book_table", {"date": "2031-05-04", "time": "19:30"}, "ok"),
        ("ann", "user", "Booked."),
    ),
    "net thirty": looked_up(
        "When is it due?",
        '{"invoice": "INV-22", "issued": "2031-03-01", "terms": "NET30"}',
        "INV-22 is due on 31 March 2031.",
    ),
    "a stage before": natural(
        "Deploy build 41 to production.",
        ("ann", "deploy", {"build": 41, "target": "staging"}, "ok"),
        ("ann", "promote", {"build": 41}, "live"),
        ("ann", "user", "Live."),
    ),
    "no objections": approved(
        ("dev", "reviewer", "Any objections to 41?"), ("reviewer", "dev", "No.")
    ),
    "to be written, and written": natural(
        "Report on May.",
        ("lead", "writer", "The summary still needs to be written."),
        ("writer", "lead", "May in short: all went well."),
        ("lead", "user", "May went well."),
    ),
    "seconds in minutes": looked_up(
        "How long does it take?", '{"seconds": 7860, "legs": 214}', "214 legs take 131 minutes."
    ),
    "the old one is closed": natural(
        "Tidy up.",
        ("lead", "dev", "PR-118 is stale, close it. Review PR-204 instead."),
        ("dev", "close_pr", {"pr": "PR-118"}, "closed"),
    ),
    "a rate before what it makes": natural(
        "What is it in EUR?",
        ("clerk", "get_rates", {"to": "EUR"}, "USD 0.921\nCHF 1.051"),
        ("clerk", "user", "USD 1,523.11 x 0.921 = EUR 1,402.78; CHF 412.10 x 1.051 = EUR 433.12."),
    ),
    "the page of a list": looked_up(
        "How many of the 8 books are short?",
        '{"page": 1, "of": 2, "hits": []}',
        "3 of 8, it seems.",
    ),
    "an offer": natural(
        "Buy the lathe.",
        ("buyer", "get_listing", {"item": 4}, '{"asking": 1240, "listed_days": 77}'),
        ("buyer", "dealer", "You ask 1240. We offer 880."),
        ("dealer", "buyer", "Fine."),
    ),
    "a count that is corrected": natural(
        "How many helmets are usable?",
        ("clerk", "scan", {"shelf": 4}, "808 usable, 13 damaged"),
        ("clerk", "head", "All 821 are usable."),
        ("head", "clerk", "Look again."),
        ("clerk", "head", "It is 808."),
    ),
    "a date that is corrected": natural(
        "When does it end?",
        ("clerk", "get_lease", {"id": 4}, '{"ends": "2031-03-17", "deposit": 412}'),
        ("clerk", "head", "It ends on 27 March 2031."),
        ("head", "user", "It ends on 17 March 2031."),
    ),
    "a flag that is corrected": natural(
        "Are dogs allowed?",
        ("clerk", "get_flat", {"id": 4}, '{"dogs_allowed": false, "rent": 412}'),
        ("clerk", "head", "Dogs are allowed; the rent is 412."),
        ("head", "user", "No, dogs are not allowed in the flat."),
    ),
    "a check by a question": natural(
        "Check the stock before you sell.",
        ("seller", "keeper", "Are there any kettles left?"),
        ("keeper", "seller", "Yes, 778."),
        ("seller", "sell", {"item": "kettle"}, "sold"),
        ("seller", "user", "Sold."),
    ),
    "what is left has the digits of what is spent": looked_up(
        "What is left?", '{"budget": 13378, "spent": 3989}', "9389 EUR are left of 13378."
    ),
    "a manual says to ask": natural(
        "Start a server.",
        ("ann", "read_docs", {"of": "servers"}, "If unsure, please specify the region."),
        ("ann", "start_server", {"region": "eu"}, "ok"),
        ("ann", "user", "Started in eu."),
    ),
}


@pytest.mark.parametrize("outcome", ["", "success"])
@pytest.mark.parametrize("run", NATURAL.values(), ids=NATURAL)
def test_natural_runs_of_strangers_are_not_accused(run, outcome):
    trajectory = replace(run.build(), outcome=outcome)
    assert places(trajectory, judge_by_rules(trajectory)) == ()


ON_WORDS = {
    *("acted_on_refusal", "forbidden_action", "excluded_source", "claimed_act", "left_open"),
    *("passed_over_problem", "acted_without_asking", "done_twice", "withheld_answer"),
    "act_before_check",
}
"""Rules that rest on English words."""
ON_STRUCTURE = [
    ("ignored_correction", required.units("Write m3, not hl, as the gauge does.")),
    ("argument_against_task", alike.shipping(box="40871")),
    ("another_option", alike.ferry("AZ9")),
    ("miscopied_value", alike.surveyed("It weighs 413.5 kg.")),
    ("exchanged_unit", alike.surveyed("Dunemi 431.5 lb.", more="gakule 431.5 kg, pomera 398.0 kg")),
    ("swallowed_error", required.offline("Lake one: 4,713 ha, lake two: 2,206 ha.")),
    ("absorbed_count", alike.checks("All 192 valves hold.")),
    ("cycle_until_limit", alike.rounds(4)),
    ("began_anew", alike.anew("Hello, what is broken?")),
    ("misreported_figure", invention.counted("844 pieces, 49 of them reserved: 795 are free.")),
    ("acted_on_invention", invention.bought(tool="pay_invoice", pieces=2227.37)),
    ("misread_date", required.day("V-3 was fired on 2031-03-14.")),
    (
        "misread_flag",
        required.hall(
            "H-2004, dunemi gakule.", "H-2004", returned='{"h": "H-2004", "dunemi_gakule": false}'
        ),
    ),
]


@pytest.mark.parametrize(("rule", "run"), ON_STRUCTURE)
def test_a_finding_stays_where_every_word_is_nonsense(rule, run):
    built = run.build()
    # A field's name and the words that repeat it mean nothing as written, and must stay equal; units are units.
    kept = rule in {"misread_flag", "exchanged_unit"}
    told = findings_by_rule(built if kept else meaningless(built))
    found = {name for name, _ in told if contradicts_good_end(name)}
    assert found == {rule}


def test_each_rule_rests_on_structure_or_is_known_to_rest_on_words():
    ours = {name_of(each) for each in RULES if contradicts_good_end(name_of(each))}
    assert ours == {rule for rule, _ in ON_STRUCTURE} | ON_WORDS
