"""Runs of AG2 classic: nested, one after the other, in threads, at the same time, failing."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("autogen.agentchat.group", reason="needs AG2 classic (`import autogen`)")

import autogen_programs as programs
from autogen.agentchat import a_run_group_chat, initiate_group_chat, run_group_chat
from autogen.agentchat.group import AgentTarget, TerminateTarget
from autogen.agentchat.group.patterns import DefaultPattern
from scripted_llm import ScriptedLLM, last_text

from mast_trace import semconv

if TYPE_CHECKING:
    from collections.abc import Callable

    from recorded_spans import RecordedSpans

pytestmark = pytest.mark.framework("autogen")


def echo(request: dict[str, Any]) -> str:
    """Answer with the text."""
    return f"reply to {last_text(request)}"


def test_a_nested_chat_is_a_part_of_the_turn_that_holds_it(spans: RecordedSpans) -> None:
    """A nested chat is below the agent's turn, in the same trace, with messages of its own."""
    programs.serve(programs.nested, echo)
    spans.check_shape()
    outer, inner = spans.named("invoke_workflow")
    assert spans.parent(inner).name == "invoke_agent bob"
    assert [(sender, to) for sender, to, _ in spans.sent_messages()] == [
        ("alice", ("bob",)),
        ("bob", ("carol",)),
        ("carol", ("bob",)),
        ("bob", ("alice",)),
    ]
    assert outer.attributes[semconv.RUN_TERMINATION_REASON] == "max_turns"


@pytest.mark.parametrize("program", ["sequence", "background_sequence"])
def test_chats_one_after_the_other_are_one_run(spans: RecordedSpans, program: str) -> None:
    """Awaited for or in a thread, a queue of chats is one trace with a chat after a chat."""
    with ScriptedLLM(echo) as server:
        getattr(programs, program)(server.url)
        until(lambda: any(s.parent is None for s in spans.all))
    spans.check_shape()
    root, first, second = spans.named("invoke_workflow")
    assert root.parent is None
    assert {spans.parent(first), spans.parent(second)} == {root}
    assert len(spans.sent_messages()) == 4


async def test_chats_one_after_the_other_in_a_task(spans: RecordedSpans) -> None:
    """The chats of `a_sequential_run` are one trace."""
    with ScriptedLLM(echo) as server:
        alice, bob, carol = (programs.person(n, server.url) for n in ("alice", "bob", "carol"))
        responses = await alice.a_sequential_run(
            [
                {"recipient": bob, "message": "One?", "max_turns": 1, "chat_id": 1},
                {"recipient": carol, "message": "Two?", "max_turns": 1, "chat_id": 2},
            ]
        )
        for response in responses:
            async for _event in response.events:
                pass
        while not any(s.parent is None for s in spans.all):  # noqa: ASYNC110
            await asyncio.sleep(0.005)
    spans.check_shape()
    assert [s.name for s in spans.named("invoke_workflow")] == [
        "invoke_workflow sequential_run",
        "invoke_workflow alice to bob",
        "invoke_workflow alice to carol",
    ]


def until(condition: Callable[[], Any]) -> None:
    """Wait for a thread; the test's own timeout is the limit."""
    while not condition():
        time.sleep(0.005)


def test_a_chat_in_a_thread(spans: RecordedSpans) -> None:
    """`run` starts a thread: its chat is a run, inside the caller's if there is one."""
    with ScriptedLLM(echo) as server:
        programs.background(server.url)
        until(lambda: any(s.parent is None for s in spans.all))
        spans.check_shape()
        spans.exporter.clear()
        outer = spans.instrumentor.telemetry.run("outer")
        with outer.attached():
            programs.background(server.url)
            until(lambda: spans.named("invoke_workflow"))
        outer.finish("completed")
    spans.check_shape()
    assert [s.name for s in spans.named("invoke_workflow")] == [
        "invoke_workflow outer",
        "invoke_workflow alice to bob",
    ]


