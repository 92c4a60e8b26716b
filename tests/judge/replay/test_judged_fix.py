"""The judge's correction: only a step that it has written stands in place of an answer, never a description."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from mast_trace.messages import Message, ToolCall, parsed
from mast_trace.replay.recording import tape_of
from mast_trace.trajectory import Invocation, Step, StepKind, Trajectory
from mast_trace_judge.arms import ReplayArm
from mast_trace_judge.decision_points import decision_points
from mast_trace_judge.verdict import CorrectedCall, CorrectedStep, DecisiveError, Place, Verdict
from mast_trace_lab.confirm.fixes import Sources, planned_fixes
from mast_trace_lab.confirm.judged import judge_fix
from mast_trace_lab.confirm.preparation import fixes_of
from mast_trace_lab.program.setup import Setup
from mast_trace_lab.replay.changes import intervention_of

BOOK, LOOK = ToolCall("book", '{"hotel": "Lima"}', "c1"), ToolCall("look", {"day": 4}, "c2")


def _run(answer: Message) -> Trajectory:
    """An answer of a model and its tool calls; without a text, the first call is its step."""
    said = [(StepKind.MESSAGE, answer.content, "")] if answer.content else []
    steps = [*said, *((StepKind.TOOL, "done", call.id) for call in answer.tool_calls)]
    made = [
        Step(
            index,
            kind,
            "ann",
            text,
            span_id="a" if kind is StepKind.MESSAGE else f"t{index}",
            start=index + 1,
            end=index + 1,
            tool="tool" if call else "",
            call_id=call or "",
        )
        for index, (kind, text, call) in enumerate(steps)
    ]
    call = Invocation("model", "ann", "a", "", 1, 1, ("asked",), ("user",), None, "answer")
    return Trajectory("t", tuple(made), (call,), {"asked": Message("Go", "user"), "answer": answer})


def _judged(text: str = "", *calls: tuple[str, str], prompt: int = 3, written: bool = True) -> Any:
    named = tuple(CorrectedCall(name=name, arguments=given) for name, given in calls)
    step = CorrectedStep(prompt=prompt, text=text, tool_calls=named) if written else None
    error = DecisiveError(
        step=0, agent="ann", probability=0.9, minimal_fix="Book Rome, not Lima.", corrected=step
    )
    return Verdict.model_construct(decisive=error)


def _put(answer: Message, verdict: Any) -> Message:
    """Return the answer that the plan puts in place of a recorded one."""
    run = _run(answer)
    texts, refused = judge_fix(run, verdict, decision_points(run))
    assert refused == ()
    planned, refused = planned_fixes(run, decision_points(run), Sources({}, judge=texts))
    assert refused == ()
    (fix,) = [each for each in planned[0] if each.source == "judge"]
    change = intervention_of(run, tape_of(run), ReplayArm("fix", 0, fix))
    assert change.answer is not None
    return replace(
        change.answer,
        tool_calls=tuple(
            replace(each, arguments=parsed(each.arguments)) for each in change.answer.tool_calls
        ),
    )


def test_a_corrected_text_stands_in_place_of_the_text_and_calls_stay() -> None:
    found = _put(Message("Lima it is."), _judged("Rome it is."))
    assert (found.content, found.tool_calls) == ("Rome it is.", ())
    found = _put(Message("Lima it is.", tool_calls=(LOOK,)), _judged("Rome it is."))
    assert found.content == "Rome it is."
    assert [each.name for each in found.tool_calls] == ["look"]


@pytest.mark.parametrize("others", [(), (LOOK,)])
def test_a_corrected_call_stands_in_place_of_its_call_alone(others: tuple[ToolCall, ...]) -> None:
    verdict = _judged("", ("book", '{"hotel": "Rome"}'))
    found = _put(Message("", tool_calls=(BOOK, *others)), verdict)
    assert [(each.name, each.arguments) for each in found.tool_calls] == [
        ("book", {"hotel": "Rome"}),
        *((each.name, each.arguments) for each in others),
    ]
    assert found.content == ""


def test_an_answer_may_have_been_due_in_place_of_a_call() -> None:
    found = _put(Message("", tool_calls=(BOOK,)), _judged("Which hotel?"))
    assert (found.content, found.tool_calls) == ("Which hotel?", ())


@pytest.mark.parametrize(
    ("answer", "verdict", "reason"),
    [
        (Message("Lima."), _judged(written=False), "a description is no answer"),
        (Message("", tool_calls=(BOOK,)), _judged(written=False), "a description is no answer"),
        (Message("Lima."), _judged("Book Rome.", prompt=2), "a description is no answer"),
        (Message("Lima."), _judged(" "), "a description is no answer"),
        (Message("Lima."), _judged("R" * 9000), "a description is no answer"),
        (Message("Lima."), _judged("", ("book", "Rome")), "a description is no answer"),
        (Message("Lima."), _judged("", ("R" * 9000, "{}")), "a description is no answer"),
        (Message("", tool_calls=(BOOK, LOOK)), _judged("Which?"), "the other tool calls"),
    ],
)
def test_what_is_no_such_answer_is_not_tried(answer: Message, verdict: Any, reason: str) -> None:
    run = _run(answer)
    texts, (refused,) = judge_fix(run, verdict, decision_points(run))
    assert texts == {}
    assert (refused.step, refused.source) == (0, "judge")
    assert reason in refused.reason


def _refused(run: Trajectory, verdict: Any, live_tools: tuple[str, ...] = ()) -> str:
    """Return the reason for which a judge's step is not tried; empty if it is."""
    texts, refused = judge_fix(run, verdict, decision_points(run), live_tools)
    assert len(texts) + len(refused) == 1
    return "".join(each.reason for each in refused)


