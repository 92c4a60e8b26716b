"""Agents, tools and runs recorded by decorators."""

from __future__ import annotations

import asyncio
import inspect
import json
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry import trace

import mast_trace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opentelemetry.sdk.trace import ReadableSpan

    from mast_trace.testing import CapturedSpans

pytestmark = pytest.mark.mast_trace(frameworks=[])


def only(spans: list[ReadableSpan]) -> dict[str, Any]:
    (span,) = spans
    return dict(span.attributes or {})


class TestDecorators:
    """Decorators of functions."""

    def test_take_a_tools_arguments_and_result(self, captured_spans: CapturedSpans) -> None:
        """By name, defaults left out, and the value is the function's own."""

        @mast_trace.tool
        def add(a: int, b: int = 2, **more: int) -> int:
            """Add up."""
            return a + b + sum(more.values())

        assert add(1, c=3) == 6
        assert (add.__name__, add.__doc__) == ("add", "Add up.")
        span = only(captured_spans.named("execute_tool"))
        assert span["gen_ai.tool.name"] == "add"
        assert json.loads(span["gen_ai.tool.call.arguments"]) == {"a": 1, "more": {"c": 3}}
        assert span["gen_ai.tool.call.result"] == "6"

    def test_leave_out_self(self, captured_spans: CapturedSpans) -> None:
        """A method's object is not an argument of the tool."""

        class Desk:
            @mast_trace.tool("lookup")
            def find(self, order: int) -> str:
                return f"order {order}"

        assert Desk().find(7) == "order 7"
        span = only(captured_spans.named("execute_tool"))
        assert span["gen_ai.tool.name"] == "lookup"
        assert json.loads(span["gen_ai.tool.call.arguments"]) == {"order": 7}

    async def test_work_on_coroutine_functions(self, captured_spans: CapturedSpans) -> None:
        """The span lasts until the coroutine ends, and its reply is recorded."""

        @mast_trace.agent("clerk", description="Refunds orders.")
        async def clerk(task: str) -> str:
            await asyncio.sleep(0)
            with mast_trace.tool("refund"):
                return f"did: {task}"

        assert asyncio.iscoroutinefunction(clerk)
        assert await clerk("refund") == "did: refund"
        assert captured_spans.tree() == "invoke_agent clerk\n  execute_tool refund"
        turn = only(captured_spans.named("invoke_agent"))
        assert "did: refund" in turn["gen_ai.output.messages"]

    def test_make_a_span_for_each_call(self, captured_spans: CapturedSpans) -> None:
        """A function that calls itself has a span for each call."""

        @mast_trace.agent
        def count(down: int) -> str:
            return count(down - 1) if down else "zero"

        assert count(2) == "zero"
        assert captured_spans.tree().count("invoke_agent count") == 3

    def test_follow_a_generator_to_its_end(self, captured_spans: CapturedSpans) -> None:
        """The generator's work is inside the span, its consumer's work is not."""

        @mast_trace.agent("streamer")
        def stream(words: list[str]) -> Iterator[str]:
            answer = ""
            for word in words:
                with mast_trace.tool("speak"):
                    answer += (yield word) or ""
            return answer

        def consume() -> Iterator[str]:
            return (yield from stream(["a", "b"]))

        assert inspect.isgeneratorfunction(stream)
        words = consume()
        heard = [next(words)]
        with mast_trace.tool("listen"):
            heard.append(words.send("yes"))
        with pytest.raises(StopIteration) as stopped:
            words.send("no")
        assert (heard, stopped.value.value) == (["a", "b"], "yesno")
        assert captured_spans.tree().splitlines() == [
            "invoke_agent streamer",
            "  execute_tool speak",
            "  execute_tool speak",
            "execute_tool listen",
        ]

    def test_a_wrong_call_fails_as_it_would_without(self, captured_spans: CapturedSpans) -> None:
        """The caller's mistake raises the caller's TypeError."""

        @mast_trace.tool
        def add(a: int) -> int:
            return a

        with pytest.raises(TypeError, match=r"missing 1 required positional argument"):
            add()  # type: ignore[call-arg]
        (span,) = captured_spans.spans
        assert span.status.status_code is trace.StatusCode.ERROR

    def test_may_stand_before_instrument_is_called(self) -> None:
        """Decorators work before `instrument()` is called, as in a module that is imported first."""

        @mast_trace.run
        def work() -> str:
            return "done"

        assert work() == "done"
        from mast_trace.testing import capture_spans

        with capture_spans(frameworks=[]) as captured:
            assert work() == "done"
        assert captured.tree() == "invoke_workflow work"
