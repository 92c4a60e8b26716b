"""Values that have no name are shown as they are."""

from __future__ import annotations

from typing import Any, TypedDict

import pytest
from langgraph_programs import (
    linear,
)
from langgraph_routes import Route

from mast_trace import semconv

pytestmark = pytest.mark.framework("langgraph")


class Loose(TypedDict, total=False):
    """A state without messages."""

    plan: dict[str, Any]


class TestValuesWithoutNames:
    """Results of functions, questions of interrupts and results of tools are shown unchanged."""

    @pytest.mark.parametrize(
        ("value", "shown"),
        [
            ({"facts": ["a", "b"]}, '{"facts": ["a", "b"]}'),
            (["a", "b"], '["a", "b"]'),
            (7, "7"),
            ("plain", "plain"),
            (Route(next="b"), '{"next": "b", "reason": ""}'),
        ],
        ids=["mapping", "list", "number", "text", "model"],
    )
    def test_of_functions(self, recorded, value, shown):
        """`@task` and `@entrypoint`: no channel of LangGraph's is in the text."""
        from langgraph.func import entrypoint, task

        @task
        def find(_topic: str) -> Any:
            return value

        @entrypoint()
        def essay(topic: str) -> Any:
            return {"found": find(topic).result(), "n": 1}

        essay.invoke("cats")

        (_, _, found), (_, _, whole) = recorded.sent_messages()
        assert found == shown
        assert "__" not in whole
        assert whole.startswith('{"found": ')

    def test_of_tools(self, recorded):
        """A tool that a node calls itself returns a mapping."""
        from langchain_core.tools import tool

        @tool
        def stock(item: int) -> dict[str, int]:
            """Look a stock up."""
            return {"item": item, "pieces": 3}

        linear(Loose, clerk=lambda _state: {"plan": stock.invoke({"item": 7})}).invoke({"plan": {}})

        (call,) = recorded.named("execute_tool")
        assert call.attributes[semconv.TOOL_CALL_RESULT] == '{"item": 7, "pieces": 3}'
