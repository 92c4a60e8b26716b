"""Trajectories of OpenHands: events of its server, results of its evaluations, and conversations of its SDK."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from mast_trace.trajectory.span_messages import objects
from mast_trace_judge.transfer.formats.conversation import Entry, Result, transcript_of
from mast_trace_judge.transfer.formats.kinds import (
    Format,
    Transcript,
    is_record,
    moment_or_zero,
    object_in,
    usage_of,
    word_in,
)
from mast_trace_judge.transfer.formats.messages import call_of, entry_of, text_of_parts

_STATES = frozenset({"system", "change_agent_state", "recall", "condensation", "null", "think"})
"""Actions that are no work of an agent; its thoughts only the model sees."""


def _is_event(value: Any) -> bool:
    if not is_record(value, "source", "timestamp"):
        return False
    return (
        "id" in value
        and isinstance(value.get("action", value.get("observation")), str)
        and bool(value.keys() & {"args", "extras"})
    ) or word_in(value, "kind").endswith("Event")


def _read(value: Any, name: str) -> Iterator[Transcript]:
    known = value if isinstance(value, dict) else {}
    events = _events(value)
    entries = [entry for event in events if (entry := _entry(event)) is not None]
    used = [
        spent
        for each in [known, *events]
        for key in ("llm_metrics", "metrics")
        if (spent := usage_of(object_in(each, key).get("accumulated_token_usage"))) is not None
    ]
    tested = object_in(known, "test_result")
    report = object_in(tested if is_record(tested.get("report")) else known, "report")
    resolved = report.get("resolved")
    identity = word_in(known, "instance_id")
    yield transcript_of(
        entries,
        f"{name}/{identity}" if identity else name,
        framework="openhands",
        outcome="" if not isinstance(resolved, bool) else "success" if resolved else "failure",
        termination_reason=word_in(known, "error"),
        model=word_in(object_in(known, "metadata").get("llm_config"), "model"),
        usage=max(used, default=None),  # the figures grow from event to event
    )


def _events(value: Any) -> list[dict[str, Any]]:
    """Return the events of a list, or of an evaluation; its first releases keep pairs of an action and what came of it."""
    known = value if isinstance(value, dict) else {"history": value}
    listed = known.get("history", known.get("trajectory"))
    pairs = [
        each if isinstance(each, list) else [each]
        for each in (listed if isinstance(listed, list) else [])
    ]
    return [event for pair in pairs for event in objects(pair)]


def _entry(event: Mapping[str, Any]) -> Entry | None:
    """Read an event; None where nobody says or does anything."""
    if "kind" in event:
        return _of_sdk(event)
    time, source = moment_or_zero(event.get("timestamp")), word_in(event, "source")
    if "observation" in event:
        return _observed(event, time)
    action, given = word_in(event, "action"), object_in(event, "args")
    if action in _STATES:
        return None
    role = "user" if source == "user" else "assistant"
    if action in {"message", "finish"}:
        text = next(
            (word_in(given, k) for k in ("content", "final_thought") if word_in(given, k)), ""
        )
        return Entry(role, source, text, time=time) if text else None
    told = {key: each for key, each in given.items() if key not in {"thought", "is_confirmed"}}
    return Entry(
        role,
        source,
        word_in(given, "thought"),
        calls=(call_of(action, told, str(event.get("id"))),),
        time=time,
    )


def _observed(event: Mapping[str, Any], time: int) -> Entry | None:
    if event.get("cause") is None or event["observation"] in _STATES:
        return None
    text = text_of_parts(event.get("content"))
    code = object_in(event.get("extras"), "metadata").get("exit_code")
    failed = event["observation"] == "error" or code not in (None, 0, -1)
    result = Result(text, str(event["cause"]), error=text or "error" if failed else None)
    return Entry("tool", "environment", results=(result,), time=time)


def _of_sdk(event: Mapping[str, Any]) -> Entry | None:
    kind, time = word_in(event, "kind"), moment_or_zero(event.get("timestamp"))
    identity, tool = word_in(event, "tool_call_id"), word_in(event, "tool_name")
    if kind == "MessageEvent":
        said = entry_of(event.get("llm_message"))
        return dataclasses.replace(said, agent=word_in(event, "source") or said.role, time=time)
    if kind == "ActionEvent":
        action = event.get("action")
        told = (
            {k: v for k, v in action.items() if k != "kind"} if isinstance(action, dict) else None
        )
        text = text_of_parts(event.get("thought") or [])
        return Entry("assistant", "agent", text, calls=(call_of(tool, told, identity),), time=time)
    seen = event.get("observation")
    error = word_in(event, "error") or (
        "error" if isinstance(seen, dict) and seen.get("is_error") else ""
    )
    text = (
        error
        if not isinstance(seen, dict)
        else text_of_parts(seen.get("content", seen.get("output")))
    )
    result = Result(text, identity, tool, (error and (text or error)) or None)
    return Entry("tool", "environment", results=(result,), time=time) if identity else None


OPENHANDS = Format(
    name="openhands",
    title="OpenHands trajectory",
    recognised="events with `source`, `timestamp` and `action` or `observation` (or a `kind` such as `ActionEvent`), "
    "also under `history` or `trajectory`",
    read=_read,
    keys=("source", "timestamp", "action", "args"),
    record=lambda value: isinstance(value, dict) and any(map(_is_event, _events(value))),
    message=_is_event,
    entry=_entry,
)
