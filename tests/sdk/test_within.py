"""A call inside a span: the called code and its caller notice nothing, whatever kind it is of."""

from __future__ import annotations

import asyncio
import functools
import gc
import inspect
import logging
from typing import TYPE_CHECKING, Any

import pytest
import wrapt
from opentelemetry import context as otel_context
from opentelemetry.trace import INVALID_SPAN

from mast_trace.spans import NO_RESULT, Inside, awaited, handler, in_span, traced
from mast_trace.spans.run_state import Run, with_run
from mast_trace.spans.within import run_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

_INSIDE = "inside-of-the-test"


class Traced:
    """A call that notes its end."""

    def __init__(self) -> None:
        self.context = otel_context.set_value(_INSIDE, value=True)
        self.results: list[Any] = []
        self.ends: list[BaseException | None] = []

    def end(self, result: Any, error: BaseException | None) -> None:
        assert not inside()
        self.results.append(result)
        self.ends.append(error)


def inside() -> bool:
    return otel_context.get_value(_INSIDE) is True


@pytest.fixture
def call() -> Traced:
    return Traced()


def drive(function: Any, call: Any) -> Any:
    """Call ``function`` as a patched method is called."""
    begin = call if callable(call) else lambda *_: call
    return wrapt.FunctionWrapper(function, handler(function, begin, "testing"))()


def asynchronous(function: Any) -> Any:
    """The same generator as an asynchronous one."""

    async def made() -> Any:
        inner = function()
        step = functools.partial(next, inner)
        while True:
            try:
                item = step()
            except StopIteration:
                return
            try:
                sent = yield item
            except GeneratorExit:
                inner.close()
                raise
            except BaseException as error:
                step = functools.partial(inner.throw, error)
            else:
                step = functools.partial(inner.send, sent)

    return made


class Consumer:
    """Steps through a generator of either kind, as a patched method's caller does."""

    def __init__(self, function: Any, call: Any, *, is_async: bool) -> None:
        self.driven = drive(asynchronous(function) if is_async else function, call)
        self._prefix = "a" if is_async else ""

    async def _do(self, method: str, *args: Any) -> Any:
        made = getattr(self.driven, f"{self._prefix}{method}")(*args)
        return await made if self._prefix else made

    async def next(self, end: Any = None) -> Any:
        return await anext(self.driven, end) if self._prefix else next(self.driven, end)

    async def send(self, value: Any) -> Any:
        return await self._do("send", value)

    async def throw(self, error: BaseException) -> Any:
        return await self._do("throw", error)

    async def close(self) -> None:
        await self._do("close")


@pytest.mark.parametrize("is_async", [False, True], ids=["synchronous", "asynchronous"])
class TestGenerators:
    """Generators of both kinds."""

    async def test_values_pass_and_the_context_is_current_inside_only(self, call, *, is_async):
        """In the generator's own code, not in its consumer's; nothing begins before the first step."""
        begun: list[int] = []

        def begin(*_: Any) -> Traced:
            begun.append(1)
            return call

        def looking() -> Any:
            yield inside()
            yield inside()

        consumer = Consumer(looking, begin, is_async=is_async)
        assert begun == []
        for _ in range(2):
            assert await consumer.next() is True
            assert not inside()
        assert (begun, call.ends) == ([1], [])
        assert await consumer.next("end") == "end"
        assert call.ends == [None]

    async def test_what_is_sent_and_thrown_arrives(self, call, *, is_async):
        """The generator may handle an error, and go on."""

        def echo() -> Any:
            got = yield "ready"
            got = yield f"got {got}"
            try:
                yield f"got {got}"
            except ValueError:
                yield f"handled {inside()}"

        consumer = Consumer(echo, call, is_async=is_async)
        await consumer.next()
        assert [await consumer.send("a"), await consumer.send("b")] == ["got a", "got b"]
        assert await consumer.throw(ValueError("thrown")) == "handled True"
        assert call.ends == []

    async def test_an_error_passes_as_it_is(self, call, *, is_async):
        """The exception itself passes, and is noted as the end."""
        error = KeyError("mine")

        def failing() -> Any:
            yield 1
            raise error

        consumer = Consumer(failing, call, is_async=is_async)
        await consumer.next()
        with pytest.raises(KeyError) as caught:
            await consumer.next()
        assert caught.value is error
        assert call.ends == [error]
        assert not inside()

    async def test_closing_closes_the_generator_inside_of_the_context(self, call, *, is_async):
        """The generator's clean-up runs inside of the context."""
        cleaned: list[bool] = []

        def tidy() -> Any:
            try:
                yield 1
            finally:
                cleaned.append(inside())

        consumer = Consumer(tidy, call, is_async=is_async)
        await consumer.next()
        await consumer.close()
        assert cleaned == [True]
        assert [type(end) for end in call.ends] == [GeneratorExit]


