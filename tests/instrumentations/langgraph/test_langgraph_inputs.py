"""Inputs of agents and models can be rebuilt exactly, though each text is recorded once."""

from __future__ import annotations

import json
from typing import Any

import pytest
from langchain_core.messages import SystemMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import MessagesState
from langgraph_programs import PROGRAMS, add, arithmetic, ask, create_agent, linear, supervised
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from recorded_spans import RecordedSpans, recording
from scripted_llm import Call, Reply, last_text, messages_of, system_text

from mast_trace_instrumentations.langgraph import LangGraphInstrumentor

pytestmark = pytest.mark.framework("langgraph")


def on_the_wire(request: dict[str, Any]) -> list[tuple[Any, ...]]:
    """The messages of a request as role, text, tool calls and the call that is answered."""
    return [
        (
            message["role"],
            message.get("content") or "",
            [
                (call["function"]["name"], json.loads(call["function"]["arguments"]))
                for call in message.get("tool_calls") or ()
            ],
            message.get("tool_call_id"),
        )
        for message in messages_of(request)
    ]


def rebuilt(recorded: RecordedSpans) -> list[list[tuple[Any, ...]]]:
    """Return the messages of every model call of the recorded run, from the spans alone."""
    run = recorded.trajectory()
    return [
        [
            (m.role, m.content, [(c.name, c.arguments) for c in m.tool_calls], m.tool_call_id)
            for m in run.seen_by(call)
        ]
        for call in run.invocations
        if call.kind == "model"
    ]


def test_answers_of_responses_are_texts(recorded, models):
    """The same team over the other interface, whose contents are lists of parts."""
    supervised(models(arithmetic, use_responses_api=True)).invoke(ask())

    assert recorded.sent_messages()[-1] == ("supervisor", (), "The team says 5.")
    assert recorded.counts()["execute_tool"] == 2


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_text_is_written_into_two_inputs(recorded, models, name):
    """A text that one span holds is referred to by all others."""
    build, script = PROGRAMS[name]
    build(models(script)).invoke(ask())

    written = [
        message["id"]
        for span in recorded.all
        for message in json.loads(span.attributes.get("gen_ai.input.messages", "[]"))
    ]
    assert len(written) == len(set(written))


ROUNDS = 8


def long_talk(request: dict[str, Any]) -> Reply | str:
    """The boss asks the mathematician again and again, who answers at length."""
    answers = sum(
        "It is 5 because" in str(message.get("content")) for message in messages_of(request)
    )
    if "boss" in system_text(request):
        more = Reply("Once more, please.", calls=(Call("transfer_to_math"),))
        return more if answers < ROUNDS else "The team says 5."
    if last_text(request) == "5":
        return f"{answers + 1}. It is 5 because {'two and three make five, ' * 40} as we know."
    return Reply(calls=(Call("add", {"a": 2, "b": 3}),))


def test_a_long_talk_is_exported_in_a_third_of_the_bytes(models):
    """The exported size grows with new messages, not with how often they are shown again."""
    sent = {}
    for capture in (True, "full"):
        with recording(LangGraphInstrumentor(), capture) as recorded:
            supervised(models(long_talk)).invoke(ask(), {"recursion_limit": 100})
        sent[capture] = encode_spans(recorded.all).ByteSize()
        assert rebuilt(recorded) == [on_the_wire(request) for request in models.server.requests]
    assert sent[True] < sent["full"] / 3


def test_without_content_hashes_roles_and_sizes_remain(models):
    """Readers know who saw which messages, and how much, although no text leaves the process."""
    with recording(LangGraphInstrumentor(), capture=False) as recorded:
        supervised(models(arithmetic)).invoke(ask())

    run = recorded.trajectory()
    calls = [call for call in run.invocations if call.kind == "model"]
    requests = [on_the_wire(request) for request in models.server.requests]
    assert [list(call.input_roles) for call in calls] == [[m[0] for m in r] for r in requests]
    assert [call.input_length for call in calls] == [sum(len(m[1]) for m in r) for r in requests]
    assert all(step.content_hash for step in run.steps if step.kind.value == "message")


def test_an_agent_sees_the_history_from_the_checkpointer(recorded, models):
    """The input of the second run is one message; its agent sees the whole conversation."""
    agent = create_agent(
        models(lambda _r: "Hello."), [add], name="greeter", checkpointer=InMemorySaver()
    )
    thread = {"configurable": {"thread_id": "1"}}
    agent.invoke(ask("Hi"), thread)
    agent.invoke(ask("Hi again"), thread)

    second = recorded.trajectories()[1]
    (turn,) = [i for i in second.invocations if i.kind == "agent"]
    assert [m.content for m in second.seen_by(turn)] == ["Hi", "Hello.", "Hi again"]
    assert second.task == "Hi again"


def test_what_each_agent_of_a_team_saw(recorded, models):
    """The mathematician saw the question and the hand-over; the supervisor everything."""
    supervised(models(arithmetic)).invoke(ask())

    run = recorded.trajectory()
    saw = [
        (turn.agent, [m.content for m in run.seen_by(turn)])
        for turn in run.invocations
        if turn.kind == "agent"
    ]
    question, asked, handed = (
        "How much is 2 + 3?",
        "Mathematician, please.",
        "Successfully transferred to math",
    )
    back = ["Transferring back to supervisor", "Successfully transferred back to supervisor"]
    assert saw == [
        ("supervisor", [question]),
        ("math", [question, asked, handed]),
        ("supervisor", [question, asked, handed, "2 + 3 is 5", *back]),
    ]


def test_a_content_list_is_read_as_its_text(recorded, models):
    """Blocks of text are the text that they spell; a picture stays visible as JSON."""
    model = models(lambda _r: "Seen.")
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}

    def node(_state: MessagesState) -> dict[str, Any]:
        blocks = [{"type": "text", "text": "Look: "}, picture]
        answer = model.invoke([SystemMessage("Be brief."), ("user", blocks)])
        return {"messages": [answer]}

    linear(MessagesState, node=node).invoke(ask())

    run = recorded.trajectory()
    (call,) = [i for i in run.invocations if i.kind == "model"]
    system, user = run.seen_by(call)
    assert system.content == "Be brief."
    assert user.content.startswith("Look: ")
    assert "image/png" in user.content
