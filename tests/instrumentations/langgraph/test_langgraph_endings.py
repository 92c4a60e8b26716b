"""Ends of runs: completed, interrupted and resumed, at the limit, cancelled, failed, retried."""

from __future__ import annotations

import asyncio
import gc
from typing import Any
from uuid import uuid4

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphRecursionError
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, RetryPolicy, interrupt
from langgraph_programs import add, arithmetic, ask, chain, linear, says, supervised
from scripted_llm import Call, Reply

pytestmark = pytest.mark.framework("langgraph")

LOOP = pytest.mark.asyncio(loop_scope="session")
THREAD = {"configurable": {"thread_id": "thread-1"}}


def root(recorded: Any) -> Any:
    return recorded.named("invoke_workflow")[-1]


def reason(recorded: Any) -> Any:
    return root(recorded).attributes["mast.run.termination_reason"]


def ping_pong() -> Any:
    builder = StateGraph(MessagesState)
    builder.add_node("ping", says("ping"))
    builder.add_node("pong", says("pong"))
    builder.add_edge(START, "ping")
    builder.add_edge("ping", "pong")
    builder.add_edge("pong", "ping")
    return builder.compile()


def approval() -> Any:
    """A drafter, and an approver who asks a human."""

    def approver(_state: MessagesState) -> dict[str, Any]:
        answer = interrupt({"question": "Send it?"})
        return {"messages": [AIMessage(f"The human says {answer}.")]}

    builder = chain(MessagesState, drafter=says("A draft."), approver=approver)
    return builder.compile(checkpointer=InMemorySaver())


class TestInterrupts:
    """Runs that wait for a human."""

    def test_the_question_is_a_message_to_the_user_and_no_error(self, recorded):
        """An interrupt asks a human something."""
        approval().invoke(ask(), THREAD)

        recorded.check_shape()
        assert reason(recorded) == "interrupted"
        assert all(span.status.is_ok for span in recorded.all)
        assert recorded.sent_messages() == [
            ("drafter", ("approver",), "A draft."),
            ("approver", ("user",), '{"question": "Send it?"}'),
        ]

    def test_what_resumes_it_is_a_run_that_links_to_it(self, recorded):
        """Two traces of one conversation, the second begins with the human's answer."""
        graph = approval()
        graph.invoke(ask(), THREAD)
        graph.invoke(Command(resume="yes"), THREAD)

        recorded.check_shape(runs=2)
        asked, answered = recorded.named("invoke_workflow")
        assert asked.attributes["gen_ai.conversation.id"] == "thread-1"
        assert answered.attributes["gen_ai.conversation.id"] == "thread-1"
        assert [link.context for link in answered.links] == [asked.context]
        second = recorded.trajectories()[1]
        assert second.task == "yes"
        assert second.termination_reason == "completed"
        assert [step.text for step in second.steps] == ["The human says yes."]

    def test_a_breakpoint_is_an_interrupt(self, recorded):
        """`interrupt_before` stops the run between two nodes."""
        builder = chain(MessagesState, one=says("one"), two=says("two"))
        graph = builder.compile(checkpointer=InMemorySaver(), interrupt_before=["two"])
        graph.invoke(ask(), THREAD)
        assert reason(recorded) == "interrupted"

        graph.invoke(None, THREAD)
        assert reason(recorded) == "completed"
        assert root(recorded).links[0].context == recorded.named("invoke_workflow")[0].context

    def test_the_next_question_of_a_conversation_is_not_a_resumption(self, recorded):
        """A finished run on a thread is followed, not continued."""
        graph = chain(MessagesState, one=says("one")).compile(checkpointer=InMemorySaver())
        graph.invoke(ask(), THREAD)
        graph.invoke(ask("More?"), THREAD)

        recorded.check_shape(runs=2)
        assert root(recorded).links == ()
        assert recorded.trajectories()[1].task == "More?"

    def test_an_interrupt_in_a_subgraph_asks_once(self, recorded):
        """An interrupt that leaves several graphs is one question."""

        def asker(_state: MessagesState) -> dict[str, Any]:
            return {"messages": [AIMessage(interrupt("May I?"))]}

        inner = linear(MessagesState, asker=asker)
        outer = chain(MessagesState, team=inner).compile(checkpointer=InMemorySaver())
        outer.invoke(ask(), THREAD)

        recorded.check_shape()
        assert recorded.sent_messages() == [("asker", ("user",), "May I?")]
        assert reason(recorded) == "interrupted"


