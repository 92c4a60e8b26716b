"""The bounds of a spool."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SpoolLimits:
    """Bounds of a spool.

    Attributes:
        max_bytes: on disk and on the way there.
        min_free_bytes: disk space left to others.
        segment_bytes: size at which a segment is closed.
        segment_items: spans at which it is closed: of small ones the database needs more memory
            for each byte.
        segment_age: seconds after which an open segment is closed once it is asked for.
        duplicate_window: recently accepted requests that are remembered.
    """

    max_bytes: int
    min_free_bytes: int
    segment_bytes: int
    segment_items: int
    segment_age: float
    duplicate_window: int
