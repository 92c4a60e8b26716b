"""Tool calls: each gives one span, with what was asked, what came of it, and who asked."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated, Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import InjectedToolCallId, ToolException, tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import InjectedState, ToolNode, tools_condition
from langgraph.types import Command
from langgraph_programs import add, ask, create_agent, linear, says
from scripted_llm import Call, Reply, messages_of

from mast_trace.spans import Telemetry

pytestmark = pytest.mark.framework("langgraph")


def calls_then_answers(*calls: Call) -> Any:
    """A model that asks for these calls at once, then answers."""

    def script(request: dict[str, Any]) -> Reply | str:
        if messages_of(request)[-1]["role"] == "user":
            return Reply(calls=calls)
        return "Done."

    return script


def run(models: Any, tools: list[Any], *calls: Call) -> dict[str, Any]:
    model = models(calls_then_answers(*calls))
    result: dict[str, Any] = create_agent(model, tools, name="worker").invoke(ask())
    return result


def calling(node: ToolNode, name: str, **arguments: Any) -> Any:
    """A graph that asks for a tool, and calls it in a node."""
    asked = AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": "call_7"}])
    return linear(MessagesState, ask=lambda _state: {"messages": [asked]}, tools=node)


class TestOnce:
    """One span for each call."""

    def test_parallel_calls_give_one_span_each(self, recorded, models):
        """Three calls in one answer, two of them equal."""
        calls = (Call("add", {"a": 1, "b": 2}), Call("add", {"a": 3, "b": 4}))
        run(models, [add], *calls, Call("add", {"a": 1, "b": 2}))

        recorded.check_shape()
        spans = recorded.named("execute_tool")
        assert sorted(s.attributes["gen_ai.tool.call.result"] for s in spans) == ["3", "3", "7"]
        assert len({s.attributes["gen_ai.tool.call.id"] for s in spans}) == 3
        assert {s.attributes["gen_ai.agent.name"] for s in spans} == {"worker"}

    def test_an_async_tool_in_an_async_run_gives_one_span(self, recorded, models):
        """`arun` of a coroutine tool."""

        @tool
        async def fetch(page: int) -> str:
            """Fetch a page."""
            await asyncio.sleep(0)
            return f"page {page}"

        asyncio.run(calling(ToolNode([fetch]), "fetch", page=1).ainvoke(ask()))

        (span,) = recorded.named("execute_tool")
        assert span.attributes["gen_ai.tool.call.result"] == "page 1"

    def test_a_sync_tool_in_an_async_run_gives_one_span(self, recorded):
        """A plain function runs in a worker thread, where `run` is called for `arun`."""
        asyncio.run(calling(ToolNode([add]), "add", a=1, b=1).ainvoke(ask()))

        recorded.check_shape()
        assert recorded.counts()["execute_tool"] == 1

    def test_a_tool_that_calls_a_tool_gives_two_spans(self, recorded, models):
        """The inner one inside of the outer one."""

        @tool
        def inner(x: int) -> int:
            """Double."""
            return 2 * x

        @tool
        def outer(x: int) -> int:
            """Double and add one."""
            return int(inner.invoke({"x": x})) + 1

        run(models, [outer], Call("outer", {"x": 3}))

        first, second = recorded.named("execute_tool")
        assert (first.name, second.name) == ("execute_tool outer", "execute_tool inner")
        assert recorded.parent(second) is first
        assert second.attributes["gen_ai.tool.call.arguments"] == '{"x": 3}'

    def test_a_tool_outside_of_any_run_is_not_recorded(self, recorded):
        """A program may use LangChain's tools for itself."""

        @tool
        def alone(x: int) -> int:
            """Do nothing."""
            return x

        assert alone.invoke({"x": 1}) == 1
        assert recorded.all == []

    @pytest.mark.parametrize(("framework", "spans"), [("", 1), ("crewai", 0)])
    def test_in_runs_of_other_frameworks_it_is_theirs(self, recorded, framework, spans):
        """Other frameworks take LangChain's tools and record them; hand-made agents do not."""

        @tool
        def shared(x: int) -> int:
            """Do nothing."""
            return x

        telemetry = Telemetry(recorded.provider, framework=framework)
        run = telemetry.run("theirs")
        with run.attached():
            shared.invoke({"x": 1})
        run.finish("completed")

        assert recorded.counts().get("execute_tool", 0) == spans


