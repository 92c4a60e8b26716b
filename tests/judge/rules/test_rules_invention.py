"""Rules about values that come from nowhere and checks that never came: each with healthy runs that look alike."""

import json

import pytest
from judge.builders import RunBuilder
from judge.rules import test_rules_contradictions as others

TASK = "Order as many kayaks at Brandt as are missing for 6 weeks. Verify the supplier first."


def counted(said, *, found=None, later="", task=TASK, reserved=49):
    """A keeper counts, and reports; a buyer reads it."""
    run = RunBuilder(task).calls(
        "keeper", "count_stock", {"item": "kayak"}, found or '{"item": "kayak", "pieces": 704}'
    )
    run.calls(
        "keeper", "count_reserved", {"item": "kayak"}, json.dumps({"reserved": reserved})
    ).says("keeper", said, to="buyer")
    return run.says("buyer", later or "Thank you.", to="head")


def bought(
    *,
    tool="place_order",
    pieces=1894,
    supplier="Brandt",
    checked="Brandt",
    said="We need 2598 and have 704.",
    ask="",
    task=TASK,
    error="",
):
    """A buyer checks a supplier and orders."""
    run = RunBuilder(task).says("keeper", said, to="buyer")
    if checked:
        run.calls("buyer", "verify_supplier", {"supplier": checked}, '{"open": true}')
    if ask:
        run.says("buyer", ask, to="tools")
    given = {"item": "kayak", "supplier": supplier, "pieces": pieces}
    run.calls("buyer", tool, given, "" if error else "ok", error=error or None)
    return run.says("buyer", "Done.", to="head")


def looked_up(given, *, tool="find_order", name="order"):
    """A clerk looks two things up of the order that the task names."""
    run = RunBuilder("What has become of order KW-4471 for Vienna?")
    run.calls("clerk", "get_invoice", {name: "KW-4471", "city": "Vienna"}, '{"paid": true}')
    return run.calls("clerk", tool, given, '{"sent": true}').says("clerk", "Sent.", to="head")


def warned(said, *, flags='{"suspicious": true}', paid=True):
    """A clerk looks a customer up and speaks; a cashier may pay."""
    run = RunBuilder("Refund order 7.").calls("clerk", "fraud_check", {"id": 7}, flags)
    run.says("clerk", said, to="cashier")
    if paid:
        run.calls("cashier", "pay_refund", {"order": 7, "amount": 42}, "paid")
    return run.says("cashier", "Done.", to="user")


def seat(said, *, tool="", task="Reserve a table at Ida's for Ann."):
    """A waiter looks, another one may act, and the waiter speaks."""
    run = RunBuilder(task).calls("waiter", "get_tables", {"n": 2}, '{"free": [4]}')
    if tool:
        run.calls("host", tool, {"table": 4}, "ok")
    return run.says("waiter", said, to="user")


def paid(task, said, amount):
    """A payer pays what follows from what it was told."""
    run = RunBuilder(task).says("clerk", said, to="payer")
    run.calls("payer", "pay_invoice", {"amount": amount}, "ok")
    return run.says("payer", "Paid.", to="user")


OWED = [
    ("Pay the net price and 19 % tax.", "386.03 EUR net.", 459.38),
    ("Pay, with a tip of 15 percent.", "The bill is 84.20.", 96.83),
    ("Pay a third.", "It is 1,240.50.", 413.5),
    ("Pay 2 nights and the 12.50 fee.", "118 a night.", 248.5),
    ("Pay 3 at 118 and 2 at 205.", "Fine.", 764),
    ("Pay 3 at 118 and 2 at 205, less 10 %.", "Fine.", 687.6),
    ("Refund without the shipping of 4.99.", "Paid were 64.90.", 59.91),
    ("Pay in USD at 1.0842.", "386.03 EUR.", 418.53),
]

BEFORE = "Order 190 kayaks. Verify the supplier before you order."


def asked_about(agent, given, result, supplier="Brandt"):
    """Somebody has called a tool whose name tells nothing, and the buyer orders."""
    run = RunBuilder(BEFORE).calls(agent, "get_entry", given, result)
    order = {"supplier": supplier, "pieces": 190}
    return run.says("clerk", "190, please.", to="buyer").calls("buyer", "place_order", order, "ok")


FAULTS = [
    ("misreported_figure", counted("844 pieces, 49 of them reserved: 795 are free."), 2),
    ("misreported_figure", counted("Free: 795. I count 844; 49 are promised."), 2),
    ("misreported_figure", counted("844 kg, 49 reserved.", found='{"stock": "704 kg"}'), 2),
    (
        "misreported_figure",
        counted("82 x 463 cm, 49 reserved.", found='{"size": "82 x 537 cm"}'),
        2,
    ),
    ("acted_on_invention", bought(tool="pay_invoice", pieces=2227.37), 2),
    ("acted_on_invention", bought(tool="pay_invoice", pieces=2227.37, ask="I pay 2227.37."), 3),
    ("acted_on_invention", bought(supplier="Zimmer"), 2),
    ("acted_on_invention", looked_up({"order": "KW-7144"}), 1),
    ("claimed_act", seat("Table 4 is reserved."), 1),
    ("passed_over_problem", warned("Please pay."), 1),
    ("passed_over_problem", warned("Please pay.", flags='{"eligible": false}'), 1),
    ("act_before_check", bought(checked="", pieces=190, task=BEFORE, said="190, please."), 1),
    ("act_before_check", bought(checked="", pieces=190, task=BEFORE, ask="I order."), 2),
    ("act_before_check", asked_about("clerk", {"item": "kayaks"}, '{"left": 12}'), 2),
]

