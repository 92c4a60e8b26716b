"""What is remembered of a run, while the user's own code runs in between."""

from __future__ import annotations

import threading

import pytest
from opentelemetry import context as otel_context
from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import (
    INVALID_SPAN,
    NonRecordingSpan,
    Span,
    get_current_span,
    set_span_in_context,
)

from mast_trace.content import content_hash
from mast_trace.messages import Message, ToolCall
from mast_trace.spans.run_state import (
    Run,
    beside_others,
    chat_is_open,
    current_agent,
    current_run,
    exported_with,
    with_agent,
    with_chat,
    with_run,
    with_span,
)


def test_an_argument_that_is_recorded_while_it_is_shown() -> None:
    """A value's `__str__` may itself send messages of the same run; nobody waits for the other."""
    run = Run(INVALID_SPAN)

    class Talking:
        def __str__(self) -> str:
            run.hold([Message("I am asked who I am.")])
            return f"talking in turn {run.next_turn()}"

    call = Message("Look it up.", tool_calls=(ToolCall("look_up", {"who": Talking()}),))
    answers: list[tuple[str, bool]] = []
    thread = threading.Thread(target=lambda: answers.extend(run.hold([call])), daemon=True)
    thread.start()
    thread.join(30)
    assert [new for _, new in answers] == [True]


def test_what_the_garbage_collector_records_meanwhile() -> None:
    """It may end a span of the run in the same thread, while the run is being written to."""
    run = Run(INVALID_SPAN)

    class Collected(str):
        __slots__ = ()

        def __hash__(self) -> int:
            run.once("span ended")
            return str.__hash__(self)

    seen: list[bool] = []
    thread = threading.Thread(target=lambda: seen.append(run.once(Collected("a"))), daemon=True)
    thread.start()
    thread.join(30)
    assert seen == [True]
    assert run.marks == {"span ended", "a"}


def hashed(text: str, calls: str = "") -> str:
    return content_hash(f"{content_hash(text)}.{calls}") if calls else content_hash(text)


class TestTexts:
    """Ids under which the texts of a run are known, and which of them are new."""

    def test_are_new_once(self) -> None:
        """Under the framework's id, or one that is made of the text; whatever is shown beside it."""
        run = Run(INVALID_SPAN)
        first = [Message("a", id="m1"), Message("b"), Message("a", id="m1")]
        key = content_hash("b")
        assert run.hold(first) == [("m1", True), (key, True), ("m1", False)]
        assert run.hold([Message("b", role="user"), Message("c", id="m3")]) == [
            (key, False),
            ("m3", True),
        ]

    def test_under_an_id_that_is_taken_get_their_own(self) -> None:
        """Each time the same."""
        run = Run(INVALID_SPAN)
        other = ("m1#" + content_hash("b"), True)
        assert run.hold([Message("a", id="m1"), Message("b", id="m1")]) == [("m1", True), other]
        assert run.hold([Message("b", id="m1")]) == [(other[0], False)]
        assert run.say(content_hash("c"), "m1") == "m1#" + content_hash("c")

    def test_of_tools_are_new_for_each_call(self) -> None:
        """Two calls may return the same; a plain message with such a text is known by the first."""
        run = Run(INVALID_SPAN)
        results = [Message("ok", role="tool", tool_call_id=call) for call in ("c1", "c2", "c1")]
        key = content_hash("ok")
        second = hashed("ok", "c2")
        assert run.hold(results) == [(key, True), (second, True), (key, False)]
        assert run.hold([Message("ok")]) == [(key, False)]
        assert [run.say(key, None, call) for call in ("c1", "c2", "c3")] == [key, second, key]

    def test_of_a_tool_whose_call_was_not_named(self) -> None:
        """Its span holds the result of whichever call is shown later; of requests it says nothing."""
        run = Run(INVALID_SPAN)
        [(identity, new)] = run.hold([Message("ok", role="tool", tool_call_id="?")])
        assert new
        later = Message("ok", role="tool", tool_call_id="c9")
        assert run.hold([later]) == [(identity, False)]

    def test_that_are_said_again_keep_their_id(self) -> None:
        """Unless the framework tells them apart: then the span of each holds its own."""
        run = Run(INVALID_SPAN)
        key = content_hash("yes")
        assert run.say(key, None) == key
        assert run.say(key, None) == key
        assert run.say(key, key) == key
        assert run.say(key, "m2") == "m2"
        assert run.say(key, None) == key
        assert run.hold([Message("yes")]) == [(key, False)]

    def test_that_were_shown_before_they_are_said(self) -> None:
        """With the calls that they ask for, which tell equal texts apart."""
        run = Run(INVALID_SPAN)
        asks = Message("", tool_calls=(ToolCall("look_up", "{}", "c1"),))
        [(identity, _)] = run.hold([asks])
        assert run.say(asks.key, None, asks.calls) == identity
        assert run.say(asks.key, None, "c2") == identity
        again = run.say(asks.key, "m1", "c2")
        assert again == "m1"
        assert run.say(asks.key, "m1", "c3") == "m1#" + content_hash(f"{asks.key}.c3")

    def test_that_are_said_first(self) -> None:
        """And then shown: no other span has to hold them."""
        run = Run(INVALID_SPAN)
        asks = Message("", id="m1", tool_calls=(ToolCall("look_up", "{}", "c1"),))
        assert run.say(asks.key, asks.id, asks.calls) == "m1"
        assert run.hold([asks]) == [("m1", False)]
        assert run.say(content_hash("x"), "m1", "c1") == "m1#" + hashed("x", "c1")


