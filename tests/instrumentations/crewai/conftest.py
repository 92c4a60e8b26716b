"""CrewAI, recorded into memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from recorded_spans import RecordedSpans

from mast_trace_instrumentations.crewai import CrewAIInstrumentor

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def recorded() -> Iterator[RecordedSpans]:
    """The spans of the test's crews."""
    spans = RecordedSpans.of(CrewAIInstrumentor())
    yield spans
    spans.instrumentor.uninstrument()
