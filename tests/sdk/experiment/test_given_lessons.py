"""Lessons are recorded on the run that was given them, and on no other."""

from __future__ import annotations

import asyncio
import contextvars
import itertools
import json
import threading
from typing import TYPE_CHECKING, Any

import pytest
from hostile_lessons import response, server

import mast_trace
from mast_trace.experiment.marks import Feedback, set_recorded_form
from mast_trace.spans import given_lessons
from mast_trace.spans.run_state import current_run
from mast_trace.testing import capture_spans

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator

    from mast_trace.testing import CapturedSpans


@pytest.fixture(autouse=True)
def _lessons(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A web view whose answers are numbered."""
    numbers = itertools.count(1)

    def teach(connection: socket.socket) -> None:
        answer = {"text": f"Lesson {next(numbers)}.", "placebo": "", "items": []}
        connection.sendall(response(json.dumps(answer).encode()))

    with server(teach) as (url, _):
        monkeypatch.setenv("MAST_TRACE_FEEDBACK_URL", url)
        yield
    given_lessons.forget()  # the next run belongs to another test


def alone(scene: Any) -> None:
    """Call a test's scene in a context of its own, which takes its unclaimed lessons along."""
    contextvars.copy_context().run(scene)


def recorded(spans: CapturedSpans) -> dict[str, list[str]]:
    """Return the texts on each root, by the run's name."""
    return {
        span.name.split()[-1]: [
            json.loads(each)["text"] for each in span.attributes.get("mast.feedback.texts", ())
        ]
        for span in spans.named("invoke_workflow")
    }


def test_tasks_at_the_same_time_get_their_own_lessons(captured_spans: CapturedSpans) -> None:
    """The context that both tasks copy has fetched before, and the later task begins its run first."""
    told: dict[str, list[str]] = {}

    async def one(name: str, turns: int) -> None:
        told[name] = [mast_trace.feedback().text]
        for _ in range(turns):
            await asyncio.sleep(0)
        async with mast_trace.run(name):
            await asyncio.sleep(0)

    async def both() -> None:
        await asyncio.gather(one("alice", 5), one("bob", 1))

    def scene() -> None:
        told["first"] = [mast_trace.feedback().text]
        with mast_trace.run("first"):
            pass
        asyncio.run(both())

    alone(scene)
    assert recorded(captured_spans) == told


def test_lessons_are_taken_once_from_all_copies_of_a_context(captured_spans: CapturedSpans) -> None:
    """Both tasks, and the context that started them, hold the same lessons: the first run has them."""

    async def one(name: str) -> None:
        async with mast_trace.run(name):
            await asyncio.sleep(0)

    async def both() -> None:
        await asyncio.gather(one("alice"), one("bob"))

    def scene() -> None:
        text = mast_trace.feedback().text
        asyncio.run(both())
        with mast_trace.run("after"):
            pass
        assert recorded(captured_spans) == {"alice": [text], "bob": [], "after": []}

    alone(scene)


def test_lessons_of_marked_runs_wait_for_no_other(captured_spans: CapturedSpans) -> None:
    """A pool's runs had them by `using_feedback`; the next run of the thread that fetched them does not."""

    def work(name: str, lessons: Any) -> None:
        with mast_trace.using_feedback(lessons), mast_trace.run(name):
            pass

    def scene() -> None:
        lessons = mast_trace.feedback()
        contextvars.Context().run(work, "pooled", lessons)
        with mast_trace.run("after"):
            pass
        assert recorded(captured_spans) == {"pooled": [lessons.text], "after": []}

    alone(scene)


@pytest.mark.parametrize("earlier", [False, True])
def test_a_coroutine_records_as_documented(captured_spans: CapturedSpans, earlier: bool) -> None:
    """Lessons that another thread fetched are recorded in the run, or by `using_feedback`; never on a stranger's run."""
    told: dict[str, list[str]] = {}

    async def marked(name: str, turns: int) -> None:
        lessons = await asyncio.to_thread(mast_trace.feedback)
        for _ in range(turns):
            await asyncio.sleep(0.01)
        async with mast_trace.using_feedback(lessons), mast_trace.run(name):
            told[name] = [lessons.text]

    async def inside() -> None:
        async with mast_trace.run("inside"):
            told["inside"] = [(await asyncio.to_thread(mast_trace.feedback)).text]

    async def bare() -> None:
        assert await asyncio.to_thread(mast_trace.feedback)
        async with mast_trace.run("bare"):
            told["bare"] = []

    async def all_of_them() -> None:
        await asyncio.gather(marked("alice", 9), marked("bob", 1))
        await inside()
        await bare()

    def scene() -> None:
        if earlier:
            told["first"] = [mast_trace.feedback().text]
            with mast_trace.run("first"):
                pass
        asyncio.run(all_of_them())

    alone(scene)
    assert recorded(captured_spans) == told


def lessons(text: str) -> Feedback:
    """Lessons as `mast_trace.feedback` returns them."""
    found = Feedback(text=text)
    set_recorded_form(found, "k")
    return found


def test_a_redaction_may_wait_for_a_thread_with_lessons_of_its_own() -> None:
    """No lock is held while the user's function works."""
    ended: list[bool] = []

    def other() -> None:
        with mast_trace.run("other"):
            assert mast_trace.feedback()

    def redact(text: str) -> str:
        if not ended:
            ended.append(False)
            thread = threading.Thread(target=other)
            thread.start()
            thread.join(2)
            ended.append(not thread.is_alive())
        return text.replace("secret", "[...]")

    with capture_spans(frameworks=[], redact=redact) as captured:
        with mast_trace.using_feedback(lessons("a secret")), mast_trace.run("first"):
            pass
        assert ended == [False, True]
        assert recorded(captured) == {"other": ["Lesson 1."], "first": ["a [...]"]}


def test_a_slow_redaction_does_not_replace_later_lessons() -> None:
    """The thread that is given lessons first writes them last."""
    begun, written = threading.Event(), threading.Event()

    def redact(text: str) -> str:
        if threading.current_thread() is slow:
            begun.set()
            assert written.wait(5)
        return text

    def give() -> None:
        with mast_trace.using_feedback(lessons("one")):
            pass

    context: contextvars.Context
    slow = threading.Thread(target=lambda: context.run(give))
    with capture_spans(frameworks=[], redact=redact) as captured:
        with mast_trace.run("r"):
            context = contextvars.copy_context()
            slow.start()
            assert begun.wait(5)
            with mast_trace.using_feedback(lessons("two")):
                written.set()
            slow.join(5)
        assert recorded(captured) == {"r": ["one", "two"]}


def test_a_run_keeps_a_bounded_number_of_lessons(captured_spans: CapturedSpans) -> None:
    """However many it is given, and the first of them."""
    with mast_trace.run("r"):
        for number in range(100):
            with mast_trace.using_feedback(lessons(str(number))):
                pass
        run = current_run()
        assert run is not None
        assert len(run.lessons) == given_lessons.MOST_ANSWERS
    assert recorded(captured_spans)["r"] == list(map(str, range(given_lessons.MOST_ANSWERS)))