class TestFailures:
    """Calls that fail."""

    def test_a_raising_tool_fails_with_the_text_that_the_model_is_told(self, recorded, models):
        """The ToolNode turns the error into a message: both are on the one span."""

        @tool
        def divide(a: int, b: int) -> float:
            """Divide."""
            try:
                return a / b
            except ZeroDivisionError as error:
                raise ToolException("no division by zero") from error

        divide.handle_tool_error = False
        node = ToolNode([divide], handle_tool_errors=True)
        told = calling(node, "divide", a=1, b=0).invoke(ask())["messages"][-1]

        (span,) = recorded.named("execute_tool")
        assert span.status.status_code.name == "ERROR"
        assert span.status.description == "no division by zero"
        assert span.attributes["error.type"] == "ToolException"
        assert span.attributes["gen_ai.tool.call.result"] == told.content

    def test_an_error_that_ends_the_run_is_on_tool_agent_and_run(self, recorded, models):
        """Every span around an unhandled error failed, and the program sees the same error."""

        @tool
        def explode() -> str:
            """Raise."""
            raise RuntimeError("boom")

        node = ToolNode([explode], handle_tool_errors=False)
        with pytest.raises(RuntimeError, match="boom"):
            calling(node, "explode").invoke(ask())

        (span,) = recorded.named("execute_tool")
        assert span.attributes["error.type"] == "RuntimeError"
        assert recorded.trajectory().error == "boom"
        assert recorded.trajectory().termination_reason == "error"

    def test_an_error_that_the_tool_handles_itself_is_a_failure_too(self, recorded, models):
        """`handle_tool_error` makes LangChain return an error message instead of raising."""

        @tool
        def refuse() -> str:
            """Refuse."""
            raise ToolException("not today")

        refuse.handle_tool_error = True
        run(models, [refuse], Call("refuse"))

        (span,) = recorded.named("execute_tool")
        assert span.status.status_code.name == "ERROR"
        assert span.attributes["gen_ai.tool.call.result"] == "not today"

    def test_an_unknown_tool_is_a_failed_call(self, recorded, models):
        """The model makes up a tool: nothing runs, LangGraph tells it so."""
        result = run(models, [add], Call("multiply", {"a": 2, "b": 3}))

        (span,) = recorded.named("execute_tool")
        told = next(m for m in result["messages"] if isinstance(m, ToolMessage))
        assert span.name == "execute_tool multiply"
        assert span.status.status_code.name == "ERROR"
        assert span.attributes["gen_ai.tool.call.arguments"] == '{"a": 2, "b": 3}'
        assert span.attributes["gen_ai.tool.call.result"] == told.content
        assert span.attributes["gen_ai.agent.name"] == "worker"

    def test_arguments_that_do_not_fit_are_a_failed_call(self, recorded, models):
        """A missing argument: LangChain refuses, and the model gets the reason."""
        run(models, [add], Call("add", {"a": 2}))

        (span,) = recorded.named("execute_tool")
        assert span.status.status_code.name == "ERROR"
        assert "b" in span.attributes["gen_ai.tool.call.result"]

    def test_arguments_that_are_no_json_are_a_failed_call(self, recorded, models):
        """LangChain drops such a call without a word: the span is where it can be seen."""
        run(models, [add], Call("add", '{"a": 2, "b": '))

        recorded.check_shape()
        (span,) = recorded.named("execute_tool")
        assert span.status.status_code.name == "ERROR"
        assert span.attributes["gen_ai.tool.call.arguments"] == '{"a": 2, "b": '
        assert [s.kind.value for s in recorded.trajectory().steps] == ["tool"]


class TestArguments:
    """The model's request."""

    def test_what_langgraph_injects_is_not_recorded(self, recorded, models):
        """State and call id go to the tool, only the model's arguments to the span."""

        @tool
        def count(
            word: str,
            state: Annotated[dict[str, Any], InjectedState],
            tool_call_id: Annotated[str, InjectedToolCallId],
        ) -> str:
            """Count a word in the texts."""
            return f"{len(state['messages'])} {tool_call_id != ''}"

        run(models, [count], Call("count", {"word": "x"}))

        (span,) = recorded.named("execute_tool")
        assert json.loads(span.attributes["gen_ai.tool.call.arguments"]) == {"word": "x"}
        assert span.attributes["gen_ai.tool.call.result"] == "2 True"

    def test_what_is_injected_is_left_out_of_calls_that_no_model_made(self, recorded):
        """A node may call such a tool itself."""

        @tool
        def count(word: str, state: Annotated[dict[str, Any], InjectedState]) -> int:
            """Count."""
            return len(state["messages"])

        def node(state: MessagesState) -> dict[str, Any]:
            return {"messages": [AIMessage(str(count.invoke({"word": "x", "state": state})))]}

        linear(MessagesState, node=node).invoke(ask())

        (span,) = recorded.named("execute_tool")
        assert json.loads(span.attributes["gen_ai.tool.call.arguments"]) == {"word": "x"}


