"""Log events of Claude Code, which it exports by OpenTelemetry: prompts, requests and tools of its sessions.

They hold no result of any tool, and the words of the model only where a setting brings the bodies of its answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mast_trace.trajectory.span_messages import objects
from mast_trace.trajectory.vocabulary import integer
from mast_trace_judge.transfer.formats.conversation import Entry, Result, transcript_of
from mast_trace_judge.transfer.formats.foreign_spans import at
from mast_trace_judge.transfer.formats.kinds import (
    Format,
    Transcript,
    moment_or_zero,
    objects_in,
    usage_of,
)
from mast_trace_judge.transfer.formats.messages import call_of, text_of_parts

_PREFIX = "claude_code."
_COUNTED = {
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "cache_read_tokens": "cache_read_input_tokens",
    "cache_creation_tokens": "cache_creation_input_tokens",
}
_REDACTED = "<REDACTED>"


def _records(value: Any) -> Iterator[tuple[dict[str, Any], str, int]]:
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
                is_ours = any(str(each).startswith(_PREFIX) for each in (body, named))
                if is_ours and "session.id" in told:
                    name = named or str(body)
                    at_time = moment_or_zero(record.get("timeUnixNano"))
                    yield told, name.removeprefix(_PREFIX), at_time


def _read(value: Any, name: str) -> Iterator[Transcript]:
    batches = value if isinstance(value, list) else [value]
    sessions: dict[str, list[tuple[dict[str, Any], str, int]]] = {}
    for batch in batches:
        for record in _records(batch):
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
            [entry for each in events if (entry := _entry(*each, answers))],
            f"{name}/{session}",
            framework="claude-code-events",
            model=str(next(models, "") or ""),
            termination_reason=str(told.get("error") or kind) if kind == "api_error" else "",
        )


def _entry(
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
    read=_read,
    message=lambda value: next(_records(value), None) is not None,
    entry=lambda value: value,
)
