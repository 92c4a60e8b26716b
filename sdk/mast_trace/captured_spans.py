"""Spans that are held in memory while a block of code runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from mast_trace import semconv
from mast_trace.trajectory import SpanRecord, Trajectory, read_trajectory

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    from mast_trace._frameworks import InstrumentReport


class CapturedSpans:
    """The spans that have ended since the block began.

    Attributes:
        report: the status of each framework.
    """

    def __init__(self, exporter: InMemorySpanExporter, report: InstrumentReport) -> None:
        self._exporter = exporter
        self.report = report

    @property
    def spans(self) -> list[ReadableSpan]:
        """All of them, in the order in which they began."""
        return sorted(self._exporter.get_finished_spans(), key=lambda span: span.start_time or 0)

    def named(self, operation: str) -> list[ReadableSpan]:
        """Return those whose ``gen_ai.operation.name`` is ``operation``, such as ``execute_tool``."""
        return [
            span
            for span in self.spans
            if (span.attributes or {}).get("gen_ai.operation.name") == operation
        ]

    @property
    def records(self) -> list[SpanRecord]:
        """All of them, as a span store would return them."""
        from mast_trace.trajectory.from_sdk import span_record

        return [span_record(span) for span in self.spans]

    def trajectories(self) -> list[Trajectory]:
        """Return every run, in the order in which they began; single calls outside of runs are left out."""
        traces: dict[str, list[SpanRecord]] = {}
        for record in self.records:
            if record.attributes.get(semconv.RUN_KIND) == semconv.CALL_KIND:
                continue
            traces.setdefault(record.trace_id, []).append(record)
        return [read_trajectory(spans) for spans in traces.values()]

    def trajectory(self) -> Trajectory:
        """Return the only run.

        Raises:
            AssertionError: there are more runs, or none.
        """
        found = self.trajectories()
        if len(found) != 1:
            raise AssertionError(f"{len(found)} runs were recorded, not one:\n{self.tree()}")
        return found[0]

    def tree(self) -> str:
        """Return the names of the spans, indented under their parents: for reading and asserting."""
        spans = self.spans
        known = {span.context.span_id for span in spans}
        children: dict[int, list[ReadableSpan]] = {}
        for span in spans:
            parent = span.parent.span_id if span.parent else 0
            children.setdefault(parent if parent in known else 0, []).append(span)
        return "\n".join(_lines(children, 0, 0))

    def clear(self) -> None:
        """Forget the spans captured so far."""
        self._exporter.clear()


@contextmanager
def capture_spans(
    frameworks: Sequence[str] | None = None, **options: Any
) -> Iterator[CapturedSpans]:
    """Hold spans in memory for a block of code; instrumentation that is on already pauses.

    Args:
        frameworks: those to record; all that are installed if absent.
        options: further arguments of `mast_trace.instrument`.
    """
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    from mast_trace._session import instrument, paused
    from mast_trace.delivery.provider import make_provider

    exporter = InMemorySpanExporter()
    provider = make_provider(options.pop("service_name", ""), SimpleSpanProcessor(exporter))
    with paused():
        report = instrument(frameworks=frameworks, tracer_provider=provider, **options)
        yield CapturedSpans(exporter, report)


def _lines(children: dict[int, list[ReadableSpan]], parent: int, depth: int) -> Iterator[str]:
    for span in children.get(parent, []):
        yield "  " * depth + span.name
        yield from _lines(children, span.context.span_id, depth + 1)
