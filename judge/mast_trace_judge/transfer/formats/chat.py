"""Chats as lists of messages: with roles in several shapes, items of OpenAI's Responses API, and plain transcripts."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from mast_trace.trajectory import Step, StepKind, Trajectory
from mast_trace.trajectory.span_messages import objects
from mast_trace_judge.local.texts import says_failed
from mast_trace_judge.study.labelled import plain_name
from mast_trace_judge.transfer.formats.conversation import (
    Entry,
    Result,
    task_at_first,
    transcript_of,
)
from mast_trace_judge.transfer.formats.kinds import (
    Format,
    Transcript,
    is_record,
    usage_of,
    usage_of_models,
    whole_text,
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
from mast_trace_judge.transfer.formats.messages import call_of, entry_of, role_of, text_of_parts

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


# -- Plain transcripts: who said what, whatever the speakers are called ----------------------------

_RECIPIENT = re.compile(r"\(->\s*(.*?)\s*\)")
_EXECUTORS = frozenset({"computer_terminal", "computerterminal"})
"""Agents that run the code of the message before them and write nothing of their own."""


def recipient_of(name: str) -> str:
    """Return the addressee that Magentic-One adds to an agent's name; empty where there is none."""
    found = _RECIPIENT.search(name)
    return found[1] if found else ""


def plain_steps(entries: Sequence[Mapping[str, Any]]) -> tuple[Step, ...]:
    """Read a list of ``name``, ``role`` and ``content`` as steps, whose numbers are positions in the list.

    The agent is in ``name``, and in ``role`` where no name is given. Executors' entries become tool steps.
    """
    names = [str(entry.get("name") or entry.get("role") or "") for entry in entries]
    return tuple(
        _plain_step(index, name, str(entry.get("content") or ""))
        for index, (name, entry) in enumerate(zip(names, entries, strict=True))
    )


def _plain_step(index: int, name: str, text: str) -> Step:
    agent = plain_name(name)
    recipient = recipient_of(name)
    runs = agent.lower() in _EXECUTORS
    failed = says_failed(text) if runs else None
    return Step(
        index=index,
        kind=StepKind.TOOL if runs else StepKind.MESSAGE,
        agent=agent,
        text=text,
        role="user" if agent == "human" else "assistant",
        recipients=(recipient,) if recipient else (),
        tool=agent if runs else "",
        error=failed[0] if failed else None,
    )


def _read_plain(value: Any, name: str) -> Iterator[Transcript]:
    if not isinstance(value, list) or not value:
        raise ValueError("it holds no messages")
    for number, entry in enumerate(value):
        try:
            _check_plain(entry)
        except ValueError as error:
            raise ValueError(f"entry {number} is no message: {error}") from None
    steps = tuple(
        dataclasses.replace(step, role=str(entry.get("role") or step.role))
        for step, entry in zip(plain_steps(value), value, strict=True)
    )
    asked = (entry["content"] for entry in value if entry.get("role") in {"user", "human"})
    # A plain transcript does not record how it ended.
    yield Transcript(Trajectory(trace_id="", steps=steps, task=next(asked, "")), name)


def _check_plain(entry: Any) -> None:
    if not isinstance(entry, dict):
        raise ValueError("expected an object")  # noqa: TRY004  # one error for what is read
    if not isinstance(entry.get("content"), str):
        raise ValueError("its content is no text")  # noqa: TRY004
    if not (entry.get("role") or entry.get("name")):
        raise ValueError("it has neither role nor name")


PLAIN = Format(
    name="transcript",
    title="plain transcript",
    recognised="a list of `name` or `role`, whatever they are called, and `content`",
    read=_read_plain,
    entry=_check_plain,
    message=lambda value: (
        isinstance(value, dict)
        and isinstance(value.get("content"), str)
        and bool(value.get("role") or value.get("name"))
    ),
)


# -- Items of OpenAI's Responses API, which the Agents SDK keeps as well ---------------------------

