"""Teams as their frameworks keep them: MetaGPT, CrewAI, Google's ADK, ChatDev, and threads of LangGraph."""

from __future__ import annotations

import dataclasses
import re
import uuid
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

from mast_trace.trajectory.span_messages import objects
from mast_trace_judge.local.texts import says_failed
from mast_trace_judge.transfer.formats.conversation import Entry, Result, transcript_of
from mast_trace_judge.transfer.formats.kinds import (
    Format,
    TextLog,
    Transcript,
    is_record,
    moment_or_zero,
    object_in,
    objects_in,
    usage_of,
    whole_text,
    word_in,
)
from mast_trace_judge.transfer.formats.libraries import unwrapped
from mast_trace_judge.transfer.formats.messages import call_of, entry_of, role_of

# -- MetaGPT --------------------------------------------------------------------------------------

_HUMANS = frozenset({"", "user", "human", "boss"})
_ALL = "<all>"


def _read_metagpt(value: dict[str, Any], name: str) -> Iterator[Transcript]:
    yield transcript_of(
        [_metagpt_entry(message) for message in _storage(value["env"])],
        name,
        framework="metagpt",
        task=word_in(value, "idea"),
        usage=usage_of(object_in(value, "context").get("cost_manager")),
    )


def _storage(env: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the messages of a team: its history, else what its roles remember, each once and in their order."""
    held = objects_in(env.get("history"), "storage")
    if held:
        return held
    roles = env.get("roles")
    listed = roles.values() if isinstance(roles, dict) else objects(roles)
    found: dict[str, dict[str, Any]] = {}
    for role in listed:
        memory = object_in(object_in(role, "rc"), "memory")
        for message in objects_in(memory, "storage"):
            found.setdefault(str(message.get("id") or whole_text(message)), message)
    return list(found.values())


def _metagpt_entry(message: Mapping[str, Any]) -> Entry:
    role, source = word_in(message, "role"), word_in(message, "sent_from").rpartition(".")[2]
    asked = role.lower() in _HUMANS and source.lower() in _HUMANS
    given = message.get("send_to")
    to = [given] if isinstance(given, str) else given if isinstance(given, list) else []
    named = role if role.lower() not in _HUMANS | {"assistant"} else source
    return Entry(
        role="user" if asked else "assistant",
        agent="user" if asked else named or role,
        text=str(message.get("content") or ""),
        recipients=tuple(str(each).rpartition(".")[2] for each in to if each != _ALL),
    )


METAGPT = Format(
    name="metagpt",
    title="MetaGPT team",
    recognised="`env` and `idea`, as `team.json` has them",
    read=_read_metagpt,
    keys=("env", "idea", "investment"),
    record=lambda value: is_record(value, "env", "investment") and isinstance(value["env"], dict),
)

# -- CrewAI ---------------------------------------------------------------------------------------


_FIELD = re.compile(r'(?:^|", )(task_name|task|agent|status|output)="')
_CREWAI_HEAD = re.compile(r'(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d): (?=(?:task_name|task|agent)=")')


def _crewai_line(head: re.Match[str], text: str) -> dict[str, str]:
    """Return an entry of the log in plain text, which does not escape the quotes within its fields."""
    told = {"timestamp": head[1]}
    begun = [*_FIELD.finditer(text)]
    ends = [*(field.start() for field in begun[1:]), len(text)]
    for field, end in zip(begun, ends, strict=True):
        if field[1] == "output":  # the last field, whatever stands in it
            return told | {"output": text[field.end() :].removesuffix('"')}
        told.setdefault(field[1], text[field.end() : end].removesuffix('"'))
    return told


def _crewai_entry(line: Mapping[str, Any]) -> Entry:
    agent, time = word_in(line, "agent").strip(), moment_or_zero(line.get("timestamp"))
    if line["status"] == "started":
        return Entry("user", "crew", word_in(line, "task"), recipients=(agent,), time=time)
    text = whole_text(line.get("output") or "")
    return Entry("assistant", agent, text, time=time)


CREWAI = Format(
    name="crewai",
    title="CrewAI output log",
    recognised="`timestamp`, `task`, `agent` and `status`, as `output_log_file` writes them in JSON or as text",
    read=lambda value, name: [
        transcript_of([_crewai_entry(line) for line in objects(value)], name, framework="crewai")
    ],
    keys=("timestamp", "task", "agent", "status"),
    message=lambda value: is_record(value, "timestamp", "task", "agent", "status"),
    entry=_crewai_entry,
    text=TextLog(begin=_CREWAI_HEAD, head=_CREWAI_HEAD, value=_crewai_line),
)

# -- Google ADK -----------------------------------------------------------------------------------


def _is_adk(value: Any) -> bool:
    return is_record(value, "events") and (
        is_record(value, "appName") or is_record(value, "app_name")
    )


def _is_adk_event(value: Any) -> bool:
    return is_record(value, "author") and bool(value.keys() & {"invocationId", "invocation_id"})


def _read_adk(value: Any, name: str) -> Iterator[Transcript]:
    session = value if isinstance(value, dict) else {"events": value}
    entries = [_adk_entry(event) for event in objects_in(session, "events")]
    told = [each for each in entries if each.text or each.calls or each.results]
    yield transcript_of(told, f"{name}/{session.get('id') or 'session'}", framework="google-adk")


def _adk_entry(event: Mapping[str, Any]) -> Entry:
    texts, calls, results = [], [], []
    for part in objects_in(event.get("content"), "parts"):
        call = part.get("functionCall") or part.get("function_call")
        answer = part.get("functionResponse") or part.get("function_response")
        if isinstance(call, dict):
            calls.append(call_of(call.get("name"), call.get("args"), call.get("id")))
        elif isinstance(answer, dict):
            said = answer.get("response")
            failed = (
                whole_text(said["error"]) if isinstance(said, dict) and "error" in said else None
            )
            text = whole_text(said if said is not None else "")
            results.append(Result(text, word_in(answer, "id"), word_in(answer, "name"), failed))
        elif not part.get("thought"):
            texts.append(word_in(part, "text"))
    author = word_in(event, "author")
    actions = event.get("actions")
    target = word_in(actions, "transferToAgent") or word_in(actions, "transfer_to_agent")
    return Entry(
        role="user" if author == "user" else "assistant",
        agent=author,
        text="\n".join(filter(None, texts)),
        calls=tuple(calls),
        results=tuple(results),
        handoff_to=target if texts else "",
        time=moment_or_zero(event.get("timestamp")),
        usage=usage_of(event.get("usageMetadata") or event.get("usage_metadata")),
    )


ADK = Format(
    name="google-adk",
    title="Google ADK session",
    recognised="`appName` and `events`, as its session services and its web view write them (a SQLite file too), or "
    "events with `author` and `invocationId`",
    read=_read_adk,
    keys=("appName", "events", "userId"),
    record=_is_adk,
    message=_is_adk_event,
    entry=_adk_entry,
)


# -- ChatDev ---------------------------------------------------------------------------------------

_SAID = re.compile(r"(?:([^\n:*|]{1,80}): )?\*\*\[?([^\n*]+?)\]?\*\*:?")
_TURN = re.compile(r"(.+?)<->(.+?) on : .+, turn \d+")
_PLAYS = re.compile(r"\| \*\*assistant_role_name\*\* \| ([^|\n]+?) \|")
_SPENT = re.compile(r"^(prompt_tokens|completion_tokens): (\d{1,15})$", re.MULTILINE)


def _chatdev_line(head: re.Match[str], text: str) -> dict[str, str] | None:
    """Return an entry; None for a line of the program that nobody said."""
    said = _SAID.match(text)
    if said is None:
        return None
    year, day, month, time = head.groups()
    return {
        "chatdev_heading": said[2],
        "speaker": said[1] or "",
        "content": text[said.end() :].strip(),
        "timestamp": f"{year}-{month}-{day} {time}",
    }


def _read_chatdev(value: Any, name: str) -> Iterator[Transcript]:
    entries: list[Entry] = []
    task, assistant = "", ""
    spent: deque[tuple[int, int]] = deque()
    for line in objects(value):
        heading, role, text = line["chatdev_heading"], line["speaker"], line["content"]
        time = moment_or_zero(line["timestamp"])
        turn = _TURN.fullmatch(heading)
        if heading == "Preprocessing":
            asked = text.partition("**task_prompt**: ")[2]
            task = asked.partition("\n\n**project_name**")[0].strip()
            entries.append(Entry("user", "user", task, time=time))
        elif heading == "chatting" and (plays := _PLAYS.search(text)):
            assistant = plays[1]
        elif heading == "OpenAI_Usage_Info Receive":
            told = dict(_SPENT.findall(text))
            if len(told) == 2:
                spent.append((int(told["prompt_tokens"]), int(told["completion_tokens"])))
        elif turn is not None:
            usage = spent.popleft() if spent else None
            other = turn[2] if role == turn[1] else turn[1]
            said = _unprompted(text)
            entries.append(
                Entry("assistant", role, said, recipients=(other,), time=time, usage=usage)
            )
        elif heading == "Start Chat":
            to = (assistant,) if assistant else ()
            said = _unprompted(text)
            entries.append(Entry("assistant", role, said, recipients=to, synthetic=True, time=time))
        elif heading == "Test Reports":
            failed = says_failed(text)
            result = Result(text, tool="test", error=failed[0] if failed else None)
            entries.append(Entry("tool", "ChatDev", results=(result,), time=time))
        elif heading == "User Provided Comments":
            entries.append(Entry("user", "user", text, time=time))
    yield transcript_of(_with_rest(entries, spent), name, framework="chatdev", task=task)


def _unprompted(text: str) -> str:
    """Return what was said, without the system prompt that stands in brackets before it."""
    before, ends, said = text.partition("]\n\n")
    return said if ends and before.startswith("[") else text


def _with_rest(entries: list[Entry], rest: deque[tuple[int, int]]) -> list[Entry]:
    """Return the entries; tokens of calls that nobody's words followed are those of the last that spoke."""
    place = next((n for n in reversed(range(len(entries))) if entries[n].usage), None)
    if place is not None:
        told = [*rest, entries[place].usage or (0, 0)]
        usage = (sum(each for each, _ in told), sum(each for _, each in told))
        entries[place] = dataclasses.replace(entries[place], usage=usage)
    return entries


_STAMP = r"\[(\d{4})-(\d\d)-(\d\d) (\d\d:\d\d:\d\d) [A-Z]+\] "
"""ChatDev writes the day before the month."""

CHATDEV = Format(
    name="chatdev",
    title="ChatDev log",
    recognised="text whose first entry is `**[Preprocessing]**` after a time in brackets",
    read=_read_chatdev,
    message=lambda value: is_record(value, "chatdev_heading", "content"),
    text=TextLog(
        begin=re.compile(_STAMP + r"\*\*\[Preprocessing\]\*\*"),
        head=re.compile(_STAMP),
        value=_chatdev_line,
    ),
)


# -- LangGraph -------------------------------------------------------------------------------------

_BEFORE_1970 = 0x01B21DD213814000
"""Times of UUIDs count from 1582, in units of 100 nanoseconds."""


def _messages_of_channel(value: Any) -> list[dict[str, Any]]:
    """Return the messages in a channel's value: a list of them, or one."""
    listed = objects(value if isinstance(value, list) else [value])
    return [each for each in listed if "content" in unwrapped(each) and role_of(unwrapped(each))]


def _read_langgraph(value: dict[str, Any], name: str) -> Iterator[Transcript]:
    writers: dict[str, tuple[str, int]] = {}
    written: dict[str, dict[str, Any]] = {}
    for write in objects_in(value, "writes"):
        for message in _messages_of_channel(write.get("value")):
            identity = word_in(unwrapped(message), "id")
            if identity:
                writers.setdefault(
                    identity, (word_in(write, "node"), _moment_of(write["checkpoint_id"]))
                )
                written.setdefault(identity, message)
    channels = object_in(value["checkpoint"], "channel_values")
    told = _messages_of_channel(channels.get("messages")) or max(
        map(_messages_of_channel, channels.values()), key=len, default=[]
    )
    entries = [_langgraph_entry(message, writers) for message in told or written.values()]
    # A message was there before the next one, and a graph within the graph writes it again later.
    for place in reversed(range(len(entries) - 1)):
        after = entries[place + 1].time
        time = min(entries[place].time or after, after or entries[place].time)
        entries[place] = dataclasses.replace(entries[place], time=time)
    yield transcript_of(entries, f"{name}/{value['thread_id']}", framework="langgraph")


def _langgraph_entry(message: dict[str, Any], writers: dict[str, tuple[str, int]]) -> Entry:
    inner = unwrapped(message)
    node, time = writers.get(word_in(inner, "id"), ("", 0))
    entry = entry_of(message)
    agent = word_in(inner, "name") or node
    named = agent if entry.role == "assistant" and agent else entry.agent
    return dataclasses.replace(entry, agent=named, time=time)


def _moment_of(identity: Any) -> int:
    """Return the time in a checkpoint's id, a UUID of version 6, in nanoseconds; 0 if it is another id."""
    try:
        number = uuid.UUID(str(identity)).int
    except ValueError:
        return 0
    if (number >> 76) & 0xF != 6:
        return 0
    return max(((number >> 80 << 12 | (number >> 64 & 0xFFF)) - _BEFORE_1970) * 100, 0)


LANGGRAPH = Format(
    name="langgraph",
    title="LangGraph checkpoints",
    recognised="a SQLite file with `checkpoints` and `writes`, as `SqliteSaver` writes it; msgpack needs "
    "`pip install ormsgpack`",
    read=_read_langgraph,
    record=lambda value: (
        is_record(value, "thread_id", "checkpoint") and isinstance(value["checkpoint"], dict)
    ),
)
