"""Messages between agents: one span each, even if the framework forwards them."""

from __future__ import annotations

import dataclasses
from typing import Any

from opentelemetry import context as otel_context

from mast_trace import semconv
from mast_trace.messages import Message
from mast_trace.spans import Telemetry, current_run
from mast_trace_instrumentations.autogen.reading import as_dict, members, name_of, read
from mast_trace_instrumentations.autogen.run import Chat, current_chat

_ROLES = {"user": "user", "tool": "tool", "function": "tool"}


def record_message(telemetry: Telemetry, recipient: Any, message: Any, sender: Any) -> None:
    """Record that ``recipient`` receives ``message``, unless the message is only forwarded."""
    context = otel_context.get_current()
    run, chat = current_run(context), current_chat(context)
    if run is None or chat is None:
        return
    sent = _read(message, first=not chat.begun)
    group = members(sender)
    passed_on = group is not None and recipient in group
    # When AutoGen forwards calls, it may change the empty text beside them.
    mark = ("autogen-sent", tuple(c.id or c.name for c in sent.tool_calls) or sent.key)
    if passed_on and not run.once(mark):
        return
    receivers = _receivers(recipient, sender, group if passed_on else None, message)
    if not passed_on and not run.once(mark):
        sent = dataclasses.replace(sent, id=f"{sent.key}.{run.turn}")
    identity = telemetry.message(
        name_of(sender),
        receivers,
        sent,
        parent=context,
        in_reply_to=chat.received.get(name_of(sender)),
        attributes=_circumstances(chat, sender, synthetic=passed_on),
    )
    if not passed_on:
        chat.received.update(dict.fromkeys(receivers, identity))
    for call in sent.tool_calls:
        if call.id:
            chat.requested[call.id] = name_of(sender)
    if not chat.begun:
        chat.begun = True
        chat.span.set(telemetry.inputs([Message(sent.content, role="user")], context))


def _read(message: Any, *, first: bool) -> Message:
    """Read a message; the one that opens a chat is the task, in the user's role."""
    sent = read(message)
    role = "user" if first else _ROLES.get(sent.role, "assistant")
    return sent if sent.role == role else dataclasses.replace(sent, role=role)


def _receivers(recipient: Any, sender: Any, passed_on_in: Any, message: Any) -> list[str]:
    """Return the receivers: in a group everybody else, for an introduction all members."""
    group = members(recipient)
    if group is not None:
        return [name_of(agent) for agent in group if agent is not sender]
    if passed_on_in is not None and "name" not in as_dict(message or {}):
        return [name_of(agent) for agent in passed_on_in]
    return [name_of(recipient)]


def _circumstances(chat: Chat, sender: Any, *, synthetic: bool) -> dict[str, Any]:
    """Return the attributes of a message beside its text."""
    attributes: dict[str, Any] = {}
    if chat.handoff and chat.handoff[0] == name_of(sender):
        # A condition on the group's variables handed over: AutoGen writes a line in the agent's
        # name.
        source, target = chat.handoff
        chat.handoff = None
        attributes = {semconv.HANDOFF_SOURCE: source, semconv.HANDOFF_TARGET: target}
        synthetic = True
    if synthetic:
        attributes[semconv.MESSAGE_SYNTHETIC] = True
    return attributes
