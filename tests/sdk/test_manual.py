"""`run`, `agent`, `tool`, `message` and `record_outcome` for hand-made agents."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry import trace

import mast_trace
from mast_trace import semconv
from mast_trace.messages import Message

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from opentelemetry.sdk.trace import ReadableSpan

    from mast_trace.testing import CapturedSpans

pytestmark = pytest.mark.mast_trace(frameworks=[])


def only(spans: list[ReadableSpan]) -> dict[str, Any]:
    (span,) = spans
    return dict(span.attributes or {})


class TestBlocks:
    """Blocks of ``with`` and ``async with``."""

    def test_nest_as_they_are_written(self, captured_spans: CapturedSpans) -> None:
        """A run holds turns, a turn holds messages and tools."""
        with mast_trace.run("refund", input="Refund order 17"):
            with mast_trace.agent("planner", input="Refund order 17"):
                mast_trace.message("planner", "clerk", "Refund it.")
            with mast_trace.agent("clerk"), mast_trace.tool("refund", {"order": 17}) as call:
                call.result({"done": True})
        assert captured_spans.tree().splitlines() == [
            "invoke_workflow refund",
            "  invoke_agent planner",
            "    send_message planner",
            "  invoke_agent clerk",
            "    execute_tool refund",
        ]
        tool = only(captured_spans.named("execute_tool"))
        assert tool["gen_ai.agent.name"] == "clerk"
        assert json.loads(tool["gen_ai.tool.call.arguments"]) == {"order": 17}
        assert json.loads(tool["gen_ai.tool.call.result"]) == {"done": True}

    async def test_are_the_same_when_asynchronous(self, captured_spans: CapturedSpans) -> None:
        """Turns that run side by side each keep their own children."""

        async def turn(name: str) -> None:
            async with mast_trace.agent(name):
                await asyncio.sleep(0)
                async with mast_trace.tool(f"tool of {name}"):
                    await asyncio.sleep(0)

        async with mast_trace.run("both"):
            await asyncio.gather(turn("a"), turn("b"))
        assert captured_spans.tree().splitlines() == [
            "invoke_workflow both",
            "  invoke_agent a",
            "    execute_tool tool of a",
            "  invoke_agent b",
            "    execute_tool tool of b",
        ]

    @pytest.mark.parametrize("is_async", [False, True])
    async def test_record_an_error_and_let_it_pass(
        self, captured_spans: CapturedSpans, *, is_async: bool
    ) -> None:
        """The block's own exception arrives, with its own traceback."""
        mine = ValueError("no such order")

        async def fail() -> None:
            if is_async:
                async with mast_trace.tool("refund"):
                    raise mine
            with mast_trace.tool("refund"):
                raise mine

        with pytest.raises(ValueError, match="no such order") as raised:
            await fail()
        assert raised.value is mine
        (span,) = captured_spans.spans
        assert span.status.status_code is trace.StatusCode.ERROR
        assert span.status.description == "no such order"
        assert (span.attributes or {})["error.type"] == "ValueError"

    @pytest.mark.parametrize(
        ("error", "stated", "reason"),
        [
            (ValueError("x"), None, "error"),
            (asyncio.CancelledError(), None, "cancelled"),
            (ValueError("x"), "max_turns", "max_turns"),
            (None, "completed", "completed"),
            (None, None, ""),
        ],
    )
    def test_say_why_a_run_stopped(
        self,
        captured_spans: CapturedSpans,
        error: BaseException | None,
        stated: str | None,
        reason: str,
    ) -> None:
        """The reason of a run's end is the one that the author gives, else the error that ended it."""
        with contextlib.suppress(ValueError, asyncio.CancelledError), mast_trace.run("r") as run:
            if stated:
                run.stopped(stated)
            if error:
                raise error
        assert captured_spans.trajectory().termination_reason == reason

    def test_can_fail_without_an_exception(self, captured_spans: CapturedSpans) -> None:
        """A tool that answers with an error text has failed too."""
        with mast_trace.tool("refund") as call:
            call.fail("limit exceeded")
            call.result("limit exceeded")
        (span,) = captured_spans.spans
        assert span.status.description == "limit exceeded"

    def test_leave_the_context_as_they_found_it(self, captured_spans: CapturedSpans) -> None:
        """The span that was current before the block is current after it."""
        before = trace.get_current_span()
        with mast_trace.run("r"), mast_trace.agent("a"):
            assert trace.get_current_span() is not before
        assert trace.get_current_span() is before
        assert len(captured_spans.spans) == 2

    def test_in_a_generator_that_is_abandoned_end_quietly(
        self, captured_spans: CapturedSpans, caplog: pytest.LogCaptureFixture
    ) -> None:
        """An early exit is no error, and nothing is logged about contexts."""

        def stream() -> Iterator[int]:
            with mast_trace.agent("streaming"):
                yield 1
                yield 2

        for _ in stream():
            break
        (span,) = captured_spans.spans
        assert span.status.status_code is trace.StatusCode.UNSET
        assert caplog.messages == []

    async def test_in_an_asynchronous_generator_that_is_abandoned_too(
        self, captured_spans: CapturedSpans, caplog: pytest.LogCaptureFixture
    ) -> None:
        """The end of an abandoned asynchronous generator comes from the event loop, in another context."""

        async def stream() -> AsyncIterator[int]:
            async with mast_trace.agent("streaming"):
                yield 1
                yield 2

        async def take_one() -> None:
            async for _ in stream():
                break

        await asyncio.create_task(take_one())
        for _ in range(5):  # the loop closes the generator in a task of its own
            await asyncio.sleep(0)
        assert [span.name for span in captured_spans.spans] == ["invoke_agent streaming"]
        assert caplog.messages == []

    def test_in_threads_belong_to_their_own_run(self, captured_spans: CapturedSpans) -> None:
        """Three runs at once are three traces with their own messages."""

        def one(index: int) -> None:
            with mast_trace.run(f"run{index}"), mast_trace.agent(f"agent{index}"):
                mast_trace.message(f"agent{index}", "user", f"text {index}")

        with ThreadPoolExecutor(3) as pool:
            list(pool.map(one, range(3)))
        found = captured_spans.trajectories()
        assert sorted((each.name, each.agents, each.steps[0].text) for each in found) == [
            (f"run{index}", (f"agent{index}",), f"text {index}") for index in range(3)
        ]