HEALTHY = {
    "with tax": counted("838 with tax, 49 reserved.", task=f"{TASK} Add 19 % tax."),
    "for two, six weeks": counted("8448 in all, 49 reserved.", task=f"{TASK} For 2 of us."),
    "in pounds": counted("1552 lb, 49 reserved.", found='{"stock": "704 kg"}'),
    "of a long text": counted(
        "844 kg, 49 reserved.", found='{"note": "%s 704 kg"}' % (9 * "heavy ")
    ),
    "as counted": counted("704 pieces, 49 of them reserved: 655 are free."),
    "about": counted("Some 700 pieces, 49 of them reserved."),
    "in dozens": counted("58.67 dozens, 49 pieces reserved."),
    "the difference alone": counted("655 are free, 49 reserved."),
    "corrected later": counted("844 pieces, 49 reserved.", later="No: 704 pieces."),
    "nothing of the results": counted("I know of 844 in Lund."),
    "doubted": counted("844 pieces would be wrong, 49 are reserved."),
    "another number": counted("49 are reserved; order KX844 has come."),
    "a year": counted("Counted in 2031: 49 reserved."),
    "a listing": counted("844, 49.", found=json.dumps({f"shelf {n}": 100 + n for n in range(9)})),
    "follows": bought(tool="pay_invoice"),
    "follows by steps": bought(
        tool="pay_invoice", said="We need 433 a week for 6 weeks and have 704.", pieces=1894
    ),
    "few": bought(tool="pay_invoice", pieces=12),
    "a margin of one's own": bought(pieces=2227),
    "asked for": bought(tool="pay_invoice", pieces=2227, said="Order 2227."),
    "in vain": bought(tool="pay_invoice", pieces=2227, error="no such supplier"),
    "no act": bought(pieces=2227, tool="estimate_order"),
    "another supplier, told": bought(supplier="Zimmer", said="2598 less 704; take Zimmer."),
    "checked and taken": bought(supplier="Zimmer", checked="Zimmer", said="2598, 704. Zimmer?"),
    "longer name": bought(supplier="BrandtAG"),
    "warned in other words": warned("Keep your hands off.", paid=False),
    "warned": warned("Suspicious, but the bank has looked."),
    "no alarm": warned("Please pay.", flags='{"suspicious": false}'),
    "reserved by another": seat("Table 4 is reserved.", tool="make_reservation"),
    "to be reserved": seat("Table 4 can be reserved."),
    "not reserved": seat("Table 4 is not reserved."),
    "not asked for": seat("Table 3 is reserved.", task="Which tables are free?"),
    "the order": looked_up({"order": "KW-4471"}),
    "called otherwise": looked_up({"city": "Wien"}),
    "a file of its own": looked_up({"order": "KW-7144.pdf"}, tool="write_file"),
    "another kind of id": looked_up({"invoice": "IN-2031"}),
    "checked before": bought(pieces=190, task=BEFORE, said="190, please."),
    "checked by another": bought(
        checked="", pieces=190, task=BEFORE, said="The supplier is open. 190, please."
    ),
    "looked up under another name": asked_about("clerk", {}, '{"name": "Brandt", "open": true}'),
    "of a longer name": asked_about("clerk", {"of": "Brandt"}, "open", "Brandt GmbH"),
    "in other signs": asked_about("clerk", {"of": "BRANDT-Müller"}, "open", "Brandt Müller"),
    "in an object": asked_about("clerk", {"item": "kayaks"}, "open", {"name": "Brandt"}),
    "by a flag": asked_about("clerk", {"item": "kayaks"}, "open", True),
    "by its id": asked_about("clerk", {"of": "V-7"}, "open"),
    "by its number": asked_about("clerk", {"vendor_id": 7}, "open"),
    "the buyer has looked": asked_about("buyer", {"item": "kayaks"}, "open"),
    "no check of it": bought(
        checked="", pieces=190, task="Order 190 kayaks. Verify the price.", said="190, please."
    ),
    "under a condition": bought(
        checked="",
        pieces=190,
        task="If it is new, verify the supplier before you order 190 kayaks.",
        said="190, please.",
    ),
}


@pytest.mark.parametrize(("rule", "run", "step"), FAULTS)
def test_a_fault_is_found_where_it_begins(rule, run, step):
    assert others.named(run) == {rule: step}


@pytest.mark.parametrize(("task", "said", "amount"), OWED)
def test_what_is_owed_may_be_worked_out(task, said, amount):
    assert others.named(paid(task, said, amount)) == {}


@pytest.mark.parametrize("run", HEALTHY.values(), ids=HEALTHY)
def test_healthy_runs_that_look_alike_are_not_accused(run):
    assert others.named(run) == {}
