"""Rules about what was required, corrected, ruled out or asked for: each with healthy runs that look alike."""

from dataclasses import replace

import pytest
from judge.builders import RunBuilder
from judge.rules import test_rules_contradictions as others
from judge.rules import test_rules_invention as invention

from mast_trace_judge.local.rules import RULES, contradicts_good_end, findings_by_rule, name_of

GATE = "The curator must approve before the crate is shipped."


def crate(*said, task=GATE, tool="ship_crate", prompt="", users=(), **arguments):
    """A porter ships a crate after others have spoken."""
    run = RunBuilder(task).prompted("porter", prompt).says("head", "Crate 7 is packed.", to="team")
    for agent, text in said:
        run.asks(text) if agent == "user" else run.says(agent, text, to="porter")
    return run.calls("porter", tool, {"crate": 7, **arguments}, "done")


def ferry(told, *used, before="Take the FX204 at 61.50 EUR.", after=()):
    """A clerk buys a ticket after it was told what to take."""
    run = RunBuilder("Get a ticket to the island.").says("head", before, to="clerk")
    run.says("mate", told, to="clerk").calls(
        "clerk", "buy_ticket", {"ferry": used[0], "price": used[1]}, "ok"
    )
    for ferry_, price in after:
        run.calls("clerk", "buy_ticket", {"ferry": ferry_, "price": price}, "ok")
    return run


def units(told, *, mended=False, answer="The dam holds 4,310 hl."):
    run = RunBuilder("What does the dam hold?").says("scribe", "It holds 4,310 hl.", to="head")
    run.says("head", told, to="scribe")
    if mended:
        run.calls("scribe", "edit_note", {"old": "hl", "new": "m3"}, "ok")
    return run.calls("scribe", "print_note", {"copies": 1}, "ok").says("head", answer, to="user")


HALL = "The hall holds 431 people, heated; the piano is not tuned. Rent 912 EUR."
WANTED = "Rent a hall. Tell me the price and whether the piano is tuned."


def hall(said, answer, *, returned=HALL, task=WANTED):
    run = RunBuilder(task).says("head", "A hall, please.", to="scout")
    run.calls("scout", "find_hall", {"town": "Lund"}, returned).says("scout", said, to="head")
    return run.says("head", answer, to="user")


def garden(
    said, *, task="Water the beds and label the tulips.", after=(), answer="The beds are wet."
):
    run = (
        RunBuilder(task).calls("hand", "open_tap", {"bed": 4}, "open").says("hand", said, to="head")
    )
    for tool, arguments in after:
        run.calls("hand", tool, arguments, "ok")
    return run.says("head", answer, to="user")


def day(
    said, *, returned='{"vase": "V-3", "fired": "2031-03-04"}', task="When was vase V-3 fired?"
):
    run = RunBuilder(task).calls("potter", "get_vase", {"id": "V-3"}, returned)
    return run.says("potter", said, to="head")


def parcel(task, **arguments):
    run = RunBuilder(task).says("head", "Please.", to="porter")
    return run.calls("porter", "dispatch", arguments, "ok")


def offline(said, *, after=True, tool="read_page"):
    pages = '[{"id": "P1"}, {"id": "P2"}]'
    run = RunBuilder("How large are both lakes?").calls("clerk", "list_pages", {}, pages)
    run.calls("clerk", tool, {"id": "P1"}, "", error="not reachable")
    if after:
        run.calls("clerk", tool, {"id": "P2"}, "no figures here")
    return run.says("clerk", said, to="head")


def chat(*values, reason="max_turns", task="Agree on a rent.", looked=""):
    run = RunBuilder(task, termination_reason=reason)
    if looked:
        run.calls("owner", "read_list", {"house": "HK-22"}, looked)
    for value in values:
        run.says("owner", f"House HK-22 is {value} EUR.", to="tenant").says(
            "tenant", "Hm, and the deposit?", to="owner"
        )
    return run


