"""Those that are compared, each set up as its documentation says, all sending to one sink."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_EXPORTER = "opentelemetry-exporter-otlp-proto-http"
REQUIREMENTS: dict[str, tuple[str, ...]] = {
    "mast-trace": (),
    "openinference": ("openinference-instrumentation-langchain==0.1.80", _EXPORTER),
    "openllmetry": ("opentelemetry-instrumentation-langchain==0.62.4", _EXPORTER),
    "openlit": ("openlit==1.45.0",),
}
"""What each needs beside the program."""


def _mast_trace(sink: str) -> Callable[[], Any]:
    import mast_trace

    mast_trace.instrument(endpoint=sink)
    return mast_trace.flush


def _openinference(sink: str) -> Callable[[], Any]:
    from openinference.instrumentation.langchain import LangChainInstrumentor

    provider = _provider(sink)
    LangChainInstrumentor().instrument(tracer_provider=provider)
    flush: Callable[[], Any] = provider.force_flush
    return flush


def _openllmetry(sink: str) -> Callable[[], Any]:
    from opentelemetry.instrumentation.langchain import LangchainInstrumentor

    provider = _provider(sink)
    LangchainInstrumentor().instrument(tracer_provider=provider)
    flush: Callable[[], Any] = provider.force_flush
    return flush


def _openlit(sink: str) -> Callable[[], Any]:
    import openlit
    from opentelemetry import trace

    # Prices from a file: it would ask the internet for them.
    prices = Path(tempfile.mkdtemp()) / "prices.json"
    prices.write_text('{"chat": {}}')
    openlit.init(otlp_endpoint=sink, disable_metrics=True, pricing_json=str(prices))
    provider: Any = trace.get_tracer_provider()
    flush: Callable[[], Any] = provider.force_flush
    return flush


def _provider(sink: str) -> Any:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    os.environ.setdefault("TRACELOOP_TRACE_CONTENT", "true")
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{sink}/v1/traces")))
    return provider


def turn_on(name: str, sink: str) -> Callable[[], Any]:
    """Instrument this process; return what sends everything that is left.

    Args:
        name: of the instrumentation; ``none`` for nothing at all.
        sink: address of a server that takes OTLP.
    """
    if name == "none":
        return lambda: None
    known = {
        "mast-trace": _mast_trace,
        "openinference": _openinference,
        "openllmetry": _openllmetry,
        "openlit": _openlit,
    }
    return known[name](sink)
