"""Turns messages into attributes: redacted, each text written once in a run, referred to by id.

Alterations of a span's texts: by the user's redaction, and by the limit of an attribute.

Both are noted on the span, because a text that is not as the program had it cannot stand for it: a replay
would give the program, and look for, another one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mast_trace import semconv
from mast_trace.content import (
    ContentPolicy,
    Redacted,
    as_text,
    is_cut,
    shown,
    truncate,
    well_formed,
)
from mast_trace.messages import Message, ToolCall, parsed
from mast_trace.spans.message_ids import UNNAMED_CALL, MessageIds
from mast_trace.spans.run_state import Run, current_run, current_turn

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span


_MARKS = (semconv.CONTENT_REDACTED, semconv.CONTENT_TRUNCATED)

Attributes = dict[str, Any]
_to_json = json.JSONEncoder(ensure_ascii=False, default=shown).encode


class Alterations:
    """Redacts and cuts the texts of one attribute, and notes whether any of them was changed.

    Attributes:
        redacted: the redact function has returned another text.
        cut: a text did not fit.
    """

    __slots__ = ("_content", "cut", "redacted")

    def __init__(self, content: ContentPolicy) -> None:
        self._content = content
        self.redacted = False
        self.cut = False

    def clean(self, text: str) -> str:
        """Return ``text`` redacted, before truncation."""
        cleaned = self._content.clean(text)
        # A function that finds nothing mostly returns the same object, which costs no comparison.
        if cleaned is not text and cleaned != text:
            self.redacted = True
        return cleaned

    def text(self, value: Any) -> str:
        """Return any value as redacted text, before truncation."""
        if self._content.redact is None:
            return as_text(value, self._content.limit, on_cut=self.note_cut)
        self.redacted = self.redacted or isinstance(value, Redacted)
        return self.clean(as_text(value, self._content.limit, self.clean, self.note_cut))

    def kept(self, text: str, limit: int | None = None) -> str:
        """Return ``text`` cut to ``limit`` bytes; to the limit of an attribute if it is absent."""
        kept = truncate(text, self._content.limit if limit is None else limit)
        if kept is not text and is_cut(kept, text):
            self.cut = True
        return kept

    def note_cut(self) -> None:
        """Note that a text is not whole."""
        self.cut = True

    def marks(self, attribute: str) -> dict[str, Any]:
        """Return the attributes that name ``attribute`` as altered; none if it is not."""
        if not (self.redacted or self.cut):
            return {}
        altered = zip(_MARKS, (self.redacted, self.cut), strict=True)
        return {mark: [attribute] for mark, is_altered in altered if is_altered}


def with_earlier_marks(
    attributes: dict[str, Any], span: Span, waiting: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return ``attributes`` with the names of altered attributes that a span has already.

    Args:
        attributes: about to be written on the span, where they replace attributes of the same names.
        span: an open span.
        waiting: attributes that are written on it later.
    """
    # Every span passes here, and hardly any has a mark.
    if semconv.CONTENT_REDACTED not in attributes and semconv.CONTENT_TRUNCATED not in attributes:
        return attributes
    for mark in _MARKS:
        if mark in attributes:
            earlier = (getattr(span, "attributes", None) or {}, waiting or {})
            before = [name for each in earlier for name in each.get(mark, ())]
            attributes[mark] = list(dict.fromkeys([*before, *attributes[mark]]))
    return attributes


