"""The folder of a spool: recovers what an earlier process left, reads closed segments, removes stored ones."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import tempfile
import threading
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from mast_trace_collector.spool.damaged import DamagedFiles, Loss
from mast_trace_collector.spool.deduplication import MARK, StoredMarks
from mast_trace_collector.spool.reading import Damage, beginning, beyond_reading, content, scan
from mast_trace_collector.spool.record import Record, claimed_items, marker_of, owner
from mast_trace_collector.spool.segment import (
    LOG,
    RECEIPT,
    Receipt,
    Segment,
    read_receipt,
    receipt_path,
)

logger = logging.getLogger(__name__)

_MOVED = ".moved"
_UNREADABLE_ADVICE = (
    "To have it stored after all, make it readable, move it and its .acked file back, and start "
    "the collector anew."
)

_PROBE_BYTES = 4096
"""A block of a usual file system: a disk that does not take one takes no request."""


@dataclass
class Recovered:
    """The recovered content of a folder.

    Attributes:
        segments: those that can be stored, oldest first.
        stored: those that the database has already.
        losses: damage, by the segment's name.
        sequence: the highest number in a name.
    """

    segments: list[Segment] = field(default_factory=list)
    stored: list[Segment] = field(default_factory=list)
    losses: dict[str, Loss] = field(default_factory=dict)
    sequence: int = 0


def take_up(directory: Path, marks: StoredMarks, damaged: DamagedFiles) -> Recovered:
    """Read all segments of a folder; set aside those of which nothing can be stored.

    Raises:
        OSError: the folder cannot be used, or a file cannot be read at present.
    """
    found = Recovered(sequence=max(map(_sequence_of, directory.iterdir()), default=0))
    put_back(directory, damaged)
    for path in sorted(directory.glob(f"*{LOG}")):
        _take_up(path, marks, damaged, found)
    for path in sorted(directory.glob(f"*{RECEIPT}")):
        if not os.path.lexists(path.with_suffix(LOG)):
            _missing(path, marks, damaged, found)
    return found


def _take_up(path: Path, marks: StoredMarks, damaged: DamagedFiles, found: Recovered) -> None:
    receipt = read_receipt(receipt_path(path))
    try:
        data = content(path)
    except OSError as error:
        if not beyond_reading(error):
            raise
        lost = receipt.items if receipt else 0
        loss = Loss(path.stem, f"it cannot be read ({error.strerror})", lost)
        damaged.report(loss, _UNREADABLE_ADVICE)
        damaged.set_aside(loss, [path, receipt_path(path)])
        found.losses[path.stem] = loss
        return
    segment, loss_found = _read_records(path, data, receipt)
    if segment.name in marks:
        found.stored.append(segment)
        return
    if loss_found is not None:
        damaged.report(loss_found)
        found.losses[segment.name] = loss_found
    (found.segments if segment.digests else found.stored).append(segment)


def _read_records(
    path: Path, data: memoryview, receipt: Receipt | None
) -> tuple[Segment, Loss | None]:
    """Distinguish acknowledged bytes that are missing from writes that were never finished."""
    acknowledged = receipt.size if receipt else 0
    records: list[Record] = []
    damages: list[Damage] = []
    end = claimed = 0
    for found in scan(path.stem, data):
        if isinstance(found, Record):
            records.append(found)
            end = found.offset + found.size
        elif found.torn and found.offset >= acknowledged:
            _cut_off(path, found)
        else:
            area = found.offset, found.offset + found.size
            claimed += claimed_items(data, *area, marker_of(path.stem))
            damages.append(found)
    if not (receipt and receipt.covers([record.digest for record in records])):
        # Bytes may have been copied over others: each request counts once.
        records = list({record.digest: record for record in reversed(records)}.values())[::-1]
    items = sum(record.items for record in records)
    digests = tuple(record.digest for record in records)
    segment = Segment(path, max(end, acknowledged), items, digests, path.stat().st_mtime)
    lost = max(0, receipt.items - items) if receipt else claimed
    if not damages and not lost:
        return segment, None
    reason = _reason(path.stem, len(data), acknowledged, damages)
    return segment, Loss(path.stem, reason, lost, items, tuple(damages))


def _reason(segment: str, size: int, acknowledged: int, damages: Collection[Damage]) -> str:
    if damages:
        bad = sum(damage.size for damage in damages)
        first = next(iter(damages)).offset
        return f"{bad} of its {size} bytes, from {first} on, hold no request of {segment}"
    return f"it has {size} bytes where {acknowledged} were acknowledged"


def _cut_off(path: Path, torn: Damage) -> None:
    logger.info(
        "%d bytes at %d of segment %s are an unfinished write, cut off",
        *(torn.size, torn.offset, torn.segment),
    )
    # Where it cannot be truncated, the segment's size limits the bytes that are read.
    with contextlib.suppress(PermissionError):
        os.truncate(path, torn.offset)


def _missing(path: Path, marks: StoredMarks, damaged: DamagedFiles, found: Recovered) -> None:
    """Check a receipt without its segment."""
    receipt = read_receipt(path)
    if receipt is None or not receipt.items or marks.may_have_stored(path.stem, path):
        with contextlib.suppress(IsADirectoryError):
            path.unlink()
        return
    loss = Loss(path.stem, "its file is gone", receipt.items)
    damaged.report(loss)
    damaged.set_aside(loss, [path])
    found.losses[path.stem] = loss


def put_back(directory: Path, damaged: DamagedFiles) -> None:
    """Restore the names of segments by their content, and set copies aside.

    Args:
        directory: of the spool.
        damaged: takes the copies.
    """
    known = (path for path in directory.iterdir() if path.suffix in {LOG, MARK, RECEIPT, _MOVED})
    names = {marker_of(path.stem): path.stem for path in known}
    for path in directory.glob(f"*{LOG}"):
        name = _owner(path, names)
        if name not in {None, path.stem}:
            _move(path, directory / f"{name}{_MOVED}", damaged)
    for path in directory.glob(f"*{_MOVED}"):
        logger.warning("%s holds segment %s", path, path.stem)
        _move(path, path.with_suffix(LOG), damaged)


def _move(path: Path, target: Path, damaged: DamagedFiles) -> None:
    if os.path.lexists(target):
        loss = Loss(path.stem, f"it is a copy of segment {target.stem}", 0)
        damaged.report(loss)
        damaged.set_aside(loss, [path])
    else:
        path.rename(target)


def _sequence_of(path: Path) -> int:
    """The number in the name of a segment, its mark or its receipt."""
    number = re.match(r"\d{12}(?=-)", path.name)
    return int(number[0]) if number else 0


def _owner(path: Path, names: dict[bytes, str]) -> str | None:
    own = marker_of(path.stem)
    try:
        begins_well = own in beginning(path, 2 * len(own))
        return path.stem if begins_well else owner(content(path), names)
    except OSError:
        return None


@dataclass(frozen=True)
class SegmentReading:
    """The readable part of a segment.

    Attributes:
        records: its requests, in the order of their arrival.
        gone: digests of requests that can no longer be read, but could be before.
        lost: number of spans in requests that were just found missing.
    """

    records: list[Record]
    gone: frozenset[bytes] = frozenset()
    lost: int = 0


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

    def read(self, segment: Segment) -> SegmentReading:
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
            return SegmentReading(records, gone)
        kept = sum(record.items for record in records)
        counted = self._counted.get(segment.name, 0)
        lost = max(0, segment.items - kept - counted)
        before = self._losses.get(segment.name)
        loss = Loss(segment.name, reason, lost + (before.lost if before else 0), kept, damages)
        self._gone[segment.name] = gone
        self._counted[segment.name] = counted + lost
        self._losses[segment.name] = loss
        self.damaged.report(loss)
        return SegmentReading(records, gone, lost)

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
