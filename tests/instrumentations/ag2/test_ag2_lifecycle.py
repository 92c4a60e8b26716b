"""Switching instrumentation on and off, early, late, and where the framework has changed."""

from __future__ import annotations

import logging
import subprocess
import sys
import textwrap
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("ag2.network", reason="needs AG2 1.x (`import ag2`)")

import ag2_programs as programs
from recorded_spans import RecordedSpans
from scripted_llm import ScriptedLLM, last_text

from mast_trace_instrumentations.ag2 import AG2Instrumentor

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.framework("ag2")


def targets() -> dict[str, Any]:
    """Every attribute that is patched, as the framework has it now."""
    found = {}
    for patch in AG2Instrumentor.patches:
        owner: Any = sys.modules[patch.module]
        *path, name = patch.target.split(".")
        for step in path:
            owner = getattr(owner, step)
        found[patch.path] = vars(owner)[name]
    return found


def test_off_again_everything_is_as_it_was() -> None:
    """Each attribute is the very object that it was before; twice on and off is as good as once."""
    before = targets()
    instrumentor = AG2Instrumentor()
    for _ in range(2):
        RecordedSpans.of(instrumentor)
        assert all(targets()[path] is not before[path] for path in before)
        instrumentor.instrument()
        instrumentor.uninstrument()
        instrumentor.uninstrument()
        assert all(targets()[path] is original for path, original in before.items())


PARITY: list[tuple[str, Callable[[dict[str, Any]], Any]]] = [
    ("tools", programs.tools_script),
    ("bad_json", programs.bad_json_script),
    ("model_error", programs.failing_script),
    ("two_questions", lambda request: f"reply to {last_text(request)}"),
    ("observed_run", programs.tools_script),
    ("human", programs.human_script),
    ("as_tool", programs.as_tool_script),
    ("subtasks", programs.subtasks_script),
    ("conversation", programs.conversation_script),
    ("consulting", lambda request: f"reply to {last_text(request)}"),
    ("discussion", programs.discussion_script),
    ("workflow", programs.workflow_script),
    ("round_robin", lambda request: f"reply to {last_text(request)}"),
    ("delegate", programs.delegate_script),
    ("network_failure", programs.failing_script),
]


@pytest.mark.parametrize(("program", "script"), PARITY, ids=[name for name, _ in PARITY])
async def test_a_program_does_the_same_with_and_without(
    program: str, script: Callable[[dict[str, Any]], Any]
) -> None:
    """Same results, same errors, same events, and the models are sent the same."""

    async def run() -> tuple[Any, list[str]]:
        with ScriptedLLM(script) as server:
            result = await getattr(programs, program)(server.url)
            return _comparable(result), sorted(map(_shape, server.requests))

    plain = await run()
    spans = RecordedSpans.of(AG2Instrumentor())
    try:
        traced = await run()
    finally:
        spans.instrumentor.uninstrument()
    assert traced == plain
    assert spans.all


def _comparable(result: Any) -> Any:
    """Parallel tools end in any order: the events of a run are compared as a bag."""
    if isinstance(result, tuple):
        return result[0], sorted(result[1])
    return result


def _shape(request: dict[str, Any]) -> str:
    """A request without what differs from run to run: random ids, and tracebacks' lines."""
    return repr(
        [
            (m["role"], (m.get("content") or "")[:30], len(m.get("tool_calls") or ()))
            for m in request["messages"]
        ]
    )


async def test_agents_that_are_older_than_the_instrumentation() -> None:
    """Agents, hub and channel from before `instrument()` are recorded from the next message on."""
    with ScriptedLLM(lambda request: f"re {last_text(request)}") as server:
        alice, bob = programs.person("alice", server.url), programs.person("bob", server.url)
        async with programs.network(alice, bob) as (hub, (a, _b)):
            channel = await a.open(type="consulting", target="bob")
            spans = RecordedSpans.of(AG2Instrumentor())
            try:
                await channel.send("Who are you?")
                await programs.closed(hub, channel.channel_id)
            finally:
                spans.instrumentor.uninstrument()
    spans.check_shape()
    assert [text for _, _, text in spans.sent_messages()] == ["Who are you?", "re Who are you?"]
    assert len(spans.named("invoke_agent")) == 1


