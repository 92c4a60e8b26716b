"""Questions to an agent and its answers, outside of channels: one message each."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("ag2.network", reason="needs AG2 1.x (`import ag2`)")

import ag2_programs as programs
from ag2 import Agent, tool
from scripted_llm import Call, Reply, ScriptedLLM, last_text, messages_of, system_text

from mast_trace import semconv
from mast_trace.trajectory import StepKind

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan
    from recorded_spans import RecordedSpans

pytestmark = pytest.mark.framework("ag2")


def answers(spans: RecordedSpans) -> list[tuple[ReadableSpan, ReadableSpan]]:
    """The messages that answer another, with the one that each answers."""
    messages = spans.named("send_message")
    by_id = {span.attributes[semconv.MESSAGE_ID]: span for span in messages}
    assert len(by_id) == len(messages)
    return [
        (span, by_id[span.attributes[semconv.MESSAGE_IN_REPLY_TO]])
        for span in messages
        if semconv.MESSAGE_IN_REPLY_TO in span.attributes
    ]


@pytest.mark.parametrize("streaming", [False, True], ids=["whole", "streamed"])
async def test_a_lone_agent_is_asked_by_the_user(spans: RecordedSpans, streaming: bool) -> None:
    """The question is in the run, the answer in the turn; neither is a second step."""
    with ScriptedLLM(programs.tools_script) as server:
        await programs.tools(server.url, streaming=streaming)
    assert spans.sent_messages() == [
        ("user", ("solver",), "What is 2 + 3?"),
        ("solver", ("user",), "The sum is 5."),
    ]
    question, answer = spans.named("send_message")
    assert spans.parent(question).name == "invoke_workflow solver"
    assert spans.parent(answer).name == "invoke_agent solver"
    assert answers(spans) == [(answer, question)]
    steps = [(s.kind, s.agent, s.text) for s in spans.trajectory().steps]
    assert [step for step in steps if step[0] is not StepKind.TOOL] == [
        (StepKind.MESSAGE, "user", "What is 2 + 3?"),
        (StepKind.MESSAGE, "solver", "The sum is 5."),
    ]


async def test_an_agent_as_a_tool_is_asked_by_the_one_that_calls_it(spans: RecordedSpans) -> None:
    """Question below the call, answer below the turn that was asked for."""
    await programs.serve(programs.as_tool, programs.as_tool_script)
    assert [(sender, to) for sender, to, _ in spans.sent_messages()] == [
        ("user", ("lead",)),
        ("lead", ("researcher",)),
        ("researcher", ("lead",)),
        ("lead", ("user",)),
    ]
    _, asked, answered, _ = spans.named("send_message")
    assert "add 2 and 3" in str(asked.attributes[semconv.MESSAGE_CONTENT])
    assert spans.parent(asked).name == "execute_tool task_researcher"
    assert spans.parent(answered).name == "invoke_agent researcher"
    assert (answered, asked) in answers(spans)


async def test_sub_tasks_at_once_answer_their_own_questions(spans: RecordedSpans) -> None:
    """Two at the same time: each answer belongs to its question, also where the words are equal."""

    def script(request: dict[str, Any]) -> Reply | str:
        if "planner" in system_text(request):
            if messages_of(request)[-1]["role"] == "user":
                return Reply(calls=(Call("run_subtasks", {"tasks": ["same", "same"]}),))
            return "Both are done."
        return "done"

    await programs.serve(programs.subtasks, script)
    assert len(spans.named("send_message")) == 6
    pairs = answers(spans)
    assert len(pairs) == 3
    for answer, question in pairs:
        assert answer.attributes[semconv.MESSAGE_SENDER] in tuple(
            question.attributes[semconv.MESSAGE_RECIPIENTS]
        )
    assert len({question.context.span_id for _, question in pairs}) == 3


async def test_asking_inside_of_a_tool_is_the_acting_agents_doing(spans: RecordedSpans) -> None:
    """A tool's code that asks another agent asks in the name of the agent that called the tool."""
    with ScriptedLLM(lambda request: f"re {last_text(request)}") as helper_server:
        helper = Agent("helper", config=programs.model(helper_server.url))

        @tool
        async def consult(question: str) -> str:
            """Ask the helper."""
            return str((await helper.ask(question)).body)

        def script(request: dict[str, Any]) -> Reply | str:
            if messages_of(request)[-1]["role"] == "user":
                return Reply(calls=(Call("consult", {"question": "Really?"}),))
            return f"It said: {last_text(request)}"

        with ScriptedLLM(script) as server:
            boss = Agent("boss", config=programs.model(server.url), tools=[consult])
            await boss.ask("Find out.")
    spans.check_shape()
    assert spans.sent_messages() == [
        ("user", ("boss",), "Find out."),
        ("boss", ("helper",), "Really?"),
        ("helper", ("boss",), "re Really?"),
        ("boss", ("user",), "It said: re Really?"),
    ]


