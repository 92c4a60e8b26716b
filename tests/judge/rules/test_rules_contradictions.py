"""Rules whose findings contradict a good end: each with healthy runs that look alike."""

import json

import pytest
from judge.builders import RunBuilder

from mast_trace_judge.local.dates import days, is_near
from mast_trace_judge.local.rules import contradicts_good_end, findings_by_rule


def named(run):
    """The rules that contradict the good end of a run, each with the step in error."""
    found = findings_by_rule(run.build())
    return {rule: mode.steps[-1] for rule, mode in found if contradicts_good_end(rule)}


def kiln(
    reading="1180", *, error=None, said="The kiln holds 1,180 degrees.", task="How hot is kiln 4?"
):
    run = RunBuilder(task)
    run.calls("smith", "read_sensor", {"kiln": 4}, "" if error else reading, error=error)
    return run.says("smith", said, to="foreman")


DOWN = "sensor bus offline (E17)"


def kept_lots(tool, lot, *, error=DOWN):
    """A lot is taken from a list, or without it."""
    run = RunBuilder("Reserve a lot.").calls(
        "clerk", "list_lots", {}, "" if error else "KN4471", error=error
    )
    return run.calls("clerk", tool, {"lot": lot}, "ok").says(
        "clerk", "It is set aside.", to="foreman"
    )


LEASE = "Read lease L-22 and tell us when it ends and whether pets are allowed."


def lease(said, *, ends="2031-04-09", pets=False, task=LEASE):
    run = RunBuilder(task).says("boss", "The lease, please.", to="clerk")
    body = {"lease": "L-22", "ends": ends, "pets_allowed": pets}
    return run.calls("clerk", "fetch_lease", {"id": "L-22"}, json.dumps(body)).says("clerk", said)


def shipping(mode="sea", *, box="40817", task="Ship box 40817 by the sea route on 3 May 2031."):
    run = RunBuilder(task).says("boss", "Box 40817 is to leave.", to="porter")
    return run.calls("porter", "dispatch", {"box": box, "by": mode, "on": "2031-05-03"}, "done")


def checks(said, *, holds='{"hold": 191, "leak": 1}'):
    run = RunBuilder("Do the valves hold?").calls("fitter", "check_valves", {}, holds)
    return run.says("fitter", said, to="head")


def mixing(share, *, said="It is done.", error="recipe store is locked"):
    run = RunBuilder("Mix glaze 12.").calls("smith", "get_recipe", {"glaze": 12}, "", error=error)
    return run.calls("smith", "mix", {"share": share}, "done").says("smith", said, to="head")


def booking(start, end, *, task="Book berth 4 from 2031-05-02 to 2031-05-09."):
    run = RunBuilder(task).says("head", "The berth, please.", to="clerk")
    return run.calls("clerk", "book_berth", {"from": start, "to": end}, "done")


def ward(tool="give_dose", *, prompt="", task="Look after bed 12.", before="", **arguments):
    run = RunBuilder(task).prompted("nurse", prompt).says("head", "Bed 12, please.", to="nurse")
    if before:
        run.says("doctor", before, to="nurse")
    return run.calls("nurse", tool, {"bed": 12, **arguments}, "done")


def rounds(times, *, reason="max_turns", news=""):
    run = RunBuilder("Tune the loom.", termination_reason=reason)
    for turn in range(times):
        run.calls("weaver", "read_loom", {"loom": 7}, "tension 412")
        run.says(
            "weaver", f"Tension is 412{', was 39' + str(turn) + '5' if news else ''}.", to="head"
        )
        run.says("head", ("Look again.", "Once more.", "And now?")[turn % 3], to="weaver")
    return run


def anew(said, *, fresh=True):
    run = RunBuilder("Mend the pump of block 4.").says(
        "fitter", "I start with the valve.", to="head"
    )
    run.says("head", "The valve is fine.", to="fitter")
    run.shown("fitter", 1, kind="agent").says("fitter", "Then it is the seal.", to="head")
    run.says("head", "Go on.", to="fitter")
    run.prompted("fitter", "You mend pumps.") if fresh else run.shown("fitter", 1, kind="agent")
    return run.says("fitter", said, to="head")


