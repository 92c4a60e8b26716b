"""Switches on the compared instrumentation, ours or a peer's, with one sink."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peers import peer

if TYPE_CHECKING:
    from collections.abc import Callable

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

        mast_trace.instrument(endpoint=sink)
        return mast_trace.flush
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{sink}/v1/traces")))
    peer(framework, name).switch_on(provider)
    flush: Callable[[], Any] = provider.force_flush
    return flush
