"""Spools, requests put into them, and what waits there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mast_trace_collector.spool import Spool, SpoolLimits

if TYPE_CHECKING:
    from pathlib import Path


LIMITS = SpoolLimits(
    max_bytes=10_000_000,
    min_free_bytes=0,
    segment_bytes=1_000_000,
    segment_items=1_000_000,
    segment_age=0.0,
    duplicate_window=1000,
)
"""Segments may be taken at once."""


def opened(folder: Path, *, most: int = 10_000_000, free: int = 0, window: int = 1000) -> Spool:
    """Open an empty spool whose segments close by size alone."""
    spool = Spool(folder, SpoolLimits(most, free, 1_000_000, 1_000_000, 60.0, window))
    assert spool.open() == []
    return spool


def stop(spool: Spool) -> None:
    """Close a spool and let its folder go."""
    spool.close()
    spool.release()


def put(spool: Spool, *payloads: bytes) -> None:
    """Append requests and wait until they are durable."""
    for ticket in [spool.append(payload, 1) for payload in payloads]:
        ticket.durable.result(timeout=10)


def waiting(spool: Spool) -> list[bytes]:
    """Payloads of all segments; they stay in the spool."""
    segments = []
    while (segment := spool.next_segment(0.0)) is not None:
        segments.append(segment)
    for segment in segments:
        spool.give_back(segment)
    return [bytes(record.payload) for segment in segments for record in segment.read()[0]]
