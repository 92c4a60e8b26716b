"""Envelopes of AG2's network, read into text, sender, receivers, and the next speaker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mast_trace import semconv
from mast_trace.content import as_text
from mast_trace.messages import Message

if TYPE_CHECKING:
    from mast_trace.spans import Telemetry

TEXT = "ag2.msg.text"
PACKET = "ag2.packet"
_LONGEST_TITLE = 120


def is_message(envelope: Any) -> bool:
    """Return whether agents exchange text with it: AG2's other types are protocol."""
    kind = envelope.event_type
    return kind in {TEXT, PACKET} or not kind.startswith("ag2.")


def read(hub: Any, envelope: Any, *, first: bool) -> Message:
    """Return the message that an envelope carries.

    Args:
        hub: the hub at which the sender is registered.
        envelope: the carrier.
        first: whether it opens the conversation: then it is the task, in the user's role.
    """
    human = _kind(hub, envelope.sender_id) == "human"
    return Message(
        content=_text(envelope),
        role="user" if human or first else "assistant",
        name=name_of(hub, envelope.sender_id),
    )


def _text(envelope: Any) -> str:
    data = envelope.event_data
    if envelope.event_type == TEXT:
        return as_text(data.get("text"))
    if envelope.event_type != PACKET:
        return as_text(data)
    body = as_text(data.get("body"))
    routing = data.get("routing") or {}
    if not body and routing.get("kind") == "handoff":
        # A silent hand-off: AG2 shows this line to the next speaker.
        return f"[Handed off via {routing.get('tool', 'handoff')}] {routing.get('reason') or ''}".strip()
    return body or as_text(routing.get("summary"))


def name_of(hub: Any, agent_id: str) -> str:
    """Return the name under which an agent is registered, or its id."""
    return str(hub.name_for(agent_id))


def recipients(hub: Any, envelope: Any, metadata: Any) -> list[str]:
    """Return the names of the receivers: the audience, else everybody but the sender."""
    audience = envelope.audience
    ids = [p.agent_id for p in metadata.participants] if audience is None else audience
    return [name_of(hub, agent_id) for agent_id in ids if agent_id != envelope.sender_id]


def routing(hub: Any, envelope: Any) -> dict[str, Any]:
    """Return the next speaker and who chose it, once the channel has accepted the envelope."""
    state = hub._adapter_states.get(envelope.channel_id)  # noqa: SLF001  # no public face before 1.1
    following = getattr(state, "expected_next_speaker", None)
    decided = envelope.event_data.get("routing") or {} if envelope.event_type == PACKET else {}
    attributes: dict[str, Any] = {}
    if following:
        attributes[semconv.SELECTED_SPEAKER] = name_of(hub, following)
        attributes[semconv.SELECTED_BY] = "agent" if decided.get("kind") == "handoff" else "code"
    if decided.get("kind") == "handoff":
        target = following or decided.get("target")
        attributes[semconv.HANDOFF_SOURCE] = name_of(hub, envelope.sender_id)
        attributes[semconv.HANDOFF_TARGET] = name_of(hub, target) if target else None
    return {name: value for name, value in attributes.items() if value is not None}


def title_of(telemetry: Telemetry, hub: Any, channel_id: str) -> str:
    """Return the purpose of a channel in a line, else its type.

    A model may have written the intent, so it is content; types are conversation, consulting,
    discussion, workflow, and the user's own.
    """
    metadata = hub._channels.get(channel_id)  # noqa: SLF001
    if metadata is None:
        return "channel"
    intent = telemetry.content.render(metadata.labels.get("intent", "")) or ""
    return " ".join(intent.split())[:_LONGEST_TITLE] or str(metadata.manifest.type)


def _kind(hub: Any, agent_id: str) -> str:
    passport = hub._passports.get(agent_id)  # noqa: SLF001
    return str(getattr(passport, "kind", None) or "agent")
