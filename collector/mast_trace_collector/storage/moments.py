"""Moments that the database's columns hold, and those that its conditions compare.

A column of ``DateTime64(9)`` counts nanoseconds in 64 bits, from 1677 to 2262. A Python `datetime` goes beyond both
ends, and ClickHouse refuses a whole statement for one value that does.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Final

FIRST_NANOSECOND: Final = -(2**63)
LAST_NANOSECOND: Final = 2**63 - 1
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)
_STORED: Final = (
    datetime(1677, 9, 21, 0, 12, 43, 145225, tzinfo=timezone.utc),
    datetime(2262, 4, 11, 23, 47, 16, 854775, tzinfo=timezone.utc),
)
_COMPARED: Final = (
    # Statements add and subtract some months before they compare, which must not overflow either.
    datetime(1700, 1, 1, tzinfo=timezone.utc),
    datetime(2261, 1, 1, tzinfo=timezone.utc),
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


def _within(moment: datetime, first: datetime, last: datetime) -> datetime:
    aware = _aware(moment)
    if first <= aware <= last:
        return moment
    nearest = first if aware < first else last
    return nearest if moment.tzinfo is not None else nearest.replace(tzinfo=None)


def _aware(moment: datetime) -> datetime:
    return moment.replace(tzinfo=timezone.utc) if moment.tzinfo is None else moment