_ASKED = frozenset({"function_call", "custom_tool_call"})
_ANSWERED = frozenset({"function_call_output", "custom_tool_call_output"})
_PARTS = frozenset({"output_text", "input_text"})
_REASONED = "reasoning"
_SILENT = frozenset({_REASONED, "mcp_list_tools", "compaction"})
_RESULTS = ("output", "results", "outputs", "result")
_GIVEN = ("action", "queries", "code", "arguments", "input")


def _is_item(value: Any) -> bool:
    """Return whether a value is an item that no chat holds; a chat's messages stand beside them."""
    if not isinstance(value, dict):
        return False
    kind = word_in(value, "type")
    if kind in _ASKED | _ANSWERED:
        return "call_id" in value
    if kind == "message" and "role" in value:
        parts = value.get("content")
        return isinstance(parts, list) and any(word_in(part, "type") in _PARTS for part in parts)
    return (kind == _REASONED and "summary" in value) or _is_hosted(value)


def is_reasoning(value: Any) -> bool:
    """Return whether an item holds content that only the model sees, or none."""
    return word_in(value, "type") in _SILENT


def _is_hosted(value: dict[str, Any]) -> bool:
    """Return whether an item is the call of a tool that runs at the provider's, with its result."""
    return (
        str(value.get("type", "")).endswith("_call")
        and ("status" in value or "server_label" in value)
        and ("id" in value or "call_id" in value)
    )


def item_entry(value: Any) -> Entry:
    """Read an item.

    Raises:
        ValueError: it is none; the text names the missing part.
    """
    kind = word_in(value, "type")
    if kind in _ASKED:
        call = call_of(
            value.get("name"), value.get("arguments", value.get("input")), value.get("call_id")
        )
        return Entry("assistant", "assistant", calls=(call,))
    if kind in _ANSWERED:
        text = text_of_parts(value.get("output"))
        return Entry("tool", "tool", results=(Result(text, str(value.get("call_id") or "")),))
    if isinstance(value, dict) and _is_hosted(value):
        tool = word_in(value, "name") or str(kind).removesuffix("_call")
        given = {key: value[key] for key in _GIVEN if value.get(key) is not None}
        found = {key: value[key] for key in _RESULTS if value.get(key) is not None}
        arguments = next(iter(given.values())) if len(given) == 1 else given or None
        identity = str(value.get("call_id") or value["id"])
        call = call_of(tool, arguments, identity)
        failed = str(value["status"]) if value.get("status") == "failed" else None
        failed = whole_text(value["error"]) if value.get("error") else failed
        text = text_of_parts(next(iter(found.values()), None))
        result = Result(text, identity, error=failed)
        # The output of a local shell is an item of its own.
        told = () if kind == "local_shell_call" else (result,)
        return Entry("assistant", "assistant", calls=(call,), results=told)
    return entry_of(value)


def _read_responses(value: Any, name: str) -> Iterator[Transcript]:
    items: list[Any] = value if isinstance(value, list) else _items(value)
    visible = [item for item in items if not is_reasoning(item)]
    known = value if isinstance(value, dict) else {}
    yield transcript_of(
        entries_of(visible, item_entry),
        named_within(value, name),
        model=word_in(known, "model"),
        usage=usage_of(known.get("usage")),
        begun=known.get("created_at"),
    )


def _items(value: dict[str, Any]) -> list[Any]:
    """Return the items of a response after those that it answers, where both are given."""
    given = value.get("input")
    asked = [{"role": "user", "content": given}] if isinstance(given, str) else given or []
    system = value.get("instructions")
    system_message = (
        [{"role": "system", "content": system}] if isinstance(system, str) and system else []
    )
    return [
        *system_message,
        *(asked if isinstance(asked, list) else []),
        *(value.get("output") or []),
    ]


def _is_response(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("output"), list):
        return False
    return value.get("object") == "response" or any(map(_is_item, value["output"]))


RESPONSES = Format(
    name="responses",
    title="OpenAI Responses items",
    recognised="items such as `function_call` and `function_call_output`, or a response with "
    "`output`",
    read=_read_responses,
    record=_is_response,
    message=_is_item,
    entry=lambda item: None if is_reasoning(item) else item_entry(item),
)
