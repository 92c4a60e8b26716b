"""LangGraph: each recorded input of a model is what the model's server received."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from langgraph_programs import ask, calculator, supervised
from received_inputs import check_inputs, tools_asked_for
from recorded_spans import RecordedSpans
from scripted_llm import Call, Reply, messages_of, system_text

from mast_trace.content import ContentPolicy
from mast_trace_instrumentations.langgraph import LangGraphInstrumentor

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.framework("langgraph")

ROUNDS = 3


@pytest.fixture(params=[True, "full"], ids=["once", "full"])
def inputs(request: pytest.FixtureRequest) -> Iterator[RecordedSpans]:
    """The spans of the test's graphs, with each text once and with all texts in full."""
    spans = RecordedSpans.of(LangGraphInstrumentor(), ContentPolicy(capture=request.param))
    yield spans
    spans.instrumentor.uninstrument()


def counting(request: dict[str, Any]) -> Reply | str:
    """The mathematician makes two calls a round, with equal results; the boss hands over once."""
    kinds = [str(message.get("role") or message.get("type")) for message in messages_of(request)]
    if "boss" in system_text(request):
        handed = kinds.count("tool") + kinds.count("function_call_output")
        return "The team says 5." if handed else Reply(calls=(Call("transfer_to_math"),))
    rounds = str(messages_of(request)).count('"a": 2') + str(messages_of(request)).count('\\"a\\"')
    if rounds >= 2 * ROUNDS:
        return "2 + 3 is 5"
    add = Call("add", {"a": 2, "b": 3})
    return Reply("Let me see." if rounds else "", calls=(add, add))


PROGRAMS = {"agent": calculator, "team": supervised}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("streaming", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("responses", [False, True], ids=["chat", "responses"])
@pytest.mark.parametrize("way", ["invoke", "stream", "ainvoke", "astream"])
async def test_however_a_graph_is_run(
    inputs, models, name: str, streaming: bool, responses: bool, way: str
) -> None:
    """Native tool calls keep id, name and arguments in all later inputs."""
    model = models(counting, streaming=streaming, use_responses_api=responses)
    graph = PROGRAMS[name](model)
    if way == "invoke":
        graph.invoke(ask())
    elif way == "stream":
        list(graph.stream(ask(), stream_mode="messages"))
    elif way == "ainvoke":
        await graph.ainvoke(ask())
    else:
        [chunk async for chunk in graph.astream(ask(), stream_mode="messages")]
    requests = models.server.requests
    assert "add" in tools_asked_for(requests)
    check_inputs(inputs, requests)
