"""The MCP server as an assistant starts it, and the functions that write."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import TYPE_CHECKING, Any

import pytest
from mcp import Client, StdioServerParameters
from scripted_llm import Call, Reply, ScriptedLLM
from test_mcp_server import ask, asked, inside
from two_projects import CANARY, OURS, RUN, SECOND, THEIR_RUN, store_ours, store_theirs

from mast_trace_collector.storage import Store, migrate
from mast_trace_collector.storage.runs import run_summary
from mast_trace_dashboards.mcp_server.server import server_on
from mast_trace_judge.store.labels import labels_of

if TYPE_CHECKING:
    from pathlib import Path

    from fixture_types import Capture, Patch


class TestWriting:
    """Labels and outcomes, where they are allowed."""

    def test_records_a_label_and_an_outcome(self, tmp_path: Path) -> None:
        with Store.open(f"chdb://{tmp_path}/own") as store:
            migrate(store)
            store_ours(store)
            server = server_on(store, writes=True)
            asked(server, "label_run", run=RUN, modes=["2.6"], decisive_step=1, note="seen")
            label = next(each for each in labels_of(store, RUN) if each.note == "seen")
            assert (label.modes, label.decisive_step, label.decisive_agent) == (
                ("2.6",),
                1,
                "writer",
            )
            assert (
                "no failure mode" in ask(server, "label_run", run=RUN, modes=["9"]).content[0].text
            )
            wrong = ask(server, "label_run", run=RUN, modes="2.6").content[0].text
            assert "`modes` must be a list, in which each item is a string (codes such" in wrong
            asked(server, "record_outcome", run=RUN, outcome="success", reason="checked")
            summary = run_summary(store, RUN)
            assert summary
            assert (summary.outcome, summary.outcome_reason) == ("success", "checked")


class TestStdio:
    """The command, as an assistant starts it."""

    def test_serves_one_project(self, tmp_path: Path) -> None:
        command = StdioServerParameters(
            command=sys.executable,
            args=["-m", "mast_trace_dashboards", "mcp", "--project", OURS],
            env={
                "MAST_TRACE_DATABASE_URL": f"chdb://{tmp_path}/clickhouse",
                "PYTHONPATH": ":".join(filter(None, sys.path)),
            },
        )
        with Store.open(f"chdb://{tmp_path}/clickhouse") as store:
            migrate(store)
            store_ours(store)
            store_theirs(store)

        async def talk() -> tuple[Any, Any]:
            async with Client(command) as client:
                listed = await client.call_tool("list_runs", {})
                return listed, await client.call_tool("get_run", {"run": THEIR_RUN})

        listed, theirs = asyncio.run(talk())
        assert {row["run"] for row in inside(listed)["runs"]} == {RUN, SECOND}
        assert theirs.is_error
        assert CANARY not in listed.content[0].text + theirs.content[0].text


class TestAgent:
    """An agent program of LangGraph, which is given the server's tools."""

    def test_finds_who_erred(self, tmp_path: Path, monkeypatch: Patch) -> None:
        investigator = pytest.importorskip("investigator", reason="needs LangGraph")
        monkeypatch.setenv("MAST_TRACE_DATABASE_URL", f"chdb://{tmp_path}/clickhouse")
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        with Store.open(f"chdb://{tmp_path}/clickhouse") as store:
            migrate(store)
            store_ours(store)

        def model(request: dict[str, Any]) -> Reply | str:
            """Read the verdict, then report the agent that stands in it."""
            last = request["messages"][-1]
            if last["role"] != "tool":
                return Reply(calls=(Call("get_run", {"run": RUN}),))
            block = last["content"].partition(">\n")[2].rpartition("\n<")[0]
            decisive = json.loads(block)["verdict"]["decisive"]
            return f"{decisive['agent']} erred at step {decisive['step']}: {decisive['reason']}"

        with ScriptedLLM(model) as llm:
            monkeypatch.setenv("OPENAI_BASE_URL", llm.url)
            answer = asyncio.run(investigator.investigate(RUN))
        assert answer == "planner erred at step 0: plain misread"

    @pytest.mark.parametrize(
        ("arguments", "status", "words"),
        [
            ([], 2, "set OPENAI_API_KEY"),
            (["--help"], 0, "OPENAI_API_KEY is needed"),
            (["one", "two"], 2, "unrecognized arguments: two"),
        ],
    )
    def test_says_what_it_needs(
        self, monkeypatch: Patch, capsys: Capture, arguments: list[str], status: int, words: str
    ) -> None:
        investigator = pytest.importorskip("investigator", reason="needs LangGraph")
        monkeypatch.delenv("OPENAI_API_KEY", raising=False)
        monkeypatch.setattr(sys, "argv", ["investigator.py", *arguments])
        with pytest.raises(SystemExit) as ended:
            investigator.main()
        assert (ended.value.code or 0) == status
        assert words in " ".join("".join(capsys.readouterr()).split())