class TestEnds:
    """Ends of generators that one kind has alone."""

    def test_a_returned_value_passes(self, call):
        def counting() -> Any:
            yield 1
            return "counted"

        def consumer() -> Any:
            return (yield from drive(counting, call))

        driven = consumer()
        assert next(driven) == 1
        with pytest.raises(StopIteration) as stop:
            next(driven)
        assert stop.value.value == "counted"
        assert (call.results, call.ends) == (["counted"], [None])

    def test_one_that_its_loop_has_forgotten_ends(self, call):
        """A loop that is closed closes no generators: that of a stream which nobody reads on."""

        async def counting() -> Any:
            yield 1
            yield 2

        async def read_one() -> Any:
            driven = drive(counting, call)
            await anext(driven)
            return driven

        loop = asyncio.new_event_loop()
        driven = loop.run_until_complete(read_one())
        loop.close()
        assert call.ends == []
        del driven
        gc.collect()
        assert [type(end) for end in call.ends] == [GeneratorExit]


class TestPlainCalls:
    """Functions and coroutines."""

    def test_the_result_passes_and_the_context_is_current_inside_only(self, call):
        """The end comes once the context is detached."""
        assert drive(inside, call) is True
        assert not inside()
        assert (call.results, call.ends) == ([True], [None])

    def test_an_error_passes_as_it_is(self, call):
        """The exception itself passes; there is no result."""
        error = KeyError("mine")

        def fail() -> None:
            raise error

        with pytest.raises(KeyError) as caught:
            drive(fail, call)
        assert caught.value is error
        assert (call.results, call.ends) == ([NO_RESULT], [error])

    async def test_a_coroutine_is_traced_while_it_is_awaited(self, call):
        """A coroutine is traced when it is awaited, not when it is made: another task may await it, or none."""
        begun: list[int] = []

        async def look() -> bool:
            await asyncio.sleep(0)
            return inside()

        def begin(*_: Any) -> Traced:
            begun.append(1)
            return call

        waiting = drive(look, begin)
        assert begun == []
        assert await asyncio.create_task(waiting) is True
        assert (begun, call.results, call.ends) == ([1], [True], [None])

    async def test_a_coroutine_behind_a_plain_function_is_traced_as_well(self, call):
        """Clients check arguments in a decorator that hides the kind."""

        async def look() -> bool:
            await asyncio.sleep(0)
            return inside()

        waiting = drive(lambda: look(), call)  # noqa: PLW0108
        assert call.ends == []
        assert await waiting is True
        assert (call.results, call.ends) == ([True], [None])

    async def test_a_task_that_is_returned_stays_the_task(self, call):
        """The holder of the coroutine may cancel it."""
        task = asyncio.create_task(asyncio.sleep(0, "slept"))
        assert drive(lambda: task, call) is task
        assert await task == "slept"

    async def test_a_cancellation_passes(self, call):
        """A cancellation ends the call."""

        async def forever() -> None:
            await asyncio.Event().wait()

        task = asyncio.create_task(drive(forever, call))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert [type(end) for end in call.ends] == [asyncio.CancelledError]

    def test_a_coroutine_that_is_closed_elsewhere_ends_quietly(self, call, caplog):
        """The token of a coroutine closed elsewhere belongs to a context that is gone."""

        async def forever() -> None:
            await asyncio.Event().wait()

        waiting = drive(forever, call)
        loop = asyncio.new_event_loop()
        task = loop.create_task(waiting)
        loop.call_soon(loop.stop)
        loop.run_forever()
        task._log_destroy_pending = False
        loop.close()
        with caplog.at_level(logging.WARNING):
            waiting.close()
            del task
            gc.collect()
        assert [type(end) for end in call.ends] == [GeneratorExit]
        assert caplog.records == []


KINDS: list[Any] = []


@KINDS.append
def plain(value: int) -> int:
    return value


@KINDS.append
async def coroutine(value: int) -> int:
    return value


@KINDS.append
def generator(value: int) -> Any:
    yield value


@KINDS.append
async def asynchronous_generator(value: int) -> Any:
    yield value


async def outcome_of(made: Any) -> Any:
    """Run whatever a call returned to its end."""
    if inspect.isawaitable(made):
        return await made
    if inspect.isasyncgen(made):
        return [item async for item in made]
    return list(made) if inspect.isgenerator(made) else made


def patched(function: Any, begin: Any, doing: str) -> Any:
    """Trace a function as a method of a framework is patched."""
    return wrapt.FunctionWrapper(function, handler(function, lambda _, *args: begin(*args), doing))


