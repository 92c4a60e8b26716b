"""The lower bound of the cost of recording: the spans of a run, made by the bare OpenTelemetry SDK.

A run is recorded once by mast-trace. After that, each run goes without any instrumentation, and the same
spans are made: their names, parents, kinds, attributes, events and status, each set at once, through
OpenTelemetry's batch processor and its exporter over HTTP. Only the code that decides on the recorded
data and renders it as text is left out.

The floor makes all spans of a run in one go, after it. The **floor in place** makes them where the run has
come to: at each request to a model, those that had begun or ended by then. Between a program's own
steps the processor's caches hold the program, and the same code may take longer than in one go.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from mast_trace import semconv

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.trace import Span, Tracer

SEEN_BEFORE = 2
"""Runs before the one that is recorded: the first ones are not like the others."""


def floor(
    prepare: Callable[[], Callable[[], Any]], sink: str, *, in_place: bool = False
) -> tuple[Callable[[], None], Callable[[], Any]]:
    """Return two functions: one runs a program and makes its spans, one sends all that is left.

    Args:
        prepare: builds the program; returns a function that runs it once.
        sink: address of a server that takes OTLP.
        in_place: make the spans while the program runs.
    """
    spans = recorded(prepare)
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{sink}/v1/traces")))
    replay = Replay(spans, provider.get_tracer("floor"))
    if in_place:
        at_each_request(replay.advance)
    run = prepare()

    def run_and_replay() -> None:
        run()
        replay.finish()

    return run_and_replay, provider.force_flush


def recorded(prepare: Callable[[], Callable[[], Any]]) -> list[ReadableSpan]:
    """Return the spans that mast-trace makes of one run; it is off again afterwards."""
    import mast_trace

    kept = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    mast_trace.instrument(tracer_provider=provider)
    try:
        run = prepare()
        for _ in range(SEEN_BEFORE):
            run()
        kept.clear()
        run()
        return list(kept.get_finished_spans())
    finally:
        mast_trace.uninstrument()


def at_each_request(do: Callable[[], None]) -> None:
    """Have ``do`` called before each request that OpenAI's client sends, as all the programs do."""
    from openai import _base_client

    # The library for HTTP that it uses, which is another one since its version 3.
    http = getattr(_base_client, "httpx2", None) or _base_client.httpx
    client, asynchronous = http.Client, http.AsyncClient
    send, send_async = client.send, asynchronous.send

    def sending(*args: Any, **kwargs: Any) -> Any:
        do()
        return send(*args, **kwargs)

    async def sending_async(*args: Any, **kwargs: Any) -> Any:
        do()
        return await send_async(*args, **kwargs)

    client.send, asynchronous.send = sending, sending_async


class Replay:
    """Makes the spans of a run once more, run after run, begun and ended in their order."""

    def __init__(self, spans: Sequence[ReadableSpan], tracer: Tracer) -> None:
        begun = [(span.start_time or 0, 0, number) for number, span in enumerate(spans)]
        ended = [(span.end_time or 0, 1, number) for number, span in enumerate(spans)]
        self._spans = spans
        self._events = [(end == 1, number) for _, end, number in sorted(begun + ended)]
        self._by_id = {span.context.span_id: n for n, span in enumerate(spans) if span.context}
        self._tracer = tracer
        self._made: dict[int, Span] = {}
        self._next = 0
        self._lock = threading.Lock()

    def advance(self) -> None:
        """Make what had happened by the time at which the next request was sent."""
        with self._lock:
            while self._next < len(self._events):
                end, number = self._events[self._next]
                self._make(end, number)
                attributes = self._spans[number].attributes or {}
                if not end and attributes.get(semconv.OPERATION_NAME) == semconv.CHAT:
                    return

    def finish(self) -> None:
        """Make what is left of the run, and begin anew."""
        with self._lock:
            while self._next < len(self._events):
                self._make(*self._events[self._next])
            self._next = 0
            self._made.clear()

    def _make(self, end: bool, number: int) -> None:
        self._next += 1
        if end:
            self._made[number].end()
            return
        span = self._spans[number]
        above = self._made.get(self._by_id.get(span.parent.span_id, -1)) if span.parent else None
        context = trace.set_span_in_context(above, Context()) if above else Context()
        again = self._tracer.start_span(
            span.name, context=context, kind=span.kind, attributes=span.attributes
        )
        for event in span.events:
            again.add_event(event.name, event.attributes)
        again.set_status(span.status)
        self._made[number] = again