FERRIES = '[{"ferry": "AZ1", "at": "08:00"}, {"ferry": "AZ9", "at": "19:00"}]'


def ferry(
    taken,
    said="AZ1 leaves at eight.",
    *,
    listed=FERRIES,
    task="Book a ferry.",
    prompt="",
    first=None,
    end="Booked.",
    tool="book",
    key="ferry",
):
    """A run in which one ferry is named, after an attempt at AZ1 where ``first`` is its error, and one is booked."""
    run = RunBuilder(task).prompted("clerk", prompt).calls("clerk", "list_ferries", {}, listed)
    run.says("clerk", said, to="guide")
    if first is not None:
        run.calls("clerk", tool, {key: "AZ1"}, "", error=first)
    return run.calls("clerk", tool, {key: taken}, "ok").says("clerk", end, to="user")


def wished(said):
    """A run in which a person speaks in its midst, before the ferries are listed once more."""
    run = RunBuilder("Book a ferry.").says("clerk", "Any wishes?", to="user").asks(said)
    run.calls("clerk", "list_ferries", {}, FERRIES).says("clerk", "AZ1 is at eight.", to="guide")
    return run.calls("clerk", "book", {"ferry": "AZ9"}, "ok").says(
        "clerk", "Booked for 19:00.", to="user"
    )


def told(said, **arguments):
    run = RunBuilder("Filter the reads.").says("lab", said, to="clerk")
    return run.calls("clerk", "filter_reads", arguments, "812 left").says("clerk", "812 are left.")


def surveyed(said, *, more="gross 431.5 kg, net 398.0 kg", order=None, end="Done."):
    run = RunBuilder("Report on the piece.").calls("wharf", "survey", {"piece": "A"}, more)
    run.says("wharf", "6 parts, as usual.", to="clerk").says("wharf", said, to="clerk")
    if order is not None:
        run.calls("clerk", "order_frame", order, "ok")
    return run.says("clerk", end)


def bills(said):
    run = RunBuilder("How many boxes?")
    for bill, boxes in (("B1", 125), ("B2", 340)):
        run.calls("clerk", "get_bill", {"bill": bill}, json.dumps({"bill": bill, "boxes": boxes}))
    return run.says("clerk", said, to="head")


