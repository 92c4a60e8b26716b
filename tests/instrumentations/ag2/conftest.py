"""AG2 1.x against the scripted server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from recorded_spans import RecordedSpans

from mast_trace_instrumentations.ag2 import AG2Instrumentor

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def spans() -> Iterator[RecordedSpans]:
    """AG2 instrumented into memory."""
    recorded = RecordedSpans.of(AG2Instrumentor())
    yield recorded
    recorded.instrumentor.uninstrument()
