"""Modes 1.4, 2.2, 2.4 and 2.5: what is lost, assumed, withheld or ignored."""

from dataclasses import replace

import pytest
from judge.builders import RunBuilder

from mast_trace_judge.local.attribution.mode_votes import in_error
from mast_trace_judge.local.rules import find_modes
from mast_trace_judge.local.rules.clarification import assumed_instead_of_asking
from mast_trace_judge.local.rules.inter_agent import never_shown, unchanged_after_correction
from mast_trace_judge.local.rules.lost_context import asked_again, asks_for_what_it_had
from mast_trace_judge.local.rules.withholding import withheld_findings
from mast_trace_judge.verdict import Evidence

ROOM = "Double room in Lisbon near the harbour: 118 EUR per night"
REPORT = "The eastern region sold 340 units in March and will need a second van before the summer."


def _looked_up() -> RunBuilder:
    run = RunBuilder("Plan the trip.").asks().shown("agent", 0)
    return run.calls("agent", "hotel_price", {"city": "Lisbon"}, ROOM).shown("agent", 0, 1)


def _found(
    said: str, tool: str = "sales", result: str = REPORT, *, to: str = "writer"
) -> RunBuilder:
    """A researcher's call, and what it says to another after that."""
    run = RunBuilder().calls("researcher", tool, {}, result)
    return run.says("researcher", said, to=to)


@pytest.mark.parametrize(
    ("said", "shown", "after", "lost"),
    [
        ("Noted.", (0, 2), (), Evidence.EXACT),
        ("Noted.", (0, 2), (0, 2, 1), Evidence.EXACT),  # the same text comes back under the same id
        ("Noted.", (0, 1, 2), (), None),
        (f"So far: {ROOM}.", (0, 2), (), None),
        ("Noted.", (0,), (), Evidence.HEURISTIC),
    ],
    ids=["lost", "back afterwards", "still shown", "quoted by a summary", "asked anew"],
)
def test_a_call_is_made_again_for_a_lost_result(said, shown, after, lost):
    run = _looked_up().says("agent", said).shown("agent", *shown)
    run.calls("agent", "hotel_price", {"city": "Lisbon"}, ROOM).shown("agent", *after)
    found = [(each.code, each.evidence, each.steps) for each in asked_again(run.build())]
    assert found == [("1.4", lost, (1, 3))] * bool(lost)


class _Searched(tuple[str, ...]):  # noqa: SLOT001  # it counts
    """Ids that count how often they are searched."""

    searches = 0

    def __contains__(self, identity: object) -> bool:
        _Searched.searches += 1
        return super().__contains__(identity)


def test_polling_is_not_searched_again_for_every_call(monkeypatch):
    """An agent that asks for the same state a thousand times, and is shown all answers."""
    monkeypatch.setattr(_Searched, "searches", 0)
    run = RunBuilder("Wait for the build.").asks().shown("agent", 0)
    for number in range(40):
        run.calls("agent", "build_state", {}, f"{number} % done").shown("agent", *range(number + 2))
    built = run.build()
    calls = [
        replace(invocation, input_ids=_Searched(invocation.input_ids))
        for invocation in built.invocations
    ]
    assert asked_again(replace(built, invocations=tuple(calls))) == []
    assert _Searched.searches == 0


def test_a_lost_message_that_nobody_misses_is_no_finding():
    """Histories are cut on purpose."""
    run = _looked_up().says("agent", "Noted.").shown("agent", 2)
    run.says("agent", "The trip is planned.")
    assert asked_again(run.build()) == []
    assert asks_for_what_it_had(run.build()) == []


def test_a_question_for_what_a_lost_message_said_is_heuristic():
    run = _looked_up().says("agent", "Noted.").shown("agent", 0, 2)
    run.says("agent", "What is the price of a double room in Lisbon near the harbour?")
    (found,) = asks_for_what_it_had(run.build())
    assert (found.evidence, found.steps) == (Evidence.HEURISTIC, (3,))


@pytest.mark.parametrize(
    "texts",
    [
        ["The insurer has assumed the risk since Friday."],
        ["I will assume next Friday.", "Could you please specify the date?"],
    ],
    ids=["another sense", "one question is enough"],
)
def test_a_run_that_assumes_nothing_is_fine(texts):
    run = RunBuilder()
    for text in texts:
        run.says("agent", text)
    assert assumed_instead_of_asking(run.build()) == []