@pytest.mark.parametrize("live", [(), ("book",), ("*",), ("rm_rf",)])
@pytest.mark.parametrize(
    "name", ["rm_rf", "b o ok", "functions.book", "book\u200b", "\uff42\uff4f\uff4f\uff4b"]
)
@pytest.mark.parametrize("text", ["", "Rome it is."])
def test_no_tool_is_called_that_the_run_lacks(text: str, name: str, live: tuple[str, ...]) -> None:
    """Neither in an answer of calls, nor beside a text, nor spelled in the text itself."""
    verdict = _judged(text, (name, '{"path": "/"}'))
    for answer in (Message("", tool_calls=(BOOK,)), Message("Lima.", tool_calls=(BOOK,))):
        assert "a tool that the run has not" in _refused(_run(answer), verdict, live)
    calls = [{"name": name, "arguments": {"path": "/"}}]
    spelled = _judged(json.dumps({"text": text, "tool_calls": calls}))
    assert "a tool that the run has not" in _refused(_run(Message("Lima.")), spelled, live)


def test_a_text_that_spells_calls_wrongly_is_not_tried() -> None:
    spelled = _judged('{"tool_calls": [{"arguments": {}}]}')
    assert "`name` and `arguments`" in _refused(_run(Message("Lima.")), spelled)


def _made(tool: str, answered: str = "", call_id: str = "") -> Trajectory:
    """Return a run with an executed tool call, whose name the model may know in another form."""
    arguments = '{"hotel": "Rome", "at": "2026-11-26T01:14:42Z", "nights": 1}'
    made = Step(
        1, StepKind.TOOL, "ann", "done", span_id="t", start=2, end=2, tool=tool, call_id=call_id
    )
    asked = ToolCall(answered or tool, arguments, call_id or None)
    run = _run(Message("Lima."))
    call = Invocation("model", "ann", "b", "", 2, 2, ("asked",), ("user",), None, "asking")
    return replace(
        run,
        steps=(*run.steps, replace(made, arguments=arguments)),
        invocations=(*run.invocations, call),
        texts={**run.texts, "asking": Message("", tool_calls=(asked,))},
    )


