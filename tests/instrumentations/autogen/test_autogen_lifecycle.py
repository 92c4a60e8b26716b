"""Switching instrumentation on and off, early, late, and where the framework has changed."""

from __future__ import annotations

import inspect
import logging
import subprocess
import sys
import textwrap
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("autogen.agentchat.group", reason="needs AG2 classic (`import autogen`)")

import autogen.agentchat.conversable_agent
import autogen.agentchat.group.multi_agent_chat
import autogen_programs as programs
from recorded_spans import RecordedSpans
from scripted_llm import ScriptedLLM, last_text

from mast_trace_instrumentations.autogen import AutogenInstrumentor

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.framework("autogen")


def echo(request: dict[str, Any]) -> str:
    """Answer with the text."""
    return f"reply to {last_text(request)}"


def targets() -> dict[str, Any]:
    """Every attribute that is replaced and whose module is imported, as it is now."""
    found: dict[str, Any] = {}
    for patch in AutogenInstrumentor.patches:
        if patch.module in sys.modules:
            owner: Any = sys.modules[patch.module]
            *path, name = patch.target.split(".")
            for step in path:
                owner = getattr(owner, step)
            found[patch.path] = vars(owner).get(name)
    for module in (
        autogen.agentchat.conversable_agent,
        autogen.agentchat.group.multi_agent_chat,
    ):
        for name in ("threading", "asyncio"):
            found[f"{module.__name__}:{name}"] = vars(module)[name]
    return found


def test_off_again_everything_is_as_it_was() -> None:
    """Each attribute is the very object that it was before; twice on and off is as good as once."""
    before = targets()
    instrumentor = AutogenInstrumentor()
    for _ in range(2):
        RecordedSpans.of(instrumentor)
        assert all(targets()[path] is not before[path] for path in before)
        assert instrumentor.state.missing == []
        instrumentor.uninstrument()
        instrumentor.uninstrument()
        assert all(targets()[path] is original for path, original in before.items())


PARITY: list[tuple[str, Callable[[dict[str, Any]], Any]]] = [
    ("two_agents", programs.talk_script),
    ("a_two_agents", programs.talk_script),
    ("limited", programs.talk_script),
    ("model_error", programs.failing_script),
    ("tools", programs.tools_script),
    ("a_tools", programs.tools_script),
    ("group", programs.group_script),
    ("a_group", programs.group_script),
    ("round_robin", programs.group_script),
    ("pattern", programs.pattern_script),
    ("a_pattern", programs.pattern_script),
    ("by_condition", echo),
    ("nested", echo),
    ("sequence", echo),
    ("background", echo),
    ("background_sequence", echo),
    ("human", echo),
]


async def outcome(program: str, script: Callable[[dict[str, Any]], Any]) -> tuple[Any, list[Any]]:
    """Run a program; return its result and what its models were sent."""
    with ScriptedLLM(script) as server:
        result = getattr(programs, program)(server.url)
        if inspect.isawaitable(result):
            result = await result
        return result, [request["messages"] for request in server.requests]


@pytest.mark.parametrize(("program", "script"), PARITY, ids=[name for name, _ in PARITY])
async def test_a_program_does_the_same_with_and_without(
    program: str, script: Callable[[dict[str, Any]], Any]
) -> None:
    """Same results, same errors, same events in order, and the models are sent the same."""
    plain = await outcome(program, script)
    spans = RecordedSpans.of(AutogenInstrumentor())
    try:
        traced = await outcome(program, script)
    finally:
        spans.instrumentor.uninstrument()
    assert traced == plain
    assert spans.all


async def test_agents_that_are_older_than_the_instrumentation() -> None:
    """Agents keep functions by reference from when they were built: their calls are recorded too."""
    with ScriptedLLM(programs.talk_script) as server:
        alice, bob = programs.pair(server.url)
        spans = RecordedSpans.of(AutogenInstrumentor())
        try:
            await alice.a_initiate_chat(bob, message="Hello Bob.")
        finally:
            spans.instrumentor.uninstrument()
    spans.check_shape()
    assert spans.counts() == {
        "invoke_workflow": 1,
        "send_message": 5,
        "invoke_agent": 5,
        "chat": 4,
    }


