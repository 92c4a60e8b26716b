"""AG2 classic against the scripted server."""

from __future__ import annotations

import contextlib
import io
from typing import TYPE_CHECKING

import pytest
from client_peers import elsewhere
from recorded_spans import recorded_by

from mast_trace_instrumentations.autogen import AutogenInstrumentor

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["elsewhere"]

spans = recorded_by(AutogenInstrumentor)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """AutoGen prints whole conversations."""
    with contextlib.redirect_stdout(io.StringIO()):
        yield
