"""Answers of the model, whole or streamed."""

from __future__ import annotations

from typing import Any, Final

from mast_trace.messages import Message, ToolCall
from mast_trace_instrumentations.model_calls import Answer, field
from mast_trace_instrumentations.model_calls.call import CHARS, left, plain
from mast_trace_instrumentations.openai.requests import text_of, tool_call

_OF_MESSAGE: Final = ("role", "content", "tool_calls", "function_call", "parsed")
_OF_ITEM: Final = ("content", "arguments", "name", "call_id", "parsed", "parsed_arguments")
_OF_PART: Final = ("text", "parsed")
_USUAL: Final = {"type", "id", "status"}
_CALL, _MESSAGE, _TEXT = "function_call", "message", "output_text"

_FINISHED = {"max_output_tokens": "length"}


def chat_extra(message: Any) -> dict[str, Any]:
    """Return the extra of a message of Chat Completions, such as its refusal; empty without any."""
    found = left(message, _OF_MESSAGE)
    return {"message": found} if found else {}


class ChatExtra:
    """Assembles the extra of a streamed message from its deltas: texts and lists are continued."""

    def __init__(self) -> None:
        self._found: dict[str, Any] = {}

    def add(self, delta: Any) -> None:
        """Take the next delta."""
        for key, value in left(delta, _OF_MESSAGE).items():
            before = self._found.get(key)
            same = isinstance(before, str | list) and type(before) is type(value)
            self._found[key] = before + value if same else value

    def extra(self) -> dict[str, Any]:
        """Return the extra so far."""
        return {"message": self._found} if self._found else {}


def responses_extra(output: Any) -> dict[str, Any]:
    """Return the items of a response's output in order, texts and calls aside.

    It is empty where the output is at most one message of one text, followed by calls, which say it all.
    """
    items = [_item(each) for each in output or ()]
    messages = [each for each in items if each.get("type") == _MESSAGE]
    is_plain = all(_is_plain(each) for each in items) and messages == items[:1][: len(messages)]
    return {} if is_plain else {"output": items}


def _is_plain(item: dict[str, Any]) -> bool:
    """Return whether an item is a call, or a message of at most one text, and nothing else is known of it."""
    if item.get("type") == _CALL:
        return set(item) <= _USUAL
    parts = item.get("content", ())
    if item.get("type") != _MESSAGE or set(item) - {*_USUAL, "role", "content"} or len(parts) > 1:
        return False
    return all(part == {"type": _TEXT, CHARS: part[CHARS]} for part in parts)


def _item(item: Any) -> dict[str, Any]:
    kind = field(item, "type")
    if kind == _MESSAGE:
        return left(item, _OF_ITEM) | {
            "content": [_part(each) for each in field(item, "content") or ()]
        }
    if kind == _CALL:
        return left(item, _OF_ITEM)
    whole = plain(item)
    return whole if isinstance(whole, dict) else {}


def _part(part: Any) -> dict[str, Any]:
    kept = left(part, _OF_PART)
    refusal = kept.pop("refusal", None)
    return kept | {CHARS: len(refusal if isinstance(refusal, str) else text_of([part]))}


def chat_answer(completion: Any) -> Answer:
    """Read a `ChatCompletion`."""
    choice = completion.choices[0] if completion.choices else None
    about = {"model": completion.model, "response_id": completion.id, **_usage(completion.usage)}
    if choice is None:
        return Answer(None, about)
    about["finish_reason"] = choice.finish_reason
    choice_message = choice.message
    calls = tuple(tool_call(call) for call in choice_message.tool_calls or ())
    text = text_of(choice_message.content) or getattr(choice_message, "refusal", None) or ""
    if extra := chat_extra(choice_message):
        about["extra"] = extra
    return Answer(Message(text, tool_calls=calls), about)


def response_answer(response: Any) -> Answer:
    """Read a `Response`."""
    texts: list[str] = []
    calls: list[ToolCall] = []
    for item in response.output or ():
        if item.type == "message":
            texts.append(text_of(item.content))
        elif item.type == "function_call":
            calls.append(tool_call(item, item.call_id))
    reason = getattr(response.incomplete_details, "reason", None)
    finish = _FINISHED.get(reason, reason) if reason else "tool_calls" if calls else "stop"
    about = {
        "model": str(response.model),
        "response_id": response.id,
        "finish_reason": finish,
        **_usage(response.usage),
    }
    if extra := responses_extra(response.output):
        about["extra"] = extra
    return Answer(Message("".join(texts), tool_calls=tuple(calls)), about)


class ChatAssembly:
    """Assembles the chunks of Chat Completions."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._calls: dict[int, list[str]] = {}
        self._about: dict[str, Any] = {}
        self._extra = ChatExtra()

    def add(self, event: Any) -> None:
        """Take the next chunk; the first of several choices counts."""
        self.begin(event)
        for choice in event.choices or ():
            if choice.index:
                continue
            self.finish(choice.finish_reason)
            delta = choice.delta
            self.say(delta.content or getattr(delta, "refusal", None))
            self._extra.add(delta)
            for piece in delta.tool_calls or ():
                self._add_call(piece)

    def begin(self, event: Any) -> None:
        """Take the fields that every chunk has."""
        self._about.setdefault("model", event.model)
        self._about.setdefault("response_id", event.id)
        self._about.update(_usage(getattr(event, "usage", None)))

    def say(self, text: str | None) -> None:
        """Take a piece of the text."""
        self._texts.append(text or "")

    def finish(self, reason: str | None) -> None:
        """Take the finish reason, where a chunk has it."""
        if reason:
            self._about["finish_reason"] = reason

    def _add_call(self, piece: Any) -> None:
        call = self._calls.setdefault(piece.index, ["", "", ""])
        function = piece.function
        call[0] += piece.id or ""
        call[1] += (function.name if function else None) or ""
        call[2] += (function.arguments if function else None) or ""

    def answer(self) -> Answer:
        """Return the answer received so far."""
        calls = tuple(
            ToolCall(name, arguments, identity or None)
            for _, (identity, name, arguments) in sorted(self._calls.items())
        )
        if not self._about:
            return Answer()
        extra = self._extra.extra()
        about = {**self._about, "extra": extra} if extra else self._about
        return Answer(Message("".join(self._texts), tool_calls=calls), about)


class ResponseAssembly:
    """Waits for the event that holds the whole response; keeps the pieces in case none comes."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._whole: Any = None

    def add(self, event: Any) -> None:
        """Take the next event."""
        if event.type == "response.output_text.delta":
            self._texts.append(event.delta)
        elif event.type in {"response.completed", "response.incomplete", "response.failed"}:
            self._whole = event.response

    def answer(self) -> Answer:
        """Return the answer received so far."""
        if self._whole is not None:
            return response_answer(self._whole)
        return Answer(Message("".join(self._texts))) if self._texts else Answer()


def _usage(usage: Any) -> dict[str, Any]:
    """Read token counts; the two interfaces name them differently."""
    if usage is None:
        return {}
    shown = getattr(usage, "prompt_tokens", None)
    output = getattr(usage, "completion_tokens", None)
    details = getattr(usage, "prompt_tokens_details", None)
    if shown is None:
        shown, output = usage.input_tokens, usage.output_tokens
        details = getattr(usage, "input_tokens_details", None)
    cached = getattr(details, "cached_tokens", None)
    return {"input_tokens": shown, "output_tokens": output, "cached_tokens": cached}
