"""An agent's turn: the span `invoke_agent` around its reply."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from opentelemetry import context as otel_context

from mast_trace import semconv
from mast_trace.spans import guarded
from mast_trace_instrumentations.autogen.reading import name_of, read, shown
from mast_trace_instrumentations.autogen.run import current_conversation
from mast_trace_instrumentations.autogen.state import within

if TYPE_CHECKING:
    from collections.abc import Callable

    from mast_trace.spans import AgentSpan, Telemetry
    from mast_trace_instrumentations.autogen.run import Conversation


def take_turn(
    telemetry: Telemetry,
    agent: Any,
    call: Callable[[], Any],
    messages: list[dict[str, Any]] | None,
    sender: Any,
) -> Any:
    """Let ``agent`` reply inside its span."""
    span: AgentSpan | None = None
    with guarded("beginning an agent's turn"):
        conversation = current_conversation()
        history = messages if messages is not None else agent.chat_messages.get(sender, [])
        span = telemetry.agent(
            name_of(agent),
            parent=otel_context.get_current(),
            input=shown(history),
            attributes=_called_up(conversation, name_of(agent)) if conversation else None,
        )
    if span is None:
        return call()
    return within(span.context, call, partial(_end, span))


def _called_up(conversation: Conversation, name: str) -> dict[str, Any]:
    """Return why it is this agent's turn, once."""
    attributes: dict[str, Any] = {}
    if conversation.selection and conversation.selection[0] == name:
        chosen, by = conversation.selection
        conversation.selection = None
        attributes |= {semconv.SELECTED_SPEAKER: chosen, semconv.SELECTED_BY: by}
        if conversation.handoff:
            attributes[semconv.HANDOFF_SOURCE] = conversation.handoff[0]
            attributes[semconv.HANDOFF_TARGET] = name
            conversation.handoff = None
    return attributes


def _end(span: AgentSpan, reply: Any, error: BaseException | None) -> None:
    if reply is not None and error is None:
        message = read(reply)
        if message.content or message.tool_calls:
            span.reply(message)
    span.end(error)