FAULTS = [
    ("swallowed_error", kiln(error=DOWN), 1),
    ("misread_date", lease("It ends on 19 April 2031; no pets allowed."), 2),
    ("misread_flag", lease("It ends on 9 April 2031, and pets are allowed."), 2),
    ("misread_flag", lease("It ends on 9 April 2031; pets are not allowed.", pets=True), 2),
    ("argument_against_task", shipping(box="40871"), 1),
    ("forbidden_action", ward(prompt="You keep notes. Never give anything."), 1),
    ("forbidden_action", ward("add_note", task="Do not add notes for bed 12.", note="x"), 1),
    ("forbidden_action", ward("write_file", task="Leave charts/ alone.", path="charts/12.csv"), 1),
    *(
        ("forbidden_action", ward(tool, task=task, **given), 1)
        for tool, task, given in [
            ("book", "Do not book room 7. Book room 8.", {"room": 7}),
            ("book", "Never book rooms 7 or 8.", {"room": 8}),
            ("restart", "Do not restart node n7.", {"node": "n7"}),
            ("stop_server", "You must not stop server 1.", {"id": 1}),
            ("give", "Do not give drug A12 to patient 8.", {"drug": "A12", "patient": 8}),
        ]
    ),
    ("misread_flag", lease("L-22, pets allowed, ends on 9 April 2031."), 2),
    ("swallowed_error", kept_lots("reserve_lot", "KN4471"), 1),
    ("absorbed_count", checks("All 192 valves hold."), 1),
    ("absorbed_count", checks("All 192 valves hold.", holds="191 hold, 1 leaks"), 1),
    ("swallowed_error", kiln(error=DOWN, said="Kiln 4 is filed as KN-4471."), 1),
    ("swallowed_error", mixing(0.37), 1),
    ("argument_against_task", booking("2031-06-02", "2031-06-09"), 1),
    ("cycle_until_limit", rounds(4), 3),
    ("began_anew", anew("Hello, what is broken?"), 4),
    ("another_option", ferry("AZ9"), 2),
    ("another_option", ferry("AZ9", listed="AZ1 08:00, AZ9 19:00"), 2),
    ("another_option", ferry("p3", "The largest is p2.", listed="p1 410\np2 1,310\np3 980"), 2),
    ("another_option", ferry("Krone", "Then the Adler.", listed='["Adler", "Krone"]'), 2),
    ("another_option", ferry(6116, "So it is 4203.", listed="4203 leather, 6116 wool"), 2),
    ("ignored_correction", told("Take 0.001, not 0.01.", p=0.01), 1),
    ("ignored_correction", told("Use the Gare and not the Opera.", hotel="Opera"), 1),
    ("exchanged_unit", surveyed("It weighs 431.5 lb."), 2),
    (
        "exchanged_unit",
        surveyed("It is 22 x 47.2 x 5.1 cm.", more='{"size": "22 x 47.2 x 5.1 in"}'),
        2,
    ),
    ("exchanged_unit", surveyed("We pay 526250 EUR.", more="insured at 526,250 USD"), 2),
    ("miscopied_value", surveyed("It weighs 413.5 kg."), 2),
    ("miscopied_value", surveyed("It is lot DK4M7.", more="lot KD4M7, 12 boxes"), 2),
    ("miscopied_value", surveyed("Fine.", order={"height_mm": 1458}, more="height 1485 mm"), 3),
    (
        "miscopied_value",
        surveyed("Pay to AT48 3200 0000 1234 5684.", more="AT48 3200 0000 1234 5864"),
        2,
    ),
    ("forbidden_action", ward("hire", task="Do not use Dr. Brandt.", who="Brandt"), 1),
    ("forbidden_action", ward("hire", task="Do not take a van.", van=2), 1),
    (
        "forbidden_action",
        ward("hire", before="Call Brandt.", task="Never use Dr. Brandt.", who="Brandt"),
        1,
    ),
    ("forbidden_action", ward("order", task="Order fish, other than Mareblu's.", of="Mareblu"), 1),
    (
        "absorbed_count",
        checks("All 192 valves hold.").says("head", "I see 191.").says("smith", "192."),
        1,
    ),
]


@pytest.mark.parametrize(("rule", "run", "step"), FAULTS)
def test_a_contradiction_is_found_where_it_begins(rule, run, step):
    assert named(run) == {rule: step}