class MessageWriter:
    """Writes messages as a `ContentPolicy` says."""

    def __init__(self, content: ContentPolicy) -> None:
        self._content = content

    def inputs(self, messages: Sequence[Message], context: Context) -> Attributes:
        """Return the attributes of an input: ids of all its messages, the texts of new ones.

        With ``capture_content="full"`` all texts are written out.
        """
        run, altered = current_run(context), Alterations(self._content)
        if self._content.redact is not None:
            messages = [self._cleaned(message, run, altered) for message in messages]
        held = _ids_of(run).show(messages)
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
            attributes[semconv.INPUT_MESSAGES] = self._genai(written, altered)
        attributes.update(altered.marks(semconv.INPUT_MESSAGES))
        return attributes

    def answered(self, message: Message, context: Context) -> Attributes:
        """Return the attributes of a model's answer: its id, and its text."""
        run, turn = current_run(context), current_turn(context)
        altered = Alterations(self._content)
        message = self._cleaned(message, run, altered)
        held = _ids_of(run).answer(message, None if turn is None else turn.agent)
        if turn is not None:
            turn.sent[message.key] = held[0]
        return self._produced(message, *held, altered)

    @property
    def captures(self) -> bool:
        """True if content is captured."""
        return bool(self._content.capture)

    def beside(self, parts: Mapping[str, Any] | None) -> Attributes:
        """Return the attribute of the parts of an answer beside its text and its tool calls.

        They are content: redacted text by text, and absent where content is not captured. A cut structure could
        not be read, so that one above the limit is left out, and ``left_out`` tells its length.
        """
        if not parts or not self._content.capture:
            return {}
        altered = Alterations(self._content)
        written = json.dumps(_redacted(parts, altered), ensure_ascii=False, default=shown)
        if len(written.encode("utf-8", "replace")) > self._content.limit:
            written = json.dumps({"left_out": len(written)})
        return {
            semconv.RESPONSE_EXTRA: well_formed(written),
            **altered.marks(semconv.RESPONSE_EXTRA),
        }

    def replied(self, message: Message, context: Context) -> Attributes:
        """Return the attributes of a turn's output: its id, and its text if it is new.

        If the agent sent the same text in this turn, or its model answered it, the output is that
        message.
        """
        run, turn = current_run(context), current_turn(context)
        altered = Alterations(self._content)
        message = self._cleaned(message, run, altered)
        key = message.key
        if turn is not None and key in turn.sent and not message.id:
            return self._produced(message, turn.sent[key], new=False, altered=altered)
        agent = None if turn is None else turn.agent
        return self._produced(message, *_ids_of(run).answer(message, agent), altered)

    def _produced(
        self, message: Message, identity: str, new: bool, altered: Alterations
    ) -> Attributes:
        attributes: Attributes = {
            semconv.MESSAGE_ID: identity,
            semconv.MESSAGE_CONTENT_HASH: message.key,
        }
        if self._content.capture and (new or self._content.full):
            attributes[semconv.OUTPUT_MESSAGES] = self._genai([(identity, message)], altered)
        attributes.update(altered.marks(semconv.OUTPUT_MESSAGES))
        return attributes

    def identify(self, sender: str, message: Message, context: Context) -> str:
        """Return the id of a message that ``sender`` sends now, or is known to send later."""
        run = current_run(context)
        message = self._cleaned(message, run, Alterations(self._content))
        return self._identified(sender, message, run, context)

    def sent(self, sender: str, message: Message, context: Context) -> Attributes:
        """Return the attributes of a message span: its id and, always, its text."""
        run, altered = current_run(context), Alterations(self._content)
        message = self._cleaned(message, run, altered)
        attributes: Attributes = {
            semconv.MESSAGE_ID: self._identified(sender, message, run, context),
            semconv.MESSAGE_ROLE: message.role,
            semconv.MESSAGE_CONTENT_HASH: message.key,
        }
        if self._content.capture:
            attributes[semconv.MESSAGE_CONTENT] = altered.kept(message.content)
        attributes.update(altered.marks(semconv.MESSAGE_CONTENT))
        if self._content.capture and message.tool_calls:
            calls = [
                {"id": c.id, "name": c.name, "arguments": c.arguments} for c in message.tool_calls
            ]
            name, cut = semconv.MESSAGE_TOOL_CALLS, Alterations(self._content)
            attributes[name] = as_text(calls, self._content.limit, on_cut=cut.note_cut)
            for mark, names in cut.marks(name).items():
                attributes[mark] = [*attributes.get(mark, ()), *names]
        return attributes

    @staticmethod
    def _identified(sender: str, message: Message, run: Run | None, context: Context) -> str:
        if run is None:
            return message.id or message.key
        turn = current_turn(context)
        identity = run.messages.say(message, sender, None if turn is None else turn.agent)
        if turn is not None and turn.agent == sender:
            turn.sent[message.key] = identity
        return identity

    def returned(self, value: Any, context: Context, call_id: str | None = None) -> Attributes:
        """Return the attributes of a tool's result: its text, which is referred to by an id from now on."""
        altered = Alterations(self._content)
        text = altered.text(value)
        message = Message(text, role="tool", tool_call_id=call_id or UNNAMED_CALL)
        run = current_run(context)
        attributes: Attributes = {semconv.MESSAGE_CONTENT_HASH: message.key}
        if run:
            attributes[semconv.MESSAGE_ID], _ = run.messages.result(message)
        if self._content.capture:
            attributes[semconv.TOOL_CALL_RESULT] = altered.kept(text)
        attributes.update(altered.marks(semconv.TOOL_CALL_RESULT))
        return attributes

    def called(self, arguments: Any) -> Attributes:
        """Return the attribute of a tool's arguments; none without arguments, or without content."""
        if arguments is None or not self._content.capture:
            return {}
        altered = Alterations(self._content)
        text = altered.kept(altered.text(arguments))
        name = semconv.TOOL_CALL_ARGUMENTS
        return {name: text, **altered.marks(name)}

    def _cleaned(self, message: Message, run: Run | None, altered: Alterations) -> Message:
        """Redact a message before anything is derived from it: the hash of a secret would give it away."""
        content = self._content
        if content.redact is None:
            return message
        known = run.cleaned.get(message.key) if run else None
        if known is None:
            own = Alterations(content)
            calls = tuple(
                ToolCall(call.name, own.text(call.arguments), call.id)
                if call.arguments is not None
                else call
                for call in message.tool_calls
            )
            known = (own.clean(message.content), calls, own.redacted, own.cut)
            if run:
                run.cleaned[message.key] = known
        altered.redacted = altered.redacted or known[2] or isinstance(message.content, Redacted)
        altered.cut = altered.cut or known[3]
        return replace(message, content=known[0], tool_calls=known[1])

    def _genai(self, written: Sequence[tuple[str, Message]], altered: Alterations) -> str:
        """Render messages as the convention's JSON; the texts share the limit."""
        limit = self._content.limit
        lengths = [len(message.content) for _, message in written]
        arguments = [
            "" if call.arguments is None else call.text_within(limit, altered.note_cut)
            for _, message in written
            for call in message.tool_calls
        ]
        shares = _shares(lengths + [len(text) for text in arguments], limit)
        given = iter(zip(arguments, shares[len(lengths) :], strict=True))
        shapes: list[dict[str, Any]] = []
        for (identity, message), share in zip(written, shares, strict=False):
            shape = message.to_genai(altered.kept(message.content, share))
            shape["id"] = identity
            for part in shape["parts"]:
                if part["type"] == "tool_call":
                    text, room = next(given)
                    part["arguments"] = (
                        _arguments(text, room, altered) if text else part["arguments"]
                    )
            shapes.append(shape)
        return well_formed(_to_json(shapes))


