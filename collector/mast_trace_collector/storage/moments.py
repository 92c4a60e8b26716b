"""Moments that the database's columns hold, and those that its conditions compare.

A column of ``DateTime64(9)`` counts nanoseconds in 64 bits, from 1677 to 2262. A Python `datetime` goes beyond both
ends, and ClickHouse refuses a whole statement for one value that does. Tables are divided by days of 16 bits, from
1970 to 2149: a day beyond them has the number of another one, and a condition with such a day skips parts that it
should read.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta, timezone
from typing import Final

FIRST_NANOSECOND: Final = -(2**63)
LAST_NANOSECOND: Final = 2**63 - 1
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)
_STORED: Final = (
    datetime(1677, 9, 21, 0, 12, 43, 145225, tzinfo=timezone.utc),
    datetime(2262, 4, 11, 23, 47, 16, 854775, tzinfo=timezone.utc),
)
_FIRST_DAY: Final = 0
_LAST_DAY: Final = 65_535 * 86_400 * 10**9
_MARGIN: Final = 3600 * 10**9
"""Nanoseconds around runs in which their spans are looked for: some may have come since."""
_BY_DAY: Final = "Timestamp >= fromUnixTimestamp64Nano({first:Int64}) AND Timestamp <= fromUnixTimestamp64Nano({last:Int64})"
_COMPARED: Final = (
    datetime(1970, 1, 1, tzinfo=timezone.utc),
    datetime(2149, 6, 6, tzinfo=timezone.utc),
)


def storable(moment: datetime) -> datetime:
    """Return the nearest moment that a column holds."""
    return _within(moment, *_STORED)


def comparable(moment: datetime) -> datetime:
    """Return the nearest moment that is safe as a parameter of a statement."""
    return _within(moment, *_COMPARED)


def nanoseconds(moment: datetime) -> int:
    """Return the nanoseconds since the epoch, within what a column holds; UTC if no zone is given."""
    return within((_aware(moment) - _EPOCH) // timedelta(microseconds=1) * 1000)


def within(nanosecond: int) -> int:
    """Return the nearest nanosecond since the epoch that a column holds."""
    return max(FIRST_NANOSECOND, min(LAST_NANOSECOND, nanosecond))


def in_time(first: int, last: int) -> str:
    """Return the condition that a span begins in ``{first:Int64}`` to ``{last:Int64}``, nanoseconds since the epoch.

    Args:
        first: the value that will be bound to that parameter.
        last: likewise.
    """
    if first >= _FIRST_DAY and last <= _LAST_DAY:
        return _BY_DAY
    return "toUnixTimestamp64Nano(Timestamp) BETWEEN {first:Int64} AND {last:Int64}"


def around(times: Iterable[tuple[int, int]]) -> tuple[str, dict[str, int]]:
    """Return the condition that a span begins within an hour of some runs, and the values of its parameters.

    Days are partitions: without a time, each of them is searched for each run.

    Args:
        times: first and last nanosecond of each run; any time if there are none.
    """
    known = list(times)
    first = within(min((begin for begin, _ in known), default=FIRST_NANOSECOND) - _MARGIN)
    last = within(max((end for _, end in known), default=LAST_NANOSECOND) + _MARGIN)
    return in_time(first, last), {"first": first, "last": last}


def _within(moment: datetime, first: datetime, last: datetime) -> datetime:
    aware = _aware(moment)
    if first <= aware <= last:
        return moment
    nearest = first if aware < first else last
    return nearest if moment.tzinfo is not None else nearest.replace(tzinfo=None)


def _aware(moment: datetime) -> datetime:
    return moment.replace(tzinfo=timezone.utc) if moment.tzinfo is None else moment
