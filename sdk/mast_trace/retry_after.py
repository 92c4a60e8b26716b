"""Pauses before the next try: as long as a server asks for (RFC 9110, section 10.2.3), or each twice the last."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime


def doubled(first: float, failures: int, longest: float) -> float:
    """Return the seconds to wait after failures in a row: each pause is twice the one before.

    Args:
        first: seconds after one failure.
        failures: their number, at least 1.
        longest: seconds that no pause exceeds.
    """
    return min(longest, first * 2.0 ** min(failures - 1, 60))


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a response asks to wait; None where it names none, or none readable.

    Args:
        headers: of the response; upper and lower case are the same. ``retry-after-ms``, which model
            endpoints send, takes precedence over ``retry-after`` in seconds or as a date.
    """
    milliseconds, stated = headers.get("retry-after-ms"), headers.get("retry-after")
    try:
        seconds = float(milliseconds) / 1000 if milliseconds else float(stated or "")
    except ValueError:
        try:
            seconds = parsedate_to_datetime(stated or "").timestamp() - time.time()
        except (ValueError, OverflowError):
            return None
    return max(seconds, 0.0) if math.isfinite(seconds) else None
