"""Findings in a run of which the middle was not read, and inputs of its agents."""

from dataclasses import replace

import pytest
from judge.builders import RunBuilder

import mast_trace_judge.local.rules as module
from mast_trace_judge.local.rules import find_modes
from mast_trace_judge.local.rules._inputs import Allowance, Inbox, inboxes_of, readers_of
from mast_trace_judge.local.rules._registry import Reach
from mast_trace_judge.verdict import Evidence, ModeFinding


def talk(steps=6):
    run = RunBuilder()
    for number in range(steps):
        run.shown("b", number, span=f"call{number}").says("a", f"Remark {number}.")
    return run.build()


def partly_read(run, begin, end):
    return replace(run, unread_from=begin, unread_to=end)


def counting(run):
    """A rule that finds as many steps and calls as it is shown."""
    return [
        ModeFinding(
            code="1.3",
            probability=0.5,
            evidence=Evidence.EXACT,
            reason=f"{len(run.steps)} steps, {len(run.invocations)} calls, partial: {run.is_partial}",
        )
    ]


@pytest.mark.parametrize(
    ("reach", "probability", "evidence", "reason"),
    [
        # Later steps take nothing back of what looks back, so it is shown the beginning.
        (Reach.BACK, 0.5, Evidence.EXACT, "3 steps, 4 calls, partial: False"),
        # The step that ended the run was read.
        (Reach.END, 0.5, Evidence.EXACT, "6 steps, 6 calls, partial: True"),
        # Anything else might look different with the rest.
        (Reach.WHOLE, 0.3, Evidence.HEURISTIC, "6 steps, 6 calls, partial: True"),
    ],
)
def test_a_partly_read_run(monkeypatch, reach, probability, evidence, reason):
    monkeypatch.setattr(module, "RULES", (counting,))
    monkeypatch.setattr(module, "reach_of", lambda _: reach)
    (found,) = find_modes(partly_read(talk(), 3, 5))
    assert (found.probability, found.evidence, found.reason) == (probability, evidence, reason)
    (whole,) = find_modes(talk())
    assert (whole.probability, whole.evidence) == (0.5, Evidence.EXACT)
    assert whole.reason == "6 steps, 6 calls, partial: False"


def test_a_call_that_began_with_what_was_not_read_is_no_part_of_the_beginning(monkeypatch):
    """The order of the two calls is unknown."""
    run = talk()
    calls = [*run.invocations]
    calls[3] = replace(calls[3], start=run.steps[3].start)
    monkeypatch.setattr(module, "RULES", (counting,))
    monkeypatch.setattr(module, "reach_of", lambda _: Reach.BACK)
    (found,) = find_modes(partly_read(replace(run, invocations=tuple(calls)), 3, 5))
    assert found.reason == "3 steps, 3 calls, partial: False"


# -- inputs of agents
# ---------------------------------------------------------------------------------

LONG = "The quarterly report covers three regions."
RUN = (
    RunBuilder().says("a", LONG).says("a", "Short.").says("c", LONG).says("b", f'It says "{LONG}"')
)


def inbox(*calls, run=RUN, name="b", **allowance):
    """An agent's inbox, by the messages that each call showed it."""
    made = RunBuilder()
    made._steps, made._texts = list(run._steps), dict(run._texts)
    for ids in calls:
        made.shown(name, *ids)
    built = made.build()
    return Inbox(built, name, list(built.invocations), Allowance(**allowance))


def test_what_an_agent_was_shown():
    shown = inbox((0,), (0, 3))
    assert shown.ids == {"m0", "m3"}
    assert set(shown.text.split("\n")) == {LONG.lower(), f'it says "{LONG.lower()}"'}


@pytest.mark.parametrize(
    ("calls", "allowance", "quoted"),
    [
        (((3,),), {}, True),
        (((1,),), {}, False),
        (((),), {}, False),
        # Where more was shown than may be kept or searched, nothing proves that it is not there.
        (((1,),), {"folded": 5}, True),
        (((1,),), {"folded": 6}, False),
        (((1,),), {"searched": -1}, True),
        (((1,),), {"searched": 0}, False),
    ],
)
def test_a_text_is_quoted_if_it_is_part_of_what_was_shown(calls, allowance, quoted):
    """In any case and spacing; a step without text is quoted by nobody."""
    made = inbox(*calls, **allowance)
    step = replace(made.trajectory.steps[0], text=LONG.upper().replace(" ", "\n "))
    assert made.quotes(step) is quoted
    assert not made.quotes(replace(step, text=" "))


