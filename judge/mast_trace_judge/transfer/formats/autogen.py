"""AutoGen 0.4's messages and events, and the logs of Magentic-One's first release."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Any

from mast_trace.trajectory.span_messages import objects
from mast_trace_judge.study.labelled import plain_name
from mast_trace_judge.transfer.formats.chat import (
    entries_of,
    messages_in,
    named_within,
    recipient_of,
)
from mast_trace_judge.transfer.formats.conversation import Entry, Result, transcript_of
from mast_trace_judge.transfer.formats.kinds import (
    Format,
    TextLog,
    Transcript,
    is_record,
    moment_or_zero,
    usage_of,
    usage_of_models,
    word_in,
)
from mast_trace_judge.transfer.formats.messages import call_of, text_of_parts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mast_trace.messages import ToolCall

_CHUNK = "ModelClientStreamingChunkEvent"
"""A part of a message that follows as a whole."""
_CALLS = "ToolCallRequestEvent"
_RESULTS = "ToolCallExecutionEvent"
_COMPOSED = frozenset({"ToolCallSummaryMessage", "SelectSpeakerEvent", "UserInputRequestedEvent"})
"""Texts that the framework writes in an agent's name."""
_LOGGED = frozenset({"OrchestrationEvent", "AgentEvent", "WebSurferEvent"})
_COUNTED = "LLMCallEvent"
"""A line of a log that holds numbers of tokens alone."""


def _is_autogen(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("source"), str)
        and "content" in value
        and not value.keys() & {"role", "observation"}
    )


def _entry(value: Any) -> Entry:
    if not _is_autogen(value):
        raise ValueError("it has no source and content")
    source, kind, content = value["source"], str(value.get("type") or ""), value["content"]
    calls: tuple[ToolCall, ...] = ()
    results: tuple[Result, ...] = ()
    text = ""
    if kind == _RESULTS or (isinstance(content, list) and _all_have(content, "call_id")):
        results = tuple(_result(each) for each in objects(content))
    elif kind == _CALLS or (isinstance(content, list) and _all_have(content, "arguments")):
        calls = tuple(
            call_of(each.get("name"), each.get("arguments"), each.get("id"))
            for each in objects(content)
        )
    else:
        text = text_of_parts(content)
    target = str(value.get("target") or "") if kind == "HandoffMessage" else ""
    return Entry(
        role="user" if source == "user" else "assistant",
        agent=source,
        text=text,
        calls=calls,
        results=results,
        recipients=(target,) if target else (),
        handoff_to=target,
        synthetic=kind in _COMPOSED,
        time=moment_or_zero(value.get("created_at")),
        usage=usage_of(value.get("models_usage")),
    )


def _all_have(content: list[Any], key: str) -> bool:
    return bool(content) and all(isinstance(each, dict) and key in each for each in content)


def _result(shape: dict[str, Any]) -> Result:
    text = text_of_parts(shape.get("content"))
    failed = text if shape.get("is_error") is True else None
    return Result(text, str(shape.get("call_id") or ""), str(shape.get("name") or ""), failed)


def _thread(value: Any) -> Any:
    """Return the messages in the saved state of a team; another value as it is."""
    states = value.get("agent_states") if isinstance(value, dict) else None
    if not isinstance(states, dict):
        return value
    threads = (each.get("message_thread") for each in states.values() if isinstance(each, dict))
    return next((each for each in threads if isinstance(each, list) and each), [])


def _read(value: Any, name: str) -> Iterator[Transcript]:
    value = _thread(value)
    messages = [
        message
        for message in messages_in(value)
        if not (isinstance(message, dict) and message.get("type") == _CHUNK)
    ]
    reason = value.get("stop_reason") if isinstance(value, dict) else None
    yield transcript_of(
        entries_of(messages, _entry),
        named_within(value, name),
        framework="autogen",
        termination_reason=str(reason or ""),
    )


_SPENT = re.compile(r"\n\[Prompt tokens: (\d{1,15}), Completion tokens: (\d{1,15})\]$")
_LONGEST_LISTING = 1 << 20


def _printed(head: re.Match[str], text: str) -> dict[str, Any] | None:
    """Return a message as `Console` prints it; None for its summary."""
    source = head[2]
    if source == "Summary" and not head[1]:
        return None
    message: dict[str, Any] = {"source": source, "type": head[1] or ""}
    if spent := _SPENT.search(text):
        text = text[: spent.start()]
        message["models_usage"] = {
            "prompt_tokens": int(spent[1]),
            "completion_tokens": int(spent[2]),
        }
    return {**message, "content": _listed(text) or text}


def _listed(text: str) -> list[dict[str, Any]]:
    """Return the calls or results that a text spells as Python shows them; none if it is another text."""
    if not text.startswith(("[FunctionCall(", "[FunctionExecutionResult(")) or (
        len(text) > _LONGEST_LISTING
    ):
        return []
    try:
        spelled = ast.parse(text, mode="eval").body
        return [
            {str(field.arg): ast.literal_eval(field.value) for field in each.keywords}
            for each in (spelled.elts if isinstance(spelled, ast.List) else [])
            if isinstance(each, ast.Call)
        ]
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return []


_RULE = re.compile(r"-{10} (?:([A-Z]\w{0,80}) \()?([^\n()]{1,200}?)\)? -{10}$", re.MULTILINE)

AUTOGEN = Format(
    name="autogen",
    title="AutoGen messages",
    recognised="`source` and `content`, as `model_dump` of AutoGen 0.4 and later writes them, or a team's "
    "saved state with `agent_states`, or the text that `Console` prints",
    read=_read,
    record=lambda value: (
        isinstance(value, dict) and any(map(_is_autogen, messages_in(_thread(value))))
    ),
    message=_is_autogen,
    entry=_entry,
    text=TextLog(begin=_RULE, head=_RULE, value=_printed),
)


def _is_count(value: Any) -> bool:
    return is_record(value, "type", "prompt_tokens") and value["type"] == _COUNTED


def _is_logged(value: Any) -> bool:
    known = is_record(value, "type", "source", "message") and word_in(value, "type") in _LOGGED
    return known or _is_count(value)


def _logged(value: Any) -> Entry:
    if not _is_logged(value):
        raise ValueError("it has no type, source and message of a log")
    source = str(value["source"])
    agent = plain_name(source)
    recipient = recipient_of(source)
    action = value.get("action")
    calls: tuple[ToolCall, ...] = ()
    results: tuple[Result, ...] = ()
    text = text_of_parts(value["message"])
    if action:
        calls = (call_of(action, value.get("arguments"), None),)
        results = (Result(text, tool=str(action)),)
        text = ""
    return Entry(
        role="user" if agent.lower() in {"user", "human", "userproxy"} else "assistant",
        agent=agent,
        text=text,
        calls=calls,
        results=results,
        recipients=(recipient,) if recipient else (),
        time=moment_or_zero(value.get("timestamp")),
    )


def _read_log(value: Any, name: str) -> Iterator[Transcript]:
    lines: list[Any] = []
    counts: list[Any] = []
    for line in messages_in(value):
        (counts if _is_count(line) else lines).append(line)
    usage = usage_of_models(dict(enumerate(counts)))  # a count says of no call whose it was
    yield transcript_of(entries_of(lines, _logged), name, framework="magentic-one", usage=usage)


MAGENTIC = Format(
    name="magentic",
    title="Magentic-One log",
    recognised="lines with `source`, `message` and a `type` such as `OrchestrationEvent`",
    read=_read_log,
    message=_is_logged,
    entry=lambda line: None if _is_count(line) else _logged(line),
)
