"""Messages of libraries and assistants with keys of their own, rewritten as messages with a role and content."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mast_trace.trajectory.span_messages import ANSWER, objects
from mast_trace.trajectory.vocabulary import loaded
from mast_trace_judge.transfer.formats.kinds import is_record, object_in, word_in


def unwrapped(shape: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a message without LangChain's wrappings (``kwargs``, ``data``), and with the keys of a chat."""
    for wrapping in ("kwargs", "data"):
        inner = shape.get(wrapping)
        if isinstance(inner, dict) and "content" in inner:
            kind = str(shape.get("type", ""))
            return {**inner, "type": inner.get("type") or kind}
    if isinstance(shape.get("content"), str) and "role" in shape:
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


# -- parts under other keys: agent-framework, Semantic Kernel, LlamaIndex, Haystack, Goose ---------

_LISTS = ("contents", "items", "Items", "blocks", "content")
_ASKED = frozenset({"function_call", "tool_call", "toolRequest", "FunctionCallContent"})
_ANSWERED = frozenset(
    {"function_result", "tool_call_result", "toolResponse", "FunctionResultContent"}
)
_WITHIN = ("tool_call", "tool_call_result", "toolCall", "toolResult")
_KINDS = ("type", "content_type", "block_type", "$type")
_OF_PART = {
    "id": ("call_id", "tool_call_id", "CallId", "Id", "id"),
    "name": ("name", "tool_name", "FunctionName"),
    "arguments": ("arguments", "tool_kwargs", "Arguments"),
    "response": ("result", "Result", "content"),
    "error": ("exception", "error"),
    "is_error": ("isError",),
    "text": ("text", "Text"),
}


def _is_of_parts(shape: Any) -> bool:
    if not isinstance(shape, dict) or not {"role", "Role"} & shape.keys():
        return False
    own = next((key for key in _LISTS if isinstance(shape.get(key), list)), "content")
    return own != "content" or any(
        isinstance(part.get(key), dict) for part in objects(shape.get(own)) for key in _WITHIN
    )


def _from_parts(shape: Mapping[str, Any]) -> Mapping[str, Any]:
    listed = next(shape[key] for key in _LISTS if isinstance(shape.get(key), list))
    role = shape.get("role", shape.get("Role"))
    role = role.get("value", role.get("Label")) if isinstance(role, dict) else role
    usage = (
        word_in(each, "type") == "usage" and each.get("usage_details") for each in objects(listed)
    )
    kept = shape.get("additional_kwargs")
    return {
        **(kept if isinstance(kept, dict) else {}),
        "role": str(role).lower(),
        "name": next(filter(None, map(shape.get, ("name", "author_name", "AuthorName"))), None),
        "content": [part for each in listed if (part := _part(each))],
        "usage": next(filter(None, usage), None),
        "timestamp": shape.get("created"),
        "meta": next(filter(None, map(shape.get, ("meta", "metadata", "Metadata"))), None),
    }


def _part(part: Any) -> Any:
    """Return a part in the words of the convention; nothing for usage, and other kinds as they are."""
    if not isinstance(part, dict):
        return part
    kind = next(filter(None, (word_in(part, key) for key in _KINDS)), "")
    for key in _WITHIN:
        if isinstance(inner := part.get(key), dict):
            held, origin = inner.get("value"), inner.get("origin")
            told = held if isinstance(held, dict) else {} if held is None else {"result": held}
            part = {**part, **(origin if isinstance(origin, dict) else {}), **inner, **told}
            kind = kind or key
    found = {name: part[key] for name, keys in _OF_PART.items() for key in keys if part.get(key)}
    if kind in _ASKED:
        plugin = word_in(part, "PluginName")
        name = "-".join(filter(None, (plugin, str(found.get("name") or ""))))
        return {**found, "type": "tool_call", "name": name}
    if kind in _ANSWERED:
        failed = bool(found.keys() & {"error", "is_error"})
        said = found.get("response", found.get("error"))
        return {"id": found.get("id"), "type": ANSWER, "response": said, "is_error": failed}
    if kind in {"usage", "thinking"}:
        return None
    return {"type": "text", "text": found["text"]} if isinstance(found.get("text"), str) else part


# -- CAMEL, Letta, Cursor, OpenCode ---------------------------------------------------------------


