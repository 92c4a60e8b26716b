"""The program does not notice: results, chunks, errors and attributes are what they were."""

from __future__ import annotations

import inspect
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.messages import BaseMessage
from langgraph.graph import MessagesState
from langgraph.types import Command
from langgraph_programs import (
    arithmetic,
    ask,
    calculator,
    linear,
    says,
    supervised,
    swarm,
    swarm_script,
    writers,
    writers_script,
)
from recorded_spans import RecordedSpans
from scripted_llm import Reply, ScriptedLLM

from mast_trace_instrumentations.langgraph import LangGraphInstrumentor

if TYPE_CHECKING:
    from mast_trace_instrumentations.base import Patch

pytestmark = pytest.mark.framework("langgraph")

LOOP = pytest.mark.asyncio(loop_scope="session")
MODES = ["values", "updates", "messages", "debug", ["values", "updates", "messages"]]
PROGRAMS = {
    "supervisor": (supervised, arithmetic),
    "swarm": (swarm, swarm_script),
    "writers": (writers, writers_script),
    "agent": (calculator, arithmetic),
}


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


class Instrumented:
    """Runs something with and without instrumentation."""

    def both(self, call: Any) -> tuple[Any, Any]:
        without = call()
        recorded = RecordedSpans.of(LangGraphInstrumentor())
        try:
            return without, call()
        finally:
            recorded.instrumentor.uninstrument()


@pytest.fixture
def instrumented() -> Instrumented:
    return Instrumented()


@pytest.mark.parametrize("name", PROGRAMS)
class TestResults:
    """The program's results."""

    def test_invoke_returns_the_same(self, instrumented, models, name):
        """Result for result."""
        build, script = PROGRAMS[name]
        graph = build(models(script))
        without, within = instrumented.both(lambda: plain(graph.invoke(ask())))

        assert within == without

    @pytest.mark.parametrize("mode", MODES, ids=str)
    def test_stream_yields_the_same(self, instrumented, models, name, mode):
        """Chunk for chunk, in order."""
        build, script = PROGRAMS[name]
        graph = build(models(script))
        without, within = instrumented.both(
            lambda: [plain(chunk) for chunk in graph.stream(ask(), stream_mode=mode)]
        )

        assert within == without
        assert within

    def test_the_model_is_asked_the_same(self, instrumented, models, name):
        """Request for request: instrumentation adds no call and changes none."""
        build, script = PROGRAMS[name]
        graph = build(models(script))
        server = models.server

        def requests() -> list[Any]:
            server.requests.clear()
            graph.invoke(ask())
            return [[m.get("content") for m in r["messages"]] for r in server.requests]

        without, within = instrumented.both(requests)
        assert within == without


class TestErrors:
    """The program's exceptions."""

    def test_the_very_exception_comes_out(self, recorded):
        """Identity, not only type."""
        error = RuntimeError("mine")

        def broken(_state: MessagesState) -> dict[str, Any]:
            raise error

        with pytest.raises(RuntimeError) as caught:
            linear(MessagesState, broken=broken).invoke(ask())

        assert caught.value is error
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None

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
        recorded = RecordedSpans.of(LangGraphInstrumentor())
        try:
            for place in (
                (run, "shape_of"),
                (agent, "snapshot"),
                (agent, "next_nodes"),
                (tool, "record_result"),
            ):
                with monkeypatch.context() as patching:
                    patching.setattr(*place, defect)
                    assert graph.invoke(ask())["messages"][-1].content == "2 + 3 is 5"
            with monkeypatch.context() as patching:
                patching.setattr(recorded.instrumentor.telemetry, "chat", defect)
                assert graph.invoke(ask())["messages"][-1].content == "2 + 3 is 5"
        finally:
            recorded.instrumentor.uninstrument()
        assert "your program is not affected" in caplog.text


