"""AG2's events and envelopes, read into the messages of the contract.

A model's input is rebuilt as AG2's mappers build it: one system message, one user message per
request, one tool message per result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mast_trace.content import as_text, joined
from mast_trace.messages import Message, ToolCall

if TYPE_CHECKING:
    Encode = Callable[[Any], str]


def encoder(serializer: Any) -> Encode:
    """Return structured data as text: as AG2 encodes it, else as JSON."""

    def encode(data: Any) -> str:
        try:
            return str(serializer.encode(data).decode())
        except Exception:  # noqa: BLE001  # a user's serializer may raise anything
            return as_text(data)

    return encode


def text_of(parts: Iterable[Any], encode: Encode) -> str:
    """Return the text of a request's or a result's parts, one below the other."""
    return joined("\n", (_part(part, encode) for part in parts))


def _part(part: Any, encode: Encode) -> str:
    kind = type(part).__name__
    if hasattr(part, "content"):
        return str(part.content)
    if kind == "DataInput":
        return encode(part.data)
    # Binary parts are represented by their type; their bytes are no text.
    shown = {"type": kind}
    for name in ("media_type", "url", "file_id", "filename"):
        if getattr(part, name, None):
            shown[name] = str(getattr(part, name))
    return as_text(shown)


def answer(response: Any) -> Message:
    """Read a model's response: its text and the calls that it asks for."""
    calls = getattr(response.tool_calls, "calls", ()) or ()
    return Message(
        content=response.content or "",
        tool_calls=tuple(ToolCall(call.name, call.arguments, call.id) for call in calls),
    )


def shown_to_model(prompt: Iterable[str], events: Sequence[Any], encode: Encode) -> list[Message]:
    """Rebuild the messages of a request, in order."""
    system = "\n".join(prompt)
    head = [Message(system, role="system")] if system else []
    return head + seen(events, encode)


def seen(events: Iterable[Any], encode: Encode) -> list[Message]:
    """Read the part of a history that reaches a model."""
    from ag2.compact import CompactionSummary
    from ag2.events import ModelRequest, ModelResponse, ToolResultsEvent

    messages: list[Message] = []
    for event in events:
        if isinstance(event, ModelRequest):
            messages.append(Message(text_of(event.parts, encode), role="user"))
        elif isinstance(event, ModelResponse):
            messages.append(answer(event))
        elif isinstance(event, ToolResultsEvent):
            messages.extend(
                Message(text_of(r.result.parts, encode), role="tool", tool_call_id=r.parent_id)
                for r in event.results
            )
        elif isinstance(event, CompactionSummary):
            summary = f"[Summary of earlier conversation]\n{event.summary}"
            messages.append(Message(summary, role="user"))
    return messages


def heard(messages: Iterable[Message], sent: Mapping[str, str]) -> list[Message]:
    """Return an agent's input, with channel messages in their original form.

    A channel's view puts ``[name]:`` before the text and adds lines of its own. The original
    message is recovered from it, so that it counts as the sender's and not as another text.

    Args:
        messages: the model's input.
        sent: the texts sent in the channel, by `Message.key`.
    """
    found: list[Message] = []
    for message in messages:
        if message.role != "user" or message.key in sent or not message.content.startswith("["):
            found.append(message)
            continue
        label, colon, words = message.content.partition("]: ")
        speech = Message(words, role="user", name=label[1:]) if colon else message
        if speech.key not in sent and "\n" in speech.content:
            # The line of a hand-off stands before the text that was sent with it.
            speech = Message(speech.content.partition("\n")[2], role="user", name=speech.name)
        found.append(speech if speech.key in sent else message)
    return found
