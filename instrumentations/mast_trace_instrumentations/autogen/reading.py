"""AutoGen's messages, which are dictionaries in the shape of OpenAI's API, read into ours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from opentelemetry import context as otel_context

from mast_trace.content import as_text, joined
from mast_trace.messages import Message, ToolCall

if TYPE_CHECKING:
    from opentelemetry.context import Context


def read(message: Mapping[str, Any] | str | Any, role: str | None = None) -> Message:
    """Read a message that goes from agent to agent or to a model.

    Args:
        message: a dictionary, a text, or a model's answer.
        role: the role under which it is shown; the message's own if absent.
    """
    if message is None or isinstance(message, str):
        return Message(message or "", role=role or "assistant")
    shape = as_dict(message)
    content = shape.get("content")
    # Each agent and each model is shown the whole history: a plain text costs no further call.
    return Message(
        content if type(content) is str else text_of(content),
        role or str(shape.get("role") or "assistant"),
        shape.get("name"),
        tool_calls=calls_of(shape) if "tool_calls" in shape or "function_call" in shape else (),
        tool_call_id=_answered(shape) if "tool_responses" in shape else shape.get("tool_call_id"),
    )


def _answered(shape: Mapping[str, Any]) -> str | None:
    """Return the id of the call that a message answers; None also where it holds several results."""
    results: Sequence[Any] = shape["tool_responses"] or ()
    only = as_dict(results[0]) if len(results) == 1 else {}
    return shape.get("tool_call_id") or only.get("tool_call_id")


def as_dict(message: Any) -> Mapping[str, Any]:
    """Return a message as a dictionary; the pydantic models of clients are converted."""
    if isinstance(message, dict):
        return message
    dump = getattr(message, "model_dump", None)
    return dump() if callable(dump) else {"content": str(message)}


def text_of(content: Any) -> str:
    """Return a message's text; the parts of a multi-modal one below each other."""
    if isinstance(content, list):
        return joined(
            "\n",
            (
                str(part["text"]) if isinstance(part, dict) and "text" in part else as_text(part)
                for part in content
            ),
        )
    if callable(content):
        # AutoGen fills such a text in when it builds a request.
        return f"<{getattr(content, '__name__', 'callable')}>"
    return as_text(content)


def calls_of(shape: Mapping[str, Any]) -> tuple[ToolCall, ...]:
    """Return the tool calls that a message asks for, of today's and of the older shape."""
    found = []
    for call in shape.get("tool_calls") or ():
        function = as_dict(call).get("function") or {}
        found.append(
            ToolCall(str(function.get("name")), function.get("arguments"), as_dict(call).get("id"))
        )
    older = shape.get("function_call")
    if older:
        function = as_dict(older)
        found.append(
            ToolCall(str(function.get("name")), function.get("arguments"), shape.get("id"))
        )
    return tuple(found)


def shown(messages: Iterable[Mapping[str, Any]]) -> list[Message]:
    """Read a history as an agent sees it."""
    return [read(message) for message in messages]


def name_of(agent: Any) -> str:
    """Return an agent's name."""
    return str(getattr(agent, "name", None) or "")


def members(agent: Any) -> list[Any] | None:
    """Return the members of the group that ``agent`` manages; None if it manages none."""
    group = getattr(agent, "groupchat", None)
    agents = getattr(group, "agents", None)
    return list(agents) if isinstance(agents, list) else None


_QUIET = "mast-trace-autogen-quiet"


def quiet() -> Context:
    """Return the current context, marked so that no message is recorded."""
    return otel_context.set_value(_QUIET, True, otel_context.get_current())


def is_quiet() -> bool:
    """Return whether messages are not recorded at present."""
    return otel_context.get_current().get(_QUIET) is True