class TestStreams:
    """The appearance of generators."""

    def test_streams_are_still_generators(self, recorded):
        """Programs that look at what they get see what they saw."""
        graph = linear(MessagesState, one=says("1"))
        assert inspect.isgenerator(graph.stream(ask()))
        stream = graph.astream(ask())
        assert inspect.isasyncgen(stream)

    def test_signatures_are_still_there(self, recorded):
        """Tools that read signatures find LangGraph's own."""
        from langgraph.pregel import Pregel

        assert "stream_mode" in inspect.signature(Pregel.stream).parameters
        assert inspect.iscoroutinefunction(Pregel.ainvoke)

    @LOOP
    async def test_a_model_streams_the_same(self, instrumented, models):
        """A model's own stream, outside and inside of runs, is passed on chunk by chunk."""
        model = models(lambda _r: "A rather long answer in several chunks.")
        without = [c.content async for c in model.astream("Hi")]
        recorded = RecordedSpans.of(LangGraphInstrumentor())
        within: list[Any] = []

        async def node(_state: MessagesState) -> dict[str, Any]:
            within.extend([c.content async for c in model.astream("Hi")])
            return {}

        try:
            await linear(MessagesState, node=node).ainvoke(ask())
        finally:
            recorded.instrumentor.uninstrument()

        assert within == without
        (chat,) = recorded.named("chat")
        assert (
            "A rather long answer in several chunks." in (chat.attributes["gen_ai.output.messages"])
        )


class TestInstrumenting:
    """On and off."""

    def test_graphs_built_before_are_recorded(self, models):
        """Patches are on the classes, not on what a program has made of them."""
        graph = calculator(models(arithmetic))
        recorded = RecordedSpans.of(LangGraphInstrumentor())
        graph.invoke(ask())
        recorded.instrumentor.uninstrument()

        assert recorded.counts()["chat"] == 2

    def test_uninstrumenting_puts_back_the_very_objects(self):
        """Every attribute is the object that it was, and no callback remains."""
        from langchain_core.tracers.context import _configure_hooks

        before = {patch.path: _target(patch) for patch in LangGraphInstrumentor.patches}
        hooks = list(_configure_hooks)
        instrumentor = LangGraphInstrumentor()
        instrumentor.instrument()
        during = {patch.path: _target(patch) for patch in LangGraphInstrumentor.patches}
        instrumentor.uninstrument()
        after = {patch.path: _target(patch) for patch in LangGraphInstrumentor.patches}

        assert all(after[path] is before[path] for path in before)
        assert not [path for path in before if during[path] is before[path]]
        assert _configure_hooks == hooks

    def test_instrumenting_twice_records_once(self, recorded, models):
        """The second call is without effect."""
        recorded.instrumentor.instrument(tracer_provider=recorded.provider)
        calculator(models(arithmetic)).invoke(ask())

        assert recorded.counts()["execute_tool"] == 1

    def test_instrumenting_again_records_again(self, models):
        """Off and on: the second recording is complete."""
        instrumentor = LangGraphInstrumentor()
        for _ in range(2):
            recorded = RecordedSpans.of(instrumentor)
            calculator(models(arithmetic)).invoke(ask())
            instrumentor.uninstrument()
            assert recorded.counts() == {
                "invoke_workflow": 1,
                "invoke_agent": 1,
                "chat": 2,
                "execute_tool": 1,
                "send_message": 1,
            }

    @pytest.mark.parametrize("path", [patch.path for patch in LangGraphInstrumentor.patches])
    def test_without_any_one_target_the_rest_is_recorded(self, models, monkeypatch, caplog, path):
        """A version that lacks one of the places costs what is seen there, and one warning."""

        class Newer(LangGraphInstrumentor):
            patches = tuple(
                replace(row, target=row.target + "_moved") if row.path == path else row
                for row in LangGraphInstrumentor.patches
            )

        graph = calculator(models(arithmetic))
        recorded = RecordedSpans.of(Newer())
        answer = graph.invoke(ask())["messages"][-1].content
        state = recorded.instrumentor.state
        missing = list(state.missing)
        recorded.instrumentor.uninstrument()

        assert answer == "2 + 3 is 5"
        assert missing == [path + "_moved"]
        assert [r for r in caplog.messages if path + "_moved" in r] == caplog.messages
        if path != "langgraph.pregel.main:Pregel.stream":
            assert recorded.counts()["chat"] == 2

    def test_a_framework_imported_later_is_recorded(self):
        """`instrument()` comes first in a fresh process, and imports nothing of the framework."""
        with ScriptedLLM(lambda _r: Reply("fine")) as server:
            done = subprocess.run(
                [sys.executable, str(Path(__file__).with_name("late_import.py")), server.url],
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )
        assert done.returncode == 0, done.stderr
        assert done.stdout.split() == [
            "waiting",
            "chat",
            "send_message",
            "invoke_agent",
            "invoke_workflow",
        ]


def _target(patch: Patch) -> Any:
    import importlib

    owner: Any = importlib.import_module(patch.module)
    *path, name = patch.target.split(".")
    for step in path:
        owner = getattr(owner, step)
    return vars(owner)[name]
