"""CrewAI: every tool call that a model asks for is one span, whatever becomes of it."""

from __future__ import annotations

import asyncio
import json

import pytest
from installed import installed

if not installed("crewai.crew"):
    pytest.skip("needs CrewAI; `nox -s framework` has environments", allow_module_level=True)

import crewai
from crewai.tools import tool
from crewai_programs import broken, calling_script, final, has_result, lookup, solo, use
from scripted_llm import Call, Reply, ScriptedLLM, messages_of

from mast_trace import semconv

pytestmark = pytest.mark.framework("crewai")

TEXT_ONLY = crewai.__version__.startswith("0.")
"""True if the version asks for tools in the text of its prompt."""


@tool("slow")
async def slow(city: str) -> str:
    """Look a city up without blocking."""
    await asyncio.sleep(0)
    return f"looked {city} up"


def calls_of(recorded, *calls: Call, tools=(lookup,), **options):
    """The tool spans of a crew of one agent that asks for these tools and then answers."""
    with ScriptedLLM(calling_script(*calls)) as server:
        assert solo(server, tools=tools, **options).kickoff().raw == "done"
    recorded.check_shape()
    spans = recorded.named("execute_tool")
    assert {recorded.parent(s).name for s in spans} == {"invoke_agent Solo"}
    assert {s.attributes[semconv.AGENT_NAME] for s in spans} == {"Solo"}
    return spans


def test_an_unknown_tool(recorded) -> None:
    (call,) = calls_of(recorded, Call("no_such_tool", {"a": 1}))
    assert call.attributes[semconv.TOOL_NAME] == "no_such_tool"
    assert json.loads(call.attributes[semconv.TOOL_CALL_ARGUMENTS]) == {"a": 1}
    assert not call.status.is_ok
    assert call.status.description.startswith(
        "I encountered an error" if TEXT_ONLY else "Tool not found"
    )


@pytest.mark.skipif(TEXT_ONLY, reason="this version repairs what is no JSON")
def test_arguments_that_are_no_json(recorded) -> None:
    (call,) = calls_of(recorded, Call("lookup", '{"city": "Par', id="call_7"))
    assert call.attributes[semconv.TOOL_CALL_ARGUMENTS] == '{"city": "Par'
    assert call.attributes[semconv.TOOL_CALL_ID] == "call_7"
    assert "Failed to parse tool arguments" in call.status.description


def test_arguments_that_do_not_fit(recorded) -> None:
    """An old version really tries three times: each attempt is a call."""
    calls = calls_of(recorded, Call("lookup", {"town": "Paris"}))
    assert len(calls) == (3 if TEXT_ONLY else 1)
    assert all("city" in call.status.description for call in calls)


def test_an_asynchronous_tool_in_a_synchronous_crew(recorded) -> None:
    (call,) = calls_of(recorded, Call("slow", {"city": "Paris"}), tools=(slow,))
    assert call.attributes[semconv.TOOL_CALL_RESULT] == "looked Paris up"
    assert call.status.is_ok


@pytest.mark.skipif(TEXT_ONLY, reason="this version takes one call at a time")
def test_parallel_calls(recorded) -> None:
    """Good, failing, unknown and malformed ones at once, in threads of the framework."""
    calls = calls_of(
        recorded,
        Call("lookup", {"city": "Paris"}, id="c1"),
        Call("broken", {"city": "Rome"}, id="c2"),
        Call("no_such_tool", {}, id="c3"),
        Call("lookup", '{"city": ', id="c4"),
        Call("slow", {"city": "Oslo"}, id="c5"),
        tools=(lookup, broken, slow),
    )
    by_id = {call.attributes[semconv.TOOL_CALL_ID]: call for call in calls}
    assert len(calls) == len(by_id) == 5
    assert by_id["c1"].attributes[semconv.TOOL_CALL_RESULT] == "Paris: 2.1 million"
    assert by_id["c5"].attributes[semconv.TOOL_CALL_RESULT] == "looked Oslo up"
    assert {i for i, call in by_id.items() if not call.status.is_ok} == {"c2", "c3", "c4"}
    assert "no data for Rome" in by_id["c2"].status.description


def test_a_tool_that_is_used_up(recorded) -> None:
    """The call beyond the limit is refused, in words that look like a result."""
    rare = lookup.model_copy(update={"max_usage_count": 1, "current_usage_count": 0})

    def script(request):
        results = str(messages_of(request)).count("2.1 million")
        if "usage limit" in str(messages_of(request)) or results > 1:
            return final(request, "done")
        return use(request, Call("lookup", {"city": "Rome" if results else "Paris"}))

    with ScriptedLLM(script) as server:
        assert solo(server, tools=(rare,)).kickoff().raw == "done"
    recorded.check_shape()
    served, refused = recorded.named("execute_tool")
    assert served.status.is_ok
    assert "usage limit" in refused.status.description
    assert json.loads(refused.attributes[semconv.TOOL_CALL_ARGUMENTS]) == {"city": "Rome"}


@pytest.mark.skipif(not TEXT_ONLY, reason="newer versions answer it from their cache")
def test_a_repeated_call_that_is_refused(recorded) -> None:
    def script(request):
        if "reusing the same input" in str(messages_of(request)):
            return final(request, "done")
        return use(request, Call("lookup", {"city": "Paris"}))

    with ScriptedLLM(script) as server:
        solo(server, tools=(lookup,)).kickoff()
    first, again = recorded.named("execute_tool")
    assert first.status.is_ok
    assert "reusing the same input" in again.status.description


@pytest.mark.skipif(TEXT_ONLY, reason="this version refuses to repeat a call")
def test_a_repeated_call_is_two(recorded) -> None:
    """Return whether the tool runs again or a cache answers: the model has asked twice."""

    def script(request):
        results = sum(m.get("role") == "tool" for m in messages_of(request))
        return "done" if results == 2 else Reply(calls=(Call("lookup", {"city": "Paris"}),))

    with ScriptedLLM(script) as server:
        solo(server, tools=(lookup,)).kickoff()
    results = [s.attributes[semconv.TOOL_CALL_RESULT] for s in recorded.named("execute_tool")]
    assert results == ["Paris: 2.1 million"] * 2


def test_a_tool_that_a_hook_forbids(recorded) -> None:
    hooks = pytest.importorskip("crewai.hooks", reason="this version has no hooks")

    def forbid(_context):
        return False

    hooks.register_before_tool_call_hook(forbid)
    try:
        (call,) = calls_of(recorded, Call("lookup", {"city": "Paris"}))
    finally:
        hooks.unregister_before_tool_call_hook(forbid)
    assert "blocked by hook" in call.status.description


def test_what_a_tool_does_itself_lies_below_it(recorded) -> None:
    """A span that a tool makes in its own thread is a child of the tool's."""
    tracer = recorded.provider.get_tracer("mine")

    @tool("traced")
    def traced(city: str) -> str:
        """Look up, under a span of the program's own."""
        with tracer.start_as_current_span("inside"):
            return city

    with ScriptedLLM(
        lambda request: (
            final(request, "done")
            if has_result(request)
            else use(request, Call("traced", {"city": "Paris"}))
        )
    ) as server:
        solo(server, tools=(traced,)).kickoff()
    inside = next(s for s in recorded.all if s.name == "inside")
    assert recorded.parent(inside).name == "execute_tool traced"