def test_turns_and_marks_are_counted() -> None:
    """The first message is turn 0; a mark is new once."""
    run = Run(INVALID_SPAN)
    assert [run.next_turn() for _ in range(3)] == [0, 1, 2]
    assert run.turn == 3
    assert [run.once(mark) for mark in ("a", "b", "a")] == [True, True, False]


def test_state_travels_in_the_context() -> None:
    """In the one that is named, else in the current one."""
    run = Run(INVALID_SPAN)
    inside = with_chat(with_agent("clerk", with_run(run, Context())))
    assert (current_run(inside), current_agent(inside), chat_is_open(inside)) == (
        run,
        "clerk",
        True,
    )
    outside = Context()
    nothing = (None, None, False)
    assert (current_run(outside), current_agent(outside), chat_is_open(outside)) == nothing
    assert (current_run(), current_agent(), chat_is_open()) == nothing
    token = otel_context.attach(inside)
    try:
        assert (current_run(), current_agent(), chat_is_open()) == (run, "clerk", True)
        assert (current_run(outside), current_agent(outside), chat_is_open(outside)) == nothing
    finally:
        otel_context.detach(token)


@pytest.fixture
def spans() -> tuple[Span, Span, Span]:
    """Two spans of one provider and one of another tool's."""
    ours = TracerProvider(resource=Resource({"service.name": "a"})).get_tracer("ours")
    theirs = TracerProvider(resource=Resource({"service.name": "b"})).get_tracer("theirs")
    return ours.start_span("own"), ours.start_span("deeper"), theirs.start_span("other")


def test_what_is_exported_with_ours(spans: tuple[Span, Span, Span]) -> None:
    """Spans of our provider, and those that nobody exports from here."""
    own, deeper, other = spans
    remote = NonRecordingSpan(other.get_span_context())
    assert [exported_with(each, own) for each in (deeper, remote, other)] == [True, True, False]
    assert not exported_with(own, remote)


def test_a_span_of_another_tool_hides_none_of_ours(spans: tuple[Span, Span, Span]) -> None:
    """Events that go elsewhere are stepped over; all else stays as it is."""
    own, deeper, other = spans
    context = with_span(own, Context())
    assert get_current_span(context) is own
    hidden = with_agent("clerk", set_span_in_context(other, context))
    found = beside_others(hidden)
    assert get_current_span(found) is own
    assert current_agent(found) == "clerk"
    for untouched in (
        context,
        Context(),
        set_span_in_context(other, Context()),
        set_span_in_context(deeper, context),
        set_span_in_context(NonRecordingSpan(other.get_span_context()), context),
    ):
        assert beside_others(untouched) is untouched