async def test_switched_off_in_the_middle_no_run_is_left_open() -> None:
    """`uninstrument()` ends the runs of open channels; the program goes on unrecorded."""
    spans = RecordedSpans.of(AG2Instrumentor())
    with ScriptedLLM(lambda _request: "") as server:
        alice, bob = programs.person("alice", server.url), programs.person("bob", server.url)
        async with programs.network(alice, bob) as (_hub, (a, _b)):
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


def test_the_framework_may_be_imported_afterwards() -> None:
    """Instrumenting imports nothing of AG2; the patches come with the program's own import."""
    output = run_python(
        """
        import asyncio, sys
        from recorded_spans import RecordedSpans
        from mast_trace_instrumentations.ag2 import AG2Instrumentor
        instrumentor = AG2Instrumentor()
        assert instrumentor.present()
        spans = RecordedSpans.of(instrumentor)
        assert "ag2" not in sys.modules
        assert instrumentor.state.waiting and not instrumentor.state.missing
        import ag2_programs as programs
        from scripted_llm import ScriptedLLM
        with ScriptedLLM(programs.workflow_script) as server:
            asyncio.run(programs.workflow(server.url))
        spans.check_shape()
        print(len(spans.sent_messages()), instrumentor.state.missing)
        """
    )
    assert output.split("\n")[0] == "4 []"


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


@pytest.mark.parametrize("vanished", ["Hub._dispatch", "Agent._turn_scope"])
async def test_a_target_that_vanished_is_one_warning(
    vanished: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A version without one of the targets: it is named once, and everything else is recorded."""
    rows = tuple(
        replace(p, target=p.target + "_gone") if p.target == vanished else p
        for p in AG2Instrumentor.patches
    )
    monkeypatch.setattr(AG2Instrumentor, "patches", rows)
    with caplog.at_level(logging.WARNING, logger="mast_trace"):
        spans = RecordedSpans.of(AG2Instrumentor())
    try:
        with ScriptedLLM(programs.workflow_script) as server:
            await programs.workflow(server.url)
    finally:
        missing = list(spans.instrumentor.state.missing)
        spans.instrumentor.uninstrument()
    warnings = [r.getMessage() for r in caplog.records if r.name == "mast_trace"]
    assert [vanished in warning for warning in warnings] == [True]
    assert len(missing) == 1
    expected = {"Hub._dispatch": ["send_message"], "Agent._turn_scope": ["invoke_agent", "chat"]}
    lost = [
        op for op in ("send_message", "invoke_agent", "chat", "execute_tool") if not spans.named(op)
    ]
    assert lost == expected[vanished]


async def test_an_error_of_ours_stays_ours(
    spans: RecordedSpans, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Telemetry that raises everywhere changes nothing in the program, and is logged."""

    def broken(*_args: Any, **_kwargs: Any) -> Any:
        raise RuntimeError("telemetry is out of order")

    monkeypatch.delenv("PYTEST_CURRENT_TEST")
    for name in ("run", "agent", "message", "tool", "chat", "inputs"):
        monkeypatch.setattr(spans.instrumentor.telemetry, name, broken)
    with ScriptedLLM(programs.workflow_script) as server:
        spoken = await programs.workflow(server.url)
    with ScriptedLLM(programs.tools_script) as server:
        assert await programs.tools(server.url) == "The sum is 5."
    assert len(spoken) == 4
    assert spans.all == []
    assert "telemetry is out of order" in caplog.text


def test_the_classic_framework_is_not_taken_for_this_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Releases before 1.0 share the name on PyPI but have no module `ag2`."""
    from mast_trace_instrumentations.ag2 import patches

    assert AG2Instrumentor().present()
    monkeypatch.setattr(patches, "find_spec", lambda _name: None)
    assert not AG2Instrumentor().present()
