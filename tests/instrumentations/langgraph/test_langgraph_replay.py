"""A recorded run of the example program on LangGraph answers the program itself."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

agents = pytest.importorskip("langchain.agents", reason="needs LangChain 1")
if not hasattr(agents, "create_agent"):
    pytest.skip("needs LangChain 1", allow_module_level=True)
pytest.importorskip("langgraph_supervisor")
pytest.importorskip("langchain_openai")

from replays import EXAMPLES, check_replay

from mast_trace_judge.replay import replay

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.framework("langgraph")


@pytest.mark.parametrize("script", ["verified", "repeated-call", "unverified"])
def test_the_example_is_identical(script: str, tmp_path: Path) -> None:
    """The replay is identical, without calls of a model or a tool."""
    check_replay(EXAMPLES / "langgraph_team.py", script, folder=tmp_path)


def test_a_replay_is_a_record_in_its_turn(tmp_path: Path) -> None:
    """A replay of a replay is identical, too."""
    program = EXAMPLES / "langgraph_team.py"
    done = check_replay(program, "verified", folder=tmp_path)
    assert done.run is not None
    again = replay(done.run, [sys.executable, str(program), "verified"])
    assert (again.status, again.text) == ("identical", "")
