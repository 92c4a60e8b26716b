"""Finds the messages of a span among all the places in which emitters put them.

Each side of a span is read from the first source in `SOURCES` that holds a message; a source that an
emitter leaves empty is as good as absent. To read another emitter's place, add a row.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from mast_trace import semconv
from mast_trace.content import as_text
from mast_trace.messages import Message, ToolCall
from mast_trace.trajectory import vocabulary
from mast_trace.trajectory.span_messages import call_of, each_answer, message_of, objects, word

EVENTS = "events"
"""Attribute with a span's events as JSON, each with its name under ``event.name``: stores keep them apart, and
pydantic-ai writes them as an attribute."""
TOOL_OUTPUT = "tool.output"
"""Event of Claude Code's spans with the result of a tool."""
_NUMBER = re.compile(r"[0-9]{1,9}")
_DEEPEST = 8
_AROUND = (
    *("messages", "message", "contents", "generations", "choices", "candidates", "content"),
    *("input", "inputs", "prompt", "output", "outputs", "response", "result", "text"),
)
"""Keys under which providers and frameworks put messages, the surest first."""
_SYSTEM = ("system", "system_instruction", "systemInstruction", "instructions")


def with_events(
    attributes: Mapping[str, Any], events: Iterable[tuple[str, Mapping[str, Any]]]
) -> Mapping[str, Any]:
    """Return the attributes of a span with those of its events, names and attributes, that hold texts."""
    told = [
        {**inner, "event.name": name}
        for name, inner in events
        if name.startswith("gen_ai.") or name == TOOL_OUTPUT
    ]
    return {EVENTS: told, **attributes} if told else attributes


def messages_on(attributes: Mapping[str, Any], side: str, *, call: bool) -> list[Message]:
    """Return the messages on one side of a span; none where it holds no texts.

    Args:
        attributes: of the span.
        side: ``input`` or ``output``.
        call: whether it is the call of a model; the whole input of another span is no message.
    """
    found = (read(attributes) for read in SOURCES[side][: None if call else -1])
    told = (each for each in found if any(said.content or said.tool_calls for said in each))
    return next(told, [])


