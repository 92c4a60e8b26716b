"""Calls of chat models: whether a call needs a span, has one already, and that the span ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from opentelemetry import context as otel_context

from mast_trace.spans import ChatSpan, OpenChat, chat_is_open, current_run, with_chat

if TYPE_CHECKING:
    from opentelemetry.context import Context


_CALL = "mast-trace-langchain-chat"


@dataclass(eq=False)
class MarkedCall:
    """A chat model's call in progress, marked in the context of the code beneath it.

    Attributes:
        outside: the context around the call, the parent of its span.
        nested: whether the call serves another model's call that has a span.
        begun: whether the callback has been invoked for it.
        chat: shows the call's span to an instrumentation of the model's client.
    """

    outside: Context
    nested: bool = False
    begun: bool = False
    chat: OpenChat = field(default_factory=OpenChat)
    endings: list[Callable[[BaseException | None], None]] = field(default_factory=list)

    @property
    def context(self) -> Context:
        """The context of the code beneath the call.

        An instrumentation of the model's client sees in it that the call has a span.
        """
        return otel_context.set_value(_CALL, self, with_chat(self.outside, self.chat))

    def end(self, _result: Any, error: BaseException | None) -> None:
        """End the spans that the callback has begun without being notified of an end.

        LangChain does not notify it where a call is cancelled while several are awaited, as in
        `agenerate`.
        """
        for ending in self.endings:
            ending(error)


def enter() -> MarkedCall | None:
    """Return the call of a chat model that begins; None where none is to be recorded."""
    context = otel_context.get_current()
    if current_run(context) is None:
        return None
    around = otel_context.get_value(_CALL, context)
    if isinstance(around, MarkedCall):
        if not around.begun:
            return None  # streaming that falls back to a plain call: the same call
        return MarkedCall(context, nested=True)
    return None if chat_is_open(context) else MarkedCall(context)


def begin() -> Context | None:
    """Return the parent context for the span of the call that begins; None if the call has one."""
    context = otel_context.get_current()
    if current_run(context) is None:
        return None
    call = otel_context.get_value(_CALL, context)
    if isinstance(call, MarkedCall):
        call.begun = True
        return None if call.nested else call.outside
    return None if chat_is_open(context) else context


def show_span(span: ChatSpan) -> None:
    """Show the span of the call in progress to the code beneath it."""
    call = otel_context.get_value(_CALL)
    if isinstance(call, MarkedCall) and not call.nested:
        call.chat.span = span.span


def end_with_call(ending: Callable[[BaseException | None], None]) -> None:
    """Register ``ending`` to be called when the chat model's call in progress ends."""
    call = otel_context.get_value(_CALL)
    if isinstance(call, MarkedCall):
        call.endings.append(ending)
