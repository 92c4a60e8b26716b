"""A pytest plugin that writes each test's outcome, with mast-trace on where requested.

It runs inside of a framework's own test suite. ``TRANSPARENCY_RESULTS`` names the file that it writes,
``TRANSPARENCY_TRACED=1`` turns recording on.
"""

from __future__ import annotations

import gc
import json
import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from opentelemetry.sdk.trace import SpanProcessor, TracerProvider

import mast_trace

if TYPE_CHECKING:
    import pytest
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import ReadableSpan, Span

TRACED = os.environ.get("TRANSPARENCY_TRACED") == "1"


class Counting(SpanProcessor):
    """Counts spans, and remembers those that have begun and not ended."""

    def __init__(self) -> None:
        self.begun = 0
        self.open: dict[int, tuple[str, str]] = {}

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        del parent_context
        self.begun += 1
        test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
        self.open[span.get_span_context().span_id] = (span.name, test)

    def on_end(self, span: ReadableSpan) -> None:
        self.open.pop(span.get_span_context().span_id, None)


class Watching:
    """The plugin.

    Args:
        results: the file that is written.
    """

    def __init__(self, results: Path) -> None:
        self.results = results
        self.outcomes: dict[str, str] = {}
        self.spans = Counting()
        self.active: tuple[str, ...] = ()
        if TRACED:
            provider = TracerProvider()
            provider.add_span_processor(self.spans)
            self.active = mast_trace.instrument(tracer_provider=provider).active

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the worst of setup, call and teardown."""
        if report.failed:
            self.outcomes[report.nodeid] = "failed" if report.when == "call" else "error"
        elif report.when == "call" or report.skipped:
            expected = "x" if hasattr(report, "wasxfail") else ""
            self.outcomes.setdefault(report.nodeid, expected + report.outcome)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Count a file that cannot be imported, or is skipped as a whole, as a test."""
        if not report.passed:
            self.outcomes[report.nodeid] = "error" if report.failed else "skipped"

    def pytest_sessionfinish(self) -> None:
        """Write the outcomes; open spans are counted after a collection of garbage."""
        gc.collect()
        never = Counter(name for name, _ in self.spans.open.values())
        found = {
            "outcomes": self.outcomes,
            "active": self.active,
            "spans": self.spans.begun,
            "never_ended": dict(never.most_common()),
            "never_ended_in": sorted({test for _, test in self.spans.open.values()}),
        }
        self.results.write_text(json.dumps(found, indent=1), "utf-8")


def pytest_configure(config: pytest.Config) -> None:
    """Enter the plugin before the suite's own files are imported."""
    named = os.environ.get("TRANSPARENCY_RESULTS")
    if named:
        config.pluginmanager.register(Watching(Path(named)), "transparency")