class TestLimits:
    """Runs that take too many steps."""

    def test_the_recursion_limit_is_a_reason_of_its_own(self, recorded):
        """The error reaches the program, the run says why it stopped."""
        with pytest.raises(GraphRecursionError):
            ping_pong().invoke(ask(), {"recursion_limit": 4})

        recorded.check_shape()
        assert reason(recorded) == "recursion_limit"
        assert root(recorded).attributes["error.type"] == "GraphRecursionError"

    def test_a_prebuilt_agent_that_gives_up_softly_ran_into_the_limit(self, recorded, models):
        """`create_react_agent` answers "Sorry, need more steps" instead of raising."""
        from langgraph.prebuilt import create_react_agent

        model = models(lambda _request: Reply(calls=(Call("add", {"a": 2, "b": 3}),)))
        agent = create_react_agent(model, [add], name="math")
        agent.invoke(ask(), {"recursion_limit": 4})

        assert reason(recorded) == "recursion_limit"
        assert recorded.trajectory().steps[-1].synthetic


class TestErrors:
    """Nodes and models that fail."""

    def test_a_failing_node_fails_its_agent_and_the_run(self, recorded):
        """The program sees its own error."""

        def broken(_state: MessagesState) -> dict[str, Any]:
            raise KeyError("no such page")

        with pytest.raises(KeyError):
            linear(MessagesState, fine=says("ok"), broken=broken).invoke(ask())

        recorded.check_shape()
        assert reason(recorded) == "error"
        fine, failed = recorded.named("invoke_agent")
        assert fine.status.is_ok
        assert failed.attributes["error.type"] == "KeyError"
        assert [text for _, _, text in recorded.sent_messages()] == ["ok"]

    def test_what_was_said_before_an_error_inside_is_kept(self, recorded):
        """Words wait for their recipients; an error sets them free."""

        def broken(_state: MessagesState) -> dict[str, Any]:
            raise ValueError("broken")

        team = linear(MessagesState, one=says("said"), broken=broken)
        with pytest.raises(ValueError, match="broken"):
            linear(MessagesState, team=team).invoke(ask())

        assert [text for _, _, text in recorded.sent_messages()] == ["said"]


class TestRetries:
    """Nodes that are tried again."""

    def test_a_node_that_is_tried_again_is_one_turn(self, recorded):
        """The attempts that failed are counted; the one that succeeded speaks."""
        attempts: list[int] = []

        def flaky(_state: MessagesState) -> dict[str, Any]:
            attempts.append(1)
            if len(attempts) < 3:
                raise ConnectionError("try again")
            return {"messages": [AIMessage("at last")]}

        builder = StateGraph(MessagesState)
        policy = RetryPolicy(initial_interval=0.001, jitter=False, max_attempts=3)
        builder.add_node("flaky", flaky, retry_policy=policy)
        builder.add_edge(START, "flaky")
        builder.compile().invoke(ask())

        recorded.check_shape()
        (turn,) = recorded.named("invoke_agent")
        assert turn.status.is_ok
        assert turn.attributes["mast.failed_attempts"] == 2
        assert recorded.sent_messages() == [("flaky", (), "at last")]

    def test_giving_up_fails_the_turn(self, recorded):
        """All attempts failed: the turn has, with the last error."""

        def hopeless(_state: MessagesState) -> dict[str, Any]:
            raise ConnectionError("never")

        builder = StateGraph(MessagesState)
        policy = RetryPolicy(initial_interval=0.001, jitter=False, max_attempts=2)
        builder.add_node("hopeless", hopeless, retry_policy=policy)
        builder.add_edge(START, "hopeless")
        with pytest.raises(ConnectionError):
            builder.compile().invoke(ask())

        (turn,) = recorded.named("invoke_agent")
        assert turn.attributes["mast.failed_attempts"] == 2
        assert turn.attributes["error.type"] == "ConnectionError"