@pytest.mark.parametrize("left_early", [False, True])
def test_a_chat_that_is_read_event_by_event(spans: RecordedSpans, left_early: bool) -> None:
    """`run_iter` is one whole run, also when the program stops reading after an event."""
    with ScriptedLLM(echo) as server:
        alice, bob = programs.pair(server.url)
        events = iter(alice.run_iter(bob, message="Hello Bob.", max_turns=1))
        kinds = [next(events).type] if left_early else [event.type for event in events]
        events.close()
        until(lambda: any(s.parent is None for s in spans.all))
    assert kinds[0] == "text"
    spans.check_shape()
    assert [text for _, _, text in spans.sent_messages()] == ["Hello Bob.", "reply to Hello Bob."]


def test_a_group_in_a_thread(spans: RecordedSpans) -> None:
    """`run_group_chat` is one whole run."""
    with ScriptedLLM(programs.pattern_script) as server:
        response = run_group_chat(programs.crew(server.url), "Print the sum.", max_rounds=12)
        list(response.events)
        until(lambda: any(s.parent is None for s in spans.all))
    spans.check_shape()
    assert shape(spans) == [PATTERN]


async def test_a_group_in_a_task(spans: RecordedSpans) -> None:
    """A group in a task, `a_run_group_chat`, is one whole run."""
    with ScriptedLLM(programs.pattern_script) as server:
        response = await a_run_group_chat(
            programs.crew(server.url), "Print the sum.", max_rounds=12
        )
        async for _event in response.events:
            pass
        while not any(s.parent is None for s in spans.all):  # noqa: ASYNC110
            await asyncio.sleep(0.005)
    spans.check_shape()
    assert shape(spans) == [PATTERN]


def test_a_long_chat(spans: RecordedSpans) -> None:
    """Agents answer each other by recursion: as many answers as AutoGen allows by default fit."""
    settings = {"default_auto_reply": "Go on.", "max_consecutive_auto_reply": 100}
    alice, bob = (programs.person(name, None, **settings) for name in ("alice", "bob"))
    result = alice.initiate_chat(bob, message="Hello Bob.", silent=True)
    assert len(result.chat_history) == 201
    spans.check_shape()
    assert len(spans.named("send_message")) == 201


def test_a_reply_that_is_blocked(spans: RecordedSpans) -> None:
    """A guardrail's words go out as the message; the agent's own stay on its turn."""
    from autogen.agentchat.group.guardrails import RegexGuardrail

    with ScriptedLLM(lambda _request: "The password is tulip.") as server:
        first, second = (programs.person(name, server.url) for name in ("first", "second"))
        first.register_output_guardrail(
            RegexGuardrail(
                name="secrets",
                condition="password",
                target=AgentTarget(second),
                activation_message="[withheld]",
            )
        )
        pattern = DefaultPattern(
            initial_agent=first, agents=[first, second], group_after_work=TerminateTarget()
        )
        initiate_group_chat(pattern, "What is the password?", max_rounds=4)
    spans.check_shape()
    turn = next(s for s in spans.named("invoke_agent") if s.name.endswith("first"))
    answer = next(s for s in spans.named("chat") if spans.parent(s) is turn)
    assert turn.attributes[semconv.MESSAGE_ID] == answer.attributes[semconv.MESSAGE_ID]
    spoken = [text for sender, _, text in spans.sent_messages() if sender == "first"]
    assert len(spoken) == 1
    assert "withheld" in spoken[0]
    assert "tulip" not in spoken[0]


def shape(spans: RecordedSpans) -> list[dict[str, int]]:
    """The number of spans of each operation, for each trace."""
    operations = ("send_message", "invoke_agent", "chat", "execute_tool")
    return [
        {op: sum(s.attributes[semconv.OPERATION_NAME] == op for s in trace) for op in operations}
        for trace in spans.traces().values()
    ]


PATTERN = {"send_message": 7, "invoke_agent": 7, "chat": 4, "execute_tool": 2}
