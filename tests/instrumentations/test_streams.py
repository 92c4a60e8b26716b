"""Generators are driven such that neither they nor their consumers notice."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry import context as otel_context

from mast_trace_instrumentations._streams import Inside, adrive, drive

_INSIDE = "inside-of-the-test"


class Traced:
    """Notes how the generator ended."""

    def __init__(self) -> None:
        self.context = otel_context.set_value(_INSIDE, value=True)
        self.ends: list[BaseException | None] = []

    def end(self, error: BaseException | None) -> None:
        self.ends.append(error)


def inside() -> bool:
    return otel_context.get_value(_INSIDE) is True


@pytest.fixture
def traced() -> Traced:
    return Traced()


class TestDrive:
    """Synchronous generators."""

    def test_values_and_result_pass(self, traced):
        """What is yielded, and what is returned."""

        def counting() -> Any:
            yield 1
            yield 2
            return "counted"

        def consumer() -> Any:
            return (yield from drive(counting(), lambda: traced))

        driven = consumer()
        assert [next(driven), next(driven)] == [1, 2]
        with pytest.raises(StopIteration) as stop:
            next(driven)
        assert stop.value.value == "counted"
        assert traced.ends == [None]

    def test_the_context_is_current_inside_only(self, traced):
        """In the generator's own code, not in its consumer's."""

        def looking() -> Any:
            yield inside()
            yield inside()

        for seen in drive(looking(), lambda: traced):
            assert seen
            assert not inside()

    def test_nothing_begins_before_the_first_step(self, traced):
        """As with the generator itself."""
        begun: list[int] = []

        def begin() -> Traced:
            begun.append(1)
            return traced

        driven = drive(iter_of(1), begin)
        assert begun == []
        next(driven)
        assert begun == [1]

    def test_what_is_sent_arrives(self, traced):
        """`send`."""

        def echo() -> Any:
            got = yield "ready"
            while True:
                got = yield f"got {got}"

        driven = drive(echo(), lambda: traced)
        next(driven)
        assert driven.send("a") == "got a"
        assert driven.send("b") == "got b"

    def test_what_is_thrown_can_be_handled(self, traced):
        """`throw`: the generator may go on."""

        def stubborn() -> Any:
            try:
                yield 1
            except ValueError:
                assert inside()
                yield 2

        driven = drive(stubborn(), lambda: traced)
        next(driven)
        assert driven.throw(ValueError("handled")) == 2
        assert traced.ends == []
        assert list(driven) == []
        assert traced.ends == [None]

    def test_an_error_passes_as_it_is(self, traced):
        """The very object, noted as the end."""
        error = KeyError("mine")

        def failing() -> Any:
            yield 1
            raise error

        driven = drive(failing(), lambda: traced)
        next(driven)
        with pytest.raises(KeyError) as caught:
            next(driven)
        assert caught.value is error
        assert traced.ends == [error]
        assert not inside()

    def test_closing_closes_the_generator_inside_of_the_context(self, traced):
        """Its clean-up belongs to what is traced."""
        cleaned: list[bool] = []

        def tidy() -> Any:
            try:
                yield 1
            finally:
                cleaned.append(inside())

        driven = drive(tidy(), lambda: traced)
        next(driven)
        driven.close()

        assert cleaned == [True]
        assert [type(end) for end in traced.ends] == [GeneratorExit]


def iter_of(*values: Any) -> Any:
    yield from values


class TestAdrive:
    """Asynchronous generators."""

    async def test_values_pass_and_the_context_is_current_inside_only(self, traced):
        """As with synchronous ones."""

        async def looking() -> Any:
            yield inside()
            yield inside()

        seen: list[bool] = []
        async for value in adrive(looking(), lambda: traced):
            seen.append(value)
            assert not inside()
        assert seen == [True, True]
        assert traced.ends == [None]

    async def test_what_is_sent_and_thrown_arrives(self, traced):
        """`asend` and `athrow`."""

        async def echo() -> Any:
            got = yield "ready"
            try:
                yield f"got {got}"
            except ValueError:
                yield "handled"

        driven = adrive(echo(), lambda: traced)
        await anext(driven)
        assert await driven.asend("a") == "got a"
        assert await driven.athrow(ValueError("thrown")) == "handled"

    async def test_an_error_passes_as_it_is(self, traced):
        """The very object."""
        error = KeyError("mine")

        async def failing() -> Any:
            yield 1
            raise error

        driven = adrive(failing(), lambda: traced)
        await anext(driven)
        with pytest.raises(KeyError) as caught:
            await anext(driven)
        assert caught.value is error
        assert traced.ends == [error]

    async def test_closing_closes_the_generator(self, traced):
        """`aclose`."""
        cleaned: list[bool] = []

        async def tidy() -> Any:
            try:
                yield 1
            finally:
                cleaned.append(inside())

        driven = adrive(tidy(), lambda: traced)
        await anext(driven)
        await driven.aclose()

        assert cleaned == [True]
        assert [type(end) for end in traced.ends] == [GeneratorExit]


class TestInside:
    """Plain calls."""

    def test_the_end_is_told_with_result_or_error(self):
        """Once, after the context is detached."""
        ends: list[tuple[Any, Any, bool]] = []
        context = otel_context.set_value(_INSIDE, value=True)

        def end(result: Any, error: BaseException | None) -> None:
            ends.append((result, type(error).__name__, inside()))

        with Inside(context, end) as entered:
            assert inside()
            entered.result = 7
        with pytest.raises(ValueError, match="x"), Inside(context, end):
            raise ValueError("x")

        assert ends == [(7, "NoneType", False), (None, "ValueError", False)]