async def test_a_hand_made_agent_that_asks_is_the_sender(spans: RecordedSpans) -> None:
    """AG2 inside of an agent that is written by hand."""
    own = spans.instrumentor.telemetry
    run = own.run("by hand")
    writer = own.agent("writer", parent=run.context)
    with ScriptedLLM(lambda _request: "Yes.") as server, writer.attached():
        await Agent("checker", config=programs.model(server.url)).ask("Is it right?")
    writer.end()
    run.finish("completed")
    spans.check_shape()
    assert spans.sent_messages() == [
        ("writer", ("checker",), "Is it right?"),
        ("checker", ("writer",), "Yes."),
    ]


async def test_a_failed_turn_was_asked_and_did_not_answer(spans: RecordedSpans) -> None:
    """The question stays; there is no answer."""
    await programs.serve(programs.model_error, programs.failing_script)
    spans.check_shape()
    assert spans.sent_messages() == [("user", ("solver",), "Hello?")]


async def test_agents_asked_at_once(spans: RecordedSpans) -> None:
    """Three runs at once: two messages each, in their own trace."""
    with ScriptedLLM(lambda request: f"re {last_text(request)}") as server:

        async def ask(number: int) -> None:
            agent = Agent(f"agent {number}", config=programs.model(server.url))
            await agent.ask(f"question {number}")

        await asyncio.gather(*(ask(number) for number in range(3)))
    spans.check_shape(runs=3)
    spoken = sorted([step.text for step in run.steps] for run in spans.trajectories())
    assert spoken == [[f"question {n}", f"re question {n}"] for n in range(3)]


async def test_in_a_channel_the_envelopes_are_question_and_answer(spans: RecordedSpans) -> None:
    """If a handler of the program's own asks the agent, no message is recorded twice."""
    with ScriptedLLM(lambda _request: "Fine.") as server:
        bob = programs.person("bob", server.url)
        async with programs.network(programs.person("alice", server.url), bob) as (hub, (a, b)):

            async def handle(envelope: Any) -> None:
                if envelope.event_type == "ag2.msg.text":
                    asked = (
                        f"{hub.name_for(envelope.sender_id)} asks: {envelope.event_data['text']}"
                    )
                    reply = await bob.ask(asked)
                    await channel.send(f"[{reply.body}]")
                else:
                    await b._run_default_handler(envelope)

            b.on_envelope(handle)
            channel = await a.open(type="conversation", target="bob")
            await channel.send("How are you?")
            await programs.until(lambda: len(spans.named("send_message")) == 2)
            await channel.close()
    assert [text for _, _, text in spans.sent_messages()] == ["How are you?", "[Fine.]"]


@pytest.mark.parametrize("how", ["channel", "hub"])
async def test_a_turn_that_is_cut_off_by_closing_is_no_failure(
    spans: RecordedSpans, how: str
) -> None:
    """Turn, model call and tool call end without an error: nothing went wrong in them."""
    started = asyncio.Event()

    @tool
    async def ponder() -> str:
        """Think for ever."""
        started.set()
        await asyncio.Event().wait()
        return "never"

    with ScriptedLLM(lambda _request: Reply(calls=(Call("ponder", {}),))) as server:
        async with programs.two(server.url, (ponder,)) as (_hub, (a, _b)):
            channel = await a.open(type="conversation", target="bob")
            await channel.send("Hello Bob.")
            await started.wait()
            if how == "channel":
                await channel.close()
    spans.check_shape()
    assert spans.counts() == {
        "invoke_workflow": 1,
        "send_message": 1,
        "invoke_agent": 1,
        "chat": 1,
        "execute_tool": 1,
    }
    assert [span.name for span in spans.all if not span.status.is_ok] == []
    assert spans.trajectory().error is None
    ended = "completed" if how == "channel" else "interrupted"
    assert spans.trajectory().termination_reason == ended


async def test_a_model_that_is_cut_off_by_closing_is_no_failure(spans: RecordedSpans) -> None:
    """A model call that is cut off by closing is no failure."""
    with ScriptedLLM(lambda _request: Reply("late", delay=0.3)) as server:
        async with programs.two(server.url) as (_hub, (a, _b)):
            channel = await a.open(type="conversation", target="bob")
            await channel.send("Hello Bob.")
            await programs.until(lambda: server.requests)
            await channel.close()
    spans.check_shape()
    assert len(spans.named("chat")) == 1
    assert [span.name for span in spans.all if not span.status.is_ok] == []


async def test_a_timeout_of_the_programs_own_stays_a_failure(spans: RecordedSpans) -> None:
    """Inside of a channel that goes on, a tool that is cancelled by its own limit failed."""

    @tool
    async def slow() -> str:
        """Be too slow."""
        await asyncio.wait_for(asyncio.Event().wait(), 0.01)
        return "never"

    def script(request: dict[str, Any]) -> Reply | str:
        if messages_of(request)[-1]["role"] == "user":
            return Reply(calls=(Call("slow", {}),))
        return "Too slow."

    with ScriptedLLM(script) as server:
        async with programs.two(server.url, (slow,)) as (hub, (a, _b)):
            channel = await a.open(type="consulting", target="bob")
            await channel.send("Hello Bob.")
            await programs.closed(hub, channel.channel_id)
    (call,) = spans.named("execute_tool")
    assert call.attributes[semconv.ERROR_TYPE] == "TimeoutError"
