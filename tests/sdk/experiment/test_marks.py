"""`mast_trace.using_feedback` marks the roots of the runs inside of its block."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

import mast_trace
from mast_trace.experiment.assignment import Arm
from mast_trace.experiment.marks import Feedback

if TYPE_CHECKING:
    from mast_trace.testing import CapturedSpans

ARM = Arm("feedback", experiment="e", task="t9", repetition=1, design="pairs")
FED = Feedback(text="do", id="abc", version="v1", arm=ARM)
MARKS = {
    "mast.feedback.id": "abc",
    "mast.feedback.version": "v1",
    "mast.experiment.name": "e",
    "mast.experiment.arm": "feedback",
    "mast.experiment.task": "t9",
    "mast.experiment.repetition": 1,
    "mast.experiment.design": "pairs",
}


def marks(span: Any) -> dict[str, Any]:
    prefixes = ("mast.feedback.", "mast.experiment.")
    return {name: value for name, value in span.attributes.items() if name.startswith(prefixes)}


def test_the_root_of_a_run_is_marked_and_nothing_else(captured_spans: CapturedSpans) -> None:
    with mast_trace.using_feedback(FED), mast_trace.run("r"):
        with mast_trace.agent("a"):
            mast_trace.message("a", "b", "hello")
        with mast_trace.run("inner"):
            pass
    with mast_trace.run("after"):
        pass
    roots = captured_spans.named("invoke_workflow")
    assert [marks(span) for span in roots] == [MARKS, {}, {}]
    others = captured_spans.named("invoke_agent") + captured_spans.named("send_message")
    assert all(marks(span) == {} for span in others)


def test_an_open_run_is_marked_as_well(captured_spans: CapturedSpans) -> None:
    with mast_trace.run("r"), mast_trace.run("inner"), mast_trace.using_feedback(FED):
        pass
    assert [marks(span) for span in captured_spans.named("invoke_workflow")] == [MARKS, {}]


def test_an_arm_alone_marks_a_variant(captured_spans: CapturedSpans) -> None:
    arm = mast_trace.assign("variants", key=5, arms=("team", "single agent"), repetition=0)
    with mast_trace.using_feedback(arm), mast_trace.run("r"):
        pass
    (root,) = captured_spans.named("invoke_workflow")
    assert marks(root) == {
        "mast.experiment.name": "variants",
        "mast.experiment.arm": str(arm),
        "mast.experiment.task": "5",
        "mast.experiment.repetition": 0,
        "mast.experiment.design": "hash",
    }


def test_lessons_outside_of_experiments_leave_their_id(captured_spans: CapturedSpans) -> None:
    with mast_trace.using_feedback(Feedback(text="do", id="abc")), mast_trace.run("r"):
        pass
    (root,) = captured_spans.named("invoke_workflow")
    assert marks(root) == {"mast.feedback.id": "abc"}


def test_empty_lessons_keep_the_arm(captured_spans: CapturedSpans) -> None:
    """Those whom the lessons did not reach count in the arm to which they were assigned."""
    with mast_trace.using_feedback(Feedback(arm=ARM, reason="no answer")), mast_trace.run("r"):
        pass
    (root,) = captured_spans.named("invoke_workflow")
    assert marks(root)["mast.experiment.arm"] == "feedback"
    assert "mast.feedback.id" not in marks(root)


def test_tasks_at_the_same_time_are_kept_apart(captured_spans: CapturedSpans) -> None:
    async def one(number: int) -> None:
        arm = Arm("none", experiment="e", task=str(number))
        async with mast_trace.using_feedback(arm):
            await asyncio.sleep(0)
            async with mast_trace.run(f"r{number}"):
                await asyncio.sleep(0)

    async def all_of_them() -> None:
        await asyncio.gather(*map(one, range(20)))

    asyncio.run(all_of_them())
    roots = captured_spans.named("invoke_workflow")
    assert {span.attributes["mast.experiment.task"]: span.name for span in roots} == {
        str(n): f"invoke_workflow r{n}" for n in range(20)
    }


def test_the_block_may_hold_anything_and_errors_pass(captured_spans: CapturedSpans) -> None:
    for given in (None, 5, "feedback", Arm("none", experiment="e", task="")):
        with mast_trace.using_feedback(given), mast_trace.run("r"):  # type: ignore[arg-type]
            pass
    assert all(marks(span) == {} for span in captured_spans.named("invoke_workflow"))
    with pytest.raises(KeyError, match="mine"), mast_trace.using_feedback(FED):
        raise KeyError("mine")
    with mast_trace.run("after"):
        pass
    assert marks(captured_spans.named("invoke_workflow")[-1]) == {}


def test_without_instrument_it_does_nothing() -> None:
    with mast_trace.using_feedback(FED), mast_trace.run("r"):
        pass


def test_lessons_are_recorded_within_bounds(captured_spans: CapturedSpans) -> None:
    """Answers are redacted as texts are, are left out with texts, and are cut as a whole."""
    from mast_trace.content import ContentPolicy
    from mast_trace.experiment.marks import set_recorded_form
    from mast_trace.spans import given_lessons
    from mast_trace.spans.run_state import current_run

    def told(text: str, **policy: Any) -> Any:
        found = Feedback(text=text)
        set_recorded_form(found, "k")
        with mast_trace.run("r"):
            run = current_run()
            assert run is not None
            run.content = ContentPolicy(**policy)
            with mast_trace.using_feedback(found), mast_trace.using_feedback(found):
                pass
        return captured_spans.named("invoke_workflow")[-1].attributes.get("mast.feedback.texts")

    (whole,) = told("a secret")
    assert json.loads(whole) == {"key": "k", "text": "a secret"}
    assert json.loads(told("a secret", redact=lambda _: "x")[0])["text"] == "x"
    assert told("a secret", capture=False) is None
    size = len(whole)
    assert [told("a secret", limit=limit) for limit in (size, size - 1)] == [(whole,), None]
    assert told("\N{ROBOT FACE}" * 8, limit=size + 23) is None, "the limit is one of bytes"
    assert told("a" * given_lessons.MOST_BYTES) is None
