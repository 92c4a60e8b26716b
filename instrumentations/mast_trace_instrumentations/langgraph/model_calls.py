"""Whether a call of a chat model is to have a span, and whether it has one already."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from opentelemetry import context as otel_context

from mast_trace.spans import chat_is_open, current_run, with_chat

if TYPE_CHECKING:
    from opentelemetry.context import Context

_CALL = "mast-trace-langchain-chat"


@dataclass(eq=False)
class ModelCall:
    """A call of a chat model that is going on, marked in the context of what runs beneath it.

    Attributes:
        outside: the context around the call, where its span belongs.
        nested: whether another model's call, which has its span, is what it serves.
        begun: whether the callback has been told of it.
    """

    outside: Context
    nested: bool = False
    begun: bool = False


def enter() -> Context | None:
    """Return the context for a call of a chat model; None where none is to be recorded.

    In it an instrumentation of the model's client sees that the call has its span.
    """
    context = otel_context.get_current()
    if current_run(context) is None:
        return None
    around = otel_context.get_value(_CALL, context)
    if isinstance(around, ModelCall):
        if not around.begun:
            return None  # streaming that falls back to a plain call: the same call
        call = ModelCall(context, nested=True)
    elif chat_is_open(context):
        return None
    else:
        call = ModelCall(context)
    return otel_context.set_value(_CALL, call, with_chat(context))


def begin() -> Context | None:
    """Return the context in which the span of the call that begins belongs; None if it has one."""
    context = otel_context.get_current()
    if current_run(context) is None:
        return None
    call = otel_context.get_value(_CALL, context)
    if isinstance(call, ModelCall):
        call.begun = True
        return None if call.nested else call.outside
    return None if chat_is_open(context) else context
