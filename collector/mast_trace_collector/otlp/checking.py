"""Rules for single spans and log records: which can be stored, and as what."""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import compress
from operator import attrgetter, not_
from typing import Any

from mast_trace_collector.otlp.signals import TRACES, Signal

LATEST_TIME = 4_102_444_800 * 10**9
"""2100-01-01 in nanoseconds; a later time is stored as this one.

Tables keep times as 32-bit seconds too, which end in 2106, and retention adds days to them: a later
time would come out in 1970 and be removed at once.
"""

_ID_SIZES = {"trace_id": 16, "span_id": 8}
_PARTS = ("events", "links")
_TIMES = ("start_time_unix_nano", "end_time_unix_nano", "time_unix_nano", "observed_time_unix_nano")
_ATTRIBUTES, _EVENTS, _LINKS = map(attrgetter, ("attributes", *_PARTS))
_TRACE_ID, _SPAN_ID = map(attrgetter, _ID_SIZES)
_START, _END, _TIME, _OBSERVED = map(attrgetter, _TIMES)
_NO_TRACE, _NO_SPAN = bytes(16), bytes(8)
_LATE_NANOSECONDS = 60 * 10**9
_AT_A_TIME = 512


@dataclass
class Survey:
    """The result of looking through a request.

    Attributes:
        items: spans or log records.
        late: spans that ended more than a minute ago; a run's verdict may have been given without
            them.
        sound: every item can be stored as it is.
    """

    items: int = 0
    late: int = 0
    sound: bool = True


class Unfit(ValueError):
    """An item, or what it stands under, cannot be stored.

    Attributes:
        reason: one word for the counter.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def survey(request: Any, signal: Signal, most: int) -> Survey:
    """Look through a request, with few steps of Python for each item.

    Args:
        request: the parsed request.
        signal: of the request.
        most: attributes, events and links of one thing.
    """
    found = Survey()
    late = time.time_ns() - _LATE_NANOSECONDS
    for resource in getattr(request, signal.resources):
        found.sound &= len(resource.resource.attributes) <= most
        for scope in getattr(resource, signal.scopes):
            found.sound &= len(scope.scope.attributes) <= most
            items = getattr(scope, signal.items)
            found.items += len(items)
            for start in range(0, len(items), _AT_A_TIME):
                # Kept in a list, because each pass would make Python's view of every item anew; not
                # for a million items, because a view takes more memory than an empty span.
                some = items[start : start + _AT_A_TIME]
                if signal is TRACES:
                    ends = list(map(_END, some))
                    found.late += sum(map(late.__gt__, ends)) if min(ends) < late else 0
                    found.sound = found.sound and _spans_are_sound(some, ends, most)
                else:
                    found.sound = found.sound and _records_are_sound(some, most)
    return found


def _spans_are_sound(spans: list[Any], ends: list[int], most: int) -> bool:
    traces, ids = set(map(_TRACE_ID, spans)), list(map(_SPAN_ID, spans))
    starts = list(map(_START, spans))
    return (
        set(map(len, traces)) == {16}
        and set(map(len, ids)) == {8}
        and _NO_TRACE not in traces
        and _NO_SPAN not in ids
        and max(starts) <= LATEST_TIME
        and max(ends) <= LATEST_TIME
        and (all(starts) or not any(compress(ends, map(not_, starts))))
        and max(map(len, map(_ATTRIBUTES, spans))) <= most
        and not any(
            _excessive(span, most) or max(map(_TIME, span.events)) > LATEST_TIME
            for span in filter(_EVENTS, spans)
        )
        and not any(_excessive(span, most) for span in filter(_LINKS, spans))
    )


def _records_are_sound(records: list[Any], most: int) -> bool:
    times = list(map(_TIME, records))
    return (
        set(map(len, map(_TRACE_ID, records))) <= {0, 16}
        and set(map(len, map(_SPAN_ID, records))) <= {0, 8}
        and max(times) <= LATEST_TIME
        and (all(times) or max(map(_OBSERVED, records)) <= LATEST_TIME)
        and max(map(len, map(_ATTRIBUTES, records))) <= most
    )


def check(thing: Any, most: int) -> None:
    """Accept a span, a log record, or the resource or the scope of some.

    Raises:
        Unfit: it cannot be stored.
    """
    if _excessive(thing, most):
        raise Unfit("excessive", f"more than {most} attributes, events or links")
    if hasattr(thing, "parent_span_id"):  # a record need not belong to a span
        for name, size in _ID_SIZES.items():
            identity = getattr(thing, name)
            if len(identity) != size or not any(identity):
                raise Unfit("no_id", f"{name} is not {size} bytes that are not all zero")


def mend(item: Any) -> set[str]:
    """Replace times that no table holds and ids of records that are none; return which of both.

    A span without a start begins at its end. The specification wants a record with an invalid id
    treated as one without.
    """
    mended = set()
    for part in (item, *getattr(item, "events", ())):
        for name in _TIMES:
            if getattr(part, name, 0) > LATEST_TIME:
                setattr(part, name, LATEST_TIME)
                mended.add("time")
    if hasattr(item, "parent_span_id"):
        if item.end_time_unix_nano and not item.start_time_unix_nano:
            item.start_time_unix_nano = item.end_time_unix_nano
            mended.add("time")
        return mended
    for name, size in _ID_SIZES.items():
        if len(getattr(item, name)) not in {0, size}:
            item.ClearField(name)
            mended.add("id")
    return mended


def _excessive(thing: Any, most: int) -> bool:
    if len(thing.attributes) > most:
        return True
    parts = [part for name in _PARTS for part in getattr(thing, name, ())]
    return len(parts) > most or any(len(part.attributes) > most for part in parts)