class TestTasks:
    """The task of a run is the last message, or the last messages of the user, in its input."""

    @pytest.mark.parametrize(
        ("given", "task"),
        [
            ("a", "a"),
            (["a", "b"], "a\n\nb"),
            (["a", Message("What is a?", role="assistant"), "b", "c"], "b\n\nc"),
            (["a", Message("x", role="assistant"), Message("y", role="assistant")], "y"),
            ([Message("Be brief.", role="system"), "a"], "a"),
            ([], ""),
        ],
    )
    def test_are_all_last_words_of_the_user(
        self, captured_spans: CapturedSpans, given: Any, task: str
    ) -> None:
        with mast_trace.run("r", input=given):
            pass
        assert captured_spans.trajectory().task == task

    def test_of_an_agent_alone_have_its_name(self, captured_spans: CapturedSpans) -> None:
        """A run without a name of its own has the name of its only agent."""
        with mast_trace.agent("ann", input=["a", "b"]) as ann:
            ann.reply("c")
        found = captured_spans.trajectory()
        assert (found.name, found.task) == ("ann", "a\n\nb")


class TestMessages:
    """Messages between agents."""

    def test_have_sender_recipients_and_an_id_to_answer(
        self, captured_spans: CapturedSpans
    ) -> None:
        """An answer refers to the id of the message that it answers."""
        with mast_trace.run("talk"):
            asked = mast_trace.message("a", ["b", "c"], "Who can?", performative="cfp")
            mast_trace.message("b", "a", "I can.", in_reply_to=asked)
        first, second = captured_spans.trajectory().steps
        assert (first.agent, first.recipients, first.text) == ("a", ("b", "c"), "Who can?")
        assert second.in_reply_to == first.message_id == asked

    def test_take_a_message_object(self, captured_spans: CapturedSpans) -> None:
        """A message object keeps its role and its id."""
        mast_trace.message("user", "a", Message("Help!", role="user", id="m-1"))
        span = only(captured_spans.named("send_message"))
        assert (span["mast.message.id"], span["mast.message.role"]) == ("m-1", "user")

    def test_are_written_once_and_referred_to_by_those_who_see_them(
        self, captured_spans: CapturedSpans
    ) -> None:
        """The text is on the message's span; the turn that saw it has its id."""
        with mast_trace.run("talk"):
            mast_trace.message("a", "b", "a long story")
            with mast_trace.agent("b", input=["a long story", "a new thing"]):
                pass
        turn = only(captured_spans.named("invoke_agent"))
        assert "a long story" not in turn["gen_ai.input.messages"]
        trajectory = captured_spans.trajectory()
        (invocation,) = trajectory.invocations
        assert [each.content for each in trajectory.seen_by(invocation)] == [
            "a long story",
            "a new thing",
        ]


