"""Channels of AG2's network: each is a run, each accepted envelope with words in it one message."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

pytest.importorskip("ag2.network", reason="needs AG2 1.x (`import ag2`)")

import ag2_programs as programs
from scripted_llm import ScriptedLLM, last_text

from mast_trace import semconv
from mast_trace.testing import capture_spans
from mast_trace.trajectory import StepKind

if TYPE_CHECKING:
    from recorded_spans import RecordedSpans

pytestmark = pytest.mark.framework("ag2")


def reply_to(request: dict) -> str:
    """Answer with the text."""
    return f"reply to {last_text(request)}"


async def test_a_conversation_is_one_run(spans: RecordedSpans) -> None:
    """Messages in order, turns beside them; protocol envelopes are nothing; silence is no message."""
    spoken = await programs.serve(programs.conversation, programs.conversation_script)
    spans.check_shape()
    assert spans.sent_messages() == [
        ("alice", ("bob",), "Hello Bob."),
        ("bob", ("alice",), "Hello Alice."),
        ("alice", ("bob",), "Good bye."),
    ]
    assert len(spoken) == 3
    assert spans.counts() == {
        "invoke_workflow": 1,
        "send_message": 3,
        "invoke_agent": 3,
        "chat": 3,
    }
    root = spans.named("invoke_workflow")[0]
    below = [*spans.named("send_message"), *spans.named("invoke_agent")]
    assert {spans.parent(span).context.span_id for span in below} == {root.context.span_id}
    # The first message is the task; AG2's reason for the end stands beside the common one.
    run = spans.trajectory()
    assert run.task == "Hello Bob."
    assert run.termination_reason == "completed"
    assert run.name == "conversation"
    assert root.attributes["ag2.network.close_reason"] == "explicit_close"
    assert root.attributes[semconv.CONVERSATION_ID]


@pytest.mark.parametrize(("capture", "name"), [(True, "write a program"), (False, "workflow")])
async def test_a_run_is_named_after_what_its_channel_is_for(capture: bool, name: str) -> None:
    """The intent may be a model's words: where content is not recorded, the type is the name."""
    with (
        ScriptedLLM(programs.workflow_script) as server,
        capture_spans(frameworks=["ag2"], capture_content=capture) as spans,
    ):
        await programs.workflow(server.url)
    (run,) = spans.trajectories()
    assert run.name == name


@pytest.mark.parametrize(
    ("program", "reason"),
    [("consulting", "completed"), ("round_robin", "max_turns")],
)
async def test_the_end_of_a_channel(spans: RecordedSpans, program: str, reason: str) -> None:
    """A consultation that is answered is completed; a workflow out of turns says that."""
    with ScriptedLLM(reply_to) as server:
        await getattr(programs, program)(server.url)
    spans.check_shape()
    assert spans.trajectory().termination_reason == reason


async def test_a_discussion_reaches_everybody_in_turn(spans: RecordedSpans) -> None:
    """Recipients are all others, by name; each message answers the one before; code picks the next."""
    await programs.serve(programs.discussion, programs.discussion_script)
    spans.check_shape()
    assert spans.sent_messages() == [
        ("alice", ("bob", "carol"), "Is it raining?"),
        ("bob", ("alice", "carol"), "I think so too."),
        ("carol", ("alice", "bob"), "I disagree."),
    ]
    messages = spans.named("send_message")
    ids = [m.attributes[semconv.MESSAGE_ID] for m in messages]
    assert [m.attributes.get(semconv.MESSAGE_IN_REPLY_TO) for m in messages] == [None, *ids[:2]]
    assert [m.attributes[semconv.SELECTED_SPEAKER] for m in messages] == ["bob", "carol", "alice"]
    assert {m.attributes[semconv.SELECTED_BY] for m in messages} == {"code"}
    assert [m.attributes[semconv.TURN] for m in messages] == [0, 1, 2]


async def test_hand_offs_have_source_and_target(spans: RecordedSpans) -> None:
    """A tool chooses one hand-off at run time, a rule of the graph another; each is on one span."""
    await programs.serve(programs.workflow, programs.workflow_script)
    handoffs = [
        (s.attributes[semconv.HANDOFF_SOURCE], s.attributes[semconv.HANDOFF_TARGET])
        for s in spans.all
        if semconv.HANDOFF_TARGET in s.attributes
    ]
    assert handoffs == [("triage", "coder"), ("coder", "reviewer")]
    selected = [s.attributes.get(semconv.SELECTED_BY) for s in spans.named("send_message")]
    assert selected == ["code", "agent", "agent", None]
    (root,) = spans.named("invoke_workflow")
    assert root.attributes["ag2.network.close_reason"] == "finished"
    # A model's answer that goes out as a message has the message's id, and is no second step.
    steps = spans.trajectory().steps
    assert [(step.kind, step.agent) for step in steps] == [
        (StepKind.MESSAGE, "customer"),
        (StepKind.TOOL, "triage"),
        (StepKind.MESSAGE, "triage"),
        (StepKind.TOOL, "coder"),
        (StepKind.MESSAGE, "coder"),
        (StepKind.TOOL, "reviewer"),
        (StepKind.MESSAGE, "reviewer"),
    ]


async def test_the_same_words_said_twice_are_two_messages(spans: RecordedSpans) -> None:
    """Repetition is what some failures consist of: it keeps its own ids."""
    await programs.serve(programs.round_robin, lambda _request: "Ping")
    assert [text for _, _, text in spans.sent_messages()] == ["Ping", "Ping", "Ping"]
    messages = spans.named("send_message")
    assert len({m.attributes[semconv.MESSAGE_ID] for m in messages}) == 3
    assert len({m.attributes[semconv.MESSAGE_CONTENT_HASH] for m in messages}) == 1
    assert [s.kind for s in spans.trajectory().steps] == [StepKind.MESSAGE] * 3


