"""The limits of a spool."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SpoolLimits:
    """Limits of a spool.

    Attributes:
        max_bytes: bytes on disk and in writing.
        min_free_bytes: disk space that must stay free.
        segment_bytes: size at which a segment is closed.
        segment_items: number of spans at which it is closed: small spans need more of the
            database's memory per byte.
        segment_age: seconds after which an open segment may be closed for a consumer.
        duplicate_window: number of recently accepted requests that are remembered.
    """

    max_bytes: int
    min_free_bytes: int
    segment_bytes: int
    segment_items: int
    segment_age: float
    duplicate_window: int
