"""LangGraph against the scripted server."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from recorded_spans import recorded_by
from scripted_llm import ScriptedLLM

pytest.importorskip("langgraph.graph", reason="needs LangGraph")
pytest.importorskip("langchain_openai", reason="needs langchain-openai")

from langchain_openai import ChatOpenAI

from mast_trace_instrumentations.langgraph import LangGraphInstrumentor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

recorded = recorded_by(LangGraphInstrumentor)


class Models:
    """Makes chat models that answer from a script; ``server`` is the last one's."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self.server: ScriptedLLM

    def __call__(self, script: Callable[[dict[str, Any]], Any], **options: Any) -> ChatOpenAI:
        """Serve ``script`` and return a model that asks it."""
        self.server = self._stack.enter_context(ScriptedLLM(script))
        settings = {"model": "scripted", "api_key": "scripted", "max_retries": 0, **options}
        return ChatOpenAI(base_url=self.server.url, **settings)


@pytest.fixture
def models() -> Iterator[Models]:
    """Scripted models."""
    with ExitStack() as stack:
        yield Models(stack)
