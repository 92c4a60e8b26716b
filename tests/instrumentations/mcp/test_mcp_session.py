"""Calls of a server's tools: each is one tool span, whoever makes it."""

from __future__ import annotations

import asyncio
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("mcp.client.session", reason="needs MCP")

from contract.lifecycle import Lifecycle
from opentelemetry.sdk.trace import TracerProvider
from recorded_calls import a_run
from recorded_spans import recorded_by

from mast_trace_instrumentations.mcp import MCPInstrumentor

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = pytest.mark.framework("mcp")

SERVER = Path(__file__).with_name("mcp_server.py")

recorded = recorded_by(MCPInstrumentor)


@asynccontextmanager
async def a_session() -> AsyncIterator[Any]:
    """An initialized session with a real server in a process of its own."""
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    about = StdioServerParameters(command=sys.executable, args=[str(SERVER)])
    async with stdio_client(about) as streams, ClientSession(*streams) as session:
        await session.initialize()
        yield session


def text(result: Any) -> str:
    return str(result.content[0].text)


def failed(result: Any) -> bool:
    return bool(result.is_error if hasattr(result, "is_error") else result.isError)


class TestCalls:
    """Through a session that the program has opened."""

    async def test_arguments_result_and_server_are_on_the_span(self, recorded):
        async with a_session() as session:
            with a_run(recorded):
                result = await session.call_tool("count_stock", {"part": "axle", "shelf": 2})
                version = await session.send_ping()

        assert text(result) == "axle: 42"
        assert version is not None
        (span,) = recorded.named("execute_tool")
        about = span.attributes
        assert about["gen_ai.tool.name"] == "count_stock"
        assert about["gen_ai.tool.call.arguments"] == '{"part": "axle", "shelf": 2}'
        assert about["gen_ai.tool.call.result"] == "axle: 42"
        assert about["gen_ai.agent.name"] == "worker"
        assert about["mcp.method.name"] == "tools/call"
        assert about["mcp.protocol.version"].startswith("20")
        assert about["mast.mcp.server.name"] == "warehouse"
        assert span.status.is_ok
        recorded.check_shape()

    async def test_arguments_by_name_and_none(self, recorded):
        async with a_session() as session:
            with a_run(recorded):
                await session.call_tool(name="count_stock", arguments={"part": "axle"})
                await session.call_tool("count_stock")

        given = [s.attributes["gen_ai.tool.call.arguments"] for s in recorded.named("execute_tool")]
        assert given == ['{"part": "axle"}', "{}"]

    @pytest.mark.parametrize("name", ["order", "no_such_tool"])
    async def test_an_error_that_the_server_tells_of(self, recorded, name):
        """The program gets a result, or the client's exception, as without us."""
        async with a_session() as session:
            try:
                plain = await session.call_tool(name, {"part": "axle"})
            except Exception as error:
                plain = error
            with a_run(recorded):
                try:
                    ours = await session.call_tool(name, {"part": "axle"})
                except Exception as error:
                    ours = error

        assert type(ours) is type(plain)
        (span,) = recorded.named("execute_tool")
        assert not span.status.is_ok
        if isinstance(ours, Exception):
            assert span.attributes["error.type"] == type(ours).__qualname__
        else:
            assert failed(ours)
            assert span.attributes["error.type"] == "tool_error"
            assert span.attributes["gen_ai.tool.call.result"] == text(ours)
        (step,) = recorded.trajectory().steps
        assert step.error

    async def test_a_server_that_dies(self, recorded):
        """The client's exception passes through."""
        kind = ""

        async def burn() -> None:
            nonlocal kind
            async with a_session() as session:
                with a_run(recorded):
                    try:
                        await session.call_tool("burn_down")
                    except Exception as error:
                        kind = type(error).__qualname__
                        raise

        with pytest.raises(BaseException, match=""):
            await burn()
        assert kind
        (span,) = recorded.named("execute_tool")
        assert span.attributes["error.type"] == kind

    async def test_fifty_at_once(self, recorded):
        """Each has its own arguments and result."""
        async with a_session() as session:
            with a_run(recorded):
                await asyncio.gather(
                    *(session.call_tool("count_stock", {"part": f"p{n}"}) for n in range(50))
                )

        spans = [span.attributes for span in recorded.named("execute_tool")]
        pairs = {(s["gen_ai.tool.call.arguments"], s["gen_ai.tool.call.result"]) for s in spans}
        assert pairs == {(f'{{"part": "p{n}"}}', f"p{n}: 40") for n in range(50)}

    async def test_the_newer_client(self, recorded):
        """Since 2.0: one call of it is one span, whatever the session below it does."""
        client = pytest.importorskip("mcp.client.client", reason="since 2.0")
        from mcp import StdioServerParameters
        from mcp.client.stdio import stdio_client

        about = StdioServerParameters(command=sys.executable, args=[str(SERVER)])
        async with client.Client(stdio_client(about)) as connected:
            with a_run(recorded):
                assert text(await connected.call_tool("count_stock", {"part": "a"})) == "a: 40"

        (span,) = recorded.named("execute_tool")
        assert span.attributes["mast.mcp.server.name"] == "warehouse"