async def test_a_consultation_within_a_turn_is_part_of_its_run(spans: RecordedSpans) -> None:
    """The channel that a `delegate` call opens is below that call, in the same trace."""
    assert await programs.serve(programs.delegate, programs.delegate_script) == "It is 5, says Bob."
    spans.check_shape()
    assert spans.sent_messages() == [
        ("user", ("alice",), "What is 2 + 3?"),
        ("alice", ("bob",), "What is 2 + 3?"),
        ("bob", ("alice",), "Bob says 5."),
        ("alice", ("user",), "It is 5, says Bob."),
    ]
    ids = [span.attributes[semconv.MESSAGE_ID] for span in spans.named("send_message")]
    assert len(set(ids)) == 4, "the same words, asked by another, are another message"
    outer, inner = spans.named("invoke_workflow")
    assert outer.parent is None
    assert spans.parent(inner).name == "execute_tool delegate"
    assert inner.attributes[semconv.RUN_TERMINATION_REASON] == "completed"


async def test_a_model_that_fails_in_a_channel_is_on_the_turn(spans: RecordedSpans) -> None:
    """AG2 only logs it and goes on; the trace has it, once per level."""
    outcome = await programs.serve(programs.network_failure, programs.failing_script)
    assert outcome == ["InternalServerError", "alice: Hello Bob."]
    spans.check_shape()
    (turn,) = spans.named("invoke_agent")
    (chat,) = spans.named("chat")
    assert turn.attributes[semconv.ERROR_TYPE] == "InternalServerError"
    assert chat.attributes[semconv.ERROR_TYPE] == "InternalServerError"


async def test_a_turn_that_fails_around_its_agent_is_recorded(spans: RecordedSpans) -> None:
    """A channel whose view raises has no agent's turn to hang the error on: it gets one."""

    def broken(*_args: object, **_kwargs: object) -> None:
        raise RuntimeError("no view")

    with ScriptedLLM(reply_to) as server:
        async with programs.two(server.url) as (hub, (a, _b)):
            hub.adapter_for(
                (channel := await a.open(type="conversation", target="bob")).channel_id
            ).default_view_policy = broken
            await channel.send("Hello Bob.")
            await programs.until(lambda: spans.named("invoke_agent"))
            await channel.close()
    spans.check_shape()
    (turn,) = spans.named("invoke_agent")
    assert turn.name == "invoke_agent bob"
    assert turn.attributes[semconv.ERROR_TYPE] == "RuntimeError"
    assert spans.named("chat") == []


async def test_a_channel_that_stays_open_ends_with_its_hub(spans: RecordedSpans) -> None:
    """No run is left without its root because nobody closed the channel."""
    with ScriptedLLM(lambda _request: "") as server:
        async with programs.two(server.url) as (_hub, (a, _b)):
            channel = await a.open(type="conversation", target="bob")
            await channel.send("Hello Bob.")
            await programs.until(lambda: spans.named("invoke_agent"))
    spans.check_shape()
    assert spans.trajectory().termination_reason == "interrupted"


async def test_a_hub_that_ends_leaves_the_channels_of_others_open(spans: RecordedSpans) -> None:
    with ScriptedLLM(lambda _request: "") as server:
        async with programs.two(server.url) as (_other, (c, _d)):
            await c.open(type="conversation", target="bob")
            async with programs.two(server.url) as (_hub, (a, _b)):
                await a.open(type="conversation", target="bob")
            assert len(spans.named("invoke_workflow")) == 1
    assert len(spans.named("invoke_workflow")) == 2


async def test_an_invitation_that_nobody_accepts_is_a_failed_run(spans: RecordedSpans) -> None:
    """A channel that does not open ends with an error."""
    with ScriptedLLM(reply_to) as server:
        async with programs.two(server.url) as (hub, (a, b)):
            hub._invite_ack_timeout = 0.05

            async def deaf(_envelope: object) -> None:
                return

            b.on_envelope(deaf)
            with pytest.raises(Exception, match="ack timeout"):
                await a.open(type="conversation", target="bob")
    spans.check_shape()
    run = spans.trajectory()
    assert run.termination_reason == "error"
    assert "invite_timeout" in str(run.error)


async def test_a_human_participant_speaks_as_the_user(spans: RecordedSpans) -> None:
    """A registered human's message has the user's role."""
    from ag2.network import HubClient
    from ag2.network.transport.local import LocalLink

    with ScriptedLLM(reply_to) as server:
        bob = programs.person("bob", server.url)
        async with programs.network(bob) as (hub, (_b,)):
            from ag2.network import Passport

            client = HubClient(LocalLink(hub), hub=hub)
            human = await client.register_human(Passport(name="eve", kind="human"))
            channel = await human.open(type="conversation", target="bob")
            await channel.send("Hello Bob.")
            await programs.silence(hub, channel.channel_id, 2)
            await channel.send("And again.")
            await programs.silence(hub, channel.channel_id, 4)
            await channel.close()
            await client.close()
    spans.check_shape()
    roles = [
        (s.attributes[semconv.MESSAGE_SENDER], s.attributes[semconv.MESSAGE_ROLE])
        for s in spans.named("send_message")
    ]
    assert roles == [("eve", "user"), ("bob", "assistant")] * 2
