"""A recorded run of the example program on LangGraph answers the program itself."""

from __future__ import annotations

import sys

import pytest

agents = pytest.importorskip("langchain.agents", reason="needs LangChain 1")
if not hasattr(agents, "create_agent"):
    pytest.skip("needs LangChain 1", allow_module_level=True)
pytest.importorskip("langgraph_supervisor")
pytest.importorskip("langchain_openai")

from pathlib import Path

from replays import EXAMPLES, parents, record

from mast_trace_lab.program.setup import Setup
from mast_trace_lab.replay import replay

pytestmark = pytest.mark.framework("langgraph")

BRANCHES = Path(__file__).parent / "parallel_branches.py"


@pytest.mark.parametrize(
    ("recorded_way", "replayed_way"),
    [("threads", "threads"), ("threads", "streamed"), ("asyncio", "async-streamed")],
)
def test_parallel_branches_with_equal_requests_are_identical(
    recorded_way: str, replayed_way: str, tmp_path: Path
) -> None:
    """Each branch gets the answer that it got before, in threads and tasks, streamed or not."""
    recorded = record(BRANCHES, recorded_way, folder=tmp_path)
    assert len({call.branch for call in recorded.invocations if call.kind == "model"}) == 7
    parent = parents("langgraph.graph", "langchain_openai")
    done = replay(recorded, Setup((sys.executable, str(BRANCHES), replayed_way), parent=parent))
    assert (done.status, done.text) == ("identical", "")


def test_parameters_beneath_a_framework_are_recorded(tmp_path: Path) -> None:
    """The client under LangChain notes the parameters on the span that LangGraph's recorder made."""
    recorded = record(EXAMPLES / "langgraph_team.py", "verified", folder=tmp_path)
    calls = [call for call in recorded.invocations if call.kind == "model"]
    noted = [{each.partition("=")[0] for each in call.parameters} for call in calls]
    assert len(noted) > 3
    assert all("tools" in names for names in noted)
