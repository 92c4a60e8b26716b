"""A pytest fixture that holds the spans of a test in memory.

Installed with mast-trace as a pytest plugin::

    def test_the_team_uses_its_tools(captured_spans):
        build_graph().invoke({"messages": [("user", "What do they owe us?")]})

        assert len(captured_spans.named("execute_tool")) == 2
        assert captured_spans.trajectory().agents == ("supervisor", "analyst")

All installed frameworks are recorded during the test and put back afterwards. The marker
``mast_trace`` takes the arguments of `mast_trace.instrument`::

    @pytest.mark.mast_trace(frameworks=["langgraph"], capture_content="full")

pytest loads this module in every project that has mast-trace, so it imports nothing else until a test
asks for something.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from mast_trace.captured_spans import CapturedSpans, capture_spans
    from mast_trace.replayed_run import ReplayedRun, replayed

__all__ = ["CapturedSpans", "ReplayedRun", "capture_spans", "captured_spans", "replayed"]

_HOMES = {
    "CapturedSpans": "mast_trace.captured_spans",
    "ReplayedRun": "mast_trace.replayed_run",
    "capture_spans": "mast_trace.captured_spans",
    "replayed": "mast_trace.replayed_run",
}


def __getattr__(name: str) -> Any:
    """Import a name's module at its first use."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line(
        "markers", "mast_trace(**arguments): how captured_spans calls mast_trace.instrument()"
    )


@pytest.fixture
def captured_spans(request: pytest.FixtureRequest) -> Iterator[CapturedSpans]:
    """Record agent frameworks during the test and hold the spans in memory."""
    from mast_trace.captured_spans import capture_spans

    marker = request.node.get_closest_marker("mast_trace")
    with capture_spans(**(marker.kwargs if marker else {})) as captured:
        yield captured
