"""A pytest fixture that holds the spans of a test in memory.

Installed with mast-trace as a pytest plugin::

    def test_the_team_uses_its_tools(captured_spans):
        build_graph().invoke({"messages": [("user", "What do they owe us?")]})

        assert len(captured_spans.named("execute_tool")) == 2
        assert captured_spans.trajectory().agents == ("supervisor", "analyst")

All installed frameworks are recorded during the test and put back afterwards. The marker
``mast_trace`` takes the arguments of `mast_trace.instrument`::

    @pytest.mark.mast_trace(frameworks=["langgraph"], capture_content="full")
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from mast_trace.trajectory import read_trajectory

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    from mast_trace._report import InstrumentReport
    from mast_trace.trajectory import SpanRecord, Trajectory


class CapturedSpans:
    """The spans that have ended since the test began.

    Attributes:
        report: what is recorded.
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
        """All of them as a span store would return them."""
        from mast_trace.trajectory.from_sdk import span_record

        return [span_record(span) for span in self.spans]

    def trajectories(self) -> list[Trajectory]:
        """Return every run, in the order in which they began."""
        traces: dict[str, list[SpanRecord]] = {}
        for record in self.records:
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
        """Forget what was captured until now."""
        self._exporter.clear()


def _lines(children: dict[int, list[ReadableSpan]], parent: int, depth: int) -> Iterator[str]:
    for span in children.get(parent, []):
        yield "  " * depth + span.name
        yield from _lines(children, span.context.span_id, depth + 1)


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


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line(
        "markers", "mast_trace(**arguments): how captured_spans calls mast_trace.instrument()"
    )


@pytest.fixture
def captured_spans(request: pytest.FixtureRequest) -> Iterator[CapturedSpans]:
    """Record agent frameworks during the test and hold the spans in memory."""
    marker = request.node.get_closest_marker("mast_trace")
    with capture_spans(**(marker.kwargs if marker else {})) as captured:
        yield captured
