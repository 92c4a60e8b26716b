"""Reads CrewAI's objects: messages, tool calls, and which agent answers which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mast_trace.content import as_text
from mast_trace.messages import Message, ToolCall

USER = "user"
"""Stands for the requester of the run, where messages need a sender or a recipient."""


def role_of(agent: Any) -> str:
    """Return an agent's role, which is its name in CrewAI."""
    return str(getattr(agent, "role", "") or "").strip()


def chat_messages(messages: Any) -> list[Message]:
    """Read the messages of a model call."""
    if messages is None:
        return []
    if isinstance(messages, str):
        return [Message(messages, role="user")]
    return [_message(shape) for shape in messages if isinstance(shape, dict)]


def _message(shape: Mapping[str, Any]) -> Message:
    return Message(
        content=_content(shape.get("content")),
        role=str(shape.get("role") or "user"),
        name=shape.get("name"),
        tool_calls=tuple(_call(call) for call in shape.get("tool_calls") or ()),
        tool_call_id=shape.get("tool_call_id"),
    )


def _content(content: Any) -> str:
    if isinstance(content, list) and all(
        isinstance(part, dict) and part.get("type") == "text" for part in content
    ):
        return "".join(str(part.get("text") or "") for part in content)
    return as_text(content)


def _call(call: Any) -> ToolCall:
    function = _get(call, "function") or call
    return ToolCall(
        name=str(_get(function, "name") or ""),
        arguments=_get(function, "arguments") or _get(function, "input"),
        id=_get(call, "id"),
    )


def answer(response: Any) -> Message:
    """Read a model's response: text, a structured object, or a list of tool calls."""
    if isinstance(response, list) and response and all(_is_call(item) for item in response):
        return Message("", tool_calls=tuple(_call(item) for item in response))
    return Message(as_text(response))


def _is_call(item: Any) -> bool:
    return bool(_get(item, "function") or (_get(item, "name") and _get(item, "type") == "tool_use"))


def _get(holder: Any, name: str) -> Any:
    return holder.get(name) if isinstance(holder, dict) else getattr(holder, name, None)


def requested_call(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> ToolCall:
    """Read the tool call that a loop is asked to execute: an object, or its parts by name."""
    if not args and "tool_call" not in kwargs:
        return ToolCall(str(kwargs["func_name"]), kwargs["func_args"], kwargs["call_id"])
    return _call(args[0] if args else kwargs["tool_call"])


def native_result(result: Any) -> Any:
    """Return the result of a tool call as the model is shown it."""
    return result.get("result") if isinstance(result, dict) else getattr(result, "result", result)


def task_text(crew: Any) -> str:
    """Return the task of a crew: the descriptions of its tasks, in order."""
    tasks: Sequence[Any] = getattr(crew, "tasks", None) or ()
    return "\n\n".join(str(getattr(task, "description", "") or "") for task in tasks)


def readers(task: Any, agent: Any) -> list[str]:
    """Return the roles of the agents whose tasks take this task's output as their context."""
    crew = getattr(agent, "crew", None)
    tasks = list(getattr(crew, "tasks", None) or ())
    if task not in tasks:
        return []
    position = tasks.index(task)
    found: list[str] = []
    for later in tasks[position + 1 :]:
        context = getattr(later, "context", None)
        # Without an explicit list a task gets the outputs of all tasks before it.
        if not isinstance(context, list) or task in context:
            found.append(role_of(getattr(later, "agent", None)))
    return [role for role in dict.fromkeys(found) if role]


def plan(crew: Any) -> dict[str, str]:
    """Return the descriptions of a crew's tasks by id, without those that may be skipped."""
    return {
        str(task.id): str(task.description)
        for task in getattr(crew, "tasks", None) or ()
        if not hasattr(task, "condition")
    }


def refusal(tool: str, output: Any) -> str | None:
    """Return a tool's output if it is the framework's own text for a tool that was not run.

    Versions before 1.15 report these calls as finished; only the text shows that they were not.
    """
    if not isinstance(output, str):
        return None
    own = (
        "Tool not found",
        f"Tool execution blocked by hook. Tool: {tool}",
        f"Tool '{tool}' has reached its usage limit of ",
    )
    return output if output == own[0] or output.startswith(own[1:]) else None


def tokens(usage: Any) -> dict[str, Any]:
    """Read token counts; every provider has its own names for them."""
    details = _get(usage, "prompt_tokens_details") or _get(usage, "input_tokens_details")
    return {
        "input_tokens": _count(
            usage, "prompt_tokens", "input_tokens", "prompt_token_count", "inputTokens"
        ),
        "output_tokens": _count(
            usage, "completion_tokens", "output_tokens", "candidates_token_count", "outputTokens"
        ),
        "cached_tokens": _count(
            usage, "cached_prompt_tokens", "cache_read_input_tokens", "cached_tokens"
        )
        or _count(details, "cached_tokens"),
    }


def _count(usage: Any, *names: str) -> int | None:
    for name in names:
        value = _get(usage, name)
        if isinstance(value, int):
            return value
    return None


def is_agent_loop(flow: Any) -> bool:
    """Return whether a flow is CrewAI's own agent executor, not a user's flow."""
    return type(flow).__module__.startswith(("crewai.agents", "crewai.experimental"))
