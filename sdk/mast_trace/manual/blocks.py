"""The blocks behind `mast_trace.run`, `agent` and `tool`: with, async with, and decorators."""

from __future__ import annotations

import functools
import inspect
import sys
from abc import abstractmethod
from collections.abc import Callable, Mapping
from contextvars import Token
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, cast

from opentelemetry import context as otel_context

from mast_trace import semconv
from mast_trace.content import is_a
from mast_trace.manual import given
from mast_trace.manual.threads import warn_of_lost_run
from mast_trace.spans.calls import NO_RESULT, EitherWith, restore
from mast_trace.spans.guard import guarded, misused
from mast_trace.spans.within import traced

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span
    from typing_extensions import Self

    from mast_trace.messages import Message
    from mast_trace.spans.open_spans import AgentSpan, OpenSpan, RunSpan, ToolSpan
    from mast_trace.spans.telemetry import Telemetry


class Answering(Protocol):
    """A replay that is on."""

    def answered(self, name: str, arguments: Mapping[str, Any], function: Any) -> tuple[Any] | None:
        """Return the value of a call in a tuple, or None where the function is to run."""

    async def answered_async(
        self, name: str, arguments: Mapping[str, Any], function: Any
    ) -> tuple[Any] | None:
        """Return likewise the value of a call of a coroutine function."""

    def runs(self, name: str, arguments: Any) -> None:
        """Note that a call runs for real, because the code of its block cannot be answered."""


_replay: Answering | None = None


def answer_by(replay: Answering | None) -> None:
    """Have calls answered by ``replay`` from now on; None ends it."""
    global _replay  # noqa: PLW0603  # one for the process, as threads lose contexts
    _replay = replay


def note_block(name: str, arguments: Any) -> None:
    """Tell the replay, if one is on, that the code of a tool's block runs."""
    if _replay is not None:
        _replay.runs(name, arguments)


def answerable(
    function: Callable[..., Any],
    name: str,
    bind: Callable[[Any, tuple[Any, ...], dict[str, Any]], Mapping[str, Any]],
) -> Callable[..., Any]:
    """Return a function of the same kind that asks the replay, if one is on, before it runs.

    Generators are returned as they are: no recorded text tells how they came in pieces.

    Args:
        function: a tool's.
        name: the tool's.
        bind: returns the arguments of a call by name.
    """
    inner = inspect.unwrap(function)
    if inspect.isgeneratorfunction(inner) or inspect.isasyncgenfunction(inner):
        return function
    if inspect.iscoroutinefunction(inner):

        @functools.wraps(function)
        async def asynchronous(*args: Any, **kwargs: Any) -> Any:
            if _replay is not None:
                given = bind(function, args, kwargs)
                found = await _replay.answered_async(name, given, inner)
                if found is not None:
                    return found[0]
            return await function(*args, **kwargs)

        return asynchronous

    @functools.wraps(function)
    def plain(*args: Any, **kwargs: Any) -> Any:
        if _replay is not None:
            found = _replay.answered(name, bind(function, args, kwargs), inner)
            if found is not None:
                return found[0]
        return function(*args, **kwargs)

    return plain


F = TypeVar("F", bound=Callable[..., Any])
S = TypeVar("S", bound="OpenSpan")
_MOST_YIELDED = 16 * 1024 * 1024  # characters of a stream that are kept until its end
_SIZE_OF_AN_ITEM = 256


