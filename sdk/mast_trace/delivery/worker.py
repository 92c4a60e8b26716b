"""The thread that delivers a process's spans: batches by size, retries, gives up, counts."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from opentelemetry import context as otel_context

from mast_trace.delivery.advice import START
from mast_trace.delivery.encoding import Delivered, DeliveryLimits, encode, estimated_size
from mast_trace.delivery.start_records import StartRecords, encode_starts
from mast_trace.delivery.transport import ExportResult, Fate, RequestSignal, Transport

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan


logger = logging.getLogger("mast_trace")

_HURRY = 0.5  # seconds between attempts while a flush or `close` waits
_START_TIMEOUT = 2.0  # seconds that spans wait at most for the record of a run's beginning


class SpanSender:
    """Holds the waiting spans of one process and delivers them from a thread of its own.

    The thread starts with the first span: a process that only forks others has none.

    Args:
        endpoint: the collector's address, for log messages.
        transport: the connection to the collector.
        timeout: seconds that one request may take.
        limits: see `DeliveryLimits`.
    """

    def __init__(
        self, endpoint: str, transport: Transport, timeout: float, limits: DeliveryLimits
    ) -> None:
        self._endpoint = endpoint
        self._transport = transport
        self._timeout = timeout
        self._limits = limits
        # Re-entrant: a finaliser may end a span while this thread holds the lock.
        self._changed = threading.Condition(threading.RLock())
        self._waiting: deque[tuple[ReadableSpan, int]] = deque()
        self._bytes = 0
        self._due = 0.0
        self._hurried_at = float("-inf")
        self._wakes_at = float("-inf")  # while the thread does not wait
        self._starts = StartRecords(limits)
        self._taken = 0
        self._settled = 0
        self._flushing = 0
        self._deadline: float | None = None
        self._counts = Delivered()
        self._lost_at_flush = 0
        self._thread: threading.Thread | None = None
        self._outage = False
        self._advice = START
        self._warned: set[str] = set()

    def announce(self, root: ReadableSpan) -> None:
        """Take the root of a run that has begun."""
        with self._changed:
            if self._deadline is not None:
                return
            self._wake_by(self._starts.add(root))

    def put(self, span: ReadableSpan) -> bool:
        """Take an ended span; return whether a run ends with it."""
        size = estimated_size(span)
        limits = self._limits
        with self._changed:
            ends_run = self._starts.ended(span)
            full = len(self._waiting) >= limits.queue_spans or (
                self._waiting and self._bytes + size > limits.queue_bytes
            )
            if full or self._deadline is not None:
                self._counts = replace(self._counts, dropped=self._counts.dropped + 1)
                if full:
                    self._warn(
                        "the queue of spans is full and %s takes none: new spans are dropped"
                    )
                return ends_run
            now = time.monotonic()
            if not self._waiting:
                self._due = now + limits.delay
            self._waiting.append((span, size))
            self._bytes += size
            self._taken += 1
            if ends_run:  # the record is sent soon, so that it is kept if the process is killed
                self._due = min(self._due, max(now, self._hurried_at + limits.pace))
            self._wake_by(now if self._batch_is_full() else self._due)
            return ends_run

    def _wake_by(self, due: float) -> None:
        """Wake the thread unless it will wake in time: each waking takes the interpreter from the agents."""
        if self._thread is None:
            self._start()
        elif due < self._wakes_at:
            self._wakes_at = due
            self._changed.notify_all()

    def flush(self, timeout: float) -> bool:
        """Send at once; return whether all spans since the previous flush were accepted."""
        with self._changed:
            settled = self._hurry(timeout)
            lost, before = self._counts.lost, self._lost_at_flush
            self._lost_at_flush = lost
            return settled and lost == before

    def wait_for_delivery(self) -> None:
        """Wait briefly for requests under way, unless no collector accepts spans at present."""
        with self._changed:
            # A finaliser may end a run in the very thread that delivers.
            if not self._outage and threading.current_thread() is not self._thread:
                self._hurry(self._limits.worker_wait)

    def _hurry(self, timeout: float) -> bool:
        """Wait until all spans taken so far are settled; return whether they are."""
        deadline = time.monotonic() + timeout
        target, starts = self._taken, self._starts.added
        self._flushing += 1
        self._changed.notify_all()
        while self._settled < target or self._starts.pending(starts):
            left = deadline - time.monotonic()
            if left <= 0 or self._thread is None:
                break
            self._changed.wait(left)
        self._flushing -= 1
        return self._settled >= target

    def close(self) -> None:
        """Deliver the waiting spans, for as long as `DeliveryLimits.exit` allows, and stop. Idempotent."""
        with self._changed:
            if self._deadline is not None:
                return
            self._deadline = time.monotonic() + self._limits.exit
            self._changed.notify_all()
            thread = self._thread
        if thread is not None and thread.is_alive():
            thread.join(self._limits.exit)
        else:  # no thread can start while the interpreter shuts down
            self._work()
        counts = self.delivered()
        if missing := counts.waiting + counts.undelivered:
            logger.warning(
                "mast-trace: %d span(s) lost, no collector took them at %s (%s).%s",
                missing,
                self._endpoint,
                counts.error or "no answer yet",
                "" if self._outage else f" {self._advice}",
            )
        self._transport.close()

    def delivered(self) -> Delivered:
        """Return the counts until now."""
        with self._changed:
            return replace(self._counts, waiting=self._taken - self._settled)

    # -- the thread ------------------------------------------------------------------------------

    def _start(self) -> None:
        thread = threading.Thread(target=self._work, name="mast-trace-export", daemon=True)
        # Where the interpreter shuts down, `close` delivers the waiting spans.
        with suppress(RuntimeError):
            thread.start()
            self._thread = thread

    def _work(self) -> None:
        # Instrumentations of HTTP clients must not trace the export of traces.
        keys = (
            otel_context._SUPPRESS_INSTRUMENTATION_KEY,  # noqa: SLF001  # the SDK's own way
            otel_context._SUPPRESS_HTTP_INSTRUMENTATION_KEY,  # noqa: SLF001
        )
        context = otel_context.get_current()
        for key in keys:
            context = otel_context.set_value(key, value=True, context=context)
        token = otel_context.attach(context)
        while self._something_is_due():
            if starts := self._next_starts():
                self._announce(starts)
            if batch := self._next_batch():
                self._deliver(batch)
        otel_context.detach(token)

    def _something_is_due(self) -> bool:
        """Wait until a request is due; return False once the queue is closed and empty."""
        with self._changed:
            while True:
                now = time.monotonic()
                waits = (self._due_in(now), self._starts.due_in(now))
                times = [left for left in waits if left is not None]
                if times and (min(times) <= 0 or self._hurried()):
                    return True
                if self._deadline is not None:
                    return False
                left = min(times, default=None)
                self._wakes_at = float("inf") if left is None else now + left
                self._changed.wait(left)
                self._wakes_at = float("-inf")

    def _due_in(self, now: float) -> float | None:
        """Return the seconds until the next batch; None if there is none."""
        if not self._waiting:
            return None
        return 0.0 if self._batch_is_full() else max(0.0, self._due - now)

    def _next_starts(self) -> list[ReadableSpan]:
        """Return the runs whose beginning is to be recorded now; at the end of the process, spans go first."""
        with self._changed:
            now = time.monotonic()
            left = self._starts.due_in(now)
            if left is None or (left > 0 and not self._hurried()):
                return []
            if self._deadline is not None and self._waiting:
                return []
            return self._starts.take(now)

    def _announce(self, starts: Sequence[ReadableSpan]) -> None:
        """Send the records of runs' beginnings, once; spans do not wait for them."""
        request = encode_starts(starts)
        answer = ExportResult(Fate.UNFIT, "the record cannot be encoded")
        timeout = min(self._time_left(), _START_TIMEOUT)
        if request is not None and timeout > 0:
            try:
                answer = self._transport.send(request, timeout, RequestSignal.LOGS)
            except Exception as error:  # noqa: BLE001  # see `_send`
                answer = ExportResult(Fate.REFUSED, f"{type(error).__name__}: {error}")
        with self._changed:
            self._starts.settle(answer.fate)
            self._changed.notify_all()
        if answer.fate is Fate.REFUSED and "starts" not in self._warned:
            self._warned.add("starts")
            logger.debug(
                "mast-trace: %s takes no log records (%s): runs are known from their spans alone.",
                self._endpoint,
                answer.detail,
            )

    def _next_batch(self) -> list[ReadableSpan]:
        """Return the spans of the next batch."""
        with self._changed:
            now = time.monotonic()
            left = self._due_in(now)
            if left is None or (left > 0 and not self._hurried()):
                return []
            self._hurried_at = now
            batch: list[ReadableSpan] = []
            size = 0
            while self._waiting and len(batch) < self._limits.request_spans:
                if batch and size + self._waiting[0][1] > self._limits.request_bytes:
                    break
                span, span_size = self._waiting.popleft()
                batch.append(span)
                size += span_size
            self._bytes -= size
            return batch

    def _batch_is_full(self) -> bool:
        return (
            len(self._waiting) >= self._limits.request_spans
            or self._bytes >= self._limits.request_bytes
        )

    def _hurried(self) -> bool:
        return self._deadline is not None or self._flushing > 0

    def _deliver(self, batch: Sequence[ReadableSpan]) -> None:
        """Send a batch, in halves where it does not fit: one bad span never loses its neighbours."""
        parts = deque([batch])
        while parts:
            part = parts.popleft()
            request = encode(part)
            if request is None:
                answer = ExportResult(Fate.UNFIT, "the span cannot be encoded")
            elif len(part) > 1 and len(request) > self._limits.request_bytes:
                answer = ExportResult(Fate.UNFIT)
            else:
                answer = self._send(request)
            if answer.fate is Fate.UNFIT and len(part) > 1:
                middle = len(part) // 2
                parts.extendleft((part[middle:], part[:middle]))
            else:
                self._settle(len(part), answer)

    def _send(self, request: bytes) -> ExportResult:
        """Send until there is an answer, or the time for retries is over."""
        began = time.monotonic()
        attempt = 0
        answer = ExportResult(Fate.LATER, self._counts.error)
        while (timeout := self._time_left()) > 0:
            try:
                answer = self._transport.send(request, timeout)
            except Exception as error:  # noqa: BLE001  # a header that cannot be written, say
                answer = ExportResult(Fate.REFUSED, f"{type(error).__name__}: {error}")
            if answer.fate not in {Fate.LATER, Fate.UNREACHABLE}:
                self._outage = False
                break
            self._interrupted(answer)
            closing = self._deadline is not None
            if closing and answer.fate is Fate.UNREACHABLE:
                break
            if time.monotonic() - began > self._limits.retry_for:
                break
            # Jitter: otherwise all programs would return at once to a collector that has just come
            # back.
            backoff = min(2.0**attempt, 30.0) * random.uniform(0.8, 1.2)  # noqa: S311
            self._pause(backoff if answer.retry_after is None else answer.retry_after)
            attempt += 1
        return answer

    def _time_left(self) -> float:
        if self._deadline is None:
            return self._timeout
        return min(self._timeout, self._deadline - time.monotonic())

    def _pause(self, seconds: float) -> None:
        """Wait, but only briefly once a flush or `close` waits for the result."""
        began = time.monotonic()
        with self._changed:
            while True:
                wanted = min(seconds, _HURRY) if self._hurried() else seconds
                left = began + wanted - time.monotonic()
                if left <= 0:
                    return
                self._changed.wait(left)

    def _settle(self, spans: int, answer: ExportResult) -> None:
        rejected = min(answer.rejected, spans) if answer.fate is Fate.ACCEPTED else spans
        with self._changed:
            counts = self._counts
            if answer.fate in {Fate.LATER, Fate.UNREACHABLE}:
                counts = replace(counts, undelivered=counts.undelivered + spans)
            else:
                counts = replace(
                    counts,
                    accepted=counts.accepted + spans - rejected,
                    refused=counts.refused + rejected,
                )
            self._counts = replace(counts, error=answer.detail or counts.error)
            self._settled += spans
            if answer.fate is Fate.ACCEPTED:
                self._starts.spans_arrived()
            self._changed.notify_all()
        if answer.fate is Fate.REFUSED:
            # One line for each kind of problem, whatever the number of spans.
            self._warn(f"%s takes no spans, they are lost: {_why(answer)}", answer.advice)
        elif rejected and answer.fate not in {Fate.LATER, Fate.UNREACHABLE}:
            self._warn(f"%s refused {rejected} spans: {_why(answer)}", answer.detail)

    def _interrupted(self, answer: ExportResult) -> None:
        with self._changed:
            self._counts = replace(self._counts, error=answer.detail)
            self._advice = answer.advice or START
            if self._deadline is not None or self._outage:
                return  # `close` logs it
            self._outage = True
        logger.warning(
            "mast-trace: no collector takes spans at %s (%s); they wait and are sent again. %s",
            self._endpoint,
            answer.detail,
            answer.advice or START,
        )

    def _warn(self, text: str, kind: str | None = None) -> None:
        """Log once per kind of problem."""
        kind = kind or text
        if kind not in self._warned:
            self._warned.add(kind)
            logger.warning(f"mast-trace: {text.rstrip('.')}.", self._endpoint)  # noqa: G004


def _why(answer: ExportResult) -> str:
    """Return the reason with its remedy, with percent signs escaped for the log."""
    detail = answer.detail or answer.fate.value
    return f"{detail}. {answer.advice}".rstrip(". ").replace("%", "%%")
