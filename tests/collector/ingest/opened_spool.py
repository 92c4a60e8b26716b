"""Spools, requests put into them, and what waits there; the conftest stops those that a test leaves."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

from mast_trace_collector.spool import Segment, Spool, SpoolLimits

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from mast_trace_collector.spool.damaged import Loss

LIMITS = SpoolLimits(
    max_bytes=10_000_000,
    min_free_bytes=0,
    segment_bytes=1_000_000,
    segment_items=1_000_000,
    segment_age=0.0,
    duplicate_window=1000,
)
"""Segments may be taken at once."""
_running: list[Spool] = []


def begin(folder: Path, lost: Sequence[int] = (), **limits: Any) -> Spool:
    """Open a spool as the next process over a folder; it finds so many spans lost in damaged files."""
    spool, losses = begun(folder, **limits)
    assert [loss.lost for loss in losses] == [*lost]
    return spool


def begun(folder: Path, **limits: Any) -> tuple[Spool, list[Loss]]:
    """Open a spool as the next process over a folder, and return what it finds lost."""
    stop(*(each for each in _running if each._directory == folder))
    spool = Spool(folder, replace(LIMITS, **limits))
    _running.append(spool)
    return spool, spool.open()


def opened(folder: Path, *, most: int = 10_000_000, free: int = 0, window: int = 1000) -> Spool:
    """Open an empty spool whose segments close by size alone."""
    return begin(
        folder, max_bytes=most, min_free_bytes=free, segment_age=60.0, duplicate_window=window
    )


def stop(*spools: Spool) -> None:
    """Close spools and let their folders go."""
    for spool in spools:
        spool.close()
        spool.release()
        if spool in _running:
            _running.remove(spool)


def stop_all() -> None:
    """Stop what was begun and still runs."""
    stop(*_running)


def put(spool: Spool, *payloads: bytes, items: int = 1) -> None:
    """Append requests and wait until they are durable."""
    for ticket in [spool.append(payload, items) for payload in payloads]:
        ticket.durable.result(timeout=10)


def take(spool: Spool, timeout: float = 5.0) -> Segment:
    """Take the next segment, which there is."""
    segment = spool.next_segment(timeout)
    assert segment is not None
    return segment


def payloads_of(*segments: Segment) -> list[bytes]:
    """All requests of segments."""
    return [bytes(record.payload) for segment in segments for record in segment.read()[0]]


def waiting(spool: Spool) -> list[bytes]:
    """Payloads of all segments; they stay in the spool."""
    segments = []
    while (segment := spool.next_segment(0.0)) is not None:
        segments.append(segment)
    for segment in segments:
        spool.give_back(segment)
    return payloads_of(*segments)


def flip(path: Path, *places: int | bytes) -> None:
    """Change a bit at places of a file, or in the first byte of texts."""
    data = bytearray(path.read_bytes())
    for place in places:
        data[data.index(place) if isinstance(place, bytes) else place] ^= 1
    path.write_bytes(data)


def failing(code: int, words: str = "") -> Callable[..., NoReturn]:
    """A call of the system that fails."""

    def call(*_: object, **__: object) -> NoReturn:
        raise OSError(code, words or os.strerror(code))

    return call


def unreadable(bad: Callable[[int, int, int], bool]) -> Callable[..., int]:
    """A read that fails where a part of a file, given with its place and its end, is bad."""
    real = os.preadv

    def preadv(file: int, buffers: list[memoryview], offset: int) -> int:
        if bad(file, offset, offset + sum(map(len, buffers))):
            raise OSError(errno.EIO, "Input/output error")
        return real(file, buffers, offset)

    return preadv
