"""Converts inputs and outputs of other tools' spans to attributes of the GenAI conventions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from mast_trace import semconv
from mast_trace.content import content_hash
from mast_trace_judge.transfer.formats.foreign_spans import loaded
from mast_trace_judge.transfer.formats.kinds import whole_text
from mast_trace_judge.transfer.formats.messages import entry_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mast_trace_judge.transfer.formats.conversation import Entry

_AROUND_MESSAGES = ("messages", "message", "generations", "choices", "input", "inputs")
_AROUND_ANSWERS = ("generations", "choices", "message", "messages", "output", "outputs")
_AROUND_RESULTS = ("output", "result", "content")
_DEEPEST = 6


def of_run(name: str, inputs: Any) -> dict[str, Any]:
    """Return the attributes of a whole run: its name, and its task where its input tells it."""
    found: dict[str, Any] = {
        semconv.OPERATION_NAME: semconv.INVOKE_WORKFLOW,
        semconv.WORKFLOW_NAME: name,
    }
    task = task_of(inputs)
    if task:
        identity = f"task-{content_hash(task)}"
        parts = [{"type": "text", "content": task}]
        found[semconv.INPUT_MESSAGE_IDS] = [identity]
        found[semconv.INPUT_MESSAGES] = _text([{"role": "user", "id": identity, "parts": parts}])
    return found


def of_model_call(inputs: Any, outputs: Any) -> dict[str, Any]:
    """Return the attributes of a model call: its input and its answer."""
    found: dict[str, Any] = {semconv.OPERATION_NAME: semconv.CHAT}
    seen = [_shape(entry) for entry in _entries(loaded(inputs), _AROUND_MESSAGES, "user")]
    answered = [_shape(entry) for entry in _entries(loaded(outputs), _AROUND_ANSWERS, "assistant")]
    if seen:
        found["gen_ai.input.messages"] = _text(seen)
    if answered:
        found["gen_ai.output.messages"] = _text(answered[-1:])
    return found


def of_tool_call(name: str, inputs: Any, outputs: Any) -> dict[str, Any]:
    """Return the attributes of a tool's execution: its arguments and its result."""
    arguments, result = loaded(inputs), loaded(outputs)
    if isinstance(arguments, dict) and set(arguments) == {"input"}:
        arguments = loaded(arguments["input"])
    message = _message_in(result)
    found: dict[str, Any] = {
        semconv.OPERATION_NAME: semconv.EXECUTE_TOOL,
        semconv.TOOL_NAME: name,
        semconv.TOOL_CALL_ARGUMENTS: whole_text(arguments) if arguments is not None else None,
    }
    if message is not None:
        answer = message.results[0]
        found[semconv.TOOL_CALL_ID] = answer.call_id or None
        found[semconv.TOOL_CALL_RESULT] = answer.text
    elif result is not None:
        found[semconv.TOOL_CALL_RESULT] = whole_text(_unwrapped(result))
    return found


def task_of(inputs: Any) -> str:
    """Return the task of a run: its last user's message, its only text, or its input as JSON."""
    value = loaded(inputs)
    entries = _entries(value, _AROUND_MESSAGES, "")
    asked = [entry.text for entry in entries if entry.role == "user" and entry.text]
    if asked:
        return asked[-1]
    if isinstance(value, dict) and len(value) == 1:
        (value,) = value.values()
    return "" if value in (None, "", {}, []) else whole_text(value)


def _unwrapped(result: Any) -> Any:
    if isinstance(result, dict) and len(result) == 1:
        key, value = next(iter(result.items()))
        if key in _AROUND_RESULTS:
            return value
    return result


def _message_in(result: Any) -> Entry | None:
    """Return the tool's message in a result, if the result is one."""
    value = result
    for _ in range(_DEEPEST):
        if not isinstance(value, dict):
            return None
        try:
            entry = entry_of(value)
        except ValueError:
            value = value.get("output")
            continue
        return entry if entry.results else None
    return None


def _entries(value: Any, around: tuple[str, ...], role: str, depth: int = 0) -> list[Entry]:
    """Return the messages in a value, whatever is around them.

    Args:
        value: the value to search.
        around: keys under which messages stand.
        role: of a text in place of a message; empty if texts do not count.
        depth: of the search.
    """
    if depth > _DEEPEST or value in (None, ""):
        return []
    if isinstance(value, str):
        return [entry_of({"role": role, "content": value})] if role else []
    if isinstance(value, list):
        return [each for item in value for each in _entries(item, around, role, depth + 1)]
    return _entries_within(value, around, role, depth) if isinstance(value, dict) else []


def _entries_within(
    value: dict[str, Any], around: tuple[str, ...], role: str, depth: int
) -> list[Entry]:
    """Return the message that an object is, else those below it, else its text; see `_entries`."""
    try:
        return [entry_of(value)]
    except ValueError:
        pass
    for key in around:
        if key in value and (found := _entries(value[key], around, role, depth + 1)):
            return found
    text = value.get("text", value.get("content"))
    return [entry_of({"role": role, "content": text})] if role and isinstance(text, str) else []


def _shape(entry: Entry) -> Mapping[str, Any]:
    calls = [
        {"id": call.id, "name": call.name, "arguments": call.arguments} for call in entry.calls
    ]
    shape: dict[str, Any] = {"role": entry.role, "content": entry.text}
    if entry.results:
        shape |= {"role": "tool", "content": "\n".join(each.text for each in entry.results)}
        shape["tool_call_id"] = entry.results[0].call_id or None
    if calls:
        shape["tool_calls"] = calls
    if entry.agent != entry.role:
        shape["name"] = entry.agent
    return shape


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
