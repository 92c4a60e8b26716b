"""From the spool to the database: a few threads, segment by segment, each until it is stored."""

from __future__ import annotations

import contextlib
import logging
import random
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from mast_trace.exceptions import StorageError
from mast_trace_collector.storage.span_writer import PoisonError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from mast_trace_collector.config import CollectorConfig
    from mast_trace_collector.dead_letters import DeadLetters
    from mast_trace_collector.hold import Hold
    from mast_trace_collector.spool import Record, Segment, Spool
    from mast_trace_collector.telemetry import CollectorMetrics

logger = logging.getLogger(__name__)

_POLL_SECONDS = 0.5
_HELD_SECONDS = 0.1
_RETRY_LETTERS_SECONDS = 1.0
_PATIENCE = 5


class Writer(Protocol):
    """What stores requests; `SpanWriter` is the real one."""

    def write(
        self,
        requests: Sequence[bytes],
        *,
        token: str,
        spans: int | None,
        refused: bool = False,
        size: int | None = None,
        offsets: Sequence[int] | None = None,
    ) -> int:
        """Store requests durably, once for each token; return the number of their spans.

        Args:
            requests: as they were received.
            token: names them.
            spans: how many they hold, where they are known to be well formed; None to find out.
            refused: `write_file` has returned False for them, or one of them was poison.
            size: bytes of the whole segment, also where some of its requests are left out now.
            offsets: where each stands in it.

        Raises:
            PoisonError: one of them can never be stored; what others have been, the token tells.
            StorageError: the database does not take them now.
        """

    def write_file(self, path: Path, *, size: int, token: str) -> bool | None:
        """Store the requests of a file without reading them here.

        Args:
            path: a segment, whose requests are known to be well formed.
            size: as for `write`.
            token: as for `write`.

        Returns:
            Whether they are stored. If not, nothing is; None says that it was not tried.

        Raises:
            StorageError: the database does not take them now.
        """


@dataclass
class _Lane:
    """What one thread is about.

    Attributes:
        number: the first lane looks after the dead letters, too.
        segment: that it has taken and not stored yet.
        failures: of its tries, one after the other.
    """

    number: int
    segment: Segment | None = None
    failures: int = 0


