"""The blocks behind `mast_trace.run`, `agent` and `tool`: with, async with, and decorators."""

from __future__ import annotations

import functools
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from opentelemetry import context as otel_context

from mast_trace import semconv
from mast_trace.content import as_text
from mast_trace.messages import Message
from mast_trace.spans.calls import NO_RESULT, restore
from mast_trace.spans.guard import guarded
from mast_trace.spans.within import traced

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextvars import Token
    from types import TracebackType

    from opentelemetry.context import Context
    from typing_extensions import Self

    from mast_trace.spans.open_spans import AgentSpan, OpenSpan, RunSpan, ToolSpan
    from mast_trace.spans.telemetry import Telemetry

F = TypeVar("F", bound=Callable[..., Any])
S = TypeVar("S", bound="OpenSpan")


class Block(ABC, Generic[S]):
    """A span around a block or a function. Use each instance for one block at a time."""

    _doing = "recording a span"

    def __init__(self, name: str | None, **options: Any) -> None:
        self.name = name
        self._options = options
        self._open: S | None = None
        self._token: Token[Context] | None = None

    def set(self, attributes: Mapping[str, Any]) -> None:
        """Add attributes of your own to the span."""
        with guarded(self._doing):
            if self._open is not None:
                self._open.set(attributes)

    def fail(self, error: BaseException | str) -> None:
        """Mark the span as failed although the block goes on."""
        with guarded(self._doing):
            if self._open is not None:
                self._open.fail(error)

    @abstractmethod
    def _start(self, telemetry: Telemetry) -> S:
        """Begin the span."""

    def _called(self, arguments: Mapping[str, Any]) -> None:
        """Take the arguments of a decorated function's call."""

    def _returned(self, value: Any) -> None:
        """Take what a decorated function returned."""

    def open(self) -> None:
        """Begin the span without making it current."""
        with guarded(self._doing):
            telemetry = active_telemetry()
            if telemetry is not None:
                self._open = self._start(telemetry)

    def close(self, error: BaseException | None = None) -> None:
        """End the span, as failed if an error ended the block."""
        opened, self._open = self._open, None
        if opened is not None:
            with guarded(self._doing):
                opened.end(None if isinstance(error, GeneratorExit) else error)

    @property
    def context(self) -> Context | None:
        """The context of the open span; None while nothing is recorded."""
        return None if self._open is None else self._open.context

    def end(self, result: Any, error: BaseException | None) -> None:
        """Record how a decorated function's call ended; see `mast_trace.spans.Call`."""
        if self._open is not None and result is not NO_RESULT:
            with guarded(self._doing):
                self._returned(result)
        self.close(error)

    def __enter__(self) -> Self:
        self.open()
        if self._open is not None:
            self._token = otel_context.attach(self._open.context)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        token, self._token = self._token, None
        if token is not None:
            restore(token)
        self.close(error)

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.__exit__(kind, error, traceback)

    def __call__(self, function: F) -> F:
        """Decorate a function, coroutine function or generator: each call is a block of its own."""
        name = self.name or getattr(function, "__name__", type(function).__name__)

        def begin(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Block[S]:
            block = type(self)(name, **self._options)
            if active_telemetry() is not None:
                with guarded(self._doing):
                    block._called(_bound(function, args, kwargs))  # noqa: SLF001
            block.open()
            return block

        return cast("F", traced(function, begin, self._doing))


class RunBlock(Block["RunSpan"]):
    """One run of a system of agents: the root of its trace."""

    _doing = "recording a run"

    def _start(self, telemetry: Telemetry) -> RunSpan:
        options = {**self._options, "input": as_messages(self._options["input"], "user")}
        return telemetry.run(self.name or "run", **options)

    _stopped = False

    def stopped(self, reason: str) -> None:
        """Say why the run stopped; `mast_trace.semconv.Termination` has the values rules read."""
        self._stopped = True
        self.set({semconv.RUN_TERMINATION_REASON: reason})

    def close(self, error: BaseException | None = None) -> None:
        """End the span; an error is why the run stopped, where nothing else was said."""
        if error is not None and not self._stopped:
            failed = isinstance(error, Exception)  # neither cancelled nor interrupted
            self.stopped(semconv.Termination.ERROR if failed else semconv.Termination.CANCELLED)
        super().close(error)


class AgentBlock(Block["AgentSpan"]):
    """One turn of an agent."""

    _doing = "recording an agent's turn"

    def _start(self, telemetry: Telemetry) -> AgentSpan:
        options = {**self._options, "input": as_messages(self._options["input"], "user")}
        return telemetry.agent(self.name or "agent", **options)

    def reply(self, content: str | Message) -> None:
        """Record what the turn produced, where it is not sent as a `message`."""
        with guarded(self._doing):
            if self._open is not None:
                self._open.reply(as_message(content, "assistant"))

    def _returned(self, value: Any) -> None:
        if isinstance(value, str | Message):
            self.reply(value)


class ToolBlock(Block["ToolSpan"]):
    """One execution of a tool."""

    _doing = "recording a tool call"

    def _start(self, telemetry: Telemetry) -> ToolSpan:
        return telemetry.tool(self.name or "tool", **self._options)

    def result(self, value: Any) -> None:
        """Record what the tool returned."""
        with guarded(self._doing):
            if self._open is not None:
                self._open.result(value)

    def _called(self, arguments: Mapping[str, Any]) -> None:
        if self._options["arguments"] is None:
            self._options = {**self._options, "arguments": arguments}

    def _returned(self, value: Any) -> None:
        self.result(value)


def active_telemetry() -> Telemetry | None:
    """Return what makes the spans of hand-made agents; None while nothing is recorded."""
    from mast_trace._session import current_session

    session = current_session()
    return session.telemetry if session else None


def _bound(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, Any]:
    """Return a call's arguments by name; those of a call that will fail as they are."""
    try:
        bound = _signature(function).bind(*args, **kwargs).arguments
    except (TypeError, ValueError):
        return {"args": args, **kwargs}
    return {name: value for name, value in bound.items() if name not in {"self", "cls"}}


_signature = functools.lru_cache(maxsize=512)(inspect.signature)


def as_messages(content: Any, role: str) -> list[Message]:
    """Read a text, a message, or a list of these."""
    if content is None:
        return []
    several = isinstance(content, list | tuple)
    return [as_message(item, role) for item in (content if several else (content,))]


def as_message(content: Any, role: str) -> Message:
    """Read a text, or any value, as a message."""
    return content if isinstance(content, Message) else Message(as_text(content), role=role)
