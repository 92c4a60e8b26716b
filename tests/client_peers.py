"""Other tools' instrumentations of model clients, and ours, at the same time."""

from __future__ import annotations

from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recorded_spans import RecordedSpans

ORDERS = ["ours first", "theirs first"]
Elsewhere = tuple[TracerProvider, InMemorySpanExporter]


def instrumentor(module: str, name: str) -> Any:
    """Make the instrumentor of a tool, or skip the test where it is not installed."""
    pytest.importorskip(module, reason="not installed here")
    return getattr(import_module(module), name)()


@contextmanager
def another_provider() -> Iterator[Elsewhere]:
    """A provider of theirs."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    yield provider, exporter
    provider.shutdown()


@pytest.fixture
def elsewhere() -> Iterator[Elsewhere]:
    """A provider of theirs."""
    with another_provider() as provider:
        yield provider


@contextmanager
def both(recorded: RecordedSpans, theirs: Any, provider: Any, order: str) -> Iterator[None]:
    """Record by both, instrumented in this order."""
    if order == "theirs first":
        recorded.instrumentor.uninstrument()
        theirs.instrument(tracer_provider=provider)
        recorded.instrumentor.instrument(tracer_provider=recorded.provider)
    else:
        theirs.instrument(tracer_provider=provider)
    try:
        yield
    finally:
        if order == "theirs first":
            recorded.instrumentor.uninstrument()
        theirs.uninstrument()


def check_counted_once(recorded: RecordedSpans, tokens: int) -> None:
    """The run is one trace, with one call of a model by the worker, and its tokens."""
    recorded.check_shape()
    run = recorded.trajectory()
    models = [invocation for invocation in run.invocations if invocation.kind == "model"]
    assert [model.agent for model in models] == ["worker"], recorded.tree()
    assert run.input_tokens == tokens
    assert len(run.steps) == 1
