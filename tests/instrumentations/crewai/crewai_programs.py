"""Small CrewAI programs, and the scripts that their models follow."""

from __future__ import annotations

import os
import tempfile
from typing import Any

# Before CrewAI is imported: its own telemetry off, its files in a temporary folder.
_HOME = tempfile.mkdtemp(prefix="mast-trace-crewai-")
os.environ.update(
    CREWAI_DISABLE_TELEMETRY=str("MAST_TRACE_TEST_CREWAI_TELEMETRY" not in os.environ).lower(),
    CREWAI_TRACING_ENABLED="false",
    CREWAI_TESTING="true",
    CREWAI_STORAGE_DIR=_HOME,
    HOME=_HOME,
    OPENAI_API_KEY="scripted",
)

from crewai import LLM, Agent, Crew, Process, Task
from crewai.tools import tool
from scripted_llm import Call, Reply, ScriptedLLM, last_text, messages_of, system_text


@tool("lookup")
def lookup(city: str) -> str:
    """Look up the population of a city."""
    return f"{city}: 2.1 million"


@tool("broken")
def broken(city: str) -> str:
    """Fail always."""
    raise ValueError(f"no data for {city}")


def react(request: dict[str, Any]) -> bool:
    """Return whether this version asks for tools in text instead of the API's tool calls."""
    return "tools" not in request and "Action Input" in str(messages_of(request))


def use(request: dict[str, Any], *calls: Call) -> Reply | str:
    """Ask for tools in the way that the request offers; in text only the first."""
    if react(request):
        import json

        return f"Thought: I use a tool\nAction: {calls[0].name}\nAction Input: {json.dumps(calls[0].arguments)}\n"
    return Reply(calls=calls)


def final(request: dict[str, Any], text: str) -> str:
    return f"Thought: I now know the final answer\nFinal Answer: {text}" if react(request) else text


def has_result(request: dict[str, Any]) -> bool:
    """Return whether a tool's result is in the request."""
    messages = messages_of(request)
    return any(m.get("role") == "tool" for m in messages) or "Observation:" in last_text(request)


def team_script(request: dict[str, Any]) -> Reply | str:
    """A researcher uses two tools, one of which fails; a writer writes."""
    if "You are Researcher" in system_text(request):
        if has_result(request):
            return final(request, "Paris has 2.1 million people.")
        return use(request, Call("lookup", {"city": "Paris"}), Call("broken", {"city": "Paris"}))
    return final(request, "Paris: 2.1 million inhabitants.")


def llm(server: ScriptedLLM, **options: Any) -> LLM:
    return LLM(model="openai/gpt-4o", base_url=server.url, api_key="scripted", **options)


def team(server: ScriptedLLM, *, model: LLM | None = None, **options: Any) -> Crew:
    """Two agents in sequence."""
    model = model or llm(server)
    researcher = Agent(
        role="Researcher", goal="find", backstory="x", tools=[lookup, broken], llm=model
    )
    writer = Agent(role="Writer", goal="write", backstory="x", llm=model)
    find = Task(
        description="Find the population of Paris", expected_output="a number", agent=researcher
    )
    write = Task(description="Write one line", expected_output="a line", agent=writer)
    return Crew(name="city", agents=[researcher, writer], tasks=[find, write], **options)


def delegating_script(coworker: str):
    def script(request: dict[str, Any]) -> Reply | str:
        if "You are Researcher" in system_text(request):
            return final(request, "2.1 million")
        if has_result(request):
            return final(request, "Paris: 2.1 million inhabitants.")
        name = "Delegate work to coworker"
        for offered in request.get("tools", ()):
            if "delegate" in offered["function"]["name"].lower():
                name = offered["function"]["name"]
        task = {"task": "find the population", "context": "of Paris", "coworker": coworker}
        return use(request, Call(name, task))

    return script


def delegating(server: ScriptedLLM) -> Crew:
    """A writer that may hand work to a researcher."""
    model = llm(server)
    researcher = Agent(role="Researcher", goal="find", backstory="x", llm=model)
    writer = Agent(role="Writer", goal="write", backstory="x", llm=model, allow_delegation=True)
    task = Task(description="Write one line on Paris", expected_output="a line", agent=writer)
    return Crew(name="delegating", agents=[writer, researcher], tasks=[task])


def managed_script(request: dict[str, Any]) -> Reply | str:
    """A manager has the researcher find the number."""
    if "You are Researcher" in system_text(request):
        return final(request, "2.1 million")
    return delegating_script("Researcher")(request)


def managed(server: ScriptedLLM) -> Crew:
    """A task for nobody in particular, which CrewAI's manager hands out."""
    model = llm(server)
    researcher = Agent(role="Researcher", goal="find", backstory="x", llm=model)
    task = Task(description="Write one line on Paris", expected_output="a line")
    return Crew(
        name="managed",
        agents=[researcher],
        tasks=[task],
        process=Process.hierarchical,
        manager_llm=model,
    )


def calling_script(*calls: Call):
    """Ask for tools once, then answer."""

    def script(request: dict[str, Any]) -> Reply | str:
        asked = any("assistant" in str(m.get("role")) for m in messages_of(request))
        return final(request, "done") if asked else use(request, *calls)

    return script


def solo(server: ScriptedLLM, *, tools: tuple[Any, ...] = (), **options: Any) -> Crew:
    """One agent, one task."""
    agent_options = {k: options.pop(k) for k in ("max_iter", "max_retry_limit") if k in options}
    agent = Agent(
        role="Solo",
        goal="answer",
        backstory="x",
        llm=llm(server),
        tools=list(tools),
        **agent_options,
    )
    task = Task(description="Say something", expected_output="a line", agent=agent, **options)
    return Crew(name="solo", agents=[agent], tasks=[task], process=Process.sequential)