def _from_camel(shape: Mapping[str, Any]) -> Mapping[str, Any]:
    said = shape["message"] if isinstance(shape["message"], dict) else {}
    call = {"id": said.get("tool_call_id"), "name": said.get("func_name")}
    answers = said.get("result") is not None
    asked = {"tool_calls": [{**call, "arguments": said.get("args")}]} if call["name"] else {}
    return {
        "role": shape["role_at_backend"],
        "content": said["result"] if answers else said.get("content"),
        "name": call["name"] if answers else said.get("role_name"),
        "tool_call_id": call["id"],
        "timestamp": shape.get("timestamp"),
        **({} if answers else asked),
    }


def is_thought_of_letta(shape: Any) -> bool:
    """Return whether a message of Letta holds reasoning alone."""
    return word_in(shape, "message_type").endswith("reasoning_message")


def _from_letta(shape: Mapping[str, Any]) -> Mapping[str, Any]:
    kind = word_in(shape, "message_type").removesuffix("_message")
    call = shape.get("tool_call")
    role = {"tool_return": "tool", "tool_call": "assistant"}.get(kind, kind)
    return {
        "role": role,
        "content": shape.get("tool_return", shape.get("content", "")),
        "tool_calls": [{**call, "id": call.get("tool_call_id")}] if isinstance(call, dict) else [],
        **{key: shape.get(key) for key in ("name", "tool_call_id", "status")},
        "timestamp": shape.get("date"),
    }


def _from_cursor(shape: Mapping[str, Any]) -> Mapping[str, Any]:
    made, parts = shape.get("toolFormerData"), [shape.get("text") or ""]
    if isinstance(made, dict):
        call = {"id": made.get("toolCallId"), "name": made.get("name")}
        arguments = made.get("rawArgs", made.get("params"))
        parts.append({**call, "type": "tool_call", "arguments": arguments})
        if made.get("result") is not None:
            failed = made.get("status") == "error"
            parts.append({**call, "type": ANSWER, "response": made["result"], "is_error": failed})
    role = "user" if shape["type"] == 1 else "assistant"
    usage, at = shape.get("tokenCount"), shape.get("createdAt")
    return {"role": role, "content": list(filter(None, parts)), "usage": usage, "timestamp": at}


def _from_opencode(shape: Mapping[str, Any]) -> Mapping[str, Any]:
    info, parts = shape["info"], []
    for part in objects(shape["parts"]):
        state = part.get("state")
        if word_in(part, "type") == "text" and not part.get("synthetic"):
            parts.append(part)
        elif word_in(part, "type") == "tool" and isinstance(state, dict):
            call = {"id": part.get("callID"), "name": part.get("tool")}
            parts.append({**call, "type": "tool_call", "arguments": state.get("input")})
            failed, said = state.get("status") == "error", state.get("output", state.get("error"))
            if said is not None:
                parts.append({**call, "type": ANSWER, "response": said, "is_error": failed})
    time, told = info.get("time"), info.get("tokens")
    held = object_in(told, "cache")
    names = {"cache_read_input_tokens": "read", "cache_creation_input_tokens": "write"}
    counted = {key: held.get(name) for key, name in names.items()}
    return {
        "role": info["role"],
        "name": info.get("agent", info.get("mode")) if info["role"] == "assistant" else None,
        "content": parts,
        "usage": {**told, **counted} if isinstance(told, dict) else None,
        "timestamp": time.get("created") if isinstance(time, dict) else None,
    }


def is_chat_of_library(shape: Any) -> bool:
    """Return whether a message is of a library or assistant whose messages are read as those of a chat."""
    return any(is_one(shape) for is_one, _ in _OF_CHATS)


_Rewriting = tuple[Callable[[Any], bool], Callable[[Any], "Mapping[str, Any]"]]
_OF_CHATS: tuple[_Rewriting, ...] = (
    (_is_of_parts, _from_parts),
    (lambda shape: is_record(shape, "role_at_backend", "message"), _from_camel),
    (lambda shape: word_in(shape, "message_type").endswith("_message"), _from_letta),
    (lambda shape: is_record(shape, "bubbleId", "type"), _from_cursor),
    (
        lambda shape: word_in(shape, "sender") in {"human", "assistant"} and "text" in shape,
        lambda shape: {  # the data export of Claude
            "role": shape["sender"],
            "content": shape.get("content") or shape["text"],
            "timestamp": shape.get("created_at"),
        },
    ),
    (
        lambda shape: is_record(shape, "info", "parts") and bool(word_in(shape["info"], "role")),
        _from_opencode,
    ),
)
_REWRITTEN: tuple[_Rewriting, ...] = (
    (is_sharegpt, _from_sharegpt),
    (is_pydantic_ai, _from_pydantic_ai),
    (is_smolagents, _from_smolagents),
    *_OF_CHATS,
)
