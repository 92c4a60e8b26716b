"""CrewAI: the tokens of each model call, once, whichever client makes it."""

from __future__ import annotations

import json

import pytest
from installed import installed

if not installed("crewai.crew"):
    pytest.skip("needs CrewAI; `nox -s framework` has environments", allow_module_level=True)

import crewai_programs as programs
import openai
from crewai.tools import tool
from scripted_llm import Call, ScriptedLLM, messages_of

from mast_trace import semconv
from mast_trace_instrumentations.openai import OpenAIInstrumentor

pytestmark = pytest.mark.framework("crewai")


def shown(request) -> int:
    """Input tokens as the server counts them."""
    return sum(len(json.dumps(message)) for message in messages_of(request)) // 4 + 1


def counted(recorded, name: str) -> list[int]:
    """Return the tokens on all spans: every span, so that none is counted elsewhere too."""
    return [span.attributes[name] for span in recorded.all if name in span.attributes]


def test_calls_that_are_not_an_agents_turn_have_tokens_too(recorded) -> None:
    """A guardrail's model is asked without CrewAI's own accounting in old versions."""

    def judged(request):
        checks = "complies with the given guardrail" in str(messages_of(request))
        verdict = '{"valid": true, "feedback": null}'
        return programs.final(request, verdict if checks else "an answer")

    with ScriptedLLM(judged) as server:
        programs.solo(server, guardrail="must be short").kickoff()
    assert counted(recorded, semconv.INPUT_TOKENS) == [shown(r) for r in server.requests]


def test_a_tools_own_model_call_is_the_clients(recorded) -> None:
    """CrewAI does not see it: its span is made by the client's instrumentation, below the tool."""
    instrumentor = OpenAIInstrumentor()
    instrumentor.instrument(tracer_provider=recorded.provider)
    with ScriptedLLM(lambda _request: "sunny") as inner:

        @tool("weather")
        def weather(city: str) -> str:
            """Ask a model for the weather."""
            asked = openai.OpenAI(base_url=inner.url, api_key="scripted")
            answer = asked.chat.completions.create(
                model="small", messages=[{"role": "user", "content": city}]
            )
            return str(answer.choices[0].message.content)

        script = programs.calling_script(Call("weather", {"city": "Paris"}))
        with ScriptedLLM(script) as server:
            programs.solo(server, tools=(weather,)).kickoff()
        expected = [shown(r) for r in (server.requests[0], *inner.requests, server.requests[1])]
    instrumentor.uninstrument()
    chats = recorded.named("chat")
    assert [s.attributes["mast.framework"] for s in chats] == ["crewai", "openai", "crewai"]
    assert recorded.parent(chats[1]).name == "execute_tool weather"
    assert counted(recorded, semconv.INPUT_TOKENS) == expected
