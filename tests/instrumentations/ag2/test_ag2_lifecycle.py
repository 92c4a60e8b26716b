"""Switching instrumentation on and off, early, late, and where the framework has changed."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

pytest.importorskip("ag2.network", reason="needs AG2 1.x (`import ag2`)")

import ag2_programs as programs
from recorded_spans import RecordedSpans, recording
from scripted_llm import ScriptedLLM, last_text

from mast_trace_instrumentations.ag2 import AG2Instrumentor

pytestmark = pytest.mark.framework("ag2")


async def test_agents_that_are_older_than_the_instrumentation() -> None:
    """Agents, hub and channel from before `instrument()` are recorded from the next message on."""
    with ScriptedLLM(lambda request: f"re {last_text(request)}") as server:
        async with programs.two(server.url) as (hub, (a, _b)):
            channel = await a.open(type="consulting", target="bob")
            with recording(AG2Instrumentor()) as spans:
                await channel.send("Who are you?")
                await programs.closed(hub, channel.channel_id)
    spans.check_shape()
    assert [text for _, _, text in spans.sent_messages()] == ["Who are you?", "re Who are you?"]
    assert len(spans.named("invoke_agent")) == 1


async def test_switched_off_in_the_middle_no_run_is_left_open() -> None:
    """`uninstrument()` ends the runs of open channels; the program goes on unrecorded."""
    spans = RecordedSpans.of(AG2Instrumentor())
    with ScriptedLLM(lambda _request: "") as server:
        async with programs.two(server.url) as (_hub, (a, _b)):
            channel = await a.open(type="conversation", target="bob")
            await channel.send("Hello Bob.")
            await programs.until(lambda: spans.named("invoke_agent"))
            spans.instrumentor.uninstrument()
            await channel.send("Still there?")
            await programs.until(lambda: len(server.requests) == 2)
            await channel.close()
    spans.check_shape()
    assert [text for _, _, text in spans.sent_messages()] == ["Hello Bob."]
    assert spans.trajectory().termination_reason == "interrupted"


def run_python(program: str) -> str:
    """Run a program in an interpreter of its own."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_channel_left_open_at_exit_still_has_its_root() -> None:
    """A program that ends without closing anything leaves a whole run behind."""
    output = run_python(
        """
        import asyncio, atexit
        from recorded_spans import RecordedSpans
        from mast_trace_instrumentations.ag2 import AG2Instrumentor
        import ag2_programs as programs
        from ag2.knowledge import MemoryKnowledgeStore
        from ag2.network import Hub
        from scripted_llm import ScriptedLLM

        async def main(url):
            hub = await Hub.open(MemoryKnowledgeStore(), expectation_sweep_interval=0)
            alice = await hub.register(programs.person("alice", url))
            await hub.register(programs.person("bob", url))
            channel = await alice.open(type="conversation", target="bob")
            await channel.send("Hello Bob.")
            await programs.until(lambda: spans.named("invoke_agent"))

        def report():
            spans.check_shape()
            print(spans.trajectory().termination_reason)

        atexit.register(report)
        spans = RecordedSpans.of(AG2Instrumentor())
        with ScriptedLLM(lambda _request: "") as server:
            asyncio.run(main(server.url))
        """
    )
    assert output.strip() == "interrupted"


def test_the_classic_framework_is_not_taken_for_this_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Releases before 1.0 share the name on PyPI but have no module `ag2`."""
    from mast_trace_instrumentations.ag2 import patches

    assert AG2Instrumentor().present()
    monkeypatch.setattr(patches, "find_spec", lambda _name: None)
    assert not AG2Instrumentor().present()
