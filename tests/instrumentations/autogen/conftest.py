"""AG2 classic against the scripted server."""

from __future__ import annotations

import contextlib
import io
from typing import TYPE_CHECKING

import pytest
from recorded_spans import RecordedSpans

from mast_trace_instrumentations.autogen import AutogenInstrumentor

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def spans() -> Iterator[RecordedSpans]:
    """AG2 classic instrumented into memory."""
    recorded = RecordedSpans.of(AutogenInstrumentor())
    yield recorded
    recorded.instrumentor.uninstrument()


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """AutoGen prints whole conversations."""
    with contextlib.redirect_stdout(io.StringIO()):
        yield