class TestOutcome:
    """Outcomes that `record_outcome` records."""

    def test_goes_on_the_root_of_the_run_around_it(self, captured_spans: CapturedSpans) -> None:
        """An outcome that is recorded within nested blocks goes to the root span."""
        with mast_trace.run("r"), mast_trace.agent("a"), mast_trace.tool("t"):
            mast_trace.record_outcome(False, "wrong total")
        root = only(captured_spans.named("invoke_workflow"))
        assert root["mast.run.outcome"] == "failure"
        assert root["mast.run.outcome_reason"] == "wrong total"
        assert captured_spans.trajectory().outcome == "failure"

    @pytest.mark.parametrize("ended", [False, True])
    @pytest.mark.parametrize(
        ("expected", "kept"),
        [("354 EUR", "354 EUR"), (0, "0"), ({"total": 354}, '{"total": 354}'), (None, "")],
    )
    def test_the_expected_answer_is_kept_with_it(
        self, captured_spans: CapturedSpans, expected: object, kept: str, *, ended: bool
    ) -> None:
        with mast_trace.run("r"):
            if not ended:
                mast_trace.record_outcome(False, expected=expected)
        if ended:
            mast_trace.record_outcome(False, expected=expected)
        assert captured_spans.trajectory().expected == kept

    def test_an_expected_answer_that_cannot_be_written_costs_no_outcome(
        self, captured_spans: CapturedSpans
    ) -> None:
        class Unwritable:
            def __repr__(self) -> str:
                raise RuntimeError

        with mast_trace.run("r"):
            mast_trace.record_outcome(False, "wrong", expected=Unwritable())
        assert captured_spans.trajectory().outcome_reason == "wrong"

    def test_after_the_run_goes_to_its_trace(self, captured_spans: CapturedSpans) -> None:
        """An outcome that is recorded after the root has ended is part of the trajectory."""
        with mast_trace.run("r"):
            pass
        mast_trace.record_outcome(True, "all paid")
        trajectory = captured_spans.trajectory()
        assert (trajectory.outcome, trajectory.outcome_reason) == ("success", "all paid")
        assert trajectory.name == "r"

    def test_the_last_word_counts(self, captured_spans: CapturedSpans) -> None:
        """A later outcome replaces an earlier one."""
        with mast_trace.run("r"):
            mast_trace.record_outcome(True, "looks good")
        mast_trace.record_outcome(False, "the customer complained")
        trajectory = captured_spans.trajectory()
        assert (trajectory.outcome, trajectory.outcome_reason) == (
            "failure",
            "the customer complained",
        )

    def test_after_an_event_loop_goes_to_the_run_inside(
        self, captured_spans: CapturedSpans
    ) -> None:
        """After ``asyncio.run(team())`` the outcome goes to the run inside, not to an older one."""

        async def team() -> None:
            with mast_trace.run("in the loop"):
                await asyncio.sleep(0)

        with mast_trace.run("older"):
            pass
        asyncio.run(team())
        mast_trace.record_outcome(True)
        outcomes = {each.name: each.outcome for each in captured_spans.trajectories()}
        assert outcomes == {"older": "", "in the loop": "success"}

    async def test_of_runs_side_by_side_each_goes_to_its_own(
        self, captured_spans: CapturedSpans
    ) -> None:
        """An outcome that an asyncio task records goes to the run that ended in this task."""

        async def task(index: int) -> None:
            with mast_trace.run(f"run{index}"):
                await asyncio.sleep(0)
            await asyncio.sleep(0.01 * index)
            mast_trace.record_outcome(index == 1)

        await asyncio.gather(*(asyncio.create_task(task(index)) for index in range(3)))
        outcomes = {each.name: each.outcome for each in captured_spans.trajectories()}
        assert outcomes == {"run0": "failure", "run1": "success", "run2": "failure"}

    async def test_of_runs_that_a_limit_cancels_each_goes_to_its_own(
        self, captured_spans: CapturedSpans
    ) -> None:
        """`wait_for` runs each in a task of its own, which the caller never sees; one is tried again."""

        async def request(name: str, seconds: float) -> None:
            @mast_trace.run(name)
            async def team() -> None:
                await asyncio.sleep(seconds)

            try:
                await asyncio.wait_for(team(), 0.05)
            except asyncio.TimeoutError:
                if name == "again":
                    async with mast_trace.run("second"):
                        pass
                mast_trace.record_outcome(name == "again", name)

        names = ("slow", "slower", "again")
        await asyncio.gather(*(request(name, 9) for name in names), request("quick", 0))
        found = {
            each.name: (each.outcome, each.outcome_reason) for each in captured_spans.trajectories()
        }
        assert found == {
            "slow": ("failure", "slow"),
            "slower": ("failure", "slower"),
            "again": ("", ""),
            "second": ("success", "again"),
            "quick": ("", ""),
        }
        ends = [
            s.attributes.get(semconv.RUN_TERMINATION_REASON)
            for s in captured_spans.named("record_outcome")
        ]
        assert sorted(map(str, ends)) == ["None", *[semconv.Termination.TIME_LIMIT] * 2]

    def test_of_a_run_that_is_named_goes_to_that_one(self, captured_spans: CapturedSpans) -> None:
        """During another run, and after it has ended; a limit of time is an end of its own."""
        with suppress(TimeoutError), mast_trace.run("meant") as run:
            raise TimeoutError
        with mast_trace.run("other"):
            mast_trace.record_outcome(False, run=run)
        found = {
            each.name: (each.outcome, each.termination_reason)
            for each in captured_spans.trajectories()
        }
        assert found == {"meant": ("failure", semconv.Termination.TIME_LIMIT), "other": ("", "")}

    def test_goes_to_a_run_of_another_thread_if_there_was_but_one(
        self, captured_spans: CapturedSpans
    ) -> None:
        """An outcome goes to the only run of another thread, as frameworks run agents in threads."""

        def work() -> None:
            with mast_trace.run("elsewhere"):
                pass

        self._in_threads(work)
        mast_trace.record_outcome(True)
        assert captured_spans.trajectory().outcome == "success"

    def test_is_not_guessed_among_several(
        self, captured_spans: CapturedSpans, caplog: pytest.LogCaptureFixture
    ) -> None:
        """With several candidate runs no outcome is recorded, and a warning is logged."""
        both = threading.Barrier(2)

        def work() -> None:
            with mast_trace.run("elsewhere"):
                both.wait(10)

        def check() -> None:
            with caplog.at_level(logging.WARNING, "mast_trace"):
                mast_trace.record_outcome(True)

        self._in_threads(work, work)
        self._in_threads(check)
        assert {each.outcome for each in captured_spans.trajectories()} == {""}
        assert "which run" in caplog.text

    @staticmethod
    def _in_threads(*works: Any) -> None:
        threads = [threading.Thread(target=work) for work in works]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


