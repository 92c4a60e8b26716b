"""The program does not notice: results, chunks, errors and attributes are what they were."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from langchain_core.messages import BaseMessage
from langgraph.graph import MessagesState
from langgraph.types import Command
from langgraph_programs import PROGRAMS, arithmetic, ask, calculator, linear, says
from recorded_spans import recording

from mast_trace_instrumentations.langgraph import LangGraphInstrumentor

pytestmark = pytest.mark.framework("langgraph")

LOOP = pytest.mark.asyncio(loop_scope="session")
MODES = ["values", "updates", "messages", "debug", ["values", "updates", "messages"]]


def plain(value: Any) -> Any:
    """A value without what differs from run to run: ids and times."""
    if isinstance(value, BaseMessage):
        calls = [(c["name"], plain(c["args"])) for c in getattr(value, "tool_calls", ())]
        return (type(value).__name__, value.content, value.name, calls)
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items() if k in _COMPARED or k not in _VARYING}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, Command):
        return ("Command", plain(value.update), plain(value.goto))
    return value if isinstance(value, str | int | float | None) else type(value).__name__


_COMPARED = {"messages", "name", "input", "result", "langgraph_node", "langgraph_step"}
_VARYING = {
    "id",
    "timestamp",
    "triggers",
    "checkpoint_ns",
    "langgraph_checkpoint_ns",
    "langgraph_path",
    "thread_id",
    "run_id",
}


@pytest.mark.parametrize("mode", MODES, ids=str)
@pytest.mark.parametrize("name", PROGRAMS)
def test_stream_yields_the_same(models, name, mode):
    """Chunk for chunk, in order."""
    build, script = PROGRAMS[name]
    graph = build(models(script))
    without = [plain(chunk) for chunk in graph.stream(ask(), stream_mode=mode)]
    with recording(LangGraphInstrumentor()):
        within = [plain(chunk) for chunk in graph.stream(ask(), stream_mode=mode)]

    assert within == without
    assert within


class TestErrors:
    """The program's exceptions."""

    def test_a_wrong_call_fails_as_it_would(self, recorded):
        """A missing argument is the caller's mistake, at once and with the usual words."""
        graph = linear(MessagesState, one=says("1"))
        with pytest.raises(TypeError, match="input"):
            graph.stream()

        assert recorded.all == []

    def test_telemetry_that_fails_does_not_reach_the_program(self, models, monkeypatch, caplog):
        """In production every error of ours is logged once and swallowed."""
        monkeypatch.delenv("PYTEST_CURRENT_TEST")
        from mast_trace_instrumentations.langgraph import agent, run, tool

        def defect(*_args: Any, **_more: Any) -> Any:
            raise ZeroDivisionError("a defect")

        graph = calculator(models(arithmetic))
        with recording(LangGraphInstrumentor()) as recorded:
            for place in (
                (run, "shape_of"),
                (agent, "snapshot"),
                (agent, "next_nodes"),
                (tool, "record_result"),
                (recorded.instrumentor.telemetry, "chat"),
            ):
                with monkeypatch.context() as patching:
                    patching.setattr(*place, defect)
                    assert graph.invoke(ask())["messages"][-1].content == "2 + 3 is 5"
        assert "your program is not affected" in caplog.text


class TestStreams:
    """The appearance of generators."""

    def test_streams_are_still_generators(self, recorded):
        """Programs that look at what they get see what they saw."""
        graph = linear(MessagesState, one=says("1"))
        assert inspect.isgenerator(graph.stream(ask()))
        stream = graph.astream(ask())
        assert inspect.isasyncgen(stream)

    @LOOP
    async def test_a_model_streams_the_same(self, models):
        """A model's own stream, outside and inside of runs, is passed on chunk by chunk."""
        model = models(lambda _r: "A rather long answer in several chunks.")
        without = [c.content async for c in model.astream("Hi")]
        within: list[Any] = []

        async def node(_state: MessagesState) -> dict[str, Any]:
            within.extend([c.content async for c in model.astream("Hi")])
            return {}

        with recording(LangGraphInstrumentor()) as recorded:
            await linear(MessagesState, node=node).ainvoke(ask())

        assert within == without
        (chat,) = recorded.named("chat")
        assert (
            "A rather long answer in several chunks." in (chat.attributes["gen_ai.output.messages"])
        )
