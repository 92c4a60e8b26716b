"""Reads MetaGPT's objects: names, messages, errors."""

from __future__ import annotations

from typing import Any

from mast_trace.content import as_text
from mast_trace.messages import Message, ToolCall


def name_of(role: Any) -> str:
    """Return a role's profile ("Product Manager"), or its name where it has none."""
    return str(field(role, "profile") or own_name(role) or type(role).__name__)


def own_name(role: Any) -> str:
    """Return the name that a role was given; empty where it was given none."""
    # MetaGPT declares a field and a property of this name: the default is the property itself.
    name = field(role, "name")
    return name if isinstance(name, str) else ""


def message(source: Any) -> Message:
    """Read a message of the environment."""
    structured = field(source, "instruct_content")
    content = str(field(source, "content") or "")
    if not content and structured is not None:
        content = as_text(structured.model_dump())
    return Message(content, role=_role(source), id=str(source.id) or None)


def _role(source: Any) -> str:
    return "user" if str(field(source, "role")).lower() in {"user", "human"} else "assistant"


def sender(source: Any) -> str:
    """Return who a message says it is from, for one that is published outside of a turn."""
    stated = str(field(source, "sent_from") or "")
    return stated.rpartition(".")[2] or str(field(source, "role") or "Human")


def takes_up(role: Any, message: Any) -> bool:
    """Whether a role acts on a message, as `Role._observe` decides; later versions may take all."""
    return (
        message.cause_by in role.rc.watch
        or role.name in message.send_to
        or bool(field(role, "observe_all_msg_from_buffer"))
    )


def chat_messages(messages: Any) -> list[Message]:
    """Read the messages of a model call."""
    if not isinstance(messages, list):
        return [Message(as_text(messages), role="user")]
    return [
        Message(as_text(shape.get("content")), role=str(shape.get("role") or "user"))
        for shape in messages
        if isinstance(shape, dict)
    ]


def answer(result: Any) -> Message:
    """Read a provider's result: text, or a completion object of OpenAI's shape."""
    if isinstance(result, str):
        return Message(result)
    choices = field(result, "choices")
    if not choices:
        return Message(as_text(result))
    said = field(choices[0], "message")
    calls = tuple(
        ToolCall(
            str(field(field(call, "function"), "name") or ""),
            field(field(call, "function"), "arguments"),
            field(call, "id"),
        )
        for call in field(said, "tool_calls") or ()
    )
    return Message(str(field(said, "content") or ""), tool_calls=calls)


def finish_reason(result: Any) -> str | None:
    """Return why the model stopped, where the result says so."""
    choices = field(result, "choices")
    return field(choices[0], "finish_reason") if choices else None


def field(holder: Any, name: str) -> Any:
    """Read a field of what may be a mapping or an object."""
    return holder.get(name) if isinstance(holder, dict) else getattr(holder, name, None)


def cause(error: BaseException) -> BaseException:
    """Return the error behind the plain `Exception` with a traceback as text that roles raise."""
    while type(error) is Exception and error.__context__ is not None:
        error = error.__context__
    return error


def open_items(role: Any) -> list[str]:
    """Return the instructions of the tasks of a role's plan that are not finished."""
    plan = field(field(role, "planner"), "plan")
    return [
        str(task.instruction)
        for task in field(plan, "tasks") or ()
        if not field(task, "is_finished")
    ]
