"""The types of this package: a format, its contents, and values that cannot be read."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mast_trace.trajectory import Trajectory
    from mast_trace_judge.confirmation import Confirmation
    from mast_trace_judge.store.labels import HumanLabel


@dataclass(frozen=True)
class Transcript:
    """A run of a file that holds no spans.

    Attributes:
        name: of the run.
        labels: those in the file; their trace id is still empty.
    """

    trajectory: Trajectory
    name: str
    labels: tuple[HumanLabel, ...] = ()


@dataclass(frozen=True)
class StoredRun:
    """A run that `mast-trace export` wrote, with the spans and ids that it had.

    Attributes:
        labels: those in the file.
        has_verdict: whether the file has a verdict on it, which is not imported.
        confirmation: what replays of the run have shown; None if it was not replayed.
    """

    trajectory: Trajectory
    labels: tuple[HumanLabel, ...] = ()
    project: str = ""
    has_verdict: bool = False
    confirmation: Confirmation | None = None


Read = Transcript | StoredRun | ExportTraceServiceRequest
"""A transcript, a run of an export, or spans."""


def never(_: Any) -> bool:
    """Recognise nothing."""
    return False


@dataclass(frozen=True)
class Format:
    """One row of the table of formats.

    A value is what one line, one row or one document holds.

    Attributes:
        name: for `--format`.
        title: for people.
        recognised: its distinguishing mark, in words.
        record: whether a value holds whole runs or spans of this format.
        message: whether a value is one message of a run; the other messages are in the same list or
            in the same file.
        entry: reads such a message, likewise.
        read: reads a value that `record` recognises, or a list of messages, of the given name.
            It raises `ValueError` with a reason for values that it cannot read.
    """

    name: str
    title: str
    recognised: str
    read: Callable[[Any, str], Iterable[Read]]
    record: Callable[[Any], bool] = never
    message: Callable[[Any], bool] = never
    entry: Callable[[Any], Any] = never


def is_record(value: Any, *keys: str) -> bool:
    """Return whether a value is an object that has all of these keys."""
    return isinstance(value, dict) and all(key in value for key in keys)


def word_in(value: Any, key: str) -> str:
    """Return the text under a key of an object; empty for other values."""
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, str) else ""


def objects_in(value: Any, key: str) -> list[dict[str, Any]]:
    """Return the objects of the list under a key; none if there is no such list."""
    listed = value.get(key) if isinstance(value, dict) else None
    if not isinstance(listed, list):
        return []
    return [each for each in listed if isinstance(each, dict)]


def whole_text(value: Any) -> str:
    """Return a text unchanged, and any other value as JSON text of any length."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)
