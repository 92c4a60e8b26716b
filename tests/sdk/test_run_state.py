"""State of a run, while the user's own code runs in between."""

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
    SpanContext,
    get_current_span,
    set_span_in_context,
)

from mast_trace.spans.run_state import (
    Run,
    _Runs,
    beside_others,
    chat_is_open,
    current_agent,
    current_run,
    exported_with,
    open_tool,
    with_agent,
    with_chat,
    with_run,
    with_span,
    with_tool,
)


def test_what_the_garbage_collector_records_meanwhile() -> None:
    """The garbage collector may end a span of the run in the same thread, while the run is written to."""
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


def test_a_turn_begins_outside_of_the_tool_that_asked_for_it() -> None:
    """An agent that is run by another one's tool is no part of this tool."""
    inside = with_tool(INVALID_SPAN, Context())
    assert open_tool(inside) is INVALID_SPAN
    assert open_tool(with_agent("clerk", inside)) is None


def test_runs_of_other_threads_are_elsewhere_until_one_begins_here_or_the_process_forks() -> None:
    runs = _Runs()
    there, here = (_root(number) for number in (1, 2))
    thread = threading.Thread(target=runs.began, args=[there])
    thread.start()
    thread.join()
    assert runs.elsewhere()
    runs.began(here)
    assert not runs.elsewhere()
    runs.ended(here)
    assert runs.elsewhere()
    runs.left_behind()
    assert not runs.elsewhere()


def test_the_only_run_of_its_time_is_known_however_many_came_before() -> None:
    runs = _Runs()
    for number in (1, 2):
        runs.began(_root(number))
        runs.ended(_root(number))
        assert runs.only() == _root(number)


def _root(number: int) -> SpanContext:
    return SpanContext(number, number, is_remote=False)


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
