"""Converts inputs and outputs of other tools' spans to attributes of the GenAI conventions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from mast_trace import semconv
from mast_trace.content import content_hash
from mast_trace.messages import Message
from mast_trace.trajectory.sources import messages_in
from mast_trace_judge.transfer.formats.foreign_spans import loaded
from mast_trace_judge.transfer.formats.kinds import bare_result, whole_text
from mast_trace_judge.transfer.formats.messages import entry_of

if TYPE_CHECKING:
    from mast_trace_judge.transfer.formats.conversation import Entry

_TASKS = (
    *("task", "question", "query", "user_prompt", "prompt", "input", "user_input"),
    *("goal", "topic", "message", "content", "text"),
)
"""Keys of a run's input under which its task stands, the surest first."""
_DEEPEST = 6


def of_run(name: str, inputs: Any) -> dict[str, Any]:
    """Return the attributes of a whole run: its name, and its task where its input tells it."""
    return {
        semconv.OPERATION_NAME: semconv.INVOKE_WORKFLOW,
        semconv.WORKFLOW_NAME: name,
        **of_task(task_of(inputs)),
    }


def of_task(task: str) -> dict[str, Any]:
    """Return the attributes of a run's task: it is what a user has asked; none where it is empty."""
    identity = f"task-{content_hash(task)}"
    said = {"role": "user", "id": identity, "parts": [{"type": "text", "content": task}]}
    found = {semconv.INPUT_MESSAGE_IDS: [identity], semconv.INPUT_MESSAGES: _text([said])}
    return found if task else {}


def of_model_call(
    inputs: Any, outputs: Any, model: Any, usage: tuple[int | None, int | None] | None
) -> dict[str, Any]:
    """Return the attributes of a model call: its input and its answer, its model, and its tokens where they are told."""
    spent, made = usage or (None, None)
    found: dict[str, Any] = {
        semconv.OPERATION_NAME: semconv.CHAT,
        semconv.REQUEST_MODEL: model,
        semconv.INPUT_TOKENS: spent,
        semconv.OUTPUT_TOKENS: made,
    }
    if seen := messages_in(loaded(inputs), "user"):
        found["gen_ai.input.messages"] = _text([message.to_genai() for message in seen])
    answer = loaded(outputs)
    # An object without a message is an answer in a form that the program asked for.
    answered = messages_in(answer, "assistant") or ([Message(whole_text(answer))] if answer else [])
    if answered:
        found["gen_ai.output.messages"] = _text([answered[-1].to_genai()])
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
        found[semconv.ERROR_TYPE] = None if answer.error is None else "tool_error"
    elif result is not None:
        found[semconv.TOOL_CALL_RESULT] = whole_text(bare_result(result))
    return found


def of_kind(
    kind: str,
    title: str,
    inputs: Any,
    outputs: Any,
    *,
    is_root: bool = False,
    model: Any = None,
    usage: tuple[int | None, int | None] | None = None,
) -> dict[str, Any]:
    """Return the attributes of an observation whose operation and title are known; a root without one is a run."""
    if kind == semconv.CHAT:
        return of_model_call(inputs, outputs, model, usage)
    if kind == semconv.EXECUTE_TOOL:
        return of_tool_call(title, inputs, outputs)
    found = of_run(title, inputs) if is_root else {}
    if kind == semconv.INVOKE_AGENT:
        found |= {semconv.OPERATION_NAME: kind, semconv.AGENT_NAME: title}
        found["output.value"] = None if outputs is None else whole_text(outputs)
    return found


def is_answer_of_tool(outputs: Any) -> bool:
    """Return whether an output is the message with which a tool answers a call."""
    return _message_in(loaded(outputs)) is not None


def task_of(inputs: Any) -> str:
    """Return the task of a run: its last user's message, its only text, or the plain values of its input as JSON.

    An input with objects within that name no task tells the state of a program, and no task.
    """
    value = loaded(inputs)
    asked = [
        said.content for said in messages_in(value, "") if said.role == "user" and said.content
    ]
    if asked:
        return asked[-1]
    if isinstance(value, dict) and value.keys() <= {"args", "kwargs"}:  # the call of a function
        args, named = value.get("args"), value.get("kwargs")
        value = named or (args[0] if isinstance(args, list) and len(args) == 1 else args)
        return task_of(value) if value else ""
    if isinstance(value, dict):
        named = [value[key] for key in _TASKS if isinstance(value.get(key), str)]
        value = next(iter(named or (value.values() if len(value) == 1 else [value])), "")
    within = value.values() if isinstance(value, dict) else value
    if isinstance(value, dict | list) and any(isinstance(each, dict | list) for each in within):
        return ""
    return "" if value in (None, "", {}, []) else whole_text(value)


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


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
