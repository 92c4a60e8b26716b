"""The OpenAI client against the scripted server, inside of a hand-made run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from recorded_spans import recorded_by
from scripted_llm import ScriptedLLM

pytest.importorskip("openai", reason="needs the openai client")

from openai_ways import script

from mast_trace_instrumentations.openai import OpenAIInstrumentor

if TYPE_CHECKING:
    from collections.abc import Iterator

recorded = recorded_by(OpenAIInstrumentor)


@pytest.fixture
def server() -> Iterator[ScriptedLLM]:
    """The scripted server."""
    with ScriptedLLM(script) as serving:
        yield serving


@pytest.fixture
def options(server: ScriptedLLM) -> dict[str, Any]:
    """Return a client of the scripted server."""
    return {"base_url": server.url, "api_key": "scripted", "max_retries": 0}
