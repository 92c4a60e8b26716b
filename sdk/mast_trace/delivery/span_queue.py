"""Takes ended spans from the agents' threads: at exit, across forks, in recycled workers."""

from __future__ import annotations

import atexit
import os
import sys
import time
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor

from mast_trace.delivery.encoding import Delivered, DeliveryLimits
from mast_trace.delivery.start_records import snapshot
from mast_trace.delivery.transport import Transport, open_transport
from mast_trace.delivery.worker import SpanSender
from mast_trace.urls import masked

if TYPE_CHECKING:
    from mast_trace._settings import SDKSettings

TERMINATING: Final = ("multiprocessing", "multiprocess")
"""Packages whose pools end their workers by SIGTERM. The second is the copy that pathos and Hugging Face's datasets use."""
_queues: weakref.WeakSet[SpanQueue] = weakref.WeakSet()


class SpanQueue(SpanProcessor):
    """A bounded queue between the agents' threads and a collector; it never blocks the program.

    A forked child begins with an empty queue and a thread of its own: the parent sends the spans
    that wait at the fork.

    Args:
        endpoint: the collector's address, for log messages.
        connect: makes a transport; called again after a fork.
        timeout: seconds that one request may take.
        limits: see `DeliveryLimits`.
    """

    def __init__(
        self,
        endpoint: str,
        connect: Callable[[], Transport],
        *,
        timeout: float = 10.0,
        limits: DeliveryLimits | None = None,
    ) -> None:
        limits = limits or DeliveryLimits()
        self._make_sender: Callable[[], SpanSender] = lambda: SpanSender(
            endpoint, connect(), timeout, limits
        )
        self._sender = self._make_sender()
        self._forked_at = 0
        self.closed = False
        _queues.add(self)
        atexit.register(self.shutdown)

    @classmethod
    def to_collector(cls, settings: SDKSettings) -> SpanQueue:
        """Return a queue that delivers spans as configured by ``settings``.

        Raises:
            ConfigurationError: the protocol needs a package that is not installed.
        """
        return cls(
            masked(settings.endpoint.value),
            lambda: open_transport(settings),
            timeout=settings.timeout.value,
        )

    def on_end(self, span: ReadableSpan) -> None:
        """Take an ended span."""
        if span.context is None or not span.context.trace_flags.sampled:
            return
        # A span that was open at the fork ends in the parent too, which reports it.
        if self._forked_at and (span.start_time or 0) < self._forked_at:
            return
        if self._sender.put(span) and is_terminated_at_the_end():
            self._sender.wait_for_delivery()

    def run_started(self, root: ReadableSpan) -> None:
        """Take the root of a run that has begun; its record is sent soon."""
        if root.context is None or not root.context.trace_flags.sampled:
            return
        self._sender.announce(snapshot(root))

    def flush(self, timeout: float) -> bool:
        """Deliver the waiting spans; return whether all spans since the previous flush were accepted."""
        return self._sender.flush(timeout)

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        """As `flush`, for the provider."""
        return self.flush(timeout_millis / 1000)

    def shutdown(self) -> None:
        """Deliver the waiting spans within a few seconds, and accept no more. Idempotent."""
        self.closed = True
        atexit.unregister(self.shutdown)
        self._sender.close()

    def delivered(self) -> Delivered:
        """Return the delivery counts of this process."""
        return self._sender.delivered()

    def start_over(self) -> None:
        """Leave the waiting spans to the parent, in a child that has just been forked."""
        self._forked_at = time.time_ns()
        self._sender = self._make_sender()
        if self.closed:
            self._sender.close()


def is_terminated_at_the_end() -> bool:
    """Return whether this is a worker that its parent ends by SIGTERM, as `multiprocessing.Pool` does.

    Nothing runs in such a worker after it has returned its result.
    """
    loaded = (sys.modules.get(f"{package}.process") for package in TERMINATING)
    return any(process.current_process().daemon for process in loaded if process is not None)


def shut_down_all() -> None:
    """Deliver the waiting spans of all queues of this process, as at its end."""
    for queue in list(_queues):
        queue.shutdown()


def flush_all(timeout: float) -> None:
    """Deliver the waiting spans of all queues of this process, within ``timeout`` seconds for each."""
    for queue in list(_queues):
        if not queue.closed:
            queue.flush(timeout)


def _start_over() -> None:
    for queue in list(_queues):
        queue.start_over()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_over)
