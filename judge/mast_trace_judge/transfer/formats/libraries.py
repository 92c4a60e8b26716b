"""Messages of LangChain, ShareGPT, pydantic-ai and smolagents, rewritten as messages with a role and content."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mast_trace.trajectory.span_messages import ANSWER, objects
from mast_trace.trajectory.vocabulary import loaded
from mast_trace_judge.transfer.formats.kinds import is_record, word_in

if TYPE_CHECKING:
    from collections.abc import Mapping


def unwrapped(shape: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a message without LangChain's wrappings (``kwargs``, ``data``), and with the keys of a chat."""
    for wrapping in ("kwargs", "data"):
        inner = shape.get(wrapping)
        if isinstance(inner, dict) and "content" in inner:
            kind = str(shape.get("type", ""))
            return {**inner, "type": inner.get("type") or kind}
    if "role" in shape:
        return shape
    return next((read(shape) for is_one, read in _REWRITTEN if is_one(shape)), shape)


def is_rewritten(shape: Any) -> bool:
    """Return whether a message is of a library with keys of its own for roles and content."""
    return any(is_one(shape) for is_one, _ in _REWRITTEN)


def is_sharegpt(shape: Mapping[str, Any]) -> bool:
    """Return whether a message has ShareGPT's keys."""
    return "from" in shape and "value" in shape and "content" not in shape and "role" not in shape


def _from_sharegpt(shape: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a message in OpenAI's keys; a call of a function is the JSON text of its value."""
    if shape["from"] != "function_call":
        return {"role": shape["from"], "content": shape["value"]}
    call = loaded(shape["value"])
    if not isinstance(call, dict) or not call.get("name"):
        return {"role": "assistant", "content": shape["value"]}
    return {"role": "assistant", "content": "", "function_call": call}


def is_pydantic_ai(shape: Any) -> bool:
    """Return whether a value is a message of pydantic-ai."""
    if not isinstance(shape, dict) or shape.get("kind") not in ("request", "response"):
        return False
    return any("part_kind" in part for part in objects(shape.get("parts")))


def _from_pydantic_ai(shape: Mapping[str, Any]) -> Mapping[str, Any]:
    parts: list[dict[str, Any]] = []
    for part in objects(shape["parts"]):
        kind, said = word_in(part, "part_kind"), part.get("content")
        call = {"id": part.get("tool_call_id"), "name": part.get("tool_name")}
        if kind.endswith("tool-call"):
            parts.append({**call, "type": "tool_call", "arguments": part.get("args")})
        elif kind.endswith("tool-return") or (kind == "retry-prompt" and call["name"]):
            failed = kind == "retry-prompt"
            parts.append({**call, "type": ANSWER, "response": said, "is_error": failed})
        elif kind in {"user-prompt", "text", "retry-prompt"}:
            parts += [{"type": "text", "text": said}] if isinstance(said, str) else objects(said)
    role = "assistant" if shape["kind"] == "response" else "user"
    times = (part.get("timestamp") for part in [shape, *objects(shape["parts"])])
    return {
        "role": role,
        "content": parts,
        "usage": shape.get("usage"),
        "timestamp": next(filter(None, times), None),
    }


def is_smolagents(shape: Any) -> bool:
    """Return whether a value is a step in the memory of an agent of smolagents."""
    if not isinstance(shape, dict) or "role" in shape:
        return False
    first = tuple(shape) in {("system_prompt",), ("task", "task_images")}
    return first or is_record(shape, "step_number", "tool_calls", "observations")


def _from_smolagents(shape: Mapping[str, Any]) -> Mapping[str, Any]:
    if "tool_calls" not in shape:
        role = "user" if "task" in shape else "system"
        return {"role": role, "content": next(iter(shape.values()))}
    calls = objects(shape["tool_calls"])
    timing = shape.get("timing")
    parts: list[Any] = [shape.get("model_output") or ""]
    error = word_in(shape.get("error"), "message")
    for number, call in enumerate(calls):
        function = call.get("function")
        made = {**(function if isinstance(function, dict) else call), "id": call.get("id")}
        if made.get("name") == "final_answer" and shape.get("is_final_answer"):
            parts.append(shape.get("action_output"))
            continue
        parts.append({**made, "type": "tool_call"})
        if number == len(calls) - 1:  # the observations of all stand together
            said = shape.get("observations") or error
            answer = {"type": ANSWER, "id": call.get("id"), "response": said}
            parts.append({**answer, "error": shape.get("error")})
    return {
        "role": "assistant",
        "content": [part for part in parts if part],
        "usage": shape.get("token_usage"),
        "timestamp": timing.get("start_time") if isinstance(timing, dict) else None,
    }


_REWRITTEN = (
    (is_sharegpt, _from_sharegpt),
    (is_pydantic_ai, _from_pydantic_ai),
    (is_smolagents, _from_smolagents),
)
