"""The exporter: threads that move segments from the spool to the database, retrying each until stored."""

from __future__ import annotations

import contextlib
import logging
import random
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from mast_trace.exceptions import StorageError
from mast_trace.retry_after import doubled
from mast_trace_collector.storage.span_writer import PoisonError

if TYPE_CHECKING:
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
    """The interface that stores requests; `SpanWriter` implements it."""

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
            token: the deduplication token.
            spans: their number of spans, where the requests are known to be well formed; None to
                count them.
            refused: `write_file` has returned False for them, or one of them was poison.
            size: bytes of the whole segment, including requests that are left out now.
            offsets: position of each request in it.

        Raises:
            PoisonError: one request can never be stored; retrying with the same token does not
                duplicate the others.
            StorageError: the database does not accept them now.
        """

    def write_file(self, path: Path, *, size: int, token: str) -> bool | None:
        """Store the requests of a file without parsing them here.

        Args:
            path: a segment, whose requests are known to be well formed.
            size: as for `write`.
            token: as for `write`.

        Returns:
            Whether they are stored. If not, none of them is; None if it was not tried.

        Raises:
            StorageError: the database does not accept them now.
        """


@dataclass
class _Lane:
    """The state of one thread.

    Attributes:
        number: of the lane; the first one also retries dead letters.
        segment: the one that it has taken and not stored yet.
        failures: number of failed attempts in a row.
    """

    number: int
    segment: Segment | None = None
    failures: int = 0


class Exporter:
    """Stores segments, the oldest first.

    The deduplication token is the segment's name, so storing it again after a crash adds
    nothing. While the database is away a segment is tried again with growing pauses; one
    that keeps failing lets the others pass.

    Args:
        spool: provides the segments.
        writer: stores them.
        dead_letters: takes the requests that can never be stored.
        config: pauses.
        metrics: counters.
        lanes: number of segments stored concurrently; while one waits for the disk, another
            computes.
        hold: nothing is stored while it is held; None if no backup can hold it.
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
        """The database's last error; empty once it accepts a segment."""

    def start(self) -> None:
        """Start the threads."""
        for thread in self._threads:
            thread.start()

    def stop(self, timeout: float, *, drain: bool = True) -> None:
        """Stop within a time; segments that are not stored stay in the spool.

        An insert that has begun gets as much time again, because the database must not be closed
        during it.

        Args:
            timeout: seconds to store what waits.
            drain: first store what waits, unless the database is down.
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
        """Wait for all threads, with one timeout for all of them together."""
        deadline = time.monotonic() + timeout
        for thread in self._threads:
            if thread.is_alive():
                thread.join(max(0.0, deadline - time.monotonic()))

    def _run(self, lane: _Lane) -> None:
        while not self._stopping.is_set() or self._draining:
            try:
                finished = self._step(lane)
            except Exception as error:
                # Nothing may end this thread: acknowledged requests must still be stored.
                logger.exception("storing is interrupted")
                self.trouble = repr(error)
                finished = self._stopping.wait(self._config.retry_max_seconds)
            if finished:
                return

    def _step(self, lane: _Lane) -> bool:
        """Try to store one segment; return whether nothing more is left to do."""
        with self._hold.share() if self._hold else contextlib.nullcontext(True) as may_store:
            if may_store:
                return self._step_on(lane)
        time.sleep(_HELD_SECONDS)
        return False

    def _step_on(self, lane: _Lane) -> bool:
        # Checked before the spool: a segment may be closed, and the end announced, in between.
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
        config = self._config
        pause = doubled(config.retry_initial_seconds, failures, config.retry_max_seconds)
        # Jitter: several collectors must not return to a recovering database at the same moment.
        return pause * random.uniform(0.5, 1.0)  # noqa: S311

    def _store(self, segment: Segment, attempt: int) -> bool:
        """Store a segment and remove it; return whether that worked."""
        try:
            written = self._write_file(segment)
            stored = segment.items if written else self._write(segment, refused=written is False)
            if not self._abandoned:
                self._spool.commit(segment)
        except (StorageError, OSError) as error:
            self._metrics.insert_failures.inc()
            # A database that is away fails every try of every thread: it is said once, until something is stored.
            known, self.trouble = self.trouble, str(error)
            logger.log(
                logging.DEBUG if self.trouble == known else logging.WARNING,
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
        """Write a segment's file unparsed, if possible; see `Writer.write_file`."""
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
        """Write all records except those that cannot be stored; return the number of spans written."""
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
                # A defect of ours, triggered by a request in the segment: find it, keep the rest.
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
                    # A letter may hold anything: its own counts are not trusted.
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
    """A request's name, by its offset: a number would change once a record before it is damaged."""
    return f"{segment.name}.{record.offset}"
