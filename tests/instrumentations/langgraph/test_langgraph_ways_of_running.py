"""However a graph is run, the same is recorded, in one trace per run, and no context leaks."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from langgraph.graph import MessagesState
from langgraph_programs import PROGRAMS, arithmetic, ask, linear, says, supervised, writers_script
from opentelemetry import context as otel_context
from opentelemetry import trace

pytestmark = pytest.mark.framework("langgraph")

LOOP = pytest.mark.asyncio(loop_scope="session")
MODES = ["values", "updates", "messages", "custom", "debug", ["values", "updates", "messages"]]


def told(recorded: Any) -> list[tuple[Any, ...]]:
    """Return a run's spans without times and ids."""
    return [
        (s.kind.value, s.agent, s.tool, s.text, s.recipients, s.handoff_to)
        for s in recorded.trajectory().steps
    ]


@pytest.fixture
def reference(recorded: Any, models: Any) -> Any:
    """Return each program's spans under `invoke`, and the program to run otherwise."""

    def run(name: str) -> tuple[Any, list[tuple[Any, ...]]]:
        build, script = PROGRAMS[name]
        graph = build(models(script))
        graph.invoke(ask())
        expected = told(recorded)
        recorded.exporter.clear()
        return graph, expected

    return run


@pytest.mark.parametrize("name", PROGRAMS)
class TestModes:
    """The ways to run a graph."""

    @pytest.mark.parametrize("mode", MODES, ids=str)
    def test_stream(self, recorded, reference, name, mode):
        """Every stream mode, sub-graphs included."""
        graph, expected = reference(name)
        list(graph.stream(ask(), stream_mode=mode, subgraphs=True))

        recorded.check_shape()
        assert told(recorded) == expected

    @LOOP
    @pytest.mark.parametrize("way", ["invoke", "events", *MODES], ids=str)
    async def test_asynchronously(self, recorded, reference, name, way):
        """Whole, as LangChain's events, and in every stream mode."""
        graph, expected = reference(name)
        if way == "invoke":
            await graph.ainvoke(ask())
        elif way == "events":
            [event async for event in graph.astream_events(ask(), version="v2")]
        else:
            [each async for each in graph.astream(ask(), stream_mode=way, subgraphs=True)]

        recorded.check_shape()
        assert told(recorded) == expected

    def test_batch(self, recorded, reference, name):
        """Two inputs in threads are two runs."""
        graph, expected = reference(name)
        graph.batch([ask(), ask()])

        recorded.check_shape(runs=2)
        steps = [[s.text for s in run.steps] for run in recorded.trajectories()]
        assert steps == [[step[3] for step in expected]] * 2


class TestConcurrentRuns:
    """Several runs at once."""

    def test_interleaved_generators_in_one_thread(self, recorded):
        """Two streams read in turns are two runs."""
        graph = linear(MessagesState, one=says("1"), two=says("2"))
        for _pair in zip(graph.stream(ask("a")), graph.stream(ask("b")), strict=True):
            pass

        recorded.check_shape(runs=2)
        assert [len(run.steps) for run in recorded.trajectories()] == [2, 2]


class TestContext:
    """The context of OpenTelemetry."""

    def test_nothing_is_current_between_the_chunks(self, recorded, models):
        """The consumer of a stream does not find itself inside of the run."""
        before = otel_context.get_current()
        for _chunk in supervised(models(arithmetic)).stream(ask(), stream_mode="messages"):
            assert otel_context.get_current() == before
        assert otel_context.get_current() == before

    @LOOP
    async def test_nothing_is_current_between_the_chunks_of_an_async_stream(self, recorded, models):
        """No span is current between the chunks in an event loop either."""
        before = otel_context.get_current()
        async for _chunk in supervised(models(arithmetic)).astream(ask(), stream_mode="messages"):
            assert otel_context.get_current() == before
        assert otel_context.get_current() == before

    def test_a_model_stream_leaks_nothing_into_its_node(self, recorded, models):
        """While a node reads its model's stream, its own span is the current one."""
        model = models(writers_script)
        current: list[str] = []

        def reader(state: MessagesState) -> dict[str, Any]:
            chunks = model.stream(state["messages"])
            current.extend(trace.get_current_span().name for _chunk in chunks)
            return {}

        linear(MessagesState, reader=reader).invoke(ask())

        assert set(current) == {"invoke_agent reader"}

    def test_a_generator_may_move_to_another_thread(self, recorded, models):
        """Begun here, finished there: one trace, complete."""
        stream = supervised(models(arithmetic)).stream(ask())
        next(stream)
        rest: list[Any] = []
        thread = threading.Thread(target=lambda: rest.extend(stream))
        thread.start()
        thread.join()

        recorded.check_shape()
        assert rest
        assert len(recorded.trajectory().steps) == 6

    def test_spans_of_the_application_keep_their_place(self, recorded, models):
        """A span around the run is its parent; one inside of a node is between agent and model."""
        tracer = recorded.provider.get_tracer("application")
        model = models(writers_script)

        def node(state: MessagesState) -> dict[str, Any]:
            with tracer.start_as_current_span("inside"):
                return {"messages": [model.invoke(state["messages"])]}

        with tracer.start_as_current_span("around"):
            linear(MessagesState, node=node).invoke(ask())

        assert recorded.tree().splitlines() == [
            "around",
            "  invoke_workflow node",
            "    invoke_agent node",
            "      inside",
            "        chat scripted",
            "      send_message node",
        ]
