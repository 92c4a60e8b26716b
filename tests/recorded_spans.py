"""A test's view of the spans that an instrumentation made."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from mast_trace import semconv
from mast_trace.content import ContentPolicy
from mast_trace.trajectory import SpanRecord, Trajectory, read_trajectory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mast_trace_instrumentations.base import Instrumentor


@dataclass
class RecordedSpans:
    """The finished spans of a test, by operation, by trace, and as trajectories."""

    exporter: InMemorySpanExporter
    provider: TracerProvider
    instrumentor: Instrumentor

    @classmethod
    def of(cls, instrumentor: Instrumentor, content: ContentPolicy | None = None) -> RecordedSpans:
        """Instrument a framework into memory."""
        exporter = InMemorySpanExporter()
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        instrumentor.instrument(tracer_provider=provider, content=content)
        return cls(exporter, provider, instrumentor)

    @property
    def all(self) -> list[ReadableSpan]:
        """Every span, by start time."""
        return sorted(self.exporter.get_finished_spans(), key=lambda span: span.start_time)

    def named(self, operation: str) -> list[ReadableSpan]:
        """The spans of one operation, by start time."""
        return [s for s in self.all if s.attributes.get(semconv.OPERATION_NAME) == operation]

    def counts(self) -> dict[str, int]:
        """Return the number of spans of each operation."""
        return dict(Counter(str(s.attributes.get(semconv.OPERATION_NAME)) for s in self.all))

    def traces(self) -> dict[int, list[ReadableSpan]]:
        """The spans of each trace."""
        found: dict[int, list[ReadableSpan]] = {}
        for span in self.all:
            found.setdefault(span.context.trace_id, []).append(span)
        return found

    def trajectories(self) -> list[Trajectory]:
        """One trajectory per trace, by start time."""
        return [read_trajectory(map(record, spans)) for spans in self.traces().values()]

    def trajectory(self) -> Trajectory:
        """The one run that the test has made."""
        (only,) = self.trajectories()
        return only

    def seen(self) -> tuple[Any, ...]:
        """Return a reader's view of the one run: steps, turns, calls of models, tokens, end."""
        run = self.trajectory()
        kinds = [invocation.kind for invocation in run.invocations]
        return (
            sorted((step.kind.value, step.agent, step.text) for step in run.steps),
            kinds.count("agent"),
            kinds.count("model"),
            run.input_tokens,
            run.termination_reason,
        )

    def sent_messages(self) -> list[tuple[str, tuple[str, ...], str]]:
        """Sender, recipients and text of every message, in order."""
        return [
            (
                str(s.attributes[semconv.MESSAGE_SENDER]),
                tuple(s.attributes[semconv.MESSAGE_RECIPIENTS]),
                str(s.attributes[semconv.MESSAGE_CONTENT]),
            )
            for s in self.named(semconv.SEND_MESSAGE)
        ]

    def parent(self, span: ReadableSpan) -> ReadableSpan | None:
        """The span around ``span``."""
        if span.parent is None:
            return None
        return next(s for s in self.all if s.context.span_id == span.parent.span_id)

    def check_shape(self, *, runs: int = 1) -> None:
        """Each run is one trace with one root, a workflow; no span has a parent that is missing."""
        traces = self.traces()
        assert len(traces) == runs
        for spans in traces.values():
            known = {span.context.span_id for span in spans}
            roots = [span for span in spans if span.parent is None]
            orphans = [s for s in spans if s.parent and s.parent.span_id not in known]
            assert [r.attributes[semconv.OPERATION_NAME] for r in roots] == ["invoke_workflow"]
            assert not orphans, [span.name for span in orphans]
            assert len({span.context.span_id for span in spans}) == len(spans)

    def tree(self) -> str:
        """The spans as an indented list, for failures of tests."""
        lines: list[str] = []

        def walk(parent: int | None, depth: int) -> None:
            for span in self.all:
                if (span.parent.span_id if span.parent else None) == parent:
                    lines.append("  " * depth + span.name + " !" * (not span.status.is_ok))
                    walk(span.context.span_id, depth + 1)

        walk(None, 0)
        return "\n".join(lines)


@contextmanager
def recording(instrumentor: Instrumentor, capture: bool | str = True) -> Iterator[RecordedSpans]:
    """The spans of a code block, with each text once, with all in full ("full"), or with none."""
    spans = RecordedSpans.of(instrumentor, ContentPolicy(capture=capture))
    try:
        yield spans
    finally:
        spans.instrumentor.uninstrument()


def recorded_by(instrumentor: type[Instrumentor]) -> Callable[[], Iterator[RecordedSpans]]:
    """Return a fixture: the spans that an instrumentation makes in a test."""

    @pytest.fixture
    def recorded() -> Iterator[RecordedSpans]:
        with recording(instrumentor()) as spans:
            yield spans

    return recorded


def record(span: ReadableSpan) -> SpanRecord:
    """Turn an exported span into what a store would give back."""
    attributes: dict[str, Any] = dict(span.attributes or {})
    return SpanRecord(
        trace_id=f"{span.context.trace_id:032x}",
        span_id=f"{span.context.span_id:016x}",
        parent_span_id=f"{span.parent.span_id:016x}" if span.parent else "",
        name=span.name,
        start=span.start_time or 0,
        end=span.end_time or 0,
        attributes=attributes,
        status=span.status.status_code.name.capitalize(),
        status_message=span.status.description or "",
    )
