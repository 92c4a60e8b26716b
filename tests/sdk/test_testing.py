"""The public pytest plugin, used as a user uses it."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import mast_trace
from mast_trace._session import current_session
from mast_trace.testing import capture_spans

if TYPE_CHECKING:
    from mast_trace.testing import CapturedSpans

pytest_plugins = ["pytester"]


def test_holds_the_spans_of_the_test(captured_spans: CapturedSpans) -> None:
    """By operation, as a tree, as a trajectory; and forgets them on request."""
    with mast_trace.run("r"), mast_trace.agent("a"):
        mast_trace.message("a", "b", "hello")
    assert [span.name for span in captured_spans.named("invoke_agent")] == ["invoke_agent a"]
    assert captured_spans.tree() == "invoke_workflow r\n  invoke_agent a\n    send_message a"
    assert captured_spans.trajectory().steps[0].text == "hello"
    captured_spans.clear()
    assert captured_spans.spans == []


def test_a_single_trajectory_is_asked_for_by_that_name(captured_spans: CapturedSpans) -> None:
    """With two runs, or none, the question is wrong and says why."""
    with pytest.raises(AssertionError, match="0 runs"):
        captured_spans.trajectory()
    for name in ("first", "second"):
        with mast_trace.run(name):
            pass
    with pytest.raises(AssertionError, match=r"2 runs(.|\n)*second"):
        captured_spans.trajectory()
    assert [each.name for each in captured_spans.trajectories()] == ["first", "second"]


@pytest.mark.mast_trace(frameworks=[], capture_content=False)
def test_the_marker_takes_the_arguments_of_instrument(captured_spans: CapturedSpans) -> None:
    """The selected frameworks, and the capture of contents."""
    mast_trace.message("a", "b", "hello")
    assert captured_spans.report.active == ()
    assert "hello" not in str(dict(captured_spans.spans[0].attributes or {}))


def test_instrumentation_that_is_on_pauses_and_goes_on() -> None:
    """A test suite may instrument itself for its own traces."""
    memory = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(memory))
    mast_trace.instrument(frameworks=[], tracer_provider=provider)
    with capture_spans(frameworks=[]) as captured:
        mast_trace.message("inside", "b", "c")
    mast_trace.message("outside", "b", "c")
    assert [span.name for span in captured.spans] == ["send_message inside"]
    assert [span.name for span in memory.get_finished_spans()] == ["send_message outside"]


def test_nothing_stays_on_after_an_error() -> None:
    """The block's own, or a framework that cannot be had."""
    with pytest.raises(ZeroDivisionError), capture_spans(frameworks=[]):
        _ = 1 / 0
    with pytest.raises(mast_trace.exceptions.ConfigurationError), capture_spans(frameworks=["no"]):
        pass
    assert current_session() is None


def test_works_in_a_suite_that_knows_nothing_of_it(pytester: pytest.Pytester) -> None:
    """Installed is enough: no conftest, strict markers, a failing test shows the tree."""
    pytester.makepyfile(
        """
        import mast_trace
        import pytest

        @pytest.mark.mast_trace(frameworks=[])
        def test_agents(captured_spans):
            with mast_trace.run("outer"):
                mast_trace.message("a", "b", "hello")
            assert captured_spans.tree() == "invoke_workflow outer\\n  send_message a"
        """
    )
    result = pytester.runpytest_subprocess("--strict-markers", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=1)


def test_loading_the_plugins_imports_nothing_else() -> None:
    """Pytest loads them in every project that has mast-trace installed."""
    code = (
        "import sys, mast_trace.testing, mast_trace_judge.testing as judge\n"
        "print(*sorted(name for name in sys.modules if name.startswith('mast_trace')))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.split() == [
        *("mast_trace", "mast_trace.testing", "mast_trace_judge", "mast_trace_judge.testing")
    ]