def _ids_of(run: Run | None) -> MessageIds:
    # Outside of runs each span is read for itself; its ids still have to differ.
    return MessageIds() if run is None else run.messages


def _redacted(value: Any, altered: Alterations) -> Any:
    if isinstance(value, str):
        return altered.clean(value)
    if isinstance(value, dict):
        # Types are words of the provider's interface, without which nothing could be rebuilt.
        return {
            str(key): item if key == "type" and isinstance(item, str) else _redacted(item, altered)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [_redacted(item, altered) for item in value]
    return value if value is None or isinstance(value, int | float) else altered.clean(shown(value))


def _arguments(text: str, limit: int, altered: Alterations) -> Any:
    """Return a call's arguments as plain JSON no larger than ``limit``; as cut text if larger."""
    return parsed(text) if len(text) <= limit else altered.kept(text, limit)


def _shares(lengths: Sequence[int], limit: int) -> list[int]:
    """Share ``limit`` between texts so that short ones stay whole and long ones get equal parts."""
    if sum(lengths) <= limit:
        return [limit] * len(lengths)
    shares = [limit] * len(lengths)
    left, texts = limit, len(lengths)
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        shares[index] = max(left // texts, 256)
        left -= min(lengths[index], shares[index])
        texts -= 1
    return shares