def pages(task="Take it from the almanac only, no blogs.", opened="P2", title="Tides"):
    """A clerk opens one of two pages, of which one is a blog."""
    listed = (
        f'[{{"id": "P1", "kind": "almanac"}}, {{"id": "P2", "kind": "blog", "title": "{title}"}}]'
    )
    run = RunBuilder(task).calls("clerk", "list_pages", {}, listed)
    return run.calls("clerk", "open_page", {"id": opened}, "High water at 4.")


def links(*said, found='{"links": 3, "unresolved": 1, "detail": "[2] leads nowhere"}', again=""):
    """A checker says something of the links that it has looked at."""
    run = RunBuilder("Print the leaflet once its links are checked.")
    for text in said:
        run.calls("checker", "check_links", {"doc": 7}, found).says("checker", text, to="printer")
    if again:
        run.calls("checker", "check_links", {"doc": 7}, again)
    return run.calls("printer", "print_leaflet", {"doc": 7}, "printed")


def receipt(said, *, tool="", before="", task="Pay the bill. I need a receipt."):
    run = RunBuilder(task).says("head", before or "Pay, please.", to="clerk")
    run.calls("clerk", "pay_bill", {"bill": 7}, "done")
    if tool:
        run.calls("clerk", tool, {"bill": 7}, "ok")
    return run.says("clerk", said, to="head")


def room(*calls, task="Book a room in Lund for Ann.", between=""):
    """A clerk books, with what the calls return, and the user may speak before the last."""
    run = RunBuilder(task)
    for place, (tool, told) in enumerate(calls):
        if between and place == len(calls) - 1:
            run.asks(between)
        run.calls("clerk", tool, {"town": "Lund", "name": "Ann"}, told)
    return run.says("clerk", "It is done.", to="head")


BOOKED = ("book_room", "booked as R-1")
NAMES = (
    "find_guest",
    '{"matches": ["Ann A.", "Ann B."], "note": "two of this name, ask which one"}',
)
VASE = '{"vase": "V-3", "price": 912, "fired": "2031-03-04"}'
ACT = '{"act": "Gull act", "since": "2031-04-09", "covers_small_boats": false}'
THEN = "Pack crate 7, let the curator approve, then ship it."


FAULTS = [
    ("acted_on_refusal", crate(("curator", "Not yet: the lid is loose.")), 2),
    (
        "ignored_correction",
        ferry("The FX204 leaves too late. Take FX911 instead.", "FX204", 61.5),
        2,
    ),
    ("ignored_correction", ferry("FX204 is full. Please buy FX911.", "FX204", 61.5), 2),
    ("ignored_correction", ferry("Correction: it is 58.20 EUR.", "FX204", 61.5), 2),
    ("ignored_correction", units("Write m3, not hl, as the gauge does."), 2),
    ("misread_date", day("V-3 was fired on 3 April 2031."), 1),
    ("argument_against_task", parcel("Send 250 kg of sand by road.", kg=520), 1),
    ("argument_against_task", parcel("Send crate KW-4471.", crate="KW-4417"), 1),
    ("argument_against_task", parcel("Send the crate by road.", by="rail"), 1),
    ("argument_against_task", parcel("Send the crate, but not by drone.", by="drone"), 1),
    ("forbidden_action", crate(prompt="You carry: no ships, no sales.", task="Carry it."), 1),
    ("swallowed_error", offline("Lake one: 4,713 ha, lake two: 2,206 ha."), 3),
    ("withheld_answer", hall("A hall for 431 people at 912 EUR.", "There is one for 912 EUR."), 2),
    ("left_open", garden("Bed 4 is wet. I did not get to the tulips."), 1),
    ("acted_on_refusal", crate(("curator", "I do not approve this."), task=THEN), 2),
    ("cycle_until_limit", chat(*[912] * 5, looked="HK-22: 912 EUR"), 3),
    ("excluded_source", pages(), 1),
    ("excluded_source", pages("No blogs: only the almanac counts."), 1),
    ("passed_over_problem", links("All in order, print it."), 1),
    ("passed_over_problem", links("Checked, print it.", found='{"pages": 8, "match": false}'), 1),
    ("done_twice", room(BOOKED, ("book_room", "booked as R-2")), 1),
    ("acted_without_asking", room(NAMES, BOOKED), 1),
    ("swallowed_error", offline("Green: 4,713 of 4,713 at 92.4 %.", after=False), 2),
    ("claimed_act", receipt("Paid. The receipt was sent."), 2),
    ("claimed_act", receipt("Paid; receipt is on its way."), 2),
    ("misread_date", day("V-3, 912 EUR, left the oven on 24 March 2031.", returned=VASE), 1),
    (
        "misread_flag",
        day("The act holds since Wed 9 April 2031 and covers small boats.", returned=ACT),
        1,
    ),
    (
        "misread_flag",
        day("It holds since April 9, 2031 and small boats are covered.", returned=ACT),
        1,
    ),
]