@pytest.mark.parametrize("make", [traced, patched])
@pytest.mark.parametrize("function", KINDS)
class TestEveryKind:
    """Rules that hold for functions, coroutines, generators and asynchronous generators."""

    async def test_nothing_is_traced_where_nothing_begins(self, function, make):
        """The result is the same."""
        bare = await outcome_of(function(1))
        assert await outcome_of(make(function, lambda *_: None, "testing")(1)) == bare

    async def test_an_error_of_telemetry_changes_nothing(self, function, make, monkeypatch, caplog):
        """Errors of telemetry at the beginning, at an item or at the end change nothing; each is logged."""
        monkeypatch.delenv("PYTEST_CURRENT_TEST", raising=False)
        monkeypatch.setattr("mast_trace.spans.guard._reported", set())

        def broken(*_: Any) -> Any:
            raise ZeroDivisionError

        class Broken:
            context = None
            end = broken

            def yielded(self, _item: Any) -> None:
                raise LookupError

        bare = await outcome_of(function(1))
        assert await outcome_of(make(function, broken, "beginning")(1)) == bare
        assert await outcome_of(make(function, lambda *_: Broken(), "ending")(1)) == bare
        yields = inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)
        assert [type(record.exc_info[1]) for record in caplog.records] == [
            ZeroDivisionError,
            *[LookupError] * yields,
            ZeroDivisionError,
        ]

    def test_the_kind_stays(self, function, make):
        """Frameworks look at it."""
        made = make(function, lambda *_: None, "testing")
        for look in (
            inspect.iscoroutinefunction,
            inspect.isgeneratorfunction,
            inspect.isasyncgenfunction,
        ):
            assert look(made) == look(function)
        assert made.__name__ == function.__name__

    def test_wrong_arguments_fail_as_they_did(self, function, make):
        """At once, or when awaited."""
        made = make(function, lambda *_: Inside(), "testing")
        with pytest.raises(TypeError, match="missing 1 required positional argument"):
            asyncio.run(outcome_of(made()))

    async def test_a_decorator_around_it_hides_nothing(self, function, make, call):
        """The kind is that of the innermost function."""

        @functools.wraps(function)
        def decorated(*args: Any) -> Any:
            return function(*args)

        made = make(decorated, lambda *_: call, "testing")
        assert await outcome_of(made(1)) == await outcome_of(function(1))
        assert call.ends == [None]


@pytest.mark.parametrize("function", KINDS)
def test_wrong_arguments_of_what_is_patched_fail_where_it_is_called(function):
    """As they do without us: a stream fails before its first step, a coroutine alone when it is awaited."""
    made = patched(function, lambda *_: Inside(), "testing")
    is_awaited = inspect.iscoroutinefunction(function)
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        asyncio.run(made()) if is_awaited else made()


class Span:
    """A span that notes what is done with it."""

    def __init__(self) -> None:
        self.context = otel_context.set_value(_INSIDE, value=True)
        self.done: list[Any] = []

    def end(self, error: BaseException | None = None) -> None:
        self.done.append(("ended", error))


class TestInSpan:
    """Calls that a span stands for."""

    def test_the_result_is_recorded_before_the_end(self):
        """In the context of the caller."""
        span = Span()
        assert drive(inside, in_span(span, span.done.append)) is True
        assert span.done == [True, ("ended", None)]

    def test_the_error_ends_it(self):
        """There is no result to record."""
        span, error = Span(), KeyError("mine")
        in_span(span, span.done.append).end(NO_RESULT, error)
        assert span.done == [("ended", error)]

    def test_it_ends_though_recording_fails(self):
        """The error of telemetry is for the log."""
        span = Span()
        with pytest.raises(ZeroDivisionError):
            in_span(span, lambda _: 1 / 0).end("result", None)
        assert span.done == [("ended", None)]

    def test_a_generator_that_is_left_early_has_not_failed(self):
        """A consumer that leaves a generator early is no failure."""
        span = Span()
        in_span(span).end(NO_RESULT, GeneratorExit())
        assert span.done == [("ended", None)]


async def test_anything_awaitable_can_be_awaited_inside_a_call(call):
    """Functions that a framework hands over, where there is nothing to patch."""
    task = asyncio.ensure_future(asyncio.sleep(0, "slept"))
    assert await awaited(lambda: task, lambda: call, "testing") == "slept"
    assert await awaited(lambda: asyncio.sleep(0, "bare"), lambda: None, "testing") == "bare"
    assert (call.results, call.ends) == (["slept"], [None])


def test_a_stream_that_is_left_before_its_loop_ends_is_closed_once() -> None:
    """The loop closes what it knows at once: nothing finds the stream closing already, and its end runs."""
    told: list[object] = []

    async def inner() -> AsyncIterator[int]:
        try:
            yield 1
            yield 2
        finally:
            await asyncio.sleep(0)
            told.append("closed")

    stream = traced(inner, lambda *_: None, "testing")

    async def outer() -> AsyncIterator[int]:
        async for item in stream():
            yield item

    async def left() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
        async for _ in held:
            break

    held = outer()
    asyncio.run(left())
    assert told == ["closed"]


@pytest.mark.parametrize("way", ["itself", "cause", "context", "none"])
def test_the_run_that_an_error_ended_is_found_by_its_frames(call: Traced, way: str) -> None:
    """Also where another error was raised from it, or while it was handled; a part counts as the whole."""
    whole = Run(INVALID_SPAN)
    call.context = with_run(Run(INVALID_SPAN, outermost=whole), otel_context.get_current())

    def failing() -> None:
        raise ValueError

    with pytest.raises(ValueError) as raised:
        drive(failing, call)
    found: BaseException = raised.value if way == "itself" else LookupError()
    if way == "cause":
        found.__cause__ = raised.value
    elif way == "context":
        found.__context__ = raised.value
    assert run_of(found) is (None if way == "none" else whole)
