"""Chats as lists of messages with roles: OpenAI's, Anthropic's, LangChain's and ShareGPT's shapes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from mast_trace.trajectory.span_messages import objects
from mast_trace_judge.transfer.formats.conversation import Entry, task_at_first, transcript_of
from mast_trace_judge.transfer.formats.kinds import (
    Format,
    Transcript,
    is_record,
    usage_of,
    usage_of_models,
    word_in,
)
from mast_trace_judge.transfer.formats.libraries import (
    is_chat_of_library,
    is_pydantic_ai,
    is_rewritten,
    is_sharegpt,
    is_smolagents,
    is_thought_of_letta,
    unwrapped,
)
from mast_trace_judge.transfer.formats.messages import entry_of, role_of

CHAT_LISTS = (
    *("messages", "chat_history", "history", "conversations", "conversation", "contents"),
    "chat_messages",
)
"""Keys under which an enclosing object holds a chat."""
_IDS = (
    *("id", "uuid", "chat_id", "session_id", "trace_id", "thread_id"),
    *("instance_id", "task_id", "question_ID"),
)
_BLOCKS = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use"})
_OF_GEMINI_CLI = frozenset({"id", "timestamp", "type", "content", "displayContent"})
_LANGCHAIN = frozenset({"human", "ai", "AIMessageChunk"})


def messages_in(value: Any) -> list[Any]:
    """Return the messages of a list, or of the object around one; empty where there are none."""
    if isinstance(value, list):
        return value
    if isinstance(value, dict):
        for key in CHAT_LISTS:
            if isinstance(value.get(key), list) and value[key]:
                return list(value[key])
        return messages_in(value.get("values"))  # the state of a graph
    return []


def entries_of(messages: Sequence[Any], read: Callable[[Any], Entry] = entry_of) -> list[Entry]:
    """Read messages.

    Raises:
        ValueError: one cannot be read; the text names it and the reason.
    """
    entries = []
    for number, message in enumerate(messages):
        try:
            entries.append(read(message))
        except ValueError as error:
            raise ValueError(f"entry {number} is no message: {error}") from None
    return entries


def named_within(value: Any, name: str) -> str:
    """Return the name that the enclosing object gives a run, else the given one."""
    known = value if isinstance(value, dict) else {}
    named = (known[key] for key in _IDS if known.get(key) not in (None, ""))
    given = next(named, None)
    return f"{name}/{given}" if isinstance(given, str | int) else name


def _is_beside(value: Any) -> bool:
    """Return whether a line tells of a session of Goose, or holds what only the model sees, and is no message."""
    return is_record(value, "working_dir", "message_count") or is_thought_of_letta(value)


def _is_beside_gemini(value: Any) -> bool:
    """Return whether a line tells of a session of Gemini CLI."""
    if not isinstance(value, dict) or "messages" in value:
        return False
    return is_record(value, "sessionId", "projectHash", "startTime") or tuple(value) == ("$set",)


_ANSWERS = ("response", "completion", "outputs", "output")


def _answer_beside(around: Mapping[str, Any]) -> list[Entry]:
    """Return the answer that stands beside the messages of a request, as in the history of a model in DSPy."""
    found = next(filter(None, map(around.get, reversed(_ANSWERS))), None)
    text = next(iter(found), None) if isinstance(found, list) else found
    told = {"role": "assistant", "content": text, "usage": around.get("usage")}
    return [entry_of(told)] if text and isinstance(text, str) else []


_BEGUN = ("started_at", "created_at", "created", "start_time", "timestamp")


def _read(value: Any, name: str) -> Iterator[Transcript]:
    entries = entries_of(
        [each for each in messages_in(value) if not (_is_beside(each) or _is_beside_gemini(each))]
    )
    is_newest_first = all(0 < after.time < entry.time for entry, after in pairwise(entries))
    if is_newest_first and entries and entries[-1].role == "user":  # as APIs list messages
        entries.reverse()
    around = value if isinstance(value, dict) else {}
    metadata, cost = around.get("metadata"), around.get("cost")
    usage = usage_of(around.get("usage")) or usage_of(around.get("metrics"))
    if named := word_in(around, "agent_name"):
        entries = [replace(e, agent=named) if e.agent == "assistant" else e for e in entries]
    if isinstance(metadata, dict):
        usage = usage or usage_of(metadata.get("token_usage"))
    task = word_in(around, "task") or word_in(around, "question")
    if isinstance(
        cost, dict
    ):  # a result of AG2, where whoever began the chat has an assistant's role
        usage = usage_of_models(cost.get("usage_including_cached_inference"))
        task = task or task_at_first(entries)
    if entries and entries[-1].role != "assistant":
        entries += _answer_beside(around)
    if around.get("system"):
        entries.insert(0, entry_of({"role": "system", "content": around["system"]}))
    begun = next((around[key] for key in _BEGUN if around.get(key)), None)
    yield transcript_of(entries, named_within(value, name), task=task, usage=usage, begun=begun)


def _is_chat_message(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    return _is_beside(value) or (
        ("role" in value or is_chat_of_library(value)) and bool(role_of(unwrapped(value)))
    )


def _is_gemini_cli(value: Any) -> bool:
    if _is_beside_gemini(value) or (word_in(value, "type") == "gemini" and "content" in value):
        return True
    is_users = word_in(value, "type") == "user"
    return is_users and {"id", "timestamp", "content"} <= value.keys() <= _OF_GEMINI_CLI


def _is_anthropic_message(value: Any) -> bool:
    if not isinstance(value, dict) or word_in(value, "role") not in {"user", "assistant"}:
        return False
    return any(word_in(part, "type") in _BLOCKS for part in objects(value.get("content")))


def _is_sharegpt_message(value: Any) -> bool:
    return isinstance(value, dict) and is_sharegpt(value) and bool(role_of(unwrapped(value)))


def _is_langchain_message(value: Any) -> bool:
    if not isinstance(value, dict) or "role" in value or is_rewritten(value):
        return False
    message = unwrapped(value)
    if "content" not in message:
        return False
    kinds = {word_in(value, "type"), word_in(message, "type")}
    return bool(kinds & _LANGCHAIN) or (
        (message is not value and bool(role_of(message))) or "response_metadata" in message
    )


def _row(name: str, title: str, recognised: str, is_message: Callable[[Any], bool]) -> Format:
    """Return the row of a kind of messages; an object around a list of them is a run as well."""
    return Format(
        name=name,
        title=title,
        recognised=recognised,
        read=_read,
        record=lambda value: (
            isinstance(value, dict) and any(map(is_message, messages_in(value)[:200]))
        ),
        message=is_message,
        entry=lambda value: (
            None if _is_beside(value) or _is_beside_gemini(value) else entry_of(value)
        ),
    )


ANTHROPIC = _row(
    "anthropic",
    "Anthropic messages",
    "messages whose content holds blocks such as `tool_use` and `tool_result`",
    _is_anthropic_message,
)
LANGCHAIN = _row(
    "langchain",
    "LangChain messages",
    "messages with `type` (`human`, `ai`) in place of a role, or `lc` and `kwargs`",
    _is_langchain_message,
)
GEMINI_CLI = _row(
    "gemini-cli",
    "Gemini CLI session",
    "messages with the `type` `gemini`, also under `messages`",
    _is_gemini_cli,
)
PYDANTIC_AI = _row(
    "pydantic-ai",
    "pydantic-ai messages",
    "messages with `kind` and `parts` with `part_kind`, as `all_messages_json` writes them",
    is_pydantic_ai,
)
SMOLAGENTS = _row(
    "smolagents",
    "smolagents memory",
    "steps with `step_number`, `tool_calls` and `observations`, as `memory.get_full_steps` gives them",
    is_smolagents,
)
SHAREGPT = _row(
    "sharegpt",
    "ShareGPT messages",
    "messages with `from` (`human`, `gpt`) and `value`, also under `conversations`",
    _is_sharegpt_message,
)
CHAT = _row(
    "chat",
    "chat messages",
    "`role` and `content`, as OpenAI, LiteLLM and AG2 have them; also under `messages`, `chat_history`, `history` or "
    "`conversations`",
    _is_chat_message,
)
