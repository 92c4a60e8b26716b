"""The path of a request from a receiver to the disk, the same for HTTP and gRPC."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from mast_trace_collector.otlp.decoding import Decoded, RequestLimits, TakesLong, decode
from mast_trace_collector.otlp.decompression import decompress
from mast_trace_collector.otlp.density import takes_long
from mast_trace_collector.otlp.errors import Forbidden, TooLarge, Unauthenticated
from mast_trace_collector.receivers.memory import MemoryReservation, MemoryShares, Slots
from mast_trace_collector.security import MissingRight, ProjectKeys, Right
from mast_trace_collector.spool import RequestRefused, Spool

if TYPE_CHECKING:
    from mast_trace_collector.config import CollectorConfig
    from mast_trace_collector.otlp.signals import Signal
    from mast_trace_collector.telemetry import CollectorMetrics

# Larger bodies are decoded beside the event loop, so that small ones need not wait for them; so are
# small ones with large content, and those of which only a part can be stored.
_INLINE_BYTES = 256 * 1024
_INLINE_SECONDS = 0.01
# A sender has half of them: two decode no faster than one, and another sender never waits.
_DECODERS = 4


class Ingest:
    """Checks requests, makes them durable and counts them.

    Args:
        spools: the spool of each accepted signal.
        config: limits.
        keys: those that may write; None permits everybody.
        metrics: counters of each signal.
    """

    def __init__(
        self,
        spools: dict[Signal, Spool],
        config: CollectorConfig,
        keys: ProjectKeys | None,
        metrics: dict[Signal, CollectorMetrics],
    ) -> None:
        self._spools = spools
        self._config = config
        self._keys = keys
        self.metrics = metrics
        self._limits = RequestLimits(config.max_nesting, config.max_attributes, config.max_values)
        share = max(config.max_inflight_bytes // 2, config.max_body_bytes)
        self._memory = MemoryShares(config.max_inflight_bytes, share)
        self._decoders = ThreadPoolExecutor(_DECODERS, thread_name_prefix="decode")
        self._decoding = Slots(_DECODERS)

    @property
    def signals(self) -> list[Signal]:
        """The accepted signals."""
        return list(self._spools)

    def authenticate(self, authorization: str, right: Right = Right.WRITE) -> str | None:
        """Return the project of the request's key; None where there are no keys.

        Raises:
            Unauthenticated: the key is missing or not known.
            Forbidden: it lacks the right.
        """
        if self._keys is None:
            return None
        grant = self._keys.grant_of(authorization)
        if grant is None:
            raise Unauthenticated("a known bearer key is needed")
        try:
            grant.demand(right)
        except MissingRight as error:
            raise Forbidden(str(error)) from error
        return grant.project

    def check_room(self, signal: Signal) -> None:
        """Refuse a request early, before its body is read, if it could not be kept.

        Raises:
            Refused: the spool accepts nothing now.
        """
        self._spools[signal].check()

    @contextlib.contextmanager
    def holding(self, sender: str) -> Iterator[MemoryReservation]:
        """Account for the memory of one request until it is answered.

        Args:
            sender: the address that it comes from.
        """
        memory = MemoryReservation(self._memory, sender)
        try:
            yield memory
        finally:
            memory.arrived()
            memory.release()

    @property
    def held(self) -> int:
        """Bytes of the requests that are not answered yet."""
        return self._memory.held

    async def take(
        self,
        body: bytes,
        signal: Signal,
        memory: MemoryReservation,
        *,
        transport: str,
        encoding: str = "",
        json: bool = False,
        project: str | None = None,
    ) -> Any:
        """Make a request durable.

        Returns:
            The protocol's answer.

        Raises:
            RequestError: the request cannot be accepted.
            Refused: it cannot be accepted now.
        """
        began = time.perf_counter()

        data, decoded = self._quickly_decompressed(body, encoding), None
        if data is not None and not takes_long(data, signal, json=json):
            with contextlib.suppress(TakesLong):
                decoded = decode(
                    data, signal, self._limits, json=json, project=project, patient=False
                )
        if decoded is None:
            work = functools.partial(self._decoded, body, encoding, signal, json, project)
            decoded = await self._beside(work, memory.sender)
        if len(decoded.payload) > len(body):
            memory.grow(len(decoded.payload) - len(body))
        await self._keep(decoded, signal, transport)
        self.metrics[signal].acknowledgement.observe(time.perf_counter() - began)
        return signal.answer(decoded.rejected.total(), decoded.message)

    def _decoded(
        self, body: bytes, encoding: str, signal: Signal, json: bool, project: str | None
    ) -> Decoded:
        config = self._config
        data = decompress(
            body, encoding, config.max_decompressed_bytes, config.max_decompression_seconds
        )
        return decode(data, signal, self._limits, json=json, project=project)

    def _quickly_decompressed(self, body: bytes, encoding: str) -> bytes | None:
        """Return the content of a small body; None if only a decoder can measure it."""
        if len(body) > _INLINE_BYTES:
            return None
        try:
            return decompress(body, encoding, _INLINE_BYTES, _INLINE_SECONDS)
        except TooLarge:
            return None

    async def _beside(self, work: Callable[[], Decoded], sender: str) -> Decoded:
        """Decode in a thread; a sender has half of the threads at most."""
        await self._decoding.take(sender)
        loop = asyncio.get_running_loop()
        leave = functools.partial(self._decoding.give_back, sender)
        try:
            future = self._decoders.submit(work)
        except RuntimeError:
            leave()
            raise RequestRefused(
                "shutting_down", "the collector is stopping", retry_after=1.0
            ) from None

        def left(_: Future[Decoded]) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nothing waits for a slot
                loop.call_soon_threadsafe(leave)

        # Not released when this request is over: the thread goes on after its sender has
        # disconnected.
        future.add_done_callback(left)
        return await asyncio.wrap_future(future)

    async def _keep(self, decoded: Decoded, signal: Signal, transport: str) -> None:
        """Wait until the request is durable, and count it."""
        metrics = self.metrics[signal]
        if not decoded.items:
            _count(metrics, decoded, transport, duplicate=False)
            return
        kept = self._spools[signal].append(decoded.payload, decoded.items)

        def count(durable: Future[None]) -> None:
            if durable.exception() is None:
                _count(metrics, decoded, transport, duplicate=kept.duplicate)

        try:
            await asyncio.wrap_future(kept.durable)
        except asyncio.CancelledError:
            # The sender has disconnected, but the request is being kept all the same.
            kept.durable.add_done_callback(count)
            raise
        count(kept.durable)

    def stop_reading(self) -> None:
        """Refuse the requests whose bodies are still arriving; their senders send them again."""
        self._memory.close(
            RequestRefused("shutting_down", "the collector is stopping", retry_after=1.0)
        )

    def close(self) -> None:
        """Stop the decoders without waiting for their work, whose answers nobody awaits."""
        self._decoders.shutdown(wait=False, cancel_futures=True)


def _count(metrics: CollectorMetrics, decoded: Decoded, transport: str, *, duplicate: bool) -> None:
    for reason, number in decoded.rejected.items():
        metrics.rejected_spans.labels(reason).inc(number)
    if duplicate:
        metrics.duplicates.labels(transport).inc()
        return
    metrics.accepted.labels(transport).inc()
    metrics.accepted_spans.inc(decoded.items)
    metrics.late_spans.inc(decoded.late)
    for kind, number in decoded.mended.items():
        metrics.mended_spans.labels(kind).inc(number)
    metrics.accepted_bytes.labels(transport).inc(len(decoded.payload))