HEALTHY = [
    kept_lots("reserve_lot", "KN4471", error=None),
    kept_lots("write_note", "KN4471"),
    kept_lots("list_all_lots", "KN4471"),
    kiln(),
    kiln(error=DOWN, said="The sensor cannot be reached; last week it held 1,180."),
    kiln(error=DOWN, said="Kiln 4 is being looked at."),
    kiln(error=DOWN).calls("smith", "read_sensor", {"kiln": 4}, "1180"),
    lease("It ends on 9 April 2031, no pets allowed."),
    lease("It ends on April 9, 2031; give notice by 10 March 2031. Pets are not allowed."),
    lease("Are pets allowed? It ends on 09/04/2031."),
    lease("You asked whether pets are allowed: they are, on 2031-04-09.", pets=True),
    shipping(),
    shipping("ship"),
    ward(prompt="You give medicine. Never give morphine.", drug="aspirin"),
    ward(prompt="Never give anything without the doctor.", before="Go ahead."),
    ward(prompt="If the patient sleeps, do not give anything."),
    ward("read_file", task="Leave charts/ alone.", path="charts/12.csv"),
    rounds(2),
    rounds(4, reason="completed"),
    rounds(4, news="more"),
    kiln(error=DOWN, said="Der Ofen hat etwa 1.180 Grad, aus dem Ged\u00e4chtnis."),
    kiln(error=DOWN, said="Gross and less the discount: 134.46", task="Net 41.50 times three?"),
    lease("It ends on 10 April 2031, the first working day after; no pets allowed."),
    lease("It ends on 16 April 2031, a week on; no pets allowed."),
    lease("Pets allowed: extra charge."),
    lease("Haustiere: pets allowed? nein."),
    shipping("ups", task="Ship box 40817 by the cheapest carrier."),
    shipping(box="40818", task="Box 40817 was lost, ship the next one on 3 May 2031."),
    ward("give_dose", task="Do not give doses of morphine.", drug="aspirin"),
    ward("add_note", task="Look after bed 12, no morphine.", without="morphine"),
    ward("give_dose", prompt="Never give anything to visitors.", drug="aspirin"),
    ward("write_file", task="Leave charts/ alone.", path="charts_2/12.csv"),
    ward("add_note", task='Translate: "Do not add notes."', note="x"),
    ward("book", task="Do not book room 7. Book room 8.", room=8),
    ward("open_port", task="Do not open port 80, open port 8080.", port=8080),
    ward("deploy", task="Do not deploy to eu-1.", region="eu-10"),
    ward("book", prompt="Never book room B.", room="C"),
    ward("give", task="Do not give drug A12 to patient 8.", drug="B7", patient=8),
    ward("change_price", task="Do not change the price of item 5.", item=6, price=5),
    ward("copy", task="Do not copy to table prod.", source="prod", table="trial"),
    ward("delete", task="Do not delete tenant acme.", tenant="acme", dry_run=True),
    ward("deny", task="Do not deny claim 31 yet again.", claim=31, mode="simulate"),
    ward("translate", task="Do not translate the headings.", text="page 1", skip="headings"),
    ward(
        "move_meeting",
        task="Do not move the meeting to Friday.",
        to="Thursday",
        **{"from": "Friday"},
    ),
    lease("L-22: no pets allowed, ends on 9 April 2031."),
    lease("For L-22 I would want pets allowed."),
    checks("191 of 192 valves hold, one leaks."),
    checks("All 192 valves were looked at, one leaks."),
    checks("All 192 valves hold after the repair, 1 was leaking."),
    checks("All 191 valves hold.", holds='{"hold": 191, "leak": 0}'),
    kiln(error=DOWN, said="Filed as trouble, the sensor bus cannot be reached."),
    mixing(0.375, error=None),
    mixing(0.37, said="I could not read the recipe and took my usual share."),
    mixing(12),
    booking("2031-05-02", "2031-05-09"),
    booking("2031-06-02", "2031-06-12"),
    booking("2031-06-02", "2031-06-09", task="Book berth 4 for a week, a month after 2031-05-02."),
    anew("The pump runs."),
    anew("Is there a second one?", fresh=False),
    ferry("AZ1"),
    ferry("AZ9", "AZ1 is not free."),
    ferry("AZ9", "AZ1 at eight or AZ9 at seven?"),
    ferry("AZ9", task="Book ferry AZ9 if there is one."),
    ferry("AZ9", prompt="Prefer AZ9."),
    ferry("AZ9", first="sold out"),
    ferry("AZ9", end="AZ1 was full, so AZ9 is booked."),
    ferry("AZ9", key="exclude"),
    ferry("AZ9", tool="read_ferry"),
    ferry("AZ7"),
    ferry("AZ9").calls("clerk", "book", {"ferry": "AZ1"}, "ok"),
    ferry("AZ9", "Many are free.", listed=FERRIES),
    told("Take 0.001, not 0.01.", p=0.001),
    told("Take 30, not 20, if the report says so.", q=20),
    told("Take 30, not 20.", q=20).calls("clerk", "filter_reads", {"q": 30}, "800 left"),
    bills("B1 has 125 boxes, B2 340."),
    surveyed("It weighs 431.5 kg."),
    surveyed("It weighs 431.5 kg, not 413.5 kg."),
    surveyed("It weighs 431.5 kg, not 431.5 lb."),
    surveyed("It weighs 951.3 lb, which are 431.5 kg."),
    surveyed("It weighs 431.5 lb.", end="I meant 431.5 kg."),
    surveyed("It weighs 195.7 lb.", more="gross 195.7 kg, net 88.77 kg"),
    surveyed("It takes 195.7 min.", more="gross 195.7 kg, allow 195.7 h or 195.7 min"),
    surveyed("It covers 431.5 m2.", more="length 431.5 cm"),
    surveyed("It takes 12 h.", more="wait 12 min"),
    surveyed("It weighs 413.5 kg.", end="I meant 431.5 kg."),
    surveyed("It weighs 413.5 kg.", more="431.5 kg with 18.0 kg of packing"),
    surveyed("It costs 2100.", more="1200 a piece"),
    surveyed("Lots DK4M7 and KD4M7.", more="lot KD4M7"),
    surveyed("Shelf 531.", more="431 parts, 513 screws"),
    surveyed("Fine.", order={"height_mm": 1485}, more="height 1485 mm"),
    ward("hire", task="Do not use Dr. Brandt.", who="Cho"),
    ward("notify", task="Do not use Dr. Brandt.", who="Brandt"),
    ward("hire", task="Do not use Dr. Brandt.", who="Cho", instead="no", without="Brandt"),
    ward("hire", task="Do not use sample 3.", sample=2),
    ward("hire", task="Do not take a van.", van=0),
    ward("hire", task="Porters in training may not take nights.", shift="night"),
    ward("order", task="Order fish, other than Mareblu's.", of="Costa"),
    ward("compare", task="Find offers other than Mareblu's.", of="Mareblu"),
    *(
        surveyed("Fine.", more=f"{more}, 212 nails")
        .calls("clerk", "find_frame", look, "none")
        .says("clerk", "It has 212 nails.")
        for more, look in [
            ("height 1485 mm", {"height_mm": 1458}),
            ("lot KD4M7", {"lot": "DK4M7"}),
        ]
    ),
    wished("The late one. AZ9, please."),
    kiln(error=DOWN, said="Kilns 4,17 are being looked at.", task="How hot are kilns 4 and 17?"),
]


