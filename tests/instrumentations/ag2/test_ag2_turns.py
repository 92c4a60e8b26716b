"""Turns of AG2 agents that go another way than the usual one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("ag2.network", reason="needs AG2 1.x (`import ag2`)")

import ag2_programs as programs
from ag2 import Agent
from ag2.middleware import RetryMiddleware
from scripted_llm import Reply, ScriptedLLM, in_turn, last_text

from mast_trace import semconv

if TYPE_CHECKING:
    from recorded_spans import RecordedSpans

pytestmark = pytest.mark.framework("ag2")


async def test_a_retried_call_is_a_span_per_attempt(spans: RecordedSpans) -> None:
    """The attempt that failed and the one that worked; the turn itself is no failure."""
    with ScriptedLLM(in_turn(Reply("busy", status=503), "It is 5.")) as server:
        agent = Agent(
            "solver", config=programs.model(server.url), middleware=[RetryMiddleware(max_retries=2)]
        )
        reply = await agent.ask("What is 2 + 3?")
    assert reply.body == "It is 5."
    spans.check_shape()
    assert [span.status.is_ok for span in spans.named("chat")] == [False, True]
    assert spans.trajectory().error is None


async def test_a_run_that_is_not_driven_is_nothing(spans: RecordedSpans) -> None:
    """Opening a run without asking for its result does nothing, and records nothing."""
    with ScriptedLLM(lambda _request: "It is 5.") as server:
        agent = Agent("solver", config=programs.model(server.url))
        async with agent.run("What is 2 + 3?"):
            pass
        assert server.requests == []
    assert spans.all == []


async def test_a_turn_that_cannot_begin_is_a_failed_turn(spans: RecordedSpans) -> None:
    """A turn that fails while it is prepared is never driven; the trace has it all the same."""

    def broken(_event: Any, _context: Any) -> Any:
        raise RuntimeError("no middleware")

    with ScriptedLLM(lambda _request: "It is 5.") as server:
        agent = Agent("solver", config=programs.model(server.url), middleware=[broken])
        with pytest.raises(RuntimeError, match="no middleware"):
            await agent.ask("What is 2 + 3?")
    spans.check_shape()
    assert spans.counts() == {"invoke_workflow": 1, "send_message": 1, "invoke_agent": 1}
    failed = [*spans.named("invoke_workflow"), *spans.named("invoke_agent")]
    assert {s.attributes[semconv.ERROR_TYPE] for s in failed} == {"RuntimeError"}


async def test_a_conversation_goes_on_in_a_run_of_its_own(spans: RecordedSpans) -> None:
    """A follow-up is another run of the same conversation, and sees the words before it."""
    await programs.serve(programs.two_questions, lambda request: f"reply to {last_text(request)}")
    spans.check_shape(runs=2)
    first, second = spans.trajectories()
    assert first.conversation_id == second.conversation_id
    (turn,) = [i for i in second.invocations if i.kind == "agent"]
    assert [message.content for message in second.seen_by(turn)] == [
        "First question",
        "reply to First question",
        "Second question",
    ]


async def test_what_an_agent_is_known_by(spans: RecordedSpans) -> None:
    """An agent's name is on its turn, its model calls and its tools; the reply is the model's answer."""
    await programs.serve(programs.tools, programs.tools_script)
    unlike = ("invoke_workflow", "send_message user")
    named = [s for s in spans.all if not s.name.startswith(unlike)]
    assert {s.attributes[semconv.AGENT_NAME] for s in named} == {"solver"}
    (turn,) = spans.named("invoke_agent")
    answer: Any = spans.named("chat")[-1]
    assert turn.attributes[semconv.MESSAGE_ID] == answer.attributes[semconv.MESSAGE_ID]
    assert {s.attributes[semconv.FRAMEWORK] for s in spans.all} == {"ag2"}
