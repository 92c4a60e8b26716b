"""A spool whose segments close by size alone, and requests put into it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mast_trace_collector.spool import Spool, SpoolLimits

if TYPE_CHECKING:
    from pathlib import Path


def opened(folder: Path, *, most: int = 10_000_000, free: int = 0, window: int = 1000) -> Spool:
    """Open an empty spool."""
    spool = Spool(folder, SpoolLimits(most, free, 1_000_000, 1_000_000, 60.0, window))
    assert spool.open() == []
    return spool


def stop(spool: Spool) -> None:
    """Close a spool and let its folder go."""
    spool.close()
    spool.release()


def put(spool: Spool, payload: bytes) -> None:
    """Append a request and wait until it is durable."""
    spool.append(payload, 1).durable.result(timeout=10)
