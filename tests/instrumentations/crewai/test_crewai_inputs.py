"""CrewAI: each recorded input of a model is what the model's server received."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from installed import installed

if not installed("crewai.crew"):
    pytest.skip("needs CrewAI; `nox -s framework` has environments", allow_module_level=True)

import crewai_programs  # noqa: F401  # sets CrewAI's surroundings before it is imported
from crewai import Agent, Crew
from crewai_programs import delegating, delegating_script, final, llm, lookup, team, use
from received_inputs import check_inputs, tools_asked_for
from recorded_spans import RecordedSpans
from scripted_llm import Call, Reply, ScriptedLLM, messages_of, system_text

from mast_trace.content import ContentPolicy
from mast_trace_instrumentations.crewai import CrewAIInstrumentor

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.framework("crewai")

ROUNDS = 3


@pytest.fixture(params=[True, "full"], ids=["once", "full"])
def inputs(request: pytest.FixtureRequest) -> Iterator[RecordedSpans]:
    """The spans of the test's crews, with each text once and with all texts in full."""
    spans = RecordedSpans.of(CrewAIInstrumentor(), ContentPolicy(capture=request.param))
    yield spans
    spans.instrumentor.uninstrument()


def counting_script(request: dict[str, Any]) -> Reply | str:
    """The researcher looks two cities up in each round, then reports; the writer writes."""
    if "You are Writer" in system_text(request):
        return final(request, "Many people.")
    told = str(messages_of(request)).count("2.1 million")
    if told >= ROUNDS:
        return final(request, "All have 2.1 million.")
    return use(
        request,
        Call("lookup", {"city": f"city {told}"}),
        Call("lookup", {"city": f"town {told}"}),
    )


def check(inputs: RecordedSpans, server: ScriptedLLM) -> None:
    """Each input is what the server received; native calls of tools were in it, if there are any."""
    check_inputs(inputs, server.requests)
    offered = any("tools" in request for request in server.requests)
    assert tools_asked_for(server.requests) == ({"lookup"} if offered else set())


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_of_a_kick_off(inputs: RecordedSpans, stream: bool) -> None:
    """Native tool calls keep id, name and arguments in all later inputs."""
    with ScriptedLLM(counting_script) as server:
        team(server, model=llm(server, stream=stream)).kickoff()
    check(inputs, server)


@pytest.mark.parametrize("method", ["kickoff_async", "akickoff"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_of_an_asynchronous_kick_off(
    inputs: RecordedSpans, method: str, stream: bool
) -> None:
    """In a thread and on the event loop."""
    if not hasattr(Crew, method):
        pytest.skip(f"this version of CrewAI has no {method}")
    with ScriptedLLM(counting_script) as server:
        await getattr(team(server, model=llm(server, stream=stream)), method)()
    check(inputs, server)


def test_of_an_agent_by_itself(inputs: RecordedSpans) -> None:
    """Without a crew."""
    with ScriptedLLM(counting_script) as server:
        agent = Agent(role="Solo", goal="x", backstory="x", llm=llm(server), tools=[lookup])
        agent.kickoff("Find out")
    check(inputs, server)


def test_of_a_delegation(inputs: RecordedSpans) -> None:
    """The delegating call and the coworker's answer."""
    with ScriptedLLM(delegating_script("Researcher")) as server:
        delegating(server).kickoff()
    check_inputs(inputs, server.requests)


async def test_of_crews_side_by_side(inputs: RecordedSpans) -> None:
    """The messages of one call are never taken for those of another."""
    with ScriptedLLM(counting_script) as server:
        await asyncio.gather(*(team(server).kickoff_async() for _ in range(3)))
    check_inputs(inputs, server.requests, in_order=False)


def test_of_a_call_that_the_program_makes(inputs: RecordedSpans) -> None:
    """A history with a tool call, given to a model outside of any agent."""
    call = {
        "id": "c1",
        "type": "function",
        "function": {"name": "lookup", "arguments": '{"city": "Rome"}'},
    }
    history = [
        {"role": "user", "content": "How many live in Rome?"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "2.8 million"},
    ]
    with ScriptedLLM(lambda _: "2.8 million.") as server:
        llm(server).call(history)
    check_inputs(inputs, server.requests)
