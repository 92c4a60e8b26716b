"""Turns messages into attributes: cleaned, each text written once in a run, referred to by id."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mast_trace import semconv
from mast_trace.content import as_text, shown, truncate, well_formed
from mast_trace.messages import Message, ToolCall, parsed
from mast_trace.spans.run_state import UNNAMED_CALL, current_run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opentelemetry.context import Context

    from mast_trace.content import ContentPolicy
    from mast_trace.spans.run_state import Run

Attributes = dict[str, Any]

_to_json = json.JSONEncoder(ensure_ascii=False, default=shown).encode


class MessageWriter:
    """Writes messages as a `ContentPolicy` says."""

    def __init__(self, content: ContentPolicy) -> None:
        self._content = content

    def inputs(self, messages: Sequence[Message], context: Context) -> Attributes:
        """Return the attributes that say what was seen: ids of all, the text of the new.

        With ``capture_content="full"`` the text of all of them is written out.
        """
        run = current_run(context)
        if self._content.redact is not None:
            messages = [self._cleaned(message, run) for message in messages]
        held = _hold(messages, run)
        attributes: Attributes = {
            semconv.INPUT_MESSAGE_IDS: [identity for identity, _ in held],
            semconv.INPUT_MESSAGE_ROLES: [message.role for message in messages],
            semconv.INPUT_LENGTH: sum([len(message.content) for message in messages]),
        }
        full = self._content.full
        written = [
            (identity, message)
            for (identity, new), message in zip(held, messages, strict=True)
            if new or full
        ]
        if written and self._content.capture:
            attributes[semconv.INPUT_MESSAGES] = self._genai(written)
        return attributes

    def produced(self, message: Message, context: Context) -> Attributes:
        """Return the attributes for what a span answered: its id, and its text if it is new."""
        run = current_run(context)
        message = self._cleaned(message, run)
        [(identity, new)] = _hold([message], run)
        attributes: Attributes = {
            semconv.MESSAGE_ID: identity,
            semconv.MESSAGE_CONTENT_HASH: message.key,
        }
        if self._content.capture and (new or self._content.full):
            attributes[semconv.OUTPUT_MESSAGES] = self._genai([(identity, message)])
        return attributes

    def said(self, message: Message, context: Context) -> Attributes:
        """Return the attributes of a message span: its id and, always, its text."""
        run = current_run(context)
        message = self._cleaned(message, run)
        attributes: Attributes = {
            semconv.MESSAGE_ID: (
                run.say(message.key, message.id, message.calls)
                if run
                else message.id or message.key
            ),
            semconv.MESSAGE_ROLE: message.role,
            semconv.MESSAGE_CONTENT_HASH: message.key,
        }
        if self._content.capture:
            kept = truncate(message.content, self._content.limit)
            attributes[semconv.MESSAGE_CONTENT] = kept
            if len(kept) != len(message.content):
                attributes[semconv.CONTENT_TRUNCATED] = [semconv.MESSAGE_CONTENT]
            if message.tool_calls:
                calls = [
                    {"id": c.id, "name": c.name, "arguments": c.arguments}
                    for c in message.tool_calls
                ]
                attributes[semconv.MESSAGE_TOOL_CALLS] = as_text(calls, self._content.limit)
        return attributes

    def returned(self, value: Any, context: Context, call_id: str | None = None) -> Attributes:
        """Return the attributes of a tool's result: its text, known from now on by an id."""
        text = self._content.text(value)
        message = Message(text, role="tool", tool_call_id=call_id or UNNAMED_CALL)
        run = current_run(context)
        attributes: Attributes = {semconv.MESSAGE_CONTENT_HASH: message.key}
        if run:
            [(attributes[semconv.MESSAGE_ID], _)] = run.hold([message])
        if self._content.capture:
            kept = truncate(text, self._content.limit)
            attributes[semconv.TOOL_CALL_RESULT] = kept
            if len(kept) != len(text):
                attributes[semconv.CONTENT_TRUNCATED] = [semconv.TOOL_CALL_RESULT]
        return attributes

    def _cleaned(self, message: Message, run: Run | None) -> Message:
        """Redact a message before anything is derived from it: its hash would give it away."""
        content = self._content
        if content.redact is None:
            return message
        known = run.cleaned.get(message.key) if run else None
        if known is None:
            calls = tuple(
                ToolCall(call.name, content.text(call.arguments), call.id)
                if call.arguments is not None
                else call
                for call in message.tool_calls
            )
            known = (content.clean(message.content), calls)
            if run:
                run.cleaned[message.key] = known
        return replace(message, content=known[0], tool_calls=known[1])

    def _genai(self, written: Sequence[tuple[str, Message]]) -> str:
        """Render messages as the convention's JSON, the limit shared between their texts."""
        limit = self._content.limit
        shares = _shares([len(message.content) for _, message in written], limit)
        shapes: list[dict[str, Any]] = []
        for (identity, message), share in zip(written, shares, strict=True):
            shape = message.to_genai(truncate(message.content, share))
            shape["id"] = identity
            for part in shape["parts"]:
                if part["type"] == "tool_call":
                    part["arguments"] = _arguments(part["arguments"], limit)
            shapes.append(shape)
        return well_formed(_to_json(shapes))


def _hold(messages: Sequence[Message], run: Run | None) -> list[tuple[str, bool]]:
    if run is None:
        return [(message.id or message.key, True) for message in messages]
    return run.hold(messages)


def _arguments(arguments: Any, limit: int) -> Any:
    """Return a call's arguments as plain JSON no larger than ``limit``; as cut text if larger."""
    if arguments is None:
        return None
    text = as_text(arguments, limit)
    return parsed(text) if len(text) <= limit else truncate(text, limit)


def _shares(lengths: Sequence[int], limit: int) -> list[int]:
    """Share ``limit`` between texts such that short ones stay whole and long ones get as much."""
    if sum(lengths) <= limit:
        return [limit] * len(lengths)
    shares = [limit] * len(lengths)
    left, texts = limit, len(lengths)
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        shares[index] = max(left // texts, 256)
        left -= min(lengths[index], shares[index])
        texts -= 1
    return shares
