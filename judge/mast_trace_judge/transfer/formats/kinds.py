"""The types of this package: a format, its contents, and values that cannot be read."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from mast_trace.trajectory.span_messages import objects

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mast_trace.trajectory import Trajectory
    from mast_trace_judge.confirmation import Confirmation
    from mast_trace_judge.store.labels import HumanLabel

_FRACTION = re.compile(r"\.([0-9]+)")
_LATEST = 2**63


def nanoseconds_of(value: Any, what: str = "a time") -> int:
    """Return a moment in nanoseconds since the epoch.

    Texts are ISO 8601, in UTC where they name no zone. A number counts seconds, milliseconds,
    microseconds or nanoseconds: whichever puts it between the years 1971 and 2286.

    Raises:
        ValueError: it is no moment.
    """
    try:
        found = _nanoseconds(value)
    except (ValueError, OverflowError, TypeError):
        found = -1
    if not 0 <= found < _LATEST:
        raise ValueError(f"{what} is no time: {str(value)[:80]!r}")
    return found


def moment_or_zero(value: Any) -> int:
    """Return a moment as `nanoseconds_of` does; 0 where there is none."""
    try:
        return 0 if value is None else nanoseconds_of(value)
    except ValueError:
        return 0


def _nanoseconds(value: Any) -> int:
    if isinstance(value, bool):
        return -1
    if isinstance(value, int | float):
        return _scaled(value)
    if isinstance(value, datetime):
        return _of_datetime(value)
    text = str(value).strip()
    if text.removeprefix("-").isdecimal():
        return _scaled(int(text))
    fraction = _FRACTION.search(text)
    whole = text[: fraction.start()] + text[fraction.end() :] if fraction else text
    digits = fraction[1][:9].ljust(9, "0") if fraction else "0"
    whole = whole.replace("Z", "+00:00").replace(" UTC", "+00:00")
    return _of_datetime(datetime.fromisoformat(whole)) + int(digits)


def _of_datetime(moment: datetime) -> int:
    aware = moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
    return int(aware.replace(microsecond=0).timestamp()) * 10**9 + aware.microsecond * 1000


def _scaled(number: float) -> int:
    for unit in (10**9, 10**6, 10**3, 1):
        if number * unit < 10**19 and number < 10**19 / unit:
            return int(number * unit) if isinstance(number, int) else round(number * unit)
    return -1


@dataclass(frozen=True)
class Transcript:
    """A run of a file that holds no spans, its name, and the model that its calls name."""

    trajectory: Trajectory
    name: str
    model: str = ""


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


def as_it_is(value: Any, _: set[str], *, is_last: bool) -> Any:  # noqa: ARG001
    """Return a value of a format in which no value tells what another one is."""
    return value


def never(_: Any) -> bool:
    """Recognise nothing."""
    return False


@dataclass(frozen=True)
class TextLog:
    """A log in plain text.

    Attributes:
        begin: found at the beginning of a line near the start of such a log.
        head: matches at the beginning of each entry.
        value: returns the value of an entry from its head and the text after that; None for an entry
            that tells nothing. It raises `ValueError` for one that cannot be read.
        end: matches a line after which nothing belongs to the entry; until then no other one begins.
            None if an entry ends where the next begins.
    """

    begin: re.Pattern[str]
    head: re.Pattern[str]
    value: Callable[[re.Match[str], str], Any]
    end: re.Pattern[str] | None = None


@dataclass(frozen=True)
class Format:
    """One row of the table of formats.

    A value is what one line, one row or one document holds.

    Attributes:
        name: for `--format`.
        title: for people.
        recognised: its distinguishing mark, in words.
        keys: the keys of such a value, by which a value that lacks some of them is explained.
        record: whether a value holds whole runs or spans of this format.
        message: whether a value is one message of a run; the other messages are in the same list or
            in the same file.
        entry: reads such a message, likewise.
        read: reads a value that `record` recognises, or a list of messages, of the given name.
            It raises `ValueError` with a reason for values that it cannot read.
        text: how such a file is read where it is a log in plain text.
        settled: returns such a value completed by what the file's others tell, and adds to the set what it
            tells them; None for one that waits for them, until it is asked the last time.
    """

    name: str
    title: str
    recognised: str
    read: Callable[[Any, str], Iterable[Read]]
    keys: tuple[str, ...] = ()
    record: Callable[[Any], bool] = never
    message: Callable[[Any], bool] = never
    entry: Callable[[Any], Any] = never
    text: TextLog | None = None
    settled: Callable[..., Any] = as_it_is


def is_record(value: Any, *keys: str) -> bool:
    """Return whether a value is an object that has all of these keys."""
    if not isinstance(value, dict):
        return False
    for key in keys:  # noqa: SIM110  # asked of each value by every row: a generator takes twice as long
        if key not in value:
            return False
    return True


def underscored(name: str) -> str:
    """Return a name of many capitals in small letters with underscores."""
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name)


def word_in(value: Any, key: str) -> str:
    """Return the text under a key of an object; empty for other values."""
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, str) else ""


def objects_in(value: Any, key: str) -> list[dict[str, Any]]:
    """Return the objects of the list under a key; none if there is no such list."""
    return objects(value.get(key)) if isinstance(value, dict) else []


def object_in(value: Any, key: str) -> dict[str, Any]:
    """Return the object under a key of an object; an empty one for other values."""
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


def usage_of(value: Any) -> tuple[int, int] | None:
    """Return the tokens of input and output that a usage tells, in any provider's words; None if it tells none.

    Two zeros tell none: tools write them where a provider reported nothing, as of a stream.
    """
    if not isinstance(value, dict):
        return None

    def total(names: tuple[str, ...], *beside: str) -> int | None:
        first = next((value[name] for name in names if _is_count(value.get(name))), None)
        more = [value[name] for name in beside if _is_count(value.get(name))]
        return None if first is None else first + sum(more)

    spent, made = total(_INPUT), total(_OUTPUT)
    if total(_TOTAL) != (spent or 0) + (made or 0):  # else the file's own sum has no others
        spent = total(_INPUT, *_CACHED)
        made = total(_OUTPUT, "thoughts_token_count", "thoughtsTokenCount")
    return (spent or 0, made or 0) if spent or made else None


def total_alone(usage: Any) -> dict[str, int]:
    """Return the attribute for the tokens of a usage that does not tell input and output apart; none for another."""
    if usage_of(usage) or not isinstance(usage, dict):
        return {}
    told = [usage[name] for name in _TOTAL if _is_count(usage.get(name)) and usage[name]]
    return {"llm.token_count.total": told[0]} if told else {}


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and 0 <= value < _MOST


def usage_of_models(value: Any) -> tuple[int, int] | None:
    """Return the tokens of all models together, from an object with the usage of each; None if it tells none."""
    told = value.values() if isinstance(value, dict) else ()
    used = [spent for each in told if (spent := usage_of(each)) is not None]
    return (sum(spent for spent, _ in used), sum(made for _, made in used)) if used else None


_MOST = 2**40
"""More tokens than any run has: a larger number is no count of them."""
_INPUT = (
    *("input_tokens", "prompt_tokens", "prompt_token_count", "promptTokenCount", "tokens_sent"),
    *("total_prompt_tokens", "inputTokens", "promptTokens", "input"),
    *("input_token_count", "InputTokenCount"),
)
_CACHED = (
    *("cache_read_input_tokens", "cache_creation_input_tokens"),
    *("cacheReadInputTokens", "cacheCreationInputTokens"),
)
_OUTPUT = (
    *("output_tokens", "completion_tokens", "candidates_token_count", "candidatesTokenCount"),
    *("tokens_received", "total_completion_tokens", "outputTokens", "completionTokens", "output"),
    *("output_token_count", "OutputTokenCount"),
)
_TOTAL = ("total_tokens", "totalTokens", "total_token_count", "totalTokenCount", "total")


def whole_text(value: Any) -> str:
    """Return a text unchanged, and any other value as JSON text of any length."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)


def bare_result(result: Any) -> Any:
    """Return a tool's result without an object around it that holds nothing else."""
    if isinstance(result, dict) and len(result) == 1:
        key, value = next(iter(result.items()))
        if key in {"output", "result", "content"}:
            return value
    return result