@pytest.mark.parametrize(
    ("said", "result", "probability"),
    [
        ("I have finished my research.", REPORT, 0.6),
        ("Enough.", '{"points": 742}', 0.6),
        ("I am for the east.", '{"region": "east", "code": 5189}', 0.4),
        ("Hardly any.", "17", 0.4),
    ],
    ids=["nothing", "a conclusion", "what was known", "what words may tell"],
)
def test_findings_that_reach_nobody_are_withheld(said, result, probability):
    """It is no proof: a conclusion may be all that somebody needs."""
    run = RunBuilder().asks().calls("researcher", "sales", {"region": "east"}, result)
    run.says("researcher", said, to="writer").shown("writer", 0, 2)
    (found,) = withheld_findings(run.says("writer", "Then I write the report.").build())
    assert (found.code, found.evidence, found.steps) == ("2.4", Evidence.HEURISTIC, (1, 2))
    assert found.probability == probability


@pytest.mark.parametrize(
    "run",
    [
        _found("They sold 340 units."),
        _found("They sold many units."),
        _found("They sold about 350.", result="352"),
        _found("In two months they sold 680.", result="340"),
        _found("Together 965.", result="a,12.5,340\nb,30.1,210\nc,11.0,415"),
        _found("Done.").calls("researcher", "report", {"region": "a second van"}, "sent"),
        _found("Done.").says("researcher", "It was 340, by the way.", to="writer"),
        _found("Done.").shown("writer", 0, 1).says("writer", "I see."),
        _found("Done.", to="user"),
        _found("Saved.", "save", "saved"),
        RunBuilder("Commit.")
        .calls("researcher", "commit", {"of": "East is closed"}, "[5337] East is closed")
        .says("researcher", "Done.", to="writer"),
    ],
    ids=[
        *("told", "told in words", "told as a round figure", "told as a product"),
        *("added up", "told a tool"),
        "told later",
        "seen by all",
        "to the user",
        "nothing found",
        "the number of a receipt",
    ],
)
def test_what_was_shared_is_not_withheld(run):
    """Told at once or later, seen in a shared history, or nothing to tell."""
    assert withheld_findings(run.build()) == []


def test_who_only_runs_the_tool_is_told_nothing():
    """The boss has no model; the writer's model is not shown what the tool returned."""
    run = RunBuilder().asks().calls("researcher", "sales", {"region": "east"}, REPORT)
    run.shown("boss", 0, 1, kind="agent")
    run.says("researcher", "I have finished my research.", to="boss").shown("writer", 0, 2)
    (found,) = withheld_findings(run.build())
    assert found.probability == 0.6


def test_a_result_that_somebody_is_shown_in_a_prompt_is_not_withheld():
    """Under an id of the prompt's own."""
    run = RunBuilder().asks().calls("researcher", "sales", {"region": "east"}, REPORT)
    run.says("researcher", "I have finished my research.", to="writer")
    run.asks(f"Write a report. The context: {REPORT}", to="writer").shown("writer", 3)
    assert withheld_findings(run.build()) == []


def test_a_message_that_a_prompt_leaves_out_is_exact():
    """The prompt quotes the one message and not the other."""
    run = RunBuilder().says("a", "The train leaves at noon today.", to="writer")
    run.says("b", "The hotel has no free rooms.", to="writer")
    run.asks("The context: The hotel has no free rooms.", to="writer").shown("writer", 2)
    (found,) = never_shown(run.says("writer", "We stay at home.").build())
    assert (found.evidence, found.steps) == (Evidence.EXACT, (0, 3))


def _answered() -> RunBuilder:
    """A message that its recipient was shown and has answered."""
    run = RunBuilder().says("a", "The first part is ready.", to="b").shown("b", 0)
    return run.says("b", "Good.", to="a")


def test_a_message_that_the_recipient_never_saw_is_exact():
    """Other messages to the same agent did arrive under their ids; the writer is not to blame."""
    run = _answered().says("a", "The second part has an error in line 3.", to="b")
    run.shown("b", 0, 1)
    assert never_shown(run.build()) == []  # nobody acted without it
    (found,) = never_shown(run.says("a", "Well?").says("b", "Shipped.").build())
    assert (found.code, found.evidence, found.steps) == ("2.5", Evidence.EXACT, (2, 4))
    assert in_error(found, run.build()) == 4


def test_a_message_quoted_inside_another_was_seen():
    """Frameworks may wrap a message."""
    run = _answered().says("a", "Line 3 is wrong.", to="b")
    run.says("boss", "a wrote: Line 3 is wrong.", to="b").shown("b", 0, 1, 3).says("b", "Fixed.")
    assert never_shown(run.build()) == []


