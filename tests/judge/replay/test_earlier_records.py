"""Runs that the previous version has recorded are replayed by the programs that made them.

The files in ``recorded/`` hold spans as version 0.1.0 wrote them, before branches were recorded. Those of frameworks
that need an environment of their own are replayed by the tests of their instrumentations.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from replays import EXAMPLES, NOWHERE, check_earlier, earlier_run

from mast_trace_lab.program.setup import Setup
from mast_trace_lab.replay import replay

pytestmark = pytest.mark.end_to_end

SHOP = Path(__file__).parent / "shop.py"
BRANCHES = Path(__file__).parents[2] / "instrumentations" / "langgraph" / "parallel_branches.py"


@pytest.mark.parametrize(
    ("name", "module", "command"),
    [
        ("langgraph-team", "langgraph_supervisor", [EXAMPLES / "langgraph_team.py", "verified"]),
        ("ag2", "ag2", [EXAMPLES / "ag2_group_chat.py"]),
        ("by-hand", "openai", [SHOP]),
        ("branches-threads", "langchain_openai", [BRANCHES, "threads"]),
        ("branches-asyncio", "langchain_openai", [BRANCHES, "asyncio"]),
    ],
)
def test_an_earlier_record_is_replayed(
    name: str, module: str, command: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(module)
    monkeypatch.setenv("OPENAI_BASE_URL", NOWHERE)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    done = replay(earlier_run(name), Setup((sys.executable, *map(str, command))))
    assert (done.status, done.text) == ("identical", "")


@pytest.mark.parametrize(
    ("name", "module", "program", "arguments"),
    [
        ("langgraph-team", "langgraph_supervisor", EXAMPLES / "langgraph_team.py", ["verified"]),
        ("ag2", "ag2", EXAMPLES / "ag2_group_chat.py", []),
        ("by-hand", "openai", SHOP, []),
    ],
)
def test_an_earlier_record_is_replayed_in_process(
    name: str, module: str, program: Path, arguments: list[str], tmp_path: Path
) -> None:
    pytest.importorskip(module)
    check_earlier(name, program, *arguments, folder=tmp_path)