def tool_texts(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments and result of a tool's call as its events tell them."""
    found: dict[str, Any] = {}
    for event in objects(vocabulary.loaded(attributes.get(EVENTS))):
        name = event.get("event.name")
        if name == "gen_ai.tool.message" and event.get("content"):
            found[semconv.TOOL_CALL_ARGUMENTS] = as_text(event["content"])
        elif name == "gen_ai.choice" and event.get("message"):
            said = messages_in(vocabulary.loaded(event["message"]), "tool")
            found[semconv.TOOL_CALL_RESULT] = (
                said[-1].content if said else as_text(event["message"])
            )
        elif name == TOOL_OUTPUT:
            told = next((event[key] for key in ("output", "content") if event.get(key)), None)
            found |= {} if told is None else {semconv.TOOL_CALL_RESULT: as_text(told)}
    return found


def messages_in(value: Any, role: str, depth: int = _DEEPEST) -> list[Message]:
    """Return the messages in a value, whatever is around them.

    Args:
        value: a request, an answer, messages, or a text.
        role: of a text in the place of a message.
        depth: of the search.
    """
    if isinstance(value, str):
        inner = vocabulary.loaded(value) if value[:1] in {"{", "["} else None
        if isinstance(inner, dict | list) and depth:
            return messages_in(inner, role, depth - 1)
        return [Message(value, role=role)] if value.strip() else []
    if not depth or not value:
        return []
    if isinstance(value, list):
        return _listed(value, role, depth)
    return _within(value, role, depth) if isinstance(value, dict) else []


def _listed(value: list[Any], role: str, depth: int) -> list[Message]:
    if len(value) == 2 and all(isinstance(each, str) for each in value):
        given = vocabulary.role(value[0])  # LangChain's short form
        if given in _ROLES:
            return [Message(value[1], role=given)]
    if all(isinstance(each, dict) and _is_part(each) for each in value):
        return [message_of({"role": role, "content": value})]
    return [found for each in value for found in messages_in(each, role, depth - 1)]


def _within(value: dict[str, Any], role: str, depth: int) -> list[Message]:
    for wrapping in ("kwargs", "data"):  # LangChain's messages have them
        inner = value.get(wrapping)
        if isinstance(inner, dict) and "content" in inner:
            value = {**inner, "type": inner.get("type") or value.get("type")}
    if value.keys() & {"role", "type"} and value.keys() & {"parts", "content", "tool_calls"}:
        given = vocabulary.role(word(value.get("role", value.get("type"))))
        shape = {**value, "role": given if given in _ROLES else role}
        if isinstance(value.get("content"), str) and "parts" not in value:
            return [message_of(shape)]
        return [message_of(part) for part in each_answer(shape)]
    system = next((value[key] for key in _SYSTEM if value.get(key)), None)
    if system is None and isinstance(value.get("config"), Mapping):
        system = value["config"].get("system_instruction")
    before = [Message(as_text(system), role="system")] if system and role == "user" else []
    found = (messages_in(value.get(key), role, depth - 1) for key in _AROUND)
    first = next(filter(None, found), [])
    return [*before, *first] if first else []


_ROLES = frozenset({"system", "user", "assistant", "tool"})


def _is_part(shape: Mapping[str, Any]) -> bool:
    return not shape.keys() & {"role", "message"} and bool(
        shape.keys() & {"text", "toolUse", "toolResult", "function_call", "functionCall"}
    )


# -- sources --------------------------------------------------------------------------------------


def _standard(side: str) -> Callable[[Mapping[str, Any]], list[Message]]:
    def read(attributes: Mapping[str, Any]) -> list[Message]:
        standard = vocabulary.loaded(attributes.get(f"gen_ai.{side}.messages"))
        if not isinstance(standard, list) or not standard:
            return []
        messages = [message_of(part) for shape in objects(standard) for part in each_answer(shape)]
        # Some tools write the system prompt in both places.
        told = {message.content for message in messages if message.role == "system"}
        system = attributes.get("gen_ai.system_instructions") if side == "input" else None
        text = _system_text(vocabulary.loaded(system), system) if system else ""
        return [*([Message(text, role="system")] if text and text not in told else []), *messages]

    return read


def _system_text(parts: Any, written: Any) -> str:
    if not isinstance(parts, list):
        return as_text(written if parts is None else parts)
    return "\n".join(str(part.get("content", "")) for part in objects(parts))


def _numbered(prefix: str, inner: str) -> Callable[[Mapping[str, Any]], list[Message]]:
    """Read messages spread over attributes: PREFIX 0 . INNER role, ... tool_calls.0. ..."""

    def read(attributes: Mapping[str, Any]) -> list[Message]:
        fields: dict[int, dict[str, Any]] = {}
        for name, value in attributes.items():
            if not name.startswith(prefix):
                continue
            # Tools that count an empty system prompt leave the first index out.
            number, _, rest = name[len(prefix) :].partition(".")
            if _NUMBER.fullmatch(number):
                fields.setdefault(int(number), {})[rest.removeprefix(inner)] = value
        return [
            Message(
                as_text(shape.get("content", "")) or _numbered_text(shape),
                role=vocabulary.role(word(shape.get("role"))),
                name=word(shape.get("name")),
                tool_calls=_numbered_calls(shape),
                tool_call_id=word(shape.get("tool_call_id")),
            )
            for _, shape in sorted(fields.items())
        ]

    return read


def _numbered_text(shape: Mapping[str, Any]) -> str:
    """The text of a message whose parts are spread as well: contents. 0 .message_content.text."""
    parts = {
        int(number): as_text(value)
        for name, value in shape.items()
        for head, number, rest in [_split(name)]
        if head == "contents" and rest == "message_content.text" and _NUMBER.fullmatch(number)
    }
    return "\n".join(text for _, text in sorted(parts.items()) if text)


def _split(name: str) -> tuple[str, str, str]:
    head, _, rest = name.partition(".")
    number, _, rest = rest.partition(".")
    return head, number, rest


def _numbered_calls(shape: Mapping[str, Any]) -> tuple[ToolCall, ...]:
    calls: dict[int, dict[str, Any]] = {}
    for name, value in shape.items():
        if name.startswith("tool_calls."):
            number, _, rest = name.removeprefix("tool_calls.").partition(".")
            if _NUMBER.fullmatch(number):
                calls.setdefault(int(number), {})[rest.rsplit(".", 1)[-1]] = value
    return tuple(call_of(call, call.get("id")) for _, call in sorted(calls.items()))


def _whole(role: str, *names: str) -> Callable[[Mapping[str, Any]], list[Message]]:
    """Read attributes that hold a whole request or answer: the first with a message in it."""

    def read(attributes: Mapping[str, Any]) -> list[Message]:
        found = (messages_in(attributes.get(name), role) for name in names)
        told = next(filter(None, found), [])
        if told or role == "user":
            return told
        # An object without a message is an answer in a form that the program asked for.
        whole = next((value for name in names if (value := as_text(attributes.get(name)))), "")
        return [Message(whole)] if vocabulary.loaded(whole) else []

    return read


def _of_events(side: str) -> Callable[[Mapping[str, Any]], list[Message]]:
    """Read span events: one for each message, or one with all of them."""

    def read(attributes: Mapping[str, Any]) -> list[Message]:
        messages: list[Message] = []
        for event in objects(vocabulary.loaded(attributes.get(EVENTS))):
            name = str(event.get("event.name") or "")
            if f"gen_ai.{side}.messages" in event:
                return _standard(side)(event)
            if side == "output" and name == "gen_ai.choice":
                said = messages_in(event.get("message") or event, "assistant")
                calls = _told_calls(event)
                messages += said or ([Message("", tool_calls=calls)] if calls else [])
            elif side == "input" and name.startswith("gen_ai.") and name.endswith(".message"):
                messages += _event_message(event, name.split(".")[1])
            elif name == f"gen_ai.content.{'prompt' if side == 'input' else 'completion'}":
                text = event.get("gen_ai.prompt" if side == "input" else "gen_ai.completion")
                messages += messages_in(text, "user" if side == "input" else "assistant")
        return messages

    return read


def _event_message(event: Mapping[str, Any], role: str) -> list[Message]:
    if calls := _told_calls(event):
        return [Message(as_text(event.get("content") or ""), role=role, tool_calls=calls)]
    found = messages_in(event.get("content"), role)
    if role == "tool" and found:
        return [Message(found[-1].content, role="tool", tool_call_id=word(event.get("id")))]
    return found


def _told_calls(event: Mapping[str, Any]) -> tuple[ToolCall, ...]:
    listed = objects(vocabulary.loaded(event.get("tool_calls")))
    return message_of({"tool_calls": listed}).tool_calls


def vercel_answer(text: str, calls: Any) -> list[Message]:
    """Return the answer of a model as Vercel's AI SDK tells it: its text, and its calls of tools; none without either."""
    made = tuple(
        ToolCall(
            str(call.get("toolName") or ""),
            call.get("args", call.get("input")),
            call.get("toolCallId"),
        )
        for call in objects(vocabulary.loaded(calls))
    )
    return [Message(text, tool_calls=made)] if text or made else []


def _vercel_answer(attributes: Mapping[str, Any]) -> list[Message]:
    text = vocabulary.text(attributes, "ai.response.text")
    return vercel_answer(text, attributes.get("ai.response.toolCalls"))


SOURCES: Mapping[str, tuple[Callable[[Mapping[str, Any]], list[Message]], ...]] = {
    "input": (
        _standard("input"),
        _numbered("llm.input_messages.", "message."),
        _numbered("gen_ai.prompt.", ""),
        _numbered("llm.prompts.", ""),
        _of_events("input"),
        _whole(
            "user",
            *("ai.prompt.messages", "gcp.vertex.agent.llm_request", "gen_ai.prompt", "user_prompt"),
            *vocabulary.INPUTS,
        ),
    ),
    "output": (
        _standard("output"),
        _numbered("llm.output_messages.", "message."),
        _numbered("gen_ai.completion.", ""),
        _numbered("llm.completions.", ""),
        _of_events("output"),
        _vercel_answer,
        _whole(
            "assistant",
            *("gcp.vertex.agent.llm_response", "gen_ai.completion", *vocabulary.OUTPUTS),
        ),
    ),
}
"""Side of a span -> its sources, the surest first."""