ENOUGH = [(rule, run) for rule, run, _ in FAULTS if rule in {"withheld_answer", "left_open"}]
"""Runs of which some things were left out or open; where a success is recorded, they were not needed."""


@pytest.mark.parametrize(("rule", "run"), ENOUGH)
def test_what_was_left_out_of_a_success_was_not_needed(rule, run):
    found = findings_by_rule(replace(run.build(), outcome="success"))
    assert rule not in {name for name, _ in found}


EXPLAINED = [
    ("unapproved_act", crate(), 1),
    (
        "unapproved_act",
        crate(prompt="You ship only what the curator has cleared.", task="Get crate 7 away."),
        1,
    ),
    ("unapproved_act", crate(task="No crate is shipped without a decision of the curator."), 1),
    ("left_open", garden("Bed 4 is wet.", answer="The tulips still have to be labelled."), 2),
]
"""Findings on runs that failed: the record of one that did not contradicts nothing."""


def explained(run):
    found = findings_by_rule(replace(run.build(), outcome="failure"))
    rules = {rule for rule, _, _ in EXPLAINED}
    return {rule: mode.steps[-1] for rule, mode in found if rule in rules}


@pytest.mark.parametrize(("rule", "run", "step"), EXPLAINED)
def test_a_failure_is_explained_and_a_success_not_accused(rule, run, step):
    assert explained(run) == {rule: step}
    assert others.named(run) == {}


@pytest.mark.parametrize(("rule", "run", "step"), FAULTS)
def test_a_fault_is_found_where_it_begins(rule, run, step):
    assert others.named(run) == {rule: step}


def test_each_rule_has_a_run():
    ours = {name_of(each) for each in RULES if contradicts_good_end(name_of(each))}
    assert ours == {rule for rule, _, _ in (*FAULTS, *others.FAULTS, *invention.FAULTS)}