class TestWhoAsked:
    """The agent behind a call."""

    def test_a_tool_node_of_its_own_is_no_agent(self, recorded, models):
        """In a plain graph the tool belongs to the agent that asked, not to the node that runs it."""
        model = models(calls_then_answers(Call("add", {"a": 2, "b": 3}))).bind_tools([add])

        def researcher(state: MessagesState) -> dict[str, Any]:
            return {"messages": [model.invoke(state["messages"])]}

        builder = StateGraph(MessagesState)
        builder.add_node("researcher", researcher)
        builder.add_node("tools", ToolNode([add]))
        builder.add_node("writer", says("Written."))
        builder.add_edge(START, "researcher")
        builder.add_conditional_edges(
            "researcher", tools_condition, {"tools": "tools", "__end__": "writer"}
        )
        builder.add_edge("tools", "researcher")
        builder.compile().invoke(ask())

        recorded.check_shape()
        (span,) = recorded.named("execute_tool")
        assert span.attributes["gen_ai.agent.name"] == "researcher"
        turns = [s.attributes["gen_ai.agent.name"] for s in recorded.named("invoke_agent")]
        assert turns == ["researcher", "researcher", "writer"]
        assert recorded.sent_messages() == [
            ("researcher", ("writer",), "Done."),
            ("writer", (), "Written."),
        ]

    def test_any_tool_that_returns_a_goto_hands_over(self, recorded, models):
        """Hand-off tools that a program writes itself."""

        @tool
        def pass_on(tool_call_id: Annotated[str, InjectedToolCallId]) -> Command[Any]:
            """Pass on to the expert."""
            note = ToolMessage("passed on", tool_call_id=tool_call_id)
            return Command(goto="expert", graph=Command.PARENT, update={"messages": [note]})

        front = create_agent(models(calls_then_answers(Call("pass_on"))), [pass_on], name="front")
        builder = StateGraph(MessagesState)
        builder.add_node("front", front)
        builder.add_node("expert", says("I take over."))
        builder.add_edge(START, "front")
        builder.compile().invoke(ask())

        recorded.check_shape()
        (span,) = recorded.named("execute_tool")
        assert span.attributes["mast.handoff.source.name"] == "front"
        assert span.attributes["mast.handoff.target.name"] == "expert"
        assert span.attributes["gen_ai.tool.call.result"] == "passed on"
        assert span.status.is_ok


class TestMiddleware:
    """Wrappers that `create_agent` lets programs put around tools."""

    @pytest.fixture
    def wrap_tool_call(self) -> Any:
        middleware = pytest.importorskip(
            "langchain.agents.middleware", reason="middleware came with LangChain 1.0"
        )
        return middleware.wrap_tool_call

    def test_every_execution_of_a_call_that_is_tried_again_is_recorded(
        self, recorded, models, wrap_tool_call
    ):
        """Two attempts are two executions: the first failed, the second did not."""
        attempts: list[int] = []

        @tool
        def flaky() -> str:
            """Work the second time."""
            attempts.append(1)
            if len(attempts) == 1:
                raise ConnectionError("try again")
            return "fine"

        @wrap_tool_call
        def twice(request: Any, handler: Any) -> Any:
            try:
                return handler(request)
            except ConnectionError:
                return handler(request)

        model = models(calls_then_answers(Call("flaky")))
        create_agent(model, [flaky], name="worker", middleware=[twice]).invoke(ask())

        recorded.check_shape()
        first, second = recorded.named("execute_tool")
        assert first.attributes["error.type"] == "ConnectionError"
        assert second.status.is_ok
        assert second.attributes["gen_ai.tool.call.result"] == "fine"

    def test_a_call_that_is_answered_without_the_tool_is_a_call(
        self, recorded, models, wrap_tool_call
    ):
        """Middleware that refuses or remembers: one span, with the text for the model."""

        @wrap_tool_call
        def refuse(request: Any, _handler: Any) -> Any:
            return ToolMessage("not allowed", tool_call_id=request.tool_call["id"])

        model = models(calls_then_answers(Call("add", {"a": 1, "b": 2})))
        create_agent(model, [add], name="worker", middleware=[refuse]).invoke(ask())

        (span,) = recorded.named("execute_tool")
        assert span.attributes["gen_ai.tool.call.result"] == "not allowed"
        assert json.loads(span.attributes["gen_ai.tool.call.arguments"]) == {"a": 1, "b": 2}
