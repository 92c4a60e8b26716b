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
    """Return the author of a message, for a message that is published outside of a turn."""
    stated = str(field(source, "sent_from") or "")
    return stated.rpartition(".")[2] or str(field(source, "role") or "Human")


def takes_up(role: Any, message: Any) -> bool:
    """Return whether a role acts on a message, as `Role._observe` decides; later versions may take all."""
    return (
        message.cause_by in role.rc.watch
        or role.name in message.send_to
        or bool(field(role, "observe_all_msg_from_buffer"))
    )


def chat_messages(messages: Any) -> list[Message]:
    """Read the messages of a model call: dictionaries, texts, or the environment's own messages."""
    return [_shown(item) for item in (messages if isinstance(messages, list) else [messages])]


def _shown(item: Any) -> Message:
    if isinstance(item, str):
        return Message(item, role="user")
    return Message(
        content=as_text(field(item, "content")),
        role=str(field(item, "role") or "user"),
        name=field(item, "name"),
        tool_calls=_calls(item),
        tool_call_id=field(item, "tool_call_id"),
    )


def _calls(message: Any) -> tuple[ToolCall, ...]:
    return tuple(
        ToolCall(
            str(field(field(call, "function"), "name") or ""),
            field(field(call, "function"), "arguments"),
            field(call, "id"),
        )
        for call in field(message, "tool_calls") or ()
    )


def answer(result: Any) -> Message:
    """Read a provider's result: text, or a completion object in OpenAI's form."""
    if isinstance(result, str):
        return Message(result)
    choices = field(result, "choices")
    if not choices:
        return Message(as_text(result))
    found = field(choices[0], "message")
    return Message(str(field(found, "content") or ""), tool_calls=_calls(found))


def finish_reason(result: Any) -> str | None:
    """Return the reason why the model stopped, where the result has one."""
    choices = field(result, "choices")
    return field(choices[0], "finish_reason") if choices else None


def field(holder: Any, name: str) -> Any:
    """Read a field of a mapping or an object."""
    return holder.get(name) if isinstance(holder, dict) else getattr(holder, name, None)


def cause(error: BaseException) -> BaseException:
    """Return the original error behind the plain `Exception` with a traceback that roles raise."""
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