@pytest.mark.parametrize(
    ("prompt", "outcome", "found"),
    [
        ("Context: The train leaves at noon today.", "", [Evidence.HEURISTIC]),
        ("Context: The train leaves at noon today.", "success", []),
        ("The train leaves at noon today. Free rooms: the hotel has none.", "", []),
    ],
    ids=["left out", "not needed", "in other words"],
)
def test_a_prompt_of_the_programs_own_proves_nothing(prompt, outcome, found):
    """It quotes one message, and may leave another one out on purpose or tell it otherwise."""
    run = RunBuilder(outcome=outcome).says("a", "The train leaves at noon today.", to="writer")
    run.says("b", "The hotel has no free rooms.", to="writer").shown("b")
    built = run.prompted("writer", prompt).says("writer", "We stay at home.").build()
    assert [each.evidence for each in never_shown(built)] == found


def test_what_a_program_shows_to_nobody_is_for_the_record():
    """A greeting to all reaches none of them, and neither does what each says to all."""
    run = RunBuilder().says("lead", "Good morning, let us begin.", to=("a", "b"))
    for name in ("a", "b"):
        run.says("lead", f"The price of part {name}, please.", to=name)
    for name, place in (("a", 1), ("b", 2)):
        run.shown(name, place).says(name, f"Part {name} costs {place}99.", to=("lead", "a", "b"))
    run.shown("lead", 3, 4).says("lead", "Together 498.")
    assert never_shown(run.build()) == []


def test_no_claim_is_made_where_inputs_are_recorded_otherwise():
    """If no message ever arrives under its id, ids prove nothing."""
    run = RunBuilder().asks().says("a", "One.", to="b").shown("b", 0).says("b", "Yes.")
    assert never_shown(run.says("a", "Two.", to="b").shown("b", 0).says("b", "Yes.").build()) == []


def test_the_same_reply_after_a_correction_is_heuristic():
    run = RunBuilder().says("coder", REPORT).says("reviewer", "That is wrong, it was April.")
    (found,) = unchanged_after_correction(run.says("coder", REPORT + " ").build())
    assert (found.code, found.evidence, found.steps) == ("2.5", Evidence.HEURISTIC, (0, 1, 2))


def test_a_changed_reply_after_a_correction_is_fine():
    """A changed reply is fine, and so is the same reply after praise."""
    changed = RunBuilder().says("coder", REPORT).says("reviewer", "That is wrong, it was April.")
    changed.says("coder", "You are right: April, and the van is needed by then.")
    praised = RunBuilder().says("coder", REPORT).says("reviewer", "Great.").says("coder", REPORT)
    assert unchanged_after_correction(changed.build()) == []
    assert unchanged_after_correction(praised.build()) == []


@pytest.mark.parametrize(
    ("times", "probability"), [(0, None), (1, 0.43), (2, 0.51), (3, 0.59), (4, 0.6)]
)
def test_assuming_often_makes_it_more_probable(times, probability):
    run = RunBuilder().asks().says("agent", "I begin.")
    for number in range(times):
        run.says("agent", f"It is read. So we assume {number} guests. Fine.")
    found = assumed_instead_of_asking(run.build())
    assert [each.probability for each in found] == pytest.approx([probability] * bool(times))
    assert [each.quotes for each in found] == [("So we assume 0 guests.",)] * bool(times)


def test_in_a_successful_run_nothing_was_assumed_or_withheld():
    """A missing message was not needed."""
    run = RunBuilder(outcome="success").says("agent", "I will assume next Friday.")
    run.calls("agent", "sales", {}, REPORT).says("agent", "Done.", to="writer")
    assert assumed_instead_of_asking(run.build()) == []
    assert withheld_findings(run.build()) == []


@pytest.mark.parametrize("other", ["nobody", "seen", "silent", "quoted"])
def test_one_recipient_may_be_shown_what_another_is_not(other):
    """Recipients without recorded inputs, and those that were shown the message, come first."""
    second = "The second part has an error in line 3."
    run = RunBuilder().says("a", "The first part is ready.", to=("b", "seen", "silent", "quoted"))
    for name in ("b", "seen", "silent", "quoted"):
        run.shown(name, 0)
    run.says("b", "Good.", to="a").says("a", second, to=(other, "b")).shown("b", 0, 1)
    run.says("boss", f"a wrote: {second}", to="quoted").shown("seen", 0, 2).shown("quoted", 0, 3)
    (found,) = never_shown(run.says("b", "Shipped.").build())
    assert (found.steps, found.reason[:28]) == ((2, 4), "b acts without what a wrote ")