class TestOff:
    """The functions without a call of `instrument()`."""

    async def test_everything_does_nothing(self) -> None:
        """Without `instrument` the functions record nothing, raise nothing and change no results."""

        @mast_trace.tool
        def add(a: int, b: int) -> int:
            return a + b

        with mast_trace.run("r") as run, mast_trace.agent("a") as turn:
            run.stopped("completed")
            turn.reply("hello")
            turn.set({"x": 1})
            async with mast_trace.tool("t") as call:
                call.result(object())
                call.fail("not really")
            assert add(1, 2) == 3
        assert mast_trace.message("a", "b", "c") == ""
        mast_trace.record_outcome(True)
        assert mast_trace.flush()


class TestErrorsOfOurOwn:
    """Defects of mast-trace, and values that cannot be recorded."""

    def test_never_reach_the_program(
        self,
        captured_spans: CapturedSpans,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        """A defect is logged once for each kind of call, and the program's code runs on."""
        from mast_trace.spans import Telemetry, guard

        monkeypatch.setattr(guard, "_reported", set())

        def fail(*_: Any, **__: Any) -> None:
            raise KeyError("a defect")

        monkeypatch.setattr(Telemetry, "_start", fail)
        monkeypatch.delenv("PYTEST_CURRENT_TEST")
        done = []
        with mast_trace.run("r"), mast_trace.agent("a"):
            for _ in range(3):
                with mast_trace.tool("t") as call:
                    call.result("x")
                    done.append(mast_trace.message("a", "b", "c"))
        assert done == ["", "", ""]
        assert len(caplog.messages) == 4
        assert captured_spans.spans == []
