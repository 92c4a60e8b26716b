"""Runs that the previous version has recorded are replayed by the programs that made them.

The files in ``recorded/`` hold spans as version 0.1.0 wrote them, before branches were recorded.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from replays import EXAMPLES

from mast_trace.trajectory import SpanRecord, read_trajectory
from mast_trace_judge.replay import replay

pytestmark = pytest.mark.end_to_end

RECORDED = Path(__file__).parent / "recorded"
BRANCHES = Path(__file__).parents[2] / "instrumentations" / "langgraph" / "parallel_branches.py"


@pytest.mark.parametrize(
    ("name", "module", "command"),
    [
        ("langgraph-team", "langgraph_supervisor", [EXAMPLES / "langgraph_team.py", "verified"]),
        ("ag2", "ag2", [EXAMPLES / "ag2_group_chat.py"]),
        ("branches-threads", "langchain_openai", [BRANCHES, "threads"]),
        ("branches-asyncio", "langchain_openai", [BRANCHES, "asyncio"]),
    ],
)
def test_an_earlier_record_is_replayed(name: str, module: str, command: list[object]) -> None:
    """The replay is identical; branches are told apart by the order in which they began."""
    pytest.importorskip(module)
    lines = (RECORDED / f"{name}.jsonl").read_text("utf-8").splitlines()
    recorded = read_trajectory([SpanRecord(**json.loads(line)) for line in lines])
    done = replay(recorded, [sys.executable, *map(str, command)])
    assert (done.status, done.text) == ("identical", "")
