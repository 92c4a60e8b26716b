"""The thread that delivers a process's spans: batches by size, retries, gives up, counts."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING

from opentelemetry import context as otel_context

from mast_trace.delivery.limits import Delivered, DeliveryLimits, encode, estimated_size
from mast_trace.delivery.transport import ExportResult, Fate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opentelemetry.sdk.trace import ReadableSpan

    from mast_trace.delivery.transport import Transport

logger = logging.getLogger("mast_trace")

_ADVICE = " Start one with `mast-trace up`, or set OTEL_EXPORTER_OTLP_ENDPOINT."
_HURRY = 0.5  # seconds between attempts while somebody waits


class SpanSender:
    """Holds the waiting spans of one process and delivers them from a thread of its own.

    The thread starts with the first span: a process that only forks others has none.

    Args:
        endpoint: for messages.
        transport: the way to the collector.
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
        self._oldest = 0.0
        self._taken = 0
        self._settled = 0
        self._flushing = 0
        self._deadline: float | None = None
        self._counts = Delivered()
        self._lost_at_flush = 0
        self._thread: threading.Thread | None = None
        self._outage = False
        self._warned: set[str] = set()

    def put(self, span: ReadableSpan) -> bool:
        """Take an ended span; return whether this is the one that started the thread."""
        size = estimated_size(span)
        limits = self._limits
        with self._changed:
            full = len(self._waiting) >= limits.queue_spans or (
                self._waiting and self._bytes + size > limits.queue_bytes
            )
            if full or self._deadline is not None:
                self._counts = replace(self._counts, dropped=self._counts.dropped + 1)
                if full:
                    self._warn(
                        "the queue of spans is full and %s takes none: new spans are dropped"
                    )
                return False
            if not self._waiting:
                self._oldest = time.monotonic()
            self._waiting.append((span, size))
            self._bytes += size
            self._taken += 1
            if self._thread is None:
                return self._start()
            if len(self._waiting) == 1 or self._batch_is_full():
                self._changed.notify_all()
            return False

    def flush(self, timeout: float) -> bool:
        """Hurry; return whether all spans since the previous flush were accepted."""
        deadline = time.monotonic() + timeout
        with self._changed:
            target = self._taken
            self._flushing += 1
            self._changed.notify_all()
            while self._settled < target and (left := deadline - time.monotonic()) > 0:
                self._changed.wait(left)
            self._flushing -= 1
            lost, before = self._counts.lost, self._lost_at_flush
            self._lost_at_flush = lost
            return self._settled >= target and lost == before

    def close(self) -> None:
        """Deliver what waits, for as long as `DeliveryLimits.exit` allows, and stop. Idempotent."""
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
                "" if self._outage else _ADVICE,
            )
        self._transport.close()

    def delivered(self) -> Delivered:
        """Return the counts until now."""
        with self._changed:
            return replace(self._counts, waiting=self._taken - self._settled)

    # -- the thread ------------------------------------------------------------------------------

    def _start(self) -> bool:
        thread = threading.Thread(target=self._work, name="mast-trace-export", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # the interpreter shuts down: `close` delivers what waits
            return False
        self._thread = thread
        return True

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
        while batch := self._next_batch():
            self._deliver(batch)
        otel_context.detach(token)

    def _next_batch(self) -> list[ReadableSpan]:
        """Wait until a batch is due; empty once the queue is closed and empty."""
        with self._changed:
            while True:
                if not self._waiting:
                    if self._deadline is not None:
                        return []
                    self._changed.wait()
                    continue
                left = self._oldest + self._limits.delay - time.monotonic()
                if left <= 0 or self._hurried() or self._batch_is_full():
                    break
                self._changed.wait(left)
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
        """Send a batch, in halves where it does not fit: a span never takes its neighbours down."""
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
        """Send until there is an answer, or no hope for one."""
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
            # Jitter, lest all programs return at once to a collector that has just come back.
            backoff = min(2.0**attempt, 30.0) * random.uniform(0.8, 1.2)  # noqa: S311
            self._pause(backoff if answer.retry_after is None else answer.retry_after)
            attempt += 1
        return answer

    def _time_left(self) -> float:
        if self._deadline is None:
            return self._timeout
        return min(self._timeout, self._deadline - time.monotonic())

    def _pause(self, seconds: float) -> None:
        """Wait, but not long once somebody waits for the result."""
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
            self._changed.notify_all()
        if rejected and answer.fate not in {Fate.LATER, Fate.UNREACHABLE}:
            self._warn(f"%s refused {rejected} spans ({answer.detail})", answer.detail)

    def _interrupted(self, answer: ExportResult) -> None:
        with self._changed:
            self._counts = replace(self._counts, error=answer.detail)
            if self._deadline is not None or self._outage:
                return  # `close` says it
            self._outage = True
        logger.warning(
            "mast-trace: no collector takes spans at %s (%s); they wait and are sent again.%s",
            self._endpoint,
            answer.detail,
            _ADVICE,
        )

    def _warn(self, text: str, kind: str | None = None) -> None:
        """Log once per kind of problem."""
        kind = text if kind is None else kind
        if kind not in self._warned:
            self._warned.add(kind)
            logger.warning(f"mast-trace: {text}.", self._endpoint)  # noqa: G004
