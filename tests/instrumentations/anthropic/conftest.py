"""The Anthropic client against a server that speaks its protocol, inside of a hand-made run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from recorded_spans import recorded_by
from scripted_protocols.server import ScriptedProvider

from mast_trace_instrumentations.anthropic import AnthropicInstrumentor

if TYPE_CHECKING:
    from collections.abc import Iterator

recorded = recorded_by(AnthropicInstrumentor)


@pytest.fixture
def server() -> Iterator[ScriptedProvider]:
    """The scripted server."""
    from anthropic_ways import Rich, script

    with ScriptedProvider(Rich(), script) as serving:
        yield serving


@pytest.fixture
def options(server: ScriptedProvider) -> dict[str, Any]:
    """Return a client of the scripted server."""
    return {"base_url": server.url, "api_key": "scripted", "max_retries": 0}