HEALTHY = {
    "approved": crate(("curator", "It may go.")),
    "approved by another name": crate(("Martha", "Fine with me.")),
    "approved in passing": crate(("Martha", "Yes. Mind the lid.")),
    "approved by the user": crate(("user", "Send it.")),
    "refused and mended": crate(
        ("curator", "Not yet: the lid is loose."), ("joiner", "Screwed on.")
    ),
    "condition": crate(
        task="If it weighs more than 40 kg, the curator must approve before the crate is shipped."
    ),
    "wish": crate(task="The curator should approve before the crate is shipped, if he is in."),
    "another act": crate(tool="weigh_crate"),
    "the user approves": crate(task="I must approve before a crate is shipped; I do."),
    "approval of another thing": crate(
        task="Ship it. The curator must approve the text before it is printed."
    ),
    "asked alone, unrecorded": RunBuilder(GATE)
    .says("porter", "May I?", to="curator")
    .calls("porter", "ship_crate", {"crate": 7}, "done"),
    "approved by a stranger": crate(("Martha", "Ship it, the lid is tight.")),
    "approved in two letters": crate(("Martha", "OK. Mind the lid.")),
    "approved in a system": RunBuilder(GATE)
    .calls("porter", "get_ticket", {"crate": 7}, '{"state": "approved"}')
    .calls("porter", "ship_crate", {"crate": 7}, "done"),
    "took the other": ferry("The FX204 leaves too late. Take FX911 instead.", "FX911", 61.5),
    "both, in turn": ferry("Buy FX911 as well.", "FX204", 61.5, after=[("FX911", 61.5)]),
    "both, in one sentence": ferry("Buy FX204 and FX911.", "FX204", 61.5),
    "condition of a change": ferry("If FX204 is full, take FX911 instead.", "FX204", 61.5),
    "another price": ferry("My trip was 58.20 EUR in spring.", "FX204", 61.5),
    "supposed": ferry("FX911 would cost 58.20 EUR instead.", "FX204", 61.5),
    "asked": ferry("Would you rather take FX911 instead?", "FX204", 61.5),
    "corrected and heard": ferry("Correction: it is 58.20 EUR.", "FX204", 58.2),
    "another limit": ferry("Correction: the budget is 58.20 EUR.", "FX204", 61.5),
    "another money": ferry(
        "Correction: you have 58.20 EUR left and it costs 61.50 EUR.", "FX204", 61.5
    ),
    "kind of ship": ferry("A ferry, not a plane.", "FX204", 61.5),
    "unit put right": units("Write m3, not hl.", mended=True, answer="It holds 4,310 m3."),
    "unit put right in the answer": units("Write m3, not hl.", answer="It holds 4,310 m3."),
    "unit not corrected": units("Write it in hl, not in a table."),
    "told in other words": hall(
        "431 people, 912 EUR, piano out of tune.", "912 EUR; the piano is out of tune."
    ),
    "told with a restriction": hall("431 people at 912 EUR, instrument extra.", "912 EUR."),
    "told in a word": hall("431 people, 912 EUR, and no.", "912 EUR."),
    "not asked": hall(
        "A hall for 431 people at 912 EUR.", "912 EUR.", task="Rent a hall. Tell me the price."
    ),
    "asked under a condition": hall(
        "431 people, 912 EUR.",
        "912 EUR.",
        task="Rent a hall; if you can, say whether the piano is tuned.",
    ),
    "optional": hall(
        "431 people, 912 EUR.",
        "912 EUR.",
        task="Rent a hall. Whether the piano is tuned is optional.",
    ),
    "not returned": hall("431 people, 912 EUR.", "912 EUR.", returned="431 people. Rent 912 EUR."),
    "done later": garden("I did not get to the tulips.", after=[("label", {"plant": "tulips"})]),
    "done by another": garden("I did not get to the tulips.", answer="All tulips have labels."),
    "optional work": garden(
        "I did not get to the tulips.", task="Water the beds. Tulips are optional."
    ),
    "not asked for": garden("I did not get to the shed."),
    "yours": garden("The tulips still have to be labelled by you."),
    "order of work": garden(
        "The tulips can wait until later, first the beds.", after=[("label", {"plant": "tulips"})]
    ),
    "all done": garden("The tulips are labelled."),
    "right day": day("V-3 was fired on 4 March 2031."),
    "right day, American": day("V-3 was fired on 3/4/2031."),
    "both days": day("V-3 was fired on 4 March 2031 and fired again on 3 April 2031."),
    "planned": day("I plan to have it fired again on 3 April 2031."),
    "denied": day("V-3 was not fired on 3 April 2031."),
    "a week on": day("It is fired at the latest by 11 March 2031."),
    "period of its own": day("Fired, and glazed 40 days after: 13 April 2031."),
    "the year before": day("A year ago one was fired on 3 April 2030."),
    "by road": parcel("Send the crate by road.", by="road"),
    "first things": parcel("First find a carrier for the crate.", **{"class": "economy"}),
    "by a carrier": parcel("Send the crate by road.", by="ups"),
    "as the head says": RunBuilder("Send the crate by road.")
    .says("head", "Rail is fine, too.", to="porter")
    .calls("porter", "dispatch", {"by": "rail"}, "ok"),
    "what to avoid": parcel("Send the crate, but not by drone.", avoid="drone"),
    "other kilograms": parcel("Send 250 kg of sand.", kg=205, rest=45),
    "next of a row": parcel("Send what follows crate KW-4471.", crate="KW-4472"),
    "in two lots": parcel("Send 250 kg of sand.", kg=125),
    "no hurry": crate(prompt="There is no hurry.", task="Ship crate 7."),
    "told of the error": offline("P1 is not reachable, from memory it is 4,713 and 2,206 ha."),
    "derived": offline("Both come to 5,000 ha, one being 3,000 and one 2,000."),
    "haggling": chat(912, 905, 881, 874, 866),
    "ended by itself": chat(912, 912, 912, 912, 912, reason="completed"),
    "three rounds": chat(912, 912, 912),
    "asked for rounds": chat(*[912] * 5, task="Say it in five rounds.", looked="HK-22: 912 EUR"),
    "talk alone": chat(*[912] * 5),
    "the other source": pages(opened="P1"),
    "blogs on the side": pages("Take it from the almanac; no blogs are needed."),
    "blogs under a condition": pages("If it is in print, take the almanac only, no blogs."),
    "of blogs": pages("Take it from the almanac only, no diaries.", title="no blog"),
    "told of the link": links("Print it; one link leads nowhere."),
    "told of the number": links("1 of 3 links is dead, print it all the same."),
    "told of the number in a word": links("Print it, the one is known."),
    "checked again": links("Please look at it.", again='{"links": 3, "unresolved": 0}'),
    "told that it differs": links(
        "They differ, mend page 8.", found='{"pages": 8, "match": false}'
    ),
    "all right": links("Checked, print it.", found='{"pages": 8, "match": true}'),
    "booked again after it was undone": room(BOOKED, ("cancel_room", "ok"), ("book_room", "R-2")),
    "two wanted": room(BOOKED, ("book_room", "R-2"), task="Book two rooms in Lund for Ann."),
    "another wanted": room(BOOKED, ("book_room", "R-2"), between="One for me as well."),
    "the same booking": room(BOOKED, BOOKED),
    "asked until it is paid": room(("payment_state", "open"), ("payment_state", "paid")),
    "asked until it is refunded": room(("refund_status", "open"), ("refund_status", "done")),
    "asked by a tool": room(NAMES, ("ask_caller", "Ann B."), BOOKED),
    "the user says which": room(NAMES, BOOKED, between="Ann B., please."),
    "looked up first": room(NAMES, ("find_guest", '{"matches": ["Ann B."]}'), BOOKED),
    "no problem": links("All in order, print it.", found='{"links": 3, "unresolved": 0}'),
    "a number of another thing": links("Print it.", found='{"links": 3, "units": 4}'),
    "sent by a call": receipt("Paid. The receipt was sent.", tool="send_receipt"),
    "sent by another name": receipt("Paid. The receipt was sent.", tool="notify_customer"),
    "sent by others": receipt("The receipt was sent.", before="A receipt goes out by itself."),
    "nobody asked for one": receipt("The parcel was sent."),
    "will be sent": receipt("Paid. The receipt will be sent."),
    "a term of days": day("V-3, 912 EUR, due in 20 days, on 24 March 2031.", returned=VASE),
    "another amount": day("Something for 77 EUR on 24 March 2031.", returned=VASE),
    "boats, denied": day("It holds since 9 April 2031 and covers no small boats.", returned=ACT),
    "approved, then": crate(("curator", "I approve this."), task=THEN),
    "the rest after a share": ferry("Correction: it is 58.20 EUR.", "FX204 less 3.3", 61.5).says(
        "clerk", "Bought."
    ),
    "a code with blanks": ferry(
        "Price: 5879.31 EUR.", "6401 92 90", 1, before="Take the boots of 6401 92 90."
    ),
    "the sum of both": ferry("Correction: it is 64.80 EUR.", "FX204 and 3.3", 61.5).says(
        "clerk", "Bought."
    ),
}


@pytest.mark.parametrize("run", HEALTHY.values(), ids=HEALTHY)
def test_healthy_runs_that_look_alike(run):
    assert others.named(run) == explained(run) == {}
