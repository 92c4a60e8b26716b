"""Teams as their frameworks keep them: MetaGPT's `team.json`, CrewAI's output log, sessions of Google's ADK."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from mast_trace.trajectory.span_messages import objects
from mast_trace_judge.transfer.formats.conversation import Entry, Result, transcript_of
from mast_trace_judge.transfer.formats.kinds import (
    Format,
    TextLog,
    Transcript,
    is_record,
    moment_or_zero,
    objects_in,
    usage_of,
    whole_text,
    word_in,
)
from mast_trace_judge.transfer.formats.messages import call_of

# -- MetaGPT --------------------------------------------------------------------------------------

_HUMANS = frozenset({"", "user", "human", "boss"})
_ALL = "<all>"


def _read_metagpt(value: dict[str, Any], name: str) -> Iterator[Transcript]:
    context = value.get("context")
    yield transcript_of(
        [_metagpt_entry(message) for message in _storage(value["env"])],
        name,
        framework="metagpt",
        task=word_in(value, "idea"),
        usage=usage_of(context.get("cost_manager")) if isinstance(context, dict) else None,
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
        kept = role.get("rc") if isinstance(role, dict) else None
        memory = kept.get("memory") if isinstance(kept, dict) else None
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


def _is_crewai(value: Any) -> bool:
    return is_record(value, "timestamp", "task", "agent", "status")


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
    message=_is_crewai,
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
