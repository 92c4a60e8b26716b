"""Sessions of coding assistants: Claude Code's, as files and as log events, and Codex's. Sub-agents are agents, edits and commands are tools."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from typing import Any

from mast_trace.trajectory.span_messages import objects
from mast_trace.trajectory.vocabulary import integer
from mast_trace_judge.transfer.formats.chat import item_entry
from mast_trace_judge.transfer.formats.conversation import (
    Entry,
    Result,
    task_at_first,
    transcript_of,
)
from mast_trace_judge.transfer.formats.foreign_spans import at, loaded
from mast_trace_judge.transfer.formats.kinds import (
    Format,
    Transcript,
    is_record,
    moment_or_zero,
    object_in,
    objects_in,
    usage_of,
    usage_of_models,
    word_in,
)
from mast_trace_judge.transfer.formats.messages import call_of, entry_of, text_of_parts

# -- Claude Code ----------------------------------------------------------------------------------

_BESIDE = frozenset({"summary", "file-history-snapshot", "queue-operation"})
"""Lines of a session that are no messages."""
_MAIN = "claude"
_SHOWN_BY_PROGRAM = (
    "<command-name>",
    "<local-command-",
    "<system-reminder>",
    "Caveat: The messages",
)
"""Beginnings of what the program, not the user, wrote: commands of its own and their output."""


def _is_claude(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    return (
        is_record(value, "sessionId", "type")
        or _is_of_sdk(value)
        or (word_in(value, "type") in _BESIDE and bool(value.keys() & {"leafUuid", "snapshot"}))
    )


def _is_of_sdk(value: Mapping[str, Any]) -> bool:
    """Return whether a line is a message of the Agent SDK, which `claude --output-format stream-json` prints as well."""
    return is_record(value, "session_id", "type") and (
        "parent_tool_use_id" in value
        or word_in(value, "type") in {"system", "result", "rate_limit_event"}
    )


def _is_said(line: Mapping[str, Any]) -> bool:
    """Return whether a line is a message that somebody wrote, and neither a hook nor a compaction."""
    return (
        line.get("type") in {"user", "assistant"}
        and isinstance(line.get("message"), dict)
        and not (line.get("isMeta") or line.get("isCompactSummary"))
    )


def _read_claude(value: Any, name: str) -> Iterator[Transcript]:
    told = objects(value)
    lines = [line for line in told if _is_said(line)]
    asked = {part.get("id"): part.get("input") for line in lines for part in _parts(line)}
    agents: dict[str, str] = {}
    usage: dict[str, tuple[int, int]] = {}
    for line in lines:
        if above := word_in(line, "parent_tool_use_id"):
            agents[above] = word_in(asked.get(above), "subagent_type")
        identity = word_in(line.get("toolUseResult"), "agentId")
        for part in _parts(line) if identity else ():
            kind = word_in(asked.get(part.get("tool_use_id")), "subagent_type")
            agents[identity] = kind or agents.get(identity, "")
        spent = usage_of(line["message"].get("usage"))
        if spent is not None:  # each block of an answer has a line, and the last the whole usage
            usage[word_in(line["message"], "id")] = spent
    results = [line for line in told if line.get("type") == "result"]
    # The Agent SDK gives messages when they begin, and counts what they came to at the end.
    whole = usage_of_models(results[-1].get("modelUsage")) if results else None
    if whole:
        usage = {}
    entries = [
        _claude_entry(line, agents, usage) for line in lines if _holds_more_than_thoughts(line)
    ]
    models = (word_in(line["message"], "model") for line in lines)
    ends = (word_in(line, "subtype") for line in results)
    entries = [entry for entry in entries if not entry.text.startswith(_SHOWN_BY_PROGRAM)]
    yield transcript_of(
        entries,
        name,
        framework="claude-code",
        task=task_at_first(entries) if lines and lines[0]["type"] == "user" else "",
        model=next(filter(None, models), ""),
        usage=whole,
        termination_reason=next((end for end in ends if end not in {"", "success"}), ""),
    )


def _holds_more_than_thoughts(line: Mapping[str, Any]) -> bool:
    entry = entry_of(line["message"])
    return bool(entry.text or entry.calls or entry.results)


def _parts(line: Mapping[str, Any]) -> list[dict[str, Any]]:
    return objects(line["message"].get("content"))


def _claude_entry(
    line: Mapping[str, Any], agents: Mapping[str, str], usage: dict[str, tuple[int, int]]
) -> Entry:
    entry = entry_of(line["message"])
    inner = str(line.get("agentId") or line.get("parent_tool_use_id") or "")
    own = agents.get(inner) or inner or ("sub-agent" if line.get("isSidechain") else _MAIN)
    spoken = line["type"] == "assistant"
    # A sub-agent's task is what the main agent wrote.
    author = own if spoken else "user" if own == _MAIN else _MAIN
    return dataclasses.replace(
        entry,
        role=entry.role if spoken or own == _MAIN else "assistant",
        agent=author,
        recipients=(own,) if not spoken and own != _MAIN and entry.text else (),
        time=moment_or_zero(line.get("timestamp")),
        usage=usage.pop(word_in(line["message"], "id"), None) if spoken else None,
    )


CLAUDE_CODE = Format(
    name="claude-code",
    title="Claude Code session",
    recognised="lines with `sessionId` (`session_id` of its Agent SDK) and a `type` such as `user` or `assistant`",
    read=_read_claude,
    keys=("sessionId", "type", "uuid", "parentUuid"),
    message=_is_claude,
    entry=lambda line: entry_of(line["message"]) if _is_said(line) else None,
)

# -- Codex ----------------------------------------------------------------------------------------

_LINES = frozenset({"session_meta", "response_item", "event_msg", "turn_context", "compacted"})
_EVENTS = frozenset({"thread.started"} | {f"turn.{each}" for each in ("started", "completed")})
_EVENTS |= {"turn.failed"} | {f"item.{each}" for each in ("started", "updated", "completed")}
"""Events that `codex exec --json` prints."""
_ENDED = re.compile(r"^(?:Exit code:|Process exited with code) (\d{1,9})$", re.MULTILINE)
_HEAD = 200
_CONTEXT = ("<environment_context>", "<user_instructions>", "# AGENTS.md instructions")


def _is_codex(value: Any) -> bool:
    if word_in(value, "type") in _EVENTS and (
        value.keys() & {"thread_id", "item", "usage", "error"} or len(value) == 1
    ):
        return True
    if is_record(value, "record_type") or is_record(value, "id", "timestamp", "instructions"):
        return True  # the first releases wrote items with nothing around them
    return word_in(value, "type") in _LINES and isinstance(value.get("payload"), dict)


def _line(value: Mapping[str, Any]) -> Mapping[str, Any]:
    return (
        value
        if "payload" in value or value.get("type") in _EVENTS
        else {"type": "response_item", "payload": value}
    )


def _is_item(line: Mapping[str, Any]) -> bool:
    kind = word_in(line.get("payload"), "type")
    return line["type"] == "response_item" and kind.endswith(("message", "_call", "_output"))


def _read_codex(value: Any, name: str) -> Iterator[Transcript]:
    entries: list[Entry] = []
    model, used, failed = "", 0, ""
    for line in map(_line, objects(value)):
        if line.get("type") in _EVENTS:
            entries += filter(None, [_event_entry(line)])
            failed = word_in(line.get("error"), "message")
            if (spent := usage_of(line.get("usage"))) and used < len(entries):
                entries[used] = dataclasses.replace(entries[used], usage=spent)
                used = len(entries)
            continue
        payload = line["payload"]
        if _is_item(line):
            entry = _codex_entry(line)
            if not entry.text.startswith(_CONTEXT):
                entries.append(entry)
        elif line["type"] == "turn_context":
            model = model or word_in(payload, "model")
        elif payload.get("type") == "token_count" and isinstance(payload.get("info"), dict):
            spent = usage_of(payload["info"].get("last_token_usage"))
            made = (n for n in range(used, len(entries)) if entries[n].agent == "codex")
            place = next(made, None)  # the first of what the call has made
            if spent and place is not None:
                entries[place] = dataclasses.replace(entries[place], usage=spent)
                used = len(entries)
    yield transcript_of(entries, name, framework="codex", model=model, termination_reason=failed)


_TOOLS = {"command_execution": "shell", "file_change": "apply_patch", "web_search": "web_search"}
_GIVEN = ("command", "changes", "query", "arguments", "prompt")


def _event_entry(line: Mapping[str, Any]) -> Entry | None:
    """Return what an item says at its end; thoughts and lists of what is left to do are none."""
    item = line.get("item")
    kind = word_in(item, "type")
    if line["type"] != "item.completed" or not isinstance(item, dict):
        return None
    if kind == "agent_message":
        return Entry("assistant", "codex", word_in(item, "text"))
    tool = _TOOLS.get(kind, word_in(item, "tool"))
    if not tool:
        return None
    given = next(({key: item[key]} for key in _GIVEN if item.get(key) is not None), None)
    arguments = given["arguments"] if given and "arguments" in given else given
    content = object_in(item, "result").get("content")
    error = word_in(item.get("error"), "message")
    text = word_in(item, "aggregated_output") or text_of_parts(content) or error
    has_failed = bool(error or item.get("exit_code") or item.get("status") == "failed")
    identity = word_in(item, "id")
    answer = Result(text, identity, tool, text or "failed" if has_failed else None)
    call = call_of(tool, arguments, identity)
    return Entry("assistant", "codex", calls=(call,), results=(answer,))


def _codex_entry(line: Mapping[str, Any]) -> Entry:
    entry = item_entry(line["payload"])
    results = tuple(
        dataclasses.replace(each, text=text, error=text if failed else each.error)
        for each in entry.results
        for text, failed in [_output(each.text)]
    )
    return dataclasses.replace(
        entry,
        agent="codex" if entry.role == "assistant" else entry.agent,
        results=results,
        time=moment_or_zero(line.get("timestamp")),
    )


def _output(text: str) -> tuple[str, bool]:
    """Return what a command wrote, and whether it has failed."""
    if ended := _ENDED.search(text[:_HEAD]):
        return text, int(ended[1]) != 0
    told = loaded(text)
    if not is_record(told, "output", "metadata"):
        return text, False
    code = told["metadata"].get("exit_code") if isinstance(told["metadata"], dict) else None
    return str(told["output"]), code not in (None, 0)


CODEX = Format(
    name="codex",
    title="Codex rollout",
    recognised="lines with `payload` and a `type` such as `session_meta`; events such as `item.completed` of `codex exec --json`",
    read=_read_codex,
    keys=("type", "payload", "timestamp"),
    message=_is_codex,
    entry=lambda value: _codex_entry(line) if _is_item(line := _line(value)) else None,
)


# -- Claude Code's log events, which hold no result of any tool ------------------------------------

_OF_CLAUDE = "claude_code."
_COUNTED = {
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "cache_read_tokens": "cache_read_input_tokens",
    "cache_creation_tokens": "cache_creation_input_tokens",
}
_REDACTED = "<REDACTED>"


def _logged(value: Any) -> Iterator[tuple[dict[str, Any], str, int]]:
    """Yield the attributes, the name and the time of each event of Claude Code."""
    for resource in objects_in(value, "resourceLogs"):
        for scope in objects_in(resource, "scopeLogs"):
            for record in objects_in(scope, "logRecords"):
                told = {
                    str(each.get("key")): next(iter(each["value"].values()), None)
                    for each in objects(record.get("attributes"))
                    if isinstance(each.get("value"), dict)
                }
                body, named = at(record, "body.stringValue"), str(told.get("event.name") or "")
                is_ours = any(str(each).startswith(_OF_CLAUDE) for each in (body, named))
                if is_ours and "session.id" in told:
                    name = named or str(body)
                    at_time = moment_or_zero(record.get("timeUnixNano"))
                    yield told, name.removeprefix(_OF_CLAUDE), at_time


def _read_logged(value: Any, name: str) -> Iterator[Transcript]:
    batches = value if isinstance(value, list) else [value]
    sessions: dict[str, list[tuple[dict[str, Any], str, int]]] = {}
    for batch in batches:
        for record in _logged(batch):
            sessions.setdefault(str(record[0]["session.id"]), []).append(record)
    for session, events in sessions.items():
        events.sort(key=lambda each: (each[2], integer(each[0].get("event.sequence")) or 0))
        answers = {
            told.get("request_id"): told.get("body")
            for told, kind, _ in events
            if kind == "api_response_body"
        }
        models = (told.get("model") for told, kind, _ in events if kind == "api_request")
        told, kind, _ = events[-1]
        yield transcript_of(
            [entry for each in events if (entry := _logged_entry(*each, answers))],
            f"{name}/{session}",
            framework="claude-code-events",
            model=str(next(models, "") or ""),
            termination_reason=str(told.get("error") or kind) if kind == "api_error" else "",
        )


def _logged_entry(
    told: Mapping[str, Any], kind: str, time: int, answers: Mapping[Any, Any]
) -> Entry | None:
    agent = str(told.get("agent.name") or "claude")
    if kind == "user_prompt":
        said = str(told.get("prompt") or "")
        return Entry("user", "user", "" if said == _REDACTED else said, time=time)
    if kind == "api_request":
        used = {ours: integer(told.get(theirs)) for theirs, ours in _COUNTED.items()}
        parts = objects(at(answers.get(told.get("request_id")), "content"))
        texts = [part for part in parts if part.get("type") == "text"]
        return Entry("assistant", agent, text_of_parts(texts), time=time, usage=usage_of(used))
    if kind == "tool_result":
        identity, tool = str(told.get("tool_use_id") or ""), str(told.get("tool_name") or "")
        given = told.get("tool_input") or told.get("tool_parameters")
        has_failed = str(told.get("success")).lower() == "false"
        error = str(told.get("error") or "error") if has_failed else None
        call = call_of(tool, given, identity)
        result = Result("", identity, tool, error)
        return Entry("assistant", agent, calls=(call,), results=(result,), time=time)
    return None


CLAUDE_EVENTS = Format(
    name="claude-code-events",
    title="Claude Code's log events",
    recognised="`resourceLogs` with events such as `claude_code.tool_result`; the events of a session are one run",
    read=_read_logged,
    message=lambda value: next(_logged(value), None) is not None,
    entry=lambda value: value,
)