@pytest.mark.parametrize("run", HEALTHY)
def test_healthy_runs_that_look_alike(run):
    assert named(run) == {}


@pytest.mark.parametrize(
    ("one", "other", "near"),
    [
        *(((2031, 4, 9), (year, 4, 14), True) for year in (2031, 0)),
        *(((2031, 4, 9), (year, 4, 13), False) for year in (2031, 0)),
        *(((2031, 4, 9), (year, 7, 18), True) for year in (2031, 0)),
        *(((2031, 4, 9), (year, 7, 19), False) for year in (2031, 0)),
        ((0, 4, 9), (0, 4, 14), True),
        ((2031, 4, 9), (2031, 4, 16), False),
        ((2031, 4, 9), (2031, 5, 9), False),
        ((2031, 4, 9), (2032, 4, 14), False),
        ((2032, 2, 26), (0, 3, 2), True),
        ((2031, 2, 26), (0, 3, 2), False),
        ((2031, 2, 29), (0, 3, 8), False),
    ],
)
def test_a_date_may_be_another_one_misread(
    one: tuple[int, int, int], other: tuple[int, int, int], near: bool
) -> None:
    """From five to a hundred days, but for weeks and months; a date without a year has that of the other one."""
    assert (is_near(one, other), is_near(other, one)) == (near, near)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("1. Mover: Frida Marsh\n2. Reason", None),
        ("4. Declaration: none", None),
        ("It was in March\n2. Next", None),
        ("Juniper 3", None),
        ("on 4 Sept. 2031", (2031, 9, 4)),
        ("3. M\u00e4rz 2031", (2031, 3, 3)),
        ("12 de diciembre de 2031", (2031, 12, 12)),
        ("Mai 3, 2031", (2031, 5, 3)),
    ],
)
def test_a_month_is_a_whole_word(text, found):
    assert [each for day in days(text) for each in day.readings] == [found] * (found is not None)
