"""Mode 2.4, where what is withheld is no number."""

import pytest
from judge.builders import RunBuilder

from mast_trace_judge.local.rules.withholding import withheld_findings, withheld_names
from mast_trace_judge.verdict import Evidence

ROOM = "The meeting is in the Aurora room, ask for Kowalski."


def told(text="I have looked it up.", result=ROOM, answer="See you there.", **more):
    run = RunBuilder("Where do we meet?", outcome=more.pop("outcome", "failure"))
    run.calls("finder", "calendar", more.pop("arguments", {"day": "today"}), result, **more)
    return run.says("finder", text, to="helper").says("helper", answer, to="user")


def test_names_that_reach_nobody():
    """The helper is told that somebody looked, and not what was found."""
    (found,) = withheld_names(told().build())
    assert (found.code, found.evidence, found.steps) == ("2.4", Evidence.HEURISTIC, (0, 1))
    assert found.probability >= 0.5


@pytest.mark.parametrize(
    "result", ["Write to ada@example.org first.", "The ticket is called OPS_77b, see there."]
)
def test_addresses_and_ids_are_names(result):
    """They are not translated, and nobody has them by chance."""
    assert len(withheld_names(told(result=result).build())) == 1


@pytest.mark.parametrize(
    "run",
    [
        told("It is in the Aurora room."),
        told("Frag nach Kowalski."),
        told(answer="In the AURORA room."),
        told(result="It is on Monday, the first."),
        told(result="Nothing was found."),
        told(result="There are 12 rooms; take the Aurora."),
        told(arguments={"room": "Aurora", "host": "Kowalski"}),
        told(outcome="success"),
        told(error="no access to the Aurora calendar"),
        RunBuilder(outcome="failure").calls("a", "calendar", {}, ROOM).says("a", "I looked it up."),
        RunBuilder(outcome="failure").calls("a", "calendar", {}, ROOM).says("a", "Ok.", to="user"),
        RunBuilder("Is Kowalski in Aurora?", outcome="failure")
        .calls("a", "calendar", {}, ROOM)
        .says("a", "Yes.", to="b"),
        told(result=" ".join(f"and Person{chr(97 + i) * 3}" for i in range(12))),
    ],
    ids=[
        *("said", "another language", "said later", "a day", "nothing", "figures", "asked for"),
        *("success", "failed", "alone", "to a person", "of the task", "a listing"),
    ],
)
def test_names_that_are_not_withheld(run):
    assert withheld_names(run.build()) == []


def test_a_result_that_the_helper_was_shown():
    run = told().shown("helper", 0, 1)
    assert withheld_names(run.build()) == []


def test_one_agent_alone_withholds_nothing():
    """Neither names nor figures: there is nobody else."""
    run = RunBuilder(outcome="failure").calls("a", "stock", {}, "4711 pieces")
    assert withheld_findings(run.says("a", "I looked.").build()) == []
    assert len(withheld_findings(run.says("b", "Well.").build())) == 1
