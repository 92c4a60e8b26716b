"""Rules whose findings contradict a good end: each with healthy runs that look alike."""

import json

import pytest
from judge.builders import RunBuilder

from mast_trace_judge.local.rules import RULES, contradicts_good_end, findings_by_rule, name_of


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
LEASE = "Read lease L-22 and tell us when it ends and whether pets are allowed."


def lease(said, *, ends="2031-04-09", pets=False, task=LEASE):
    run = RunBuilder(task).says("boss", "The lease, please.", to="clerk")
    body = {"lease": "L-22", "ends": ends, "notice_days": 30, "pets_allowed": pets}
    return run.calls("clerk", "fetch_lease", {"id": "L-22"}, json.dumps(body)).says("clerk", said)


def shipping(mode="sea", *, box="40817", task="Ship box 40817 by the sea route on 3 May 2031."):
    run = RunBuilder(task).says("boss", "Box 40817 is to leave.", to="porter")
    return run.calls("porter", "dispatch", {"box": box, "by": mode, "on": "2031-05-03"}, "done")


def ward(tool="give_dose", *, prompt="", task="Look after bed 12.", before="", **arguments):
    run = RunBuilder(task).prompted("nurse", prompt).says("head", "Bed 12, please.", to="nurse")
    if before:
        run.says("doctor", before, to="nurse")
    return run.calls("nurse", tool, {"bed": 12, **arguments}, "done")


def dispatch(correction, sent, *, to="porter"):
    run = RunBuilder("Send a crate of tiles to the site.").says(
        "boss", "Take crate CR-551.", to="porter"
    )
    run.says("checker", correction, to=to)
    return run.calls("porter", "dispatch_crate", {"crate": sent}, "gone")


def rounds(times, *, reason="max_turns", news=""):
    run = RunBuilder("Tune the loom.", termination_reason=reason)
    for turn in range(times):
        run.calls("weaver", "read_loom", {"loom": 7}, "tension 412")
        run.says(
            "weaver", f"Tension is 412{', was 39' + str(turn) + '5' if news else ''}.", to="head"
        )
        run.says("head", ("Look again.", "Once more.", "And now?")[turn % 3], to="weaver")
    return run


def twice(first, second, tool="order_part"):
    run = RunBuilder("Order one rotor.")
    for result in (first, second):
        run.calls("buyer", tool, {"part": "rotor", "count": 1}, result)
    return run


def asked(records, *, question=""):
    run = RunBuilder("Call the engineer for lift 9.")
    run.calls("desk", "find_person", {"name": "Ana Reis"}, json.dumps({"people": records}))
    if question:
        run.says("desk", question)
    return run.calls("desk", "page_person", {"person": "P-31"}, "paged")


TWO = [{"id": "P-31", "name": "Ana Reis"}, {"id": "P-77", "name": "Ana Reis"}]
GUARD = "You give medicine. Nothing is given before the doctor has agreed to the dose."


def survey(said):
    run = RunBuilder("Draw the plan of plot 18, post the survey to the owner, and file the deed.")
    run.calls("drafter", "draw_plan", {"plot": 18}, "plan ready")
    return run.says("drafter", said, to="owner")


def checked(said, result='{"samples": 8, "mismatches": 2}'):
    return RunBuilder("Check lot 5.").calls("lab", "probe", {"lot": 5}, result).says("lab", said)


def added(said, *, called=False):
    run = RunBuilder("What do 3 doors at 219 and a frame at 470 come to?")
    run.prompted("clerk", "You add up bills. Sum with sum_bill.")
    run.calls("shop", "door_price", {}, "219").calls("shop", "frame_price", {}, "470")
    if called:
        run.calls("clerk", "sum_bill", {"items": [657, 470]}, "1127")
    return run.says("clerk", said)


def anew(said, *, fresh=True):
    run = RunBuilder("Mend the pump of block 4.").says(
        "fitter", "I start with the valve.", to="head"
    )
    run.says("head", "The valve is fine.", to="fitter")
    run.prompted("fitter", "You mend pumps.") if fresh else run.shown("fitter", 1, kind="agent")
    return run.says("fitter", said, to="head")


FAULTS = [
    ("swallowed_error", kiln(error=DOWN), 1),
    ("swallowed_error", kiln(error=DOWN, said="Logged as KL-8841."), 1),
    ("misread_date", lease("It ends on 19 April 2031; no pets allowed."), 2),
    ("misread_flag", lease("It ends on 9 April 2031, and pets are allowed."), 2),
    ("misread_flag", lease("It ends on 9 April 2031; pets are not allowed.", pets=True), 2),
    ("unanswered_fact", lease("It ends on 9 April 2031."), 2),
    ("argument_against_task", shipping("air"), 1),
    ("argument_against_task", shipping(box="40871"), 1),
    ("forbidden_action", ward(prompt="You keep notes. Never give anything."), 1),
    ("forbidden_action", ward("add_note", task="Do not add notes for bed 12.", note="x"), 1),
    ("forbidden_action", ward(task="Look after bed 12, no morphine.", drug="morphine"), 1),
    ("forbidden_action", ward("write_file", task="Leave charts/ alone.", path="charts/12.csv"), 1),
    ("skipped_approval", ward(prompt=GUARD), 1),
    ("unheard_correction", dispatch("Correction: it has to be CR-937.", "CR-551"), 2),
    ("cycle_until_limit", rounds(4), 3),
    ("repeated_act", twice("order RT-4401", "order RT-4402"), 1),
    ("took_one_of_equals", asked(TWO), 1),
    ("claimed_act", survey("The plan is ready. The survey was mailed."), 1),
    ("deferred_item", survey("The plan is ready. The deed can be done later."), 1),
    ("good_word_for_bad_result", checked("Lot 5 is of good quality."), 1),
    ("began_anew", anew("Hello, what is broken?"), 2),
    ("unused_tool", added("In all it is 1,391."), 2),
]


@pytest.mark.parametrize(("rule", "run", "step"), FAULTS)
def test_a_contradiction_is_found_where_it_begins(rule, run, step):
    assert named(run) == {rule: step}


def test_each_rule_has_a_run():
    ours = {name_of(each) for each in RULES if contradicts_good_end(name_of(each))}
    assert ours == {rule for rule, _, _ in FAULTS}


HEALTHY = [
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
    ward(prompt=GUARD, before="The dose is fine with me."),
    ward("add_note", prompt=GUARD, note="slept well"),
    dispatch("Correction: it has to be CR-937.", "CR-937"),
    dispatch("CR-551 is the right one.", "CR-551"),
    dispatch("Correction for the driver: load CR-937.", "CR-551", to="driver"),
    rounds(2),
    rounds(4, reason="completed"),
    rounds(4, news="more"),
    twice("order RT-4401", "order RT-4401"),
    twice("order RT-4401", "order RT-4402", tool="find_order"),
    asked(TWO, question="Which of the two do you mean?"),
    asked([TWO[0], {**TWO[1], "name": "Ana Ruiz"}]),
    survey("The plan is ready. I have not mailed the survey."),
    survey("The plan is ready. A model of wood can be done later."),
    survey("The plan is ready."),
    checked("Two samples of lot 5 differ."),
    checked("Lot 5 is of good quality.", '{"samples": 8, "mismatches": 0}'),
    added("In all it is 1,127."),
    added("In all it is 1,127.", called=True),
    anew("The pump runs."),
    anew("Is there a second one?", fresh=False),
]


@pytest.mark.parametrize("run", HEALTHY)
def test_healthy_runs_that_look_alike(run):
    assert named(run) == {}
