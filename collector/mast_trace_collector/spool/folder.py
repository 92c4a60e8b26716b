"""The folder of a spool: reads closed segments, removes stored ones, sets damaged ones aside."""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mast_trace_collector.spool.damaged import DamagedFiles, Loss
from mast_trace_collector.spool.deduplication import StoredMarks
from mast_trace_collector.spool.reading import beyond_reading
from mast_trace_collector.spool.recovery import Recovered, put_back, take_up
from mast_trace_collector.spool.segment import receipt_path

if TYPE_CHECKING:
    from pathlib import Path

    from mast_trace_collector.spool.reading import Damage
    from mast_trace_collector.spool.record import Record
    from mast_trace_collector.spool.segment import Segment


@dataclass(frozen=True)
class Reading:
    """The readable part of a segment.

    Attributes:
        records: its requests, in the order of their arrival.
        gone: digests of requests that can no longer be read, but could be before.
        lost: number of spans in requests that were just found missing.
    """

    records: list[Record]
    gone: frozenset[bytes] = frozenset()
    lost: int = 0


_PROBE_BYTES = 4096
"""A block of a usual file system: a disk that does not take one takes no request."""


class SegmentFolder:
    """The folder of a spool. Safe to use from any number of threads.

    Args:
        directory: the folder.
        window: number of stored requests that are remembered.
        items: noun for the items of requests.
    """

    def __init__(self, directory: Path, window: int, items: str) -> None:
        self._directory = directory
        self._marks = StoredMarks(directory, window)
        # Guards the marks, and the names of files while some are renamed.
        self._lock = threading.Lock()
        self._losses: dict[str, Loss] = {}
        self._gone: dict[str, frozenset[bytes]] = {}
        self._counted: dict[str, int] = {}
        self.damaged = DamagedFiles(directory, items)

    def try_to_write(self) -> None:
        """Write to the folder's disk, and leave nothing behind.

        Raises:
            OSError: the disk does not take it.
        """
        with tempfile.TemporaryFile(dir=self._directory, buffering=0) as file:
            file.write(bytes(_PROBE_BYTES))
            os.fsync(file.fileno())

    def take_up(self) -> tuple[list[bytes], Recovered]:
        """Return digests of stored requests, and the segments that an earlier process left.

        Raises:
            OSError: the folder cannot be used, or a file cannot be read at present.
        """
        digests = self._marks.load()
        found = take_up(self._directory, self._marks, self.damaged)
        for segment in (*found.stored, *found.segments):
            digests += segment.digests
            if segment.name in found.losses:
                self._losses[segment.name] = found.losses[segment.name]
        for segment in found.stored:
            self.remove(segment)
        return digests, found

    def read(self, segment: Segment) -> Reading:
        """Return the readable part of a closed segment.

        Raises:
            OSError: it cannot be read at present.
        """
        records, damages, reason = _read(segment)
        if len(records) < len(segment.digests):
            with self._lock:
                put_back(self._directory, self.damaged)
            records, damages, reason = _read(segment)
        gone = frozenset(segment.digests) - {record.digest for record in records}
        new = gone != self._gone.get(segment.name, frozenset())
        if not new:
            return Reading(records, gone)
        kept = sum(record.items for record in records)
        counted = self._counted.get(segment.name, 0)
        lost = max(0, segment.items - kept - counted)
        before = self._losses.get(segment.name)
        loss = Loss(segment.name, reason, lost + (before.lost if before else 0), kept, damages)
        self._gone[segment.name] = gone
        self._counted[segment.name] = counted + lost
        self._losses[segment.name] = loss
        self.damaged.report(loss)
        return Reading(records, gone, lost)

    def remove(self, segment: Segment) -> None:
        """Remove a stored segment, or set it aside if it was damaged.

        Raises:
            OSError: the files cannot be moved or removed at present.
        """
        with self._lock:
            gone = self._gone.get(segment.name, frozenset())
            digests = [digest for digest in segment.digests if digest not in gone]
            if digests:
                self._marks.write(segment.name, digests)
            # The receipt is removed first: alone, it would report a missing segment.
            paths = (receipt_path(segment.path), segment.path)
            loss = self._losses.get(segment.name)
            if loss is not None:
                self.damaged.set_aside(loss, paths)
            for path in paths:
                with contextlib.suppress(IsADirectoryError):
                    path.unlink(missing_ok=True)
            self._losses.pop(segment.name, None)
            self._gone.pop(segment.name, None)
            self._counted.pop(segment.name, None)


def _read(segment: Segment) -> tuple[list[Record], tuple[Damage, ...], str]:
    try:
        records, damages = segment.read()
    except OSError as error:
        if not beyond_reading(error):
            raise
        return [], (), f"its file cannot be read ({error.strerror})"
    missing = len(segment.digests) - len(records)
    return records, damages, f"{missing} of its {len(segment.digests)} requests cannot be read"
