"""The spool: writes requests to disk, hands closed segments on, removes them once stored."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mast_trace.exceptions import CollectorError
from mast_trace_collector.spool.deduplication import RecentRequests
from mast_trace_collector.spool.folder import SegmentFolder, SegmentReading
from mast_trace_collector.spool.quota import DiskQuota, FolderLock, RequestRefused, SpoolLimits
from mast_trace_collector.spool.record import Record
from mast_trace_collector.spool.segment import LOG, Segment, SegmentWriter

if TYPE_CHECKING:
    from mast_trace_collector.spool.damaged import Loss

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Acknowledgement:
    """A request's receipt from the spool.

    Attributes:
        durable: done when the request is on disk, or failed with `RequestRefused`.
        duplicate: the same request was accepted before; nothing was written for this one.
    """

    durable: Future[None]
    duplicate: bool


class Spool:
    """A durable queue of requests in segments on disk.

    Requests are appended from any thread; one thread of the spool writes all that have gathered
    and syncs once for all of them. Consumers take closed segments, oldest first, and commit each
    when its rows are stored.

    Args:
        directory: the folder of the segments; one process at a time may use it.
        limits: bounds.
        items: noun for the items of requests.
    """

    def __init__(self, directory: Path, limits: SpoolLimits, items: str = "spans") -> None:
        self._directory = directory
        self._limits = limits
        self._folder_lock = FolderLock(directory)
        self._folder = SegmentFolder(directory, limits.duplicate_window, items)
        self._settled: Future[None] = Future()
        self._settled.set_result(None)

        # The state lock guards this block and is never held during a write.
        self._lock = threading.Lock()
        self._arrived = threading.Condition(self._lock)
        self._ready = threading.Condition(self._lock)
        self._recent: RecentRequests[Future[None]] = RecentRequests(limits.duplicate_window)
        self._quota = DiskQuota(directory, limits.max_bytes, limits.min_free_bytes)
        self._pending: deque[tuple[Record, Future[None]]] = deque()
        self._closed: deque[Segment] = deque()
        self._taken: dict[str, Segment] = {}
        self._items = 0
        self._due: float | None = None
        self._running = False

        # The write lock guards the open segment.
        self._writing = threading.Lock()
        self._writer: SegmentWriter | None = None
        self._opened = 0.0
        self._sequence = 0
        self._thread = threading.Thread(target=self._run, name="spool", daemon=True)

    def open(self) -> list[Loss]:
        """Recover the files of an earlier process, and begin to accept requests.

        Returns:
            The damage of files with acknowledged requests.

        Raises:
            CollectorError: another process uses the folder, or it cannot be written.
        """
        self._folder_lock.acquire()
        try:
            losses = self._recover()
        except OSError as error:
            self._folder_lock.release()
            raise CollectorError(f"cannot take up the spool {self._directory}: {error}") from error
        self._running = True
        self._thread.start()
        return losses

    def _recover(self) -> list[Loss]:
        digests, found = self._folder.take_up()
        self._sequence = found.sequence
        for digest in digests:
            self._recent.remember(digest, self._settled)
        for segment in found.segments:
            self._closed.append(segment)
            self._quota.take(segment.size)
            self._items += segment.items
        return list(found.losses.values())

    def append(self, payload: bytes, items: int) -> Acknowledgement:
        """Accept a request.

        Raises:
            Refused: a limit is reached, or the spool is closed.
        """
        record = Record.of(payload, items)
        with self._lock:
            if not self._running:
                raise RequestRefused("shutting_down", "the collector is stopping", retry_after=1.0)
            known = self._recent.get(record.digest)
            if known is not None:
                return Acknowledgement(known, duplicate=True)
            self._quota.check(record.size)
            durable: Future[None] = Future()
            # From here on no waiter that gives up can cancel it for the others.
            durable.set_running_or_notify_cancel()
            self._recent.remember(record.digest, durable)
            self._pending.append((record, durable))
            self._quota.take(record.size)
            self._arrived.notify()
        return Acknowledgement(durable, duplicate=False)

    def _run(self) -> None:
        while True:
            with self._lock:
                while not self._pending and self._running:
                    self._arrived.wait()
                group, self._pending = self._pending, deque()
            if not group:
                return
            with self._writing:
                self._commit_group(group)

    def _commit_group(self, group: deque[tuple[Record, Future[None]]]) -> None:
        while group:
            try:
                writer = self._writer or self._open_segment()
                batch = self._take_batch(group, writer.size, writer.items)
                try:
                    writer.append([record for record, _ in batch])
                except BaseException:
                    group.extendleft(reversed(batch))
                    raise
            except Exception as error:
                # After a failed sync the kernel may have dropped its pages of this file, so the
                # next records go into another.
                logger.error(  # noqa: TRY400
                    "cannot write to the spool: %r", error, exc_info=not isinstance(error, OSError)
                )
                self._close_segment()
                self._fail(group, error)
                return
            self._acknowledge(batch)
            if self._is_full(writer.size, writer.items):
                self._close_segment()

    def _take_batch(
        self, group: deque[tuple[Record, Future[None]]], size: int, items: int
    ) -> list[tuple[Record, Future[None]]]:
        batch: list[tuple[Record, Future[None]]] = []
        while group and not (batch and self._is_full(size, items)):
            batch.append(group.popleft())
            size += batch[-1][0].size
            items += batch[-1][0].items
        return batch

    def _is_full(self, size: int, items: int) -> bool:
        return size >= self._limits.segment_bytes or items >= self._limits.segment_items

    def _acknowledge(self, batch: list[tuple[Record, Future[None]]]) -> None:
        with self._lock:
            for record, _ in batch:
                self._items += record.items
                self._recent.remember(record.digest, self._settled)
            self._quota.wrote()
            if self._due is None:
                self._due = time.monotonic() + self._limits.segment_age
                self._ready.notify()
        for _, durable in batch:
            durable.set_result(None)

    def _fail(self, group: deque[tuple[Record, Future[None]]], error: Exception) -> None:
        with self._lock:
            self._quota.ran_out(min(record.size for record, _ in group))
            for record, _ in group:
                self._recent.forget(record.digest)
                self._quota.give_back(record.size)
        refused = _disk_error(error)
        for _, durable in group:
            durable.set_exception(refused)

    def _open_segment(self) -> SegmentWriter:
        # The random half makes the name, which is the rows' deduplication token, unique for ever.
        name = f"{self._sequence + 1:012d}-{uuid.uuid4().hex[:16]}"
        self._writer = SegmentWriter(self._directory / f"{name}{LOG}")
        self._sequence += 1
        self._opened = time.time()
        return self._writer

    def _close_segment(self) -> None:
        if self._writer is None:
            return
        writer, self._writer = self._writer, None
        segment = writer.close(self._opened)
        if not segment.digests:
            writer.remove()
            return
        with self._lock:
            self._due = None
            self._closed.append(segment)
            self._ready.notify()

    def next_segment(self, timeout: float) -> Segment | None:
        """Wait for the oldest closed segment and take it.

        An open segment is closed for the purpose once it is old enough, so segments grow while
        the consumer is busy and stay small while it waits.

        Args:
            timeout: seconds to wait at most.
        """
        deadline = time.monotonic() + timeout
        while True:
            with self._lock:
                if self._closed:
                    segment = self._closed.popleft()
                    self._taken[segment.name] = segment
                    return segment
                now = time.monotonic()
                due = self._due
                if due is None or due > now:
                    if now >= deadline or not self._running:
                        return None
                    self._ready.wait(min(deadline, due or deadline) - now)
                    continue
            self._seal_if_due()

    def _seal_if_due(self) -> None:
        """Close the open segment, unless another consumer just has."""
        with self._writing:
            with self._lock:
                due = self._due
            if due is not None and due <= time.monotonic():
                self._close_segment()

    def seal(self) -> None:
        """Close the open segment, whatever its age."""
        with self._writing:
            self._close_segment()

    def give_back(self, segment: Segment) -> None:
        """Put a segment that cannot be stored now behind all others, the open one included."""
        self.seal()
        with self._lock:
            del self._taken[segment.name]
            self._closed.append(segment)

    def read(self, segment: Segment) -> SegmentReading:
        """Return the readable part of a taken segment.

        Raises:
            OSError: it cannot be read at present.
        """
        reading = self._folder.read(segment)
        with self._lock:
            # If a sender sends one of them again, it is accepted.
            for digest in reading.gone:
                self._recent.forget(digest)
        return reading

    def commit(self, segment: Segment) -> None:
        """Remove a segment whose rows are durable in the database.

        Raises:
            OSError: its file cannot be removed now.
        """
        self._folder.remove(segment)
        with self._lock:
            del self._taken[segment.name]
            self._quota.give_back(segment.size)
            self._items -= segment.items

    @property
    def damaged_files(self) -> int:
        """Number of damaged files that are set aside now."""
        return len(self._folder.damaged)

    @property
    def waiting_bytes(self) -> int:
        """Bytes that are not stored yet."""
        return self._quota.used

    @property
    def waiting_items(self) -> int:
        """Durable spans that are not stored yet."""
        return self._items

    def oldest_age(self) -> float:
        """Seconds since the arrival of the oldest waiting request; 0 when none waits."""
        with self._lock:
            created = [segment.created for segment in (*self._taken.values(), *self._closed)]
            if self._due is not None:
                created.append(self._opened)
        return max(0.0, time.time() - min(created)) if created else 0.0

    def check(self) -> None:
        """Ensure that a small request would be accepted now.

        Raises:
            Refused: it would not; with the reason.
        """
        with self._lock:
            self._check_running()
            self._quota.check(0)

    def check_again(self) -> None:
        """Ensure that a request like those that were refused last would be accepted now.

        After a failed write this writes to the disk, which may take long: whether a disk takes
        something is not known from its free space (quotas, a file system that became read-only).

        Raises:
            Refused: it would not; with the reason.
        """
        with self._lock:
            self._check_running()
            self._quota.check_again()
            failing = self._quota.failing
        if failing:
            try:
                self._folder.try_to_write()
            except OSError as error:
                raise _disk_error(error) from error

    def _check_running(self) -> None:
        if not self._running:
            raise RequestRefused("shutting_down", "the collector is not running", retry_after=1.0)

    def close(self) -> None:
        """Finish the present write and accept no more; segments can still be taken."""
        with self._lock:
            if not self._running:
                return
            self._running = False
            self._arrived.notify()
            self._ready.notify_all()
        self._thread.join()
        self.seal()

    def release(self) -> None:
        """Release the folder for another process; safe to call twice."""
        self._folder_lock.release()


def _disk_error(error: Exception) -> RequestRefused:
    return RequestRefused("disk_error", f"the collector cannot write to its disk: {error}")
