"""Ours equals the truth in every cell of the coverage benchmark's table for LangGraph."""

from __future__ import annotations

import pytest

agents = pytest.importorskip("langchain.agents", reason="needs LangChain 1")
if not hasattr(agents, "create_agent"):
    pytest.skip("needs LangChain 1", allow_module_level=True)
pytest.importorskip("langgraph_supervisor")
pytest.importorskip("langchain_openai")

from coverage_programs import truth_and_record

pytestmark = pytest.mark.framework("langgraph")


def test_the_record_is_the_truth(monkeypatch):
    """A team with parallel, failing and made-up tool calls, three runs, two at the same time."""
    truth, record = truth_and_record("langgraph", monkeypatch)
    assert record == truth