@pytest.mark.parametrize(
    ("tool", "answered", "call_id", "named"),
    [
        ("book", "", "", "book"),
        ("book", "", "", "BOOK"),
        ("Book a room", "book_a_room", "c", "book_a_room"),
        ("Book a room", "book_a_room", "", "book a room"),
        ("hotels.book", "", "", "hotels_book"),
        ("hotels/book", "book", "c", "book"),
        ("hotels/book", "book", "c", "hotels_book"),
    ],
)
def test_a_live_tool_is_called_with_recorded_arguments_alone(
    tool: str, answered: str, call_id: str, named: str
) -> None:
    """Another time or a number in another form makes other arguments, though replays take them for equal."""
    run = _made(tool, answered, call_id)
    recorded = {"nights": 1, "hotel": "Rome", "at": "2026-11-26T01:14:42Z"}
    others = [{"hotel": "Oslo"}, {**recorded, "at": "2027-11-26T01:14:42Z"}]
    for live in ((tool,), ("*",), (tool, "other"), (named,)):
        for arguments in (*others, {**recorded, "nights": True}, {}):
            chosen = _judged("", (named, json.dumps(arguments)))
            assert "which may be executed" in _refused(run, chosen, live), (live, arguments)
        again = (named, json.dumps(recorded))
        assert _refused(run, _judged("", again), live) == ""
        assert "more often" in _refused(run, _judged("", again, again), live)
    for live in ((), ("other",)):
        assert _refused(run, _judged("", (named, '{"hotel": "Oslo"}')), live) == ""


def test_the_live_tools_of_a_setup_count() -> None:
    run, chosen = _made("book"), _judged("", ("book", '{"hotel": "Oslo"}'))
    for live, reason in (((), ""), (("*",), "which may be executed")):
        setup = Setup(("program",), live_tools=live)
        fixes, refused = fixes_of(run, decision_points(run), chosen, setup, "")
        assert bool(refused) == bool(live)
        assert reason in "".join(each.reason for each in refused)
        assert any(fix.source == "judge" for fix in fixes[0]) != bool(live)


def test_a_call_of_an_unknown_live_tool_counts_as_live() -> None:
    """No id tells under which name the program has executed what its model asked for."""
    run = _made("hotels/book", "book")
    other = _judged("", ("book", '{"hotel": "Oslo"}'))
    assert _refused(run, other) == ""
    assert "which may be executed" in _refused(run, other, ("hotels/book",))


def test_calls_that_the_judge_leaves_as_they_are_may_stay_live() -> None:
    """They were asked for by the recorded answer, whether a step shows it or not."""
    run = _run(Message("", tool_calls=(BOOK, LOOK)))
    run = replace(run, steps=run.steps[:1])
    verdict = _judged("", ("book", '{"hotel": "Rome"}'))
    assert "'book', which may be executed" in _refused(run, verdict, ("*",))
    assert _refused(run, _judged("", ("tool", "{}")), ("*",)) == ""


def test_nothing_is_said_where_nothing_was_proposed() -> None:
    run = _run(Message("Lima."))
    error = DecisiveError(step=0, agent="ann", probability=0.9)
    for verdict in (None, Verdict.model_construct(decisive=error)):
        assert judge_fix(run, verdict, decision_points(run)) == ({}, ())


def test_the_step_that_a_model_suggests_has_its_fix_tried() -> None:
    """It is a place to look at, where the verdict asserts no step."""
    run = _run(Message("Lima", "assistant"))
    error = _judged("Rome").decisive
    place = Place(step=0, agent="ann", basis="model", why="", corrected=error.corrected)
    suggested = Verdict.model_construct(look_first=(place,))
    assert judge_fix(run, suggested, decision_points(run)) == ({0: "Rome"}, ())
    bare = Verdict.model_construct(look_first=(place.model_copy(update={"corrected": None}),))
    assert judge_fix(run, bare, decision_points(run)) == ({}, ())