async def test_agents_that_outlive_the_instrumentation() -> None:
    """Agents that were built while it was on work unrecorded once it is off."""
    with ScriptedLLM(programs.talk_script) as server:
        spans = RecordedSpans.of(AutogenInstrumentor())
        alice, bob = programs.pair(server.url)
        spans.instrumentor.uninstrument()
        result = await alice.a_initiate_chat(bob, message="Hello Bob.")
    assert len(result.chat_history) == 5
    assert spans.all == []


def test_the_framework_may_be_imported_afterwards() -> None:
    """Instrumenting imports nothing of AutoGen; the patches come with the program's own import."""
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            textwrap.dedent(
                """
                import sys
                from recorded_spans import RecordedSpans
                from mast_trace_instrumentations.autogen import AutogenInstrumentor
                instrumentor = AutogenInstrumentor()
                assert instrumentor.present()
                spans = RecordedSpans.of(instrumentor)
                assert not [name for name in sys.modules if name.split(".")[0] == "autogen"]
                import autogen, autogen_programs as programs
                from scripted_llm import ScriptedLLM
                with ScriptedLLM(programs.pattern_script) as server:
                    programs.pattern(server.url)
                spans.check_shape()
                counts = spans.counts()
                with ScriptedLLM(lambda _request: "ok") as server:
                    alice, bob = programs.pair(server.url)
                    autogen.initiate_chats(
                        [{"sender": alice, "recipient": bob, "message": "Hi", "max_turns": 1}]
                    )
                spans.check_shape(runs=2)
                print(counts["send_message"], counts["execute_tool"], instrumentor.state.missing)
                """
            ),
        ],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().endswith("7 2 []")


@pytest.mark.parametrize(
    ("vanished", "lost"),
    [
        ("ConversableAgent.generate_reply", ["invoke_agent"]),
        ("OpenAIWrapper.create", ["chat"]),
        ("ConversableAgent.execute_function", ["execute_tool"]),
    ],
)
def test_a_target_that_vanished_is_one_warning(
    vanished: str,
    lost: list[str],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A version without one of the targets: it is named once, and everything else is recorded."""
    rows = tuple(
        replace(p, target=p.target + "_gone") if p.target == vanished else p
        for p in AutogenInstrumentor.patches
    )
    monkeypatch.setattr(AutogenInstrumentor, "patches", rows)
    with caplog.at_level(logging.WARNING, logger="mast_trace"):
        spans = RecordedSpans.of(AutogenInstrumentor())
    try:
        with ScriptedLLM(programs.pattern_script) as server:
            programs.pattern(server.url)
    finally:
        missing = list(spans.instrumentor.state.missing)
        spans.instrumentor.uninstrument()
    warnings = [r.getMessage() for r in caplog.records if r.name == "mast_trace"]
    assert [vanished in warning for warning in warnings] == [True]
    assert len(missing) == 1
    operations = ("send_message", "invoke_agent", "chat", "execute_tool")
    assert [op for op in operations if not spans.named(op)] == lost
    spans.check_shape()


def test_an_error_of_ours_stays_ours(
    spans: RecordedSpans, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Telemetry that raises everywhere changes nothing in the program, and is logged."""

    def broken(*_args: Any, **_kwargs: Any) -> Any:
        raise RuntimeError("telemetry is out of order")

    with ScriptedLLM(programs.pattern_script) as server:
        plain = programs.pattern(server.url)
        spans.exporter.clear()
        monkeypatch.delenv("PYTEST_CURRENT_TEST")
        for name in ("run", "agent", "message", "tool", "chat", "inputs"):
            monkeypatch.setattr(spans.instrumentor.telemetry, name, broken)
        assert programs.pattern(server.url) == plain
    assert spans.all == []
    assert "telemetry is out of order" in caplog.text


def test_other_packages_of_that_name_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A package `autogen` without AG2's groups is another framework."""
    from mast_trace_instrumentations.autogen import patches as instrumentation

    assert AutogenInstrumentor().present()
    monkeypatch.setattr(instrumentation, "find_spec", lambda _name: None)
    assert not AutogenInstrumentor().present()