class Block(EitherWith, Generic[S]):
    """A span around a block or a function. Use each instance for one block at a time.

    Attributes:
        context: of the span, open or ended; None while nothing is recorded.
    """

    _call = "span"  # the call as the program spells it
    _doing = "recording a span"

    def __init__(self, name: str | None, **options: Any) -> None:
        self.name = given.word(name, self._call, "name")
        options["attributes"] = given.attributes(options["attributes"], self._call)
        for option in ("conversation_id", "agent_id", "call_id", "description"):
            if option in options:
                options[option] = given.word(options[option], self._call, option)
        self._options = options
        self._open: S | None = None
        self.context: Context | None = None
        self._token: Token[Context] | None = None
        self._yielded: list[Any] = []
        self._room = _MOST_YIELDED

    def set(self, attributes: Mapping[str, Any]) -> None:
        """Add attributes of your own to the span."""
        with guarded(self._doing):
            if self._open is not None:
                self._open.set(given.attributes(attributes, f"{self._call}().set") or {})

    def fail(self, error: BaseException | str) -> None:
        """Mark the span as failed although the block goes on."""
        with guarded(self._doing):
            if self._open is not None:
                is_exception = is_a(error, BaseException)
                self._open.fail(error if is_exception else given.text(error))

    def _code(self, function: F, _name: str) -> F:
        """Return what a decorated function's call runs."""
        return function

    @abstractmethod
    def _start(self, telemetry: Telemetry) -> S:
        """Begin the span."""

    def _called(self, arguments: Mapping[str, Any]) -> None:
        """Take the arguments of a decorated function's call."""

    def _returned(self, value: Any) -> None:
        """Take the return value of a decorated function."""

    def yielded(self, item: Any) -> None:
        """Keep the items of a decorated generator until its end."""
        if self._room > 0:
            self._yielded.append(item)
            self._room -= len(item) if isinstance(item, str) else _SIZE_OF_AN_ITEM

    def open(self) -> None:
        """Begin the span without making it current."""
        with guarded(self._doing):
            telemetry = active_telemetry()
            if telemetry is not None:
                self._open = self._start(telemetry)
        self.context = None if self._open is None else self._open.context

    def close(self, error: BaseException | None = None) -> None:
        """End the span, as failed if an error ended the block."""
        opened, self._open = self._open, None
        if opened is not None:
            with guarded(self._doing):
                opened.end(None if isinstance(error, GeneratorExit) else error)

    def end(self, result: Any, error: BaseException | None) -> None:
        """Record how a decorated function's call ended; see `mast_trace.spans.Call`."""
        if self._open is not None:
            with guarded(self._doing):
                if self._yielded and (result is NO_RESULT or result is None):
                    # The pieces of a stream, up to where it was left or failed.
                    self._returned(_whole(self._yielded))
                elif result is not NO_RESULT:
                    self._returned(result)
        self.close(error)

    def __enter__(self) -> Self:
        self.open()
        if self._open is not None:
            self._token = otel_context.attach(self._open.context)
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        token, self._token = self._token, None
        if token is not None:
            restore(token)
        self.close(error)

    def __call__(self, function: F) -> F:
        """Decorate a function, coroutine function or generator: each call is a block of its own."""
        if not callable(function):
            kind = type(function).__name__
            misused(self._call, f"{kind} cannot be called, and so not be decorated")
            return function

        def begin(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Block[S]:
            block = type(self)(name, **self._options)
            if active_telemetry() is not None:
                with guarded(self._doing):
                    block._called(_bound(function, args, kwargs))  # noqa: SLF001
            block.open()
            return block

        try:
            own = getattr(function, "__name__", type(function).__name__)
            name = self.name or given.text(own)
            return cast("F", traced(self._code(function, name), begin, self._doing))
        except Exception:  # noqa: BLE001  # a callable that cannot be asked what it is
            misused(self._call, f"{type(function).__name__} cannot be decorated")
            return function


class RunBlock(Block["RunSpan"]):
    """One run of a system of agents: the root of its trace."""

    _call = "run"
    _doing = "recording a run"

    def _start(self, telemetry: Telemetry) -> RunSpan:
        asked = given.messages(self._options["input"], "user")
        options = {**self._options, "input": asked}
        opened = telemetry.run(self.name or "run", **options)
        self.root = opened.span
        return opened

    root: Span | None = None
    """Its span, ended or not; None where nothing is recorded. `record_outcome` takes the block."""
    _stopped = False

    def stopped(self, reason: str) -> None:
        """Say why the run stopped; `mast_trace.semconv.Termination` has the values rules read."""
        self._stopped = True
        self.set({semconv.RUN_TERMINATION_REASON: given.word(reason, "run().stopped", "reason")})

    def close(self, error: BaseException | None = None) -> None:
        """End the span; an error is recorded as the reason for stopping, where no other was given."""
        if error is not None and not self._stopped:
            self.stopped(_end_by(error))
        super().close(error)


class AgentBlock(Block["AgentSpan"]):
    """One turn of an agent."""

    _call = "agent"
    _doing = "recording an agent's turn"

    def _start(self, telemetry: Telemetry) -> AgentSpan:
        warn_of_lost_run(self._call)
        asked = given.messages(self._options["input"], "user")
        options = {**self._options, "input": asked}
        return telemetry.agent(self.name or "agent", **options)

    def reply(self, content: str | Message | object) -> None:
        """Record the output of the turn: text, a message, or any value, as its text.

        The output is a step of the run. Where the same text is sent as a `message`, the message is
        the step. A turn has one reply: of several calls the last replaces the earlier ones. Record
        the words in between by `message`.
        """
        with guarded(self._doing):
            if self._open is not None and content is not None:
                self._open.reply(given.message(content, "assistant"))

    def _returned(self, value: Any) -> None:
        if not _comes_later(value):
            self.reply(value)


class ToolBlock(Block["ToolSpan"]):
    """One execution of a tool."""

    _call = "tool"
    _doing = "recording a tool call"

    _is_function = False

    def _start(self, telemetry: Telemetry) -> ToolSpan:
        warn_of_lost_run(self._call)
        span = telemetry.tool(self.name or "tool", **self._options)
        if not self._is_function:
            span.runs_in_block()
            note_block(self.name or "tool", self._options["arguments"])
        return span

    def result(self, value: Any) -> None:
        """Record the result of the tool."""
        with guarded(self._doing):
            if self._open is not None:
                self._open.result(value)

    def _code(self, function: F, name: str) -> F:
        return cast("F", answerable(function, name, _bound))

    def _called(self, arguments: Mapping[str, Any]) -> None:
        self._is_function = True
        if self._options["arguments"] is None:
            self._options = {**self._options, "arguments": arguments}

    def _returned(self, value: Any) -> None:
        with guarded(self._doing):
            if self._open is not None:
                self._open.returned(value)


def is_time_limit(error: BaseException | None) -> bool:
    """Return whether an error says that a limit of time was reached."""
    kind = type(error)  # before 3.11 asyncio and the futures have classes of their own
    named = kind.__name__ == "TimeoutError" and kind.__module__.startswith(
        ("asyncio", "concurrent")
    )
    return isinstance(error, TimeoutError) or named


def _end_by(error: BaseException) -> str:
    if is_time_limit(error):
        return semconv.Termination.TIME_LIMIT
    failed = isinstance(error, Exception)  # neither cancelled nor interrupted
    return semconv.Termination.ERROR if failed else semconv.Termination.CANCELLED


def active_telemetry() -> Telemetry | None:
    """Return the telemetry of hand-made agents; None while nothing is recorded."""
    from mast_trace._session import current_session

    session = current_session()
    return session.telemetry if session else None


def _bound(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, Any]:
    """Return a call's arguments by name; as they are, if they do not fit the function."""
    try:
        bound = _signature(function).bind(*args, **kwargs).arguments
    except Exception:  # noqa: BLE001  # a callable of the program's own may raise anything
        return {"args": args, **kwargs}
    return {name: value for name, value in bound.items() if name not in {"self", "cls"}}


def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """Return a callable's signature; an annotation that only type checkers can resolve stays unresolved.

    Raises:
        TypeError, ValueError: it has none.
    """
    if sys.version_info >= (3, 14):
        from annotationlib import Format

        # Annotations are evaluated here, not at the definition, and would raise NameError.
        return inspect.signature(function, annotation_format=Format.FORWARDREF)
    return inspect.signature(function)


_signature = functools.lru_cache(maxsize=512)(signature_of)


def _whole(pieces: list[Any]) -> Any:
    """Join the items of a generator: texts to one text."""
    return "".join(pieces) if all(isinstance(piece, str) for piece in pieces) else pieces


def _comes_later(value: Any) -> bool:
    """Return whether a value is a stream, which only the caller may consume."""
    kind = type(value)
    return hasattr(kind, "__next__") or hasattr(kind, "__anext__") or hasattr(kind, "__await__")
