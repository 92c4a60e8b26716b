"""Turns of agents: the span `invoke_agent` around an agent's reply."""

from __future__ import annotations

from functools import partial
from typing import Any

from opentelemetry import context as otel_context

from mast_trace import semconv
from mast_trace.spans import AgentSpan, Call, Inside, Telemetry, current_run, in_span
from mast_trace_instrumentations.autogen.reading import name_of, read, shown
from mast_trace_instrumentations.autogen.run import Chat, begin_run, current_chat


def begin_turn(
    telemetry: Telemetry, agent: Any, messages: list[dict[str, Any]] | None, sender: Any
) -> Call:
    """Begin the turn of ``agent``, and a run where there is none."""
    run = None if current_run() else begin_run(telemetry, name_of(agent))
    context = run.context if run else otel_context.get_current()
    chat = current_chat(context)
    history = messages if messages is not None else agent.chat_messages.get(sender, [])
    span = telemetry.agent(
        name_of(agent),
        parent=context,
        input=shown(history),
        attributes=_called_up(chat, name_of(agent)) if chat else None,
    )
    turn = in_span(span, partial(_reply, span))

    def end(reply: Any, error: BaseException | None) -> None:
        try:
            turn.end(reply, error)
        finally:
            if run is not None:
                run.finish(error)

    return Inside(span.context, end)


def _called_up(chat: Chat, name: str) -> dict[str, Any]:
    """Return how this agent was selected for its turn, once."""
    attributes: dict[str, Any] = {}
    if chat.selection and chat.selection[0] == name:
        chosen, by = chat.selection
        chat.selection = None
        attributes |= {semconv.SELECTED_SPEAKER: chosen, semconv.SELECTED_BY: by}
        if chat.handoff:
            attributes[semconv.HANDOFF_SOURCE] = chat.handoff[0]
            attributes[semconv.HANDOFF_TARGET] = name
            chat.handoff = None
    return attributes


def _reply(span: AgentSpan, reply: Any) -> None:
    if reply is not None:
        message = read(reply)
        if message.content or message.tool_calls:
            span.reply(message)