def test_a_message_that_goes_with_all_the_rest_is_another_mode():
    """The recipient is shown less than before: it lost its history."""
    run = _answered().shown("b", 0, 1)
    run.says("a", "The second part has an error in line 3.", to="b").shown("b", 0)
    assert never_shown(run.says("b", "Shipped.").build()) == []


@pytest.mark.parametrize(("length", "same"), [(39, False), (40, True)])
def test_a_short_reply_may_be_the_same_after_a_correction(length, same):
    """From 40 characters on it is no formula; the sentence that corrects is quoted."""
    reply = REPORT[:length]
    run = RunBuilder().asks().says("coder", reply)
    run.says("reviewer", "Thank you. That is wrong, it was April. Goodbye.").says("coder", reply)
    found = unchanged_after_correction(run.build())
    quotes = ("That is wrong, it was April.", reply)
    assert [each.quotes for each in found] == [quotes] * same


def test_a_correction_of_nobody_is_none():
    """The first message of a run corrects nobody."""
    run = RunBuilder().says("reviewer", "That is wrong, it was April.").says("coder", REPORT)
    assert unchanged_after_correction(run.says("coder", REPORT).build()) == []


@pytest.mark.parametrize(
    ("result", "withheld"),
    [
        ("9 vans", False),
        ("10 vans", True),
        (" ".join(str(100 + number) for number in range(25)), True),
        (" ".join(str(100 + number) for number in range(26)), False),
    ],
    ids=["one digit", "two digits", "a few", "a listing"],
)
def test_figures_of_two_digits_and_few_of_them_are_withheld(result, withheld):
    """Small ones occur everywhere, and nobody repeats a listing."""
    run = _found("I have finished my research.", result=result)
    assert bool(withheld_findings(run.build())) is withheld


@pytest.mark.parametrize(
    "before",
    [
        lambda: RunBuilder().says("researcher", "One moment.", to="user"),
        lambda: RunBuilder().says("researcher", "I begin.", to="writer"),
        lambda: _found("There are 77.", "stock", "77 vans"),
        lambda: _found("I see.", "stock", "77 vans").shown("writer", 0),
        lambda: (
            _found("I see.", "stock", "77 vans in the eastern region")
            .asks("The context: 77 vans in the eastern region", to="writer")
            .shown("writer", 2)
        ),
    ],
    ids=["to the user", "nothing found", "told", "shown", "quoted"],
)
def test_what_was_shared_first_does_not_hide_what_is_withheld_later(before):
    """Each message is looked at."""
    run = before().calls("researcher", "sales", {}, REPORT)
    run.says("researcher", "I have finished my research.", to="writer")
    (found,) = withheld_findings(run.build())
    assert "sales returned to researcher" in found.reason


def test_what_the_task_says_is_never_withheld():
    """Text of the task is never withheld, however much was found since."""
    run = RunBuilder("Did the eastern region sell 340 units?")
    run.calls("researcher", "stock", {}, "77 vans").says("researcher", "77.", to="writer")
    run.calls("researcher", "sales", {}, "340").says("researcher", "It is so.", to="writer")
    assert withheld_findings(run.build()) == []


@pytest.mark.parametrize(
    ("to", "withheld"), [("", False), ("user", False), ("writer", True)], ids=str
)
def test_one_agent_alone_withholds_nothing(to, withheld):
    """There is nobody else to be told; an exception of its own changes nothing of that."""
    run = RunBuilder(error="ValueError: no such column").asks(to="researcher")
    run.calls("researcher", "sales", {"region": "east"}, REPORT)
    run.says("researcher", "I have finished my research.", to=to)
    found = find_modes(run.build())
    assert ("2.4" in {each.code for each in found}) is withheld
    assert "3.1" in {each.code for each in found}


@pytest.mark.parametrize(("recorded", "withheld"), [("m0", False), ("", True)])
def test_a_result_is_shown_by_its_id_alone(recorded, withheld):
    """The id alone counts, even if no span holds its text; an empty id belongs to no message."""
    run = RunBuilder().calls("researcher", "sales", {}, REPORT, message_id=recorded)
    built = run.says("researcher", "I have finished.", to="writer").shown("writer", 0).build()
    shown = replace(built.invocations[0], input_ids=(recorded,))
    found = withheld_findings(replace(built, invocations=(shown,), texts={}))
    assert bool(found) is withheld