class TestWhose:
    """Calls that somebody above records."""

    async def test_outside_of_runs_nothing_is_recorded(self, recorded):
        async with a_session() as session:
            await session.call_tool("count_stock", {"part": "axle"})

        assert recorded.all == []

    async def test_below_a_tool_of_ours_that_one_is_told_of_the_server(self, recorded):
        async with a_session() as session:
            with a_run(recorded):
                tool = recorded.instrumentor.telemetry.tool("stock")
                with tool.attached():
                    await session.call_tool("count_stock", {"part": "axle"})
                tool.end()

        (span,) = recorded.named("execute_tool")
        assert span.attributes["gen_ai.tool.name"] == "stock"
        assert span.attributes["mcp.method.name"] == "tools/call"
        assert span.attributes["mast.mcp.server.name"] == "warehouse"

    async def test_an_agent_inside_of_a_tool_has_calls_of_its_own(self, recorded):
        """An agent that is another one's tool calls the server itself."""
        telemetry = recorded.instrumentor.telemetry
        async with a_session() as session:
            with a_run(recorded):
                tool = telemetry.tool("ask_the_expert")
                expert = telemetry.agent("expert", parent=tool.context)
                with expert.attached():
                    await session.call_tool("count_stock", {"part": "axle"})
                expert.end()
                tool.end()

        inner = recorded.named("execute_tool")[1]
        assert inner.attributes["gen_ai.tool.name"] == "count_stock"
        assert inner.attributes["gen_ai.agent.name"] == "expert"

    @pytest.mark.parametrize("shared", [True, False], ids=["one provider", "two providers"])
    async def test_below_a_tool_of_another_tool(self, recorded, shared):
        """Theirs is the call's span only if it is read with ours."""
        theirs = (recorded.provider if shared else TracerProvider()).get_tracer("another tool")
        kind = {"openinference.span.kind": "TOOL"}
        async with a_session() as session:
            with a_run(recorded), theirs.start_as_current_span("count", attributes=kind):
                await session.call_tool("count_stock", {"part": "axle"})

        assert len(recorded.named("execute_tool")) == (not shared)

    async def test_under_langgraph(self, recorded):
        """Tools that LangGraph makes of a server's: one span each, LangGraph's, which names the server."""
        adapters = pytest.importorskip("langchain_mcp_adapters.tools", reason="needs the adapters")
        graphs = pytest.importorskip("langgraph.prebuilt", reason="needs LangGraph")
        from langchain_core.messages import AIMessage
        from langgraph.graph import START, MessagesState, StateGraph

        from mast_trace_instrumentations.langgraph import LangGraphInstrumentor

        langgraph = LangGraphInstrumentor()
        langgraph.instrument(tracer_provider=recorded.provider)
        try:
            async with a_session() as session:
                tools = await adapters.load_mcp_tools(session)

                async def directly(_state: Any) -> dict[str, Any]:
                    told = await session.call_tool("count_stock", {"part": "bolt"})
                    return {"messages": [("ai", text(told))]}

                calls = [
                    {"name": "count_stock", "args": {"part": "axle"}, "id": "c1"},
                    {"name": "order", "args": {"part": "axle"}, "id": "c2"},
                ]
                builder = StateGraph(MessagesState)
                builder.add_node("tools", graphs.ToolNode(tools, handle_tool_errors=True))
                builder.add_node("directly", directly)
                builder.add_edge(START, "tools")
                builder.add_edge("tools", "directly")
                asked = AIMessage("", tool_calls=calls)
                await builder.compile().ainvoke({"messages": [asked]})
        finally:
            langgraph.uninstrument()

        spans = recorded.named("execute_tool")
        by_name = [
            (s.attributes["gen_ai.tool.name"], s.attributes["mast.framework"]) for s in spans
        ]
        assert sorted(by_name[:2]) == [("count_stock", "langgraph"), ("order", "langgraph")]
        assert by_name[2:] == [("count_stock", "mcp")]
        assert {s.attributes["mast.mcp.server.name"] for s in spans} == {"warehouse"}


class TestContract(Lifecycle):
    """On and off; each further fact would start a server."""

    instrumentor = MCPInstrumentor