def test_only_the_beginning_of_a_long_text_is_sought():
    """A thousand characters; a quotation may leave out what follows."""
    text = "word " * 200
    run = RunBuilder().says("a", f"{text}and more").says("b", f"He said: {text} etc.")
    made = inbox((1,), run=run)
    assert made.quotes(made.trajectory.steps[0])


def test_searching_costs_what_is_looked_at():
    """A search costs the characters that it compares, plus a constant."""
    made = inbox((1,))
    before = made.allowance.searched
    made.quotes(made.trajectory.steps[0])
    assert before - made.allowance.searched == len("short.") + 2000
    assert made.allowance.folded == Allowance().folded - len("Short.")


@pytest.mark.parametrize(
    ("calls", "sent", "expects"),
    [
        (((1,),), (1,), True),  # the message itself
        (((3,),), (0,), True),  # its text
        (((1,),), (0,), False),
        (((3,),), (), False),
        (((0, 1),), (2,), True),  # the text of another's equal message
        (((0,),), (1, 0), True),
    ],
)
def test_an_agent_expects_messages_where_one_arrived(calls, sent, expects):
    """As it is, or quoted; a short text may be in another by chance."""
    made = inbox(*calls)
    assert made.expects([made.trajectory.steps[index] for index in sent]) is expects


def test_its_own_words_in_its_input_are_no_delivery():
    """Models are shown their own messages."""
    run = RunBuilder().says("b", LONG).says("a", f"Quote: {LONG}")
    made = inbox((1,), run=run)
    assert not made.expects([made.trajectory.steps[0]])


def test_the_first_call_after_a_moment():
    """A call that began at that moment did not know of the message."""
    made = inbox((0,), (1,), (2,))
    starts = [call.start for call in made.calls]
    assert made.first_after(starts[0] - 1) is made.calls[0]
    assert made.first_after(starts[0]) is made.calls[1]
    assert made.first_after(starts[2]) is None


@pytest.mark.parametrize(
    ("calls", "more"),
    [
        (((0, 1, 2), (0, 1)), True),
        (((0, 1), (0, 1)), False),
        (((0, 1), (0, 1, 2)), False),
        (((0, 3, 2), (0, 1)), False),
        (((0, 1, 2), (3,), (0, 1)), True),
        (((0, 1, 2), ()), False),
        (((0, 0, 1), (0, 1)), False),
        (((0, 2, 3), (0, 1)), False),
    ],
)
def test_an_earlier_call_that_was_shown_more(calls, more):
    made = inbox(*calls)
    assert made.saw_more_before(made.calls[-1]) is more


def test_a_later_call_that_was_shown_more_is_no_earlier_one():
    """A call that began in the same moment is no earlier one either."""
    made = inbox((0, 1), (0, 1, 2))
    made.calls[:] = [replace(call, start=call.start + 1000) for call in made.calls]
    assert not made.saw_more_before(made.calls[0])
    made.calls[1] = replace(made.calls[1], start=made.calls[0].start)
    assert not made.saw_more_before(made.calls[0])


def test_the_shortest_text_that_is_taken_for_a_quotation():
    for length, quoted in ((20, True), (19, False)):
        text = "x" * length
        made = inbox((1,), run=RunBuilder().says("a", text).says("c", f"Said: {text}."))
        assert made.expects([made.trajectory.steps[0]]) is quoted


def test_inboxes_by_agent():
    run = RunBuilder().says("a", "Hm.").says("b", "Ha.")
    run.shown("a", 0, kind="agent", span="t").shown("a", 0, 1, span="m", parent="t")
    run.shown("b", 0, kind="agent", span="u").shown("b", length=5, span="n", parent="u")
    run.shown("", 0, span="nobody").shown("a", 1, span="o")
    found = inboxes_of(run.build())
    spans = {name: [call.span_id for call in inbox.calls] for name, inbox in found.items()}
    assert spans == {"a": ["m", "o"], "b": ["u"]}
    assert found["a"].allowance is found["b"].allowance
    assert set(readers_of(run.build())) == {"a"}, (
        "where models are recorded, turns alone read nothing"
    )
    turns = RunBuilder().says("a", "Hm.").shown("b", 0, kind="agent").build()
    assert set(readers_of(turns)) == {"b"}