class Exporter:
    """Stores segments, the oldest are taken first.

    The token of what is written is the segment's name, so storing it again after a crash adds
    nothing. While the database is away a segment is tried again with growing pauses; one
    that keeps failing lets the others pass.

    Args:
        spool: where segments come from.
        writer: where they go.
        dead_letters: takes the requests that can never be stored.
        config: pauses.
        metrics: counters.
        lanes: segments that are stored at a time; while one waits for the disk, another computes.
        hold: nothing is stored while somebody holds; None if nobody can.
    """

    def __init__(
        self,
        spool: Spool,
        writer: Writer,
        dead_letters: DeadLetters,
        config: CollectorConfig,
        metrics: CollectorMetrics,
        *,
        lanes: int = 1,
        hold: Hold | None = None,
    ) -> None:
        self._spool = spool
        self._writer = writer
        self._dead_letters = dead_letters
        self._config = config
        self._metrics = metrics
        self._hold = hold
        self._stopping = threading.Event()
        self._draining = False
        self._abandoned = False
        self._letters_seen = 0.0
        self._threads = [
            threading.Thread(
                target=self._run, args=(_Lane(number),), name=f"exporter-{number}", daemon=True
            )
            for number in range(lanes)
        ]
        self.trouble = ""
        """What the database said when it last did not take a segment; empty once it does."""

    def start(self) -> None:
        """Begin to store."""
        for thread in self._threads:
            thread.start()

    def stop(self, timeout: float, *, drain: bool = True) -> None:
        """End, within a time; what is not stored stays in the spool.

        An insert that has begun is waited for as long again, since the database must not be
        closed under it.

        Args:
            timeout: seconds to store what waits.
            drain: store what waits before, unless the database is away.
        """
        self._draining = drain
        self._stopping.set()
        if drain:
            self._join(timeout)
            self._draining = False
        self._join(timeout)
        if any(thread.is_alive() for thread in self._threads):
            logger.error("the database has not answered an insert for %g s", timeout)
            self._abandoned = True

    def _join(self, timeout: float) -> None:
        """Wait for all threads, at most so long for all of them together."""
        deadline = time.monotonic() + timeout
        for thread in self._threads:
            if thread.is_alive():
                thread.join(max(0.0, deadline - time.monotonic()))

    def _run(self, lane: _Lane) -> None:
        while not self._stopping.is_set() or self._draining:
            try:
                finished = self._step(lane)
            except Exception as error:
                # Nothing may end this thread: what is acknowledged must still be stored.
                logger.exception("storing is interrupted")
                self.trouble = repr(error)
                finished = self._stopping.wait(self._config.retry_max_seconds)
            if finished:
                return

    def _step(self, lane: _Lane) -> bool:
        """Try to store one segment; says whether there is nothing more to do."""
        with self._hold.share() if self._hold else contextlib.nullcontext(True) as may_store:
            if may_store:
                return self._step_on(lane)
        time.sleep(_HELD_SECONDS)
        return False

    def _step_on(self, lane: _Lane) -> bool:
        # Asked before the spool is: a segment may be closed, and the end announced, in between.
        stopping = self._stopping.is_set()
        segment = lane.segment = lane.segment or self._next()
        if segment is None:
            if stopping:
                return True
        elif self._store(segment, lane.failures + 1):
            lane.failures, lane.segment, self.trouble = 0, None, ""
        else:
            lane.failures += 1
            if lane.failures % _PATIENCE == 0:
                self._spool.give_back(segment)
                lane.segment = None
            if self._stopping.wait(self._pause(lane.failures)):
                return True
        if lane.number == 0:
            self._retry_letters()
        return False

    def _next(self) -> Segment | None:
        return self._spool.next_segment(0.0 if self._stopping.is_set() else _POLL_SECONDS)

    def _pause(self, failures: int) -> float:
        longest = self._config.retry_max_seconds
        pause = min(longest, self._config.retry_initial_seconds * 2.0 ** min(failures - 1, 30))
        # Several collectors must not come back to a recovering database at the same moment.
        return pause * random.uniform(0.5, 1.0)  # noqa: S311

    def _store(self, segment: Segment, attempt: int) -> bool:
        """Store a segment and forget it; says whether that worked."""
        try:
            written = self._write_file(segment)
            stored = segment.items if written else self._write(segment, refused=written is False)
            if not self._abandoned:
                self._spool.commit(segment)
        except (StorageError, OSError) as error:
            self._metrics.insert_failures.inc()
            self.trouble = str(error)
            logger.warning(
                "segment %s is not stored yet: %s",
                *(segment.name, error),
                extra={
                    "segment": segment.name,
                    "spans": segment.items,
                    "attempt": attempt,
                },
            )
            return False
        self._metrics.stored_spans.inc(stored)
        return True

    def _write_file(self, segment: Segment) -> bool | None:
        """Write a segment as it lies on the disk, if it can be; see `Writer.write_file`."""
        if not segment.intact():
            return None
        began = time.perf_counter()
        try:
            written = self._writer.write_file(segment.path, size=segment.size, token=segment.name)
        except (StorageError, OSError):
            raise
        except Exception:
            logger.exception("segment %s cannot be written as a file", segment.name)
            return None
        if written:
            self._metrics.insert.observe(time.perf_counter() - began)
        return written

    def _write(self, segment: Segment, *, refused: bool = False) -> int:
        """Write all records but those that cannot be stored; the number of spans written."""
        reading = self._spool.read(segment)
        self._metrics.damaged_spans.inc(reading.lost)
        records = list(reading.records)
        while records:
            began = time.perf_counter()
            try:
                self._writer.write(
                    [bytes(record.payload) for record in records],
                    token=segment.name,
                    spans=sum(record.items for record in records),
                    refused=refused,
                    size=segment.size,
                    offsets=[record.offset for record in records],
                )
            except PoisonError as error:
                self._set_aside(segment, records.pop(error.index), error.reason)
                refused = True
            except StorageError:
                raise
            except Exception:
                # A defect of ours, set off by something in the segment: find it, keep the rest.
                logger.exception("segment %s cannot be written as a whole", segment.name)
                return self._write_one_by_one(segment, records)
            else:
                self._metrics.insert.observe(time.perf_counter() - began)
                break
        return sum(record.items for record in records)

    def _write_one_by_one(self, segment: Segment, records: list[Record]) -> int:
        stored = 0
        for record in records:
            try:
                token = _name(segment, record)
                self._writer.write([bytes(record.payload)], token=token, spans=record.items)
            except PoisonError as error:
                self._set_aside(segment, record, error.reason)
            except StorageError:
                raise
            except Exception as error:
                logger.exception("request at %d of segment %s", record.offset, segment.name)
                self._set_aside(segment, record, repr(error))
            else:
                stored += record.items
        return stored

    def _set_aside(self, segment: Segment, record: Record, reason: str) -> None:
        letter = _name(segment, record)
        logger.error(
            "request at %d of segment %s is set aside: %s",
            *(record.offset, segment.name, reason),
            extra={"dead_letter": letter, "spans": record.items},
        )
        self._dead_letters.add(letter, bytes(record.payload), record.items, reason)
        self._metrics.dead_lettered_spans.inc(record.items)

    def _retry_letters(self) -> None:
        now = time.monotonic()
        if now - self._letters_seen < _RETRY_LETTERS_SECONDS:
            return
        self._letters_seen = now
        try:
            for letter, payload in self._dead_letters.due():
                try:
                    token = f"dead-letter.{letter.id}"
                    # A letter may hold anything: what it says of itself is not taken for granted.
                    stored = self._writer.write([payload], token=token, spans=None)
                except PoisonError as error:
                    self._dead_letters.failed_again(letter, payload, error.reason)
                except StorageError:
                    raise
                except Exception as error:
                    logger.exception("dead letter %s", letter.id)
                    self._dead_letters.failed_again(letter, payload, repr(error))
                else:
                    self._metrics.retried_spans.inc(stored)
                    self._metrics.stored_spans.inc(stored)
                    self._dead_letters.settle(letter)
        except (StorageError, OSError) as error:
            logger.warning("dead letters cannot be retried yet: %s", error)


def _name(segment: Segment, record: Record) -> str:
    """A request's name, by its place: a number would be another once one before it is damaged."""
    return f"{segment.name}.{record.offset}"
