"""Threads of LangGraph as its SQLite checkpointer keeps them."""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Iterator
from typing import Any

from mast_trace.trajectory.span_messages import objects
from mast_trace_judge.transfer.formats.conversation import Entry, transcript_of
from mast_trace_judge.transfer.formats.kinds import (
    Format,
    Transcript,
    is_record,
    objects_in,
    word_in,
)
from mast_trace_judge.transfer.formats.libraries import unwrapped
from mast_trace_judge.transfer.formats.messages import entry_of, role_of

_BEFORE_1970 = 0x01B21DD213814000
"""Times of UUIDs count from 1582, in units of 100 nanoseconds."""


def _messages(value: Any) -> list[dict[str, Any]]:
    """Return the messages in a channel's value: a list of them, or one."""
    listed = objects(value if isinstance(value, list) else [value])
    return [each for each in listed if "content" in unwrapped(each) and role_of(unwrapped(each))]


def _read(value: dict[str, Any], name: str) -> Iterator[Transcript]:
    writers: dict[str, tuple[str, int]] = {}
    written: dict[str, dict[str, Any]] = {}
    for write in objects_in(value, "writes"):
        for message in _messages(write.get("value")):
            identity = word_in(unwrapped(message), "id")
            if identity:
                writers.setdefault(
                    identity, (word_in(write, "node"), _moment(write["checkpoint_id"]))
                )
                written.setdefault(identity, message)
    state = value["checkpoint"].get("channel_values")
    channels = state if isinstance(state, dict) else {}
    told = _messages(channels.get("messages")) or max(
        map(_messages, channels.values()), key=len, default=[]
    )
    entries = [_entry(message, writers) for message in told or written.values()]
    # A message was there before the next one, and a graph within the graph writes it again later.
    for place in reversed(range(len(entries) - 1)):
        after = entries[place + 1].time
        time = min(entries[place].time or after, after or entries[place].time)
        entries[place] = dataclasses.replace(entries[place], time=time)
    yield transcript_of(entries, f"{name}/{value['thread_id']}", framework="langgraph")


def _entry(message: dict[str, Any], writers: dict[str, tuple[str, int]]) -> Entry:
    inner = unwrapped(message)
    node, time = writers.get(word_in(inner, "id"), ("", 0))
    entry = entry_of(message)
    agent = word_in(inner, "name") or node
    named = agent if entry.role == "assistant" and agent else entry.agent
    return dataclasses.replace(entry, agent=named, time=time)


def _moment(identity: Any) -> int:
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
    read=_read,
    record=lambda value: (
        is_record(value, "thread_id", "checkpoint") and isinstance(value["checkpoint"], dict)
    ),
)