class TestLeavingEarly:
    """Consumers that stop."""

    def test_a_consumer_that_stops_ends_every_span(self, recorded, models):
        """A `break` out of the stream cancels the run; nothing stays open."""
        for _chunk in supervised(models(arithmetic)).stream(ask()):
            break

        recorded.check_shape()
        assert reason(recorded) == "cancelled"
        assert root(recorded).status.is_ok

    def test_a_generator_that_is_never_begun_makes_no_run(self, recorded):
        """Calling `stream` alone does nothing, with or without instrumentation."""
        stream = ping_pong().stream(ask())
        stream.close()

        assert recorded.all == []

    @LOOP
    async def test_an_async_consumer_that_stops_ends_every_span(self, recorded, models):
        """Closing the asynchronous generator cancels the run."""
        stream = supervised(models(arithmetic)).astream(ask())
        await anext(stream)
        await stream.aclose()

        recorded.check_shape()
        assert reason(recorded) == "cancelled"

    @LOOP
    async def test_cancelling_the_task_cancels_the_run(self, recorded):
        """The node is cancelled, the run records it, the caller gets its CancelledError."""
        begun = asyncio.Event()

        async def slow(_state: MessagesState) -> dict[str, Any]:
            begun.set()
            await asyncio.sleep(60)
            return {}

        running = asyncio.create_task(linear(MessagesState, slow=slow).ainvoke(ask()))
        await begun.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

        recorded.check_shape()
        assert reason(recorded) == "cancelled"

    @pytest.mark.parametrize("way", ["invoke", "messages", "events"])
    def test_a_cancelled_run_leaves_no_model_call_open(self, recorded, models, way):
        """LangChain's callbacks are not notified of the end of a cancelled call."""
        model = models(lambda _request: Reply("late", delay=0.5))

        async def asker(state: MessagesState) -> dict[str, Any]:
            return {"messages": [await model.ainvoke(state["messages"])]}

        graph = linear(MessagesState, asker=asker)

        async def run() -> None:
            if way == "invoke":
                await graph.ainvoke(ask())
            elif way == "messages":
                async for _ in graph.astream(ask(), stream_mode="messages"):
                    pass
            else:
                async for _ in graph.astream_events(ask(), version="v2"):
                    pass

        async def cancel() -> None:
            task = asyncio.create_task(run())
            while not models.server.requests:  # noqa: ASYNC110  # the server is in a thread
                await asyncio.sleep(0.005)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        asyncio.run(cancel())
        recorded.check_shape()
        assert recorded.counts()["chat"] == 1
        assert recorded.trajectory().termination_reason == "cancelled"

    def test_a_run_that_its_loop_has_forgotten_ends(self, recorded):
        """A stream that is read in part, in a loop that is closed: it ends when it is collected."""
        graph = linear(MessagesState, one=says("1"), two=says("2"))

        async def read_one() -> Any:
            stream = graph.astream(ask())
            await anext(stream)
            return stream

        loop = asyncio.new_event_loop()
        stream = loop.run_until_complete(read_one())
        loop.close()
        del stream
        gc.collect()

        recorded.check_shape()
        assert recorded.trajectory().termination_reason == "cancelled"

    def test_calls_with_one_id_of_the_programs_own_all_end(self, recorded, models):
        """A program may hand the same run id to several calls of a model."""
        model = models(lambda _request: "Yes.")
        identity = uuid4()

        async def asker(state: MessagesState) -> dict[str, Any]:
            calls = (model.ainvoke(state["messages"], {"run_id": identity}) for _ in range(3))
            return {"messages": await asyncio.gather(*calls)}

        asyncio.run(linear(MessagesState, asker=asker).ainvoke(ask()))

        recorded.check_shape()
        assert recorded.counts()["chat"] == 3
