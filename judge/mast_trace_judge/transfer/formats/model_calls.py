"""Runs of which the calls of models are kept: AutoGen's log of events, AG2's runtime logging, and requests with responses.

A message that a model was shown for the first time was said by somebody, or answered by a tool; its
own answers are the deeds of its agent.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mast_trace.trajectory.span_messages import objects
from mast_trace.untrusted_json import read_json
from mast_trace_judge.transfer.formats.conversation import (
    Entry,
    Result,
    task_at_first,
    transcript_of,
)
from mast_trace_judge.transfer.formats.foreign_spans import loaded
from mast_trace_judge.transfer.formats.kinds import (
    Format,
    TextLog,
    Transcript,
    is_record,
    moment_or_zero,
    objects_in,
    usage_of,
    word_in,
)
from mast_trace_judge.transfer.formats.messages import call_of, entry_of, role_of

_MESSAGE = ("role", "content")
_PEOPLE = frozenset({"user", "human", "user_proxy", "userproxy"})


def is_person(name: str) -> bool:
    """Return whether an agent of AutoGen or AG2 has a name that is given to whom speaks for people."""
    return name.lower() in _PEOPLE


@dataclasses.dataclass(frozen=True)
class _Call:
    """A call of a model: by whom, its request and its answer."""

    agent: str
    shown: list[dict[str, Any]]
    answer: Mapping[str, Any]
    time: int = 0


def _entries(calls: Sequence[_Call]) -> Iterator[Entry]:
    known: set[str] = set()
    for call in calls:
        for message in call.shown:
            yield from _new(message, call.agent, known)
        choices = objects_in(call.answer, "choices")
        whole = call.answer if is_record(call.answer, *_MESSAGE) else None  # Anthropic's
        answered = choices[0].get("message") if choices else whole
        said = (
            entry_of({**answered, "role": "assistant"})
            if isinstance(answered, dict)
            else Entry("assistant", call.agent, word_in(call.answer, "response"))
        )
        known.add(said.text)
        usage = usage_of(call.answer.get("usage"))
        yield dataclasses.replace(said, agent=call.agent, time=call.time, usage=usage)


def _new(message: dict[str, Any], caller: str, known: set[str]) -> Iterator[Entry]:
    """Yield what a message of a request tells, if no call before was shown it."""
    role = role_of(message)
    if role not in {"user", "tool"}:
        return
    entry = entry_of(message)
    if entry.results:  # Anthropic's stand in a message of the user
        fresh = [each for each in entry.results if each.call_id not in known]
        known.update(each.call_id for each in fresh)
        if fresh:
            yield dataclasses.replace(entry, results=tuple(fresh))
    elif entry.text and entry.text not in known and entry.agent != caller:
        known.add(entry.text)
        spoken = "user" if is_person(entry.agent) else "assistant"
        yield dataclasses.replace(entry, role=spoken)


# -- AutoGen's events -----------------------------------------------------------------------------

_EVENTS = frozenset({"LLMCall", "ToolCall", "Message", "MessageDropped", "MessageHandlerException"})


def _is_event(value: Any) -> bool:
    return word_in(value, "type") in _EVENTS and bool(
        value.keys() & {"agent_id", "payload", "handling_agent"}
    )


def _read_events(value: Any, name: str) -> Iterator[Transcript]:
    lines = objects(value if isinstance(value, list) else [value])
    calls = [
        _Call(
            # An agent's id is its type, after which a team writes its own id, and a key.
            agent=word_in(line, "agent_id").partition("/")[0].partition("_" + _team(line))[0],
            shown=objects_in(line, "messages"),
            answer={"usage": line, **line["response"]},
        )
        for line in lines
        if line.get("type") == "LLMCall" and isinstance(line.get("response"), dict)
    ]
    if not calls:
        raise ValueError("it holds no calls of models")
    failed = (word_in(line, "exception") for line in lines if "exception" in line)
    entries = list(_entries(calls))
    yield transcript_of(
        entries,
        name,
        framework="autogen",
        task=task_at_first(entries),
        model=word_in(calls[0].answer, "model"),
        termination_reason=next(failed, ""),
    )


def _team(line: Mapping[str, Any]) -> str:
    return word_in(line, "agent_id").partition("/")[2] or "/"


_LOGGED = re.compile(r'[^\n{]{0,120}autogen_core\.events[^\n{]{0,40}(?={")')

AUTOGEN_EVENTS = Format(
    name="autogen-events",
    title="AutoGen event log",
    recognised="lines with a `type` such as `LLMCall` and `agent_id`, as the logger `autogen_core.events` writes them",
    read=_read_events,
    keys=("type", "agent_id", "messages", "response"),
    message=_is_event,
    entry=lambda line: line,
    text=TextLog(
        begin=_LOGGED, head=_LOGGED, value=lambda _, text: read_json(text.partition("\n")[0])
    ),
)

# -- AG2's console ---------------------------------------------------------------------------------

_RULE = "-" * 80
_SPOKEN = re.compile(r"([^\n():]{1,200}) \(to ([^\n()]{1,200})\):$", re.MULTILINE)
_BLOCK = re.compile(
    r"^\*{5} (?:Suggested (?:tool|function) call(?: \(([^\n]{0,200}?)\))?: ([^\n]{1,200}?)"
    r"|Response from calling (?:tool|function) \(([^\n]{0,200}?)\)) \*{5}\n",
    re.MULTILINE,
)
_BLOCK_ENDS = re.compile(r"\n\*{20,}(?=\n|$)")
_ARGUMENTS = re.compile(r"Arguments: ?\n")


def _printed(head: re.Match[str], text: str) -> dict[str, Any]:
    """Return a message as AG2 prints it."""
    return {"ag2_sender": head[1], "ag2_recipient": head[2], "content": text}


def _printed_entry(message: Mapping[str, Any]) -> Entry:
    sender, text = message["ag2_sender"], message["content"]
    heads = list(_BLOCK.finditer(text))
    ends = [*(head.start() for head in heads[1:]), len(text)]
    said = [text[: heads[0].start()] if heads else text]
    calls, results = [], []
    for head, end in zip(heads, ends, strict=False):  # none without a block
        block = text[head.end() : end]
        close = _BLOCK_ENDS.search(block)
        inner = block[: close.start()] if close else block
        said.append(block[close.end() :] if close else "")
        if head[2]:
            calls.append(call_of(head[2], _ARGUMENTS.sub("", inner, count=1), head[1]))
        else:
            results.append(Result(inner, head[3]))
    return Entry(
        role="tool" if results else "user" if is_person(sender) else "assistant",
        agent=sender,
        text="".join(said).strip(),
        calls=tuple(calls),
        results=tuple(results),
        recipients=(message["ag2_recipient"],),
    )


AG2_CONSOLE = Format(
    name="ag2-console",
    title="AG2 console output",
    recognised="text with lines such as `user (to assistant):`, and a line of 80 dashes after each message",
    read=lambda value, name: [
        transcript_of(entries, name, framework="ag2", task=task_at_first(entries))
        for entries in [[_printed_entry(each) for each in objects(value)]]
    ],
    message=lambda value: is_record(value, "ag2_sender", "ag2_recipient", "content"),
    entry=_printed_entry,
    text=TextLog(
        begin=_SPOKEN, head=_SPOKEN, value=_printed, end=re.compile(f"{_RULE}$", re.MULTILINE)
    ),
)

# -- AG2's runtime logging ------------------------------------------------------------------------


def _read_ag2(value: dict[str, Any], name: str) -> Iterator[Transcript]:
    calls = [
        _Call(
            agent=word_in(row, "source_name"),
            shown=objects_in(row.get("request"), "messages"),
            answer=row["response"],
            time=moment_or_zero(row.get("start_time")),
        )
        for row in objects_in(value, "chat_completions")
        if isinstance(row.get("response"), dict)
    ]
    model = word_in(calls[0].answer, "model") if calls else ""
    named, entries = f"{name}/{value['session_id']}", list(_entries(calls))
    yield transcript_of(entries, named, framework="ag2", task=task_at_first(entries), model=model)


AG2_LOGGING = Format(
    name="ag2-logging",
    title="AG2 runtime logging",
    recognised="a SQLite file with `chat_completions`, as `runtime_logging.start` writes it",
    read=_read_ag2,
    record=lambda value: is_record(value, "session_id", "chat_completions"),
)

# -- requests with responses -----------------------------------------------------------------------

_STARTED = ("request_created_at", "start_time", "startTime", "timestamp")


def _body(value: Any, side: str) -> dict[str, Any]:
    """Return the body of a request or a response, which a log keeps under one of several names."""
    kept = value.get(side) or value.get(f"{side}_body") if isinstance(value, dict) else None
    body = loaded(kept)
    inner = body.get("body") if isinstance(body, dict) else None
    return inner if isinstance(inner, dict) else body if isinstance(body, dict) else {}


def _sent(value: Any) -> list[dict[str, Any]]:
    """Return the messages of a request; a log may keep them without the rest of it."""
    return objects_in(_body(value, "request") or value, "messages")


def _is_call(value: Any) -> bool:
    answer = _body(value, "response")
    return bool(_sent(value)) and (bool(answer.get("choices")) or is_record(answer, *_MESSAGE))


def _read_calls(value: Any, name: str) -> Iterator[Transcript]:
    lines = objects(value if isinstance(value, list) else [value])
    calls = []
    for line in lines:
        answer = _body(line, "response")
        times = (answer.get("created"), *map(line.get, _STARTED))
        time = next(filter(None, map(moment_or_zero, times)), 0)
        calls.append(_Call("assistant", _sent(line), answer, time))
    model, entries = word_in(calls[0].answer, "model"), list(_entries(calls))
    yield transcript_of(entries, name, task=task_at_first(entries), model=model)


OPENAI_CALLS = Format(
    name="openai-calls",
    title="requests and responses of a model's API",
    recognised="`request` (or `request_body`) with `messages`, and `response` with `choices` or Anthropic's `content`; "
    "the lines of a file are one run",
    read=_read_calls,
    keys=("request", "response"),
    message=_is_call,
    entry=lambda line: line,
)
