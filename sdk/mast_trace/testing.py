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
    from pathlib import Path

    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    from mast_trace._report import InstrumentReport
    from mast_trace.replay.player import Player, Report
    from mast_trace.trajectory import SpanRecord, Trajectory


class CapturedSpans:
    """The spans that have ended since the test began.

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
        """Forget the spans captured so far."""
        self._exporter.clear()


class ReplayedRun:
    """A run of a program whose model and tool calls are answered from a recorded run.

    Attributes:
        recorded: the recorded run; the last one of those that continue each other.
        captured: the spans of the replayed run.
    """

    def __init__(
        self, recorded: Sequence[Trajectory], captured: CapturedSpans, player: Player
    ) -> None:
        self.recorded = recorded[-1]
        self._runs = recorded
        self.captured = captured
        self._player = player

    @property
    def report(self) -> Report:
        """Counts of the calls that were answered so far, and the first divergence."""
        return self._player.report()

    def assert_identical(self) -> None:
        """Assert that the run is identical to the recorded one.

        Raises:
            AssertionError: the run has diverged, has left out recorded calls, or has a step that
                differs.
        """
        from mast_trace.replay.comparison import first_difference

        report = self.report
        if report.divergence is not None:
            raise AssertionError(f"The replay has diverged. {report.divergence.text}")
        if report.waiting_exchanges or report.waiting_executions:
            raise AssertionError(
                f"{report.waiting_exchanges} model calls and {report.waiting_executions} tool calls "
                "of the recorded run were not made again."
            )
        if report.other_parameters:
            raise AssertionError(report.other_parameters)
        runs = self.captured.trajectories()
        if len(runs) != len(self._runs):
            tree = self.captured.tree()
            raise AssertionError(f"{len(runs)} runs were recorded, not {len(self._runs)}:\n{tree}")
        for before, after in zip(self._runs, runs, strict=True):
            difference = first_difference(before, after)
            if difference is not None:
                raise AssertionError(f"Step {difference.index}: {difference.text}.")


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


@contextmanager
def replayed(
    run: Trajectory | str | Path, *, live_tools: Sequence[str] = (), **options: Any
) -> Iterator[ReplayedRun]:
    """Answer the model calls and tool calls of a code block from a recorded run.

    ::

        with replayed("tests/runs/refund.jsonl") as replay:
            my_team.main()
        replay.assert_identical()

    The rest of the program runs for real. Import the agents' framework and your tools as the program
    does; the patches are removed afterwards.

    Args:
        run: a trajectory, or a file of `mast-trace export` or `mast-trace cases add` with one run in it,
            or with an interrupted run and those that continue it; also compressed by gzip.
        live_tools: names of tools that are executed if the run has no result of the
            call; ``*`` for all.
        options: further arguments of `mast_trace.instrument`.

    Raises:
        ValueError: the file holds no run, or several.
        NotReplayable: the run lacks data that a replay needs.
    """
    from mast_trace._session import current_session, paused
    from mast_trace.replay.lessons import giving
    from mast_trace.replay.player import Player
    from mast_trace.replay.program import interception
    from mast_trace.replay.recording import tape_of
    from mast_trace.replay.run_files import runs_of
    from mast_trace.trajectory import Trajectory

    recorded = [run] if isinstance(run, Trajectory) else runs_of(run)
    tape = tape_of(recorded[-1], *recorded[:-1], live_tools=live_tools)
    player = Player(tape, live_tools)
    patches = interception(player)
    with paused(), giving(tape.lessons):
        patches.start()  # first, so that the spans of the instrumentations enclose the answers
        try:
            with capture_spans(**options) as captured:
                provider = getattr(current_session(), "provider", None)
                if provider is not None:
                    provider.add_span_processor(player.branches)
                yield ReplayedRun(recorded, captured, player)
        finally:
            patches.stop()


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
