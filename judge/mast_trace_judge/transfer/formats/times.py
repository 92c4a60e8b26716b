"""Moments in the spellings of other tools."""

from __future__ import annotations

import re
from datetime import datetime, timezone
from typing import Any

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
        return nanoseconds_of(value)
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
    try:
        return _scaled(int(text))
    except ValueError:
        pass
    fraction = _FRACTION.search(text)
    whole = _FRACTION.sub("", text, count=1).replace("Z", "+00:00").replace(" UTC", "+00:00")
    digits = fraction[1][:9].ljust(9, "0") if fraction else "0"
    return _of_datetime(datetime.fromisoformat(whole)) + int(digits)


def _of_datetime(moment: datetime) -> int:
    aware = moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
    return int(aware.replace(microsecond=0).timestamp()) * 10**9 + aware.microsecond * 1000


def _scaled(number: float) -> int:
    for unit in (10**9, 10**6, 10**3, 1):
        if number * unit < 10**19 and number < 10**19 / unit:
            return int(number * unit) if isinstance(number, int) else round(number * unit)
    return -1
