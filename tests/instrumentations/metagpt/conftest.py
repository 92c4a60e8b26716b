"""MetaGPT, recorded into memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from recorded_spans import RecordedSpans

from mast_trace_instrumentations.metagpt import MetaGPTInstrumentor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from metagpt_programs import Model


@pytest.fixture(scope="session")
def server() -> Iterator[Model]:
    """The one model of the session."""
    from metagpt_programs import model

    with model as started:
        yield started


@pytest.fixture
def recorded(server: Model) -> Iterator[RecordedSpans]:
    """The spans of the test's teams."""
    spans = RecordedSpans.of(MetaGPTInstrumentor())
    yield spans
    spans.instrumentor.uninstrument()
