"""Switches on the compared instrumentation, ours or a peer's, with one sink."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from peers import peer

if TYPE_CHECKING:
    from collections.abc import Callable

DELAY = "OTEL_BSP_SCHEDULE_DELAY"
"""Milliseconds that a span waits for others of its batch, for the peers' processor and for ours."""
REQUIREMENTS = ("opentelemetry-exporter-otlp-proto-http",)
"""Packages that peers need for exporting, beside their own."""


def turn_on(framework: str, name: str, sink: str) -> Callable[[], Any]:
    """Instrument this process; return a function that sends everything that is left.

    Args:
        framework: of the program.
        name: of the instrumentation; ``none`` for nothing at all.
        sink: address of a server that takes OTLP.
    """
    if name == "none":
        return lambda: None
    if name == "mast-trace":
        import mast_trace

        delay = os.environ.get(DELAY)
        if delay is None:
            mast_trace.instrument(endpoint=sink)
        else:
            mast_trace.instrument(tracer_provider=_patient(sink, int(delay) / 1000))
        return mast_trace.flush
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{sink}/v1/traces")))
    peer(framework, name).switch_on(provider)
    flush: Callable[[], Any] = provider.force_flush
    return flush


def _patient(sink: str, delay: float) -> Any:
    """Return mast-trace's own provider with another delay, in seconds: users cannot set it."""
    from mast_trace._settings import SDKSettings
    from mast_trace.delivery.encoding import DeliveryLimits
    from mast_trace.delivery.provider import make_provider
    from mast_trace.delivery.span_queue import SpanQueue
    from mast_trace.delivery.transport import open_transport

    settings = SDKSettings.resolve(endpoint=sink)
    limits = DeliveryLimits(delay=delay)
    return make_provider("", SpanQueue(sink, lambda: open_transport(settings), limits=limits))
