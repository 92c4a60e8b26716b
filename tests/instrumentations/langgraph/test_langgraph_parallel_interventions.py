"""Interventions amid parallel branches that ask the same: later branches go live, earlier ones do not."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from pathlib import Path

import pytest

pytest.importorskip("langchain_openai")
pytest.importorskip("langgraph.graph")

import parallel_branches
from interventions import playing
from scripted_llm import ScriptedLLM

from mast_trace.replay.live import LiveCalls
from mast_trace.replay.player import Player
from mast_trace.replay.recording import tape_of
from mast_trace.testing import capture_spans
from mast_trace_judge.arms import Fix, ReplayArm
from mast_trace_judge.decision_points import decision_points
from mast_trace_lab.replay.changes import intervention_of

pytestmark = pytest.mark.framework("langgraph")


@pytest.mark.parametrize("way", ["threads", "asyncio"])
def test_branches_that_end_after_the_change_go_live(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Branches that had ended by the changed one are served; it alone has the new answer."""
    loop = asyncio.new_event_loop()
    with ScriptedLLM(parallel_branches.script()) as server, contextlib.closing(loop):

        def program() -> None:
            if way == "threads":
                parallel_branches.main(way)
            else:  # LangChain's clients keep their connections, which belong to one loop
                graph = parallel_branches.build(asynchronous=True)
                loop.run_until_complete(graph.ainvoke({"estimates": []}))

        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "scripted")
        with capture_spans() as captured:
            program()
        recorded = captured.trajectory()
        tape = tape_of(recorded)
        points = decision_points(recorded)
        assert len(points) == parallel_branches.BRANCHES + 1
        for place, point in enumerate(points):
            before = len(server.requests)
            arm = ReplayArm("fix", point.step, Fix("person", "99 EUR"))
            with tempfile.TemporaryDirectory() as folder:
                log = LiveCalls(Path(folder) / "live.jsonl")
                player = Player(tape, intervention=intervention_of(recorded, tape, arm), live=log)
                with playing(player) as captured:
                    program()
            report = player.report()
            assert report.divergence is None
            assert report.served_exchanges == place + 1
            assert len(server.requests) - before == len(points) - place - 1
            said = [step.text for step in captured.trajectory().steps]
            assert sum("99 EUR" in text for text in said) >= 1
            kept = [each.text for each in points[:place]]
            assert all(any(text in each for each in said) for text in kept)
