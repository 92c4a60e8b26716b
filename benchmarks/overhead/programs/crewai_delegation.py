"""A crew of two, one of whom delegates: 6 calls of the model and 5 of tools make a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scripted_llm import Call, Reply, messages_of, system_text

if TYPE_CHECKING:
    from collections.abc import Callable

STEPS = 11
"""Calls of the model and of tools in a run."""
FRAMEWORK = "crewai"
PEERS = ("openinference", "openinference, listener", "openllmetry", "openlit", "agentops")
ENVIRONMENT = {
    "CREWAI_DISABLE_TELEMETRY": "true",
    "CREWAI_TRACING_ENABLED": "false",
    "CREWAI_TESTING": "true",
    "OPENAI_API_KEY": "scripted",
}
"""Environment variables to set before CrewAI is imported: its own telemetry is off."""

_PAGE = "Quarterly revenue by region, in thousands of euros, with remarks. " * 12
_DELEGATION = {"task": "Find the figures.", "context": _PAGE, "coworker": "researcher"}


def script(request: dict[str, Any]) -> Reply | str:
    """Answer as one of the two."""
    rounds = sum(1 for message in messages_of(request) if message.get("tool_calls"))
    if "You are researcher" in system_text(request):
        pages = (Call("read", {"page": 1}), Call("read", {"page": 2}))
        answers = (Reply(calls=pages), Reply(calls=(Call("read", {"page": 3}),)))
        return (*answers, "The figures are 20 and 22.")[rounds]
    steps = (Call("delegate_work_to_coworker", _DELEGATION), Call("add", {"a": 20, "b": 22}))
    return Reply(calls=(steps[rounds],)) if rounds < len(steps) else "The total is 42."


def prepare(url: str) -> Callable[[], Any]:
    """Build the crew; return a function that runs it once."""
    from crewai import LLM, Agent, Crew, Task
    from crewai.tools import tool

    @tool("read")
    def read(page: int) -> str:
        """Read a page."""
        return f"page {page}: {_PAGE}"

    @tool("add")
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    read.cache_function = lambda *_: False  # each run reads again
    model = LLM(model="openai/scripted", base_url=url, api_key="scripted")

    def once() -> None:
        researcher = Agent(
            role="researcher", goal="find figures", backstory=_PAGE, tools=[read], llm=model
        )
        writer = Agent(
            role="writer",
            goal="answer",
            backstory=_PAGE,
            tools=[add],
            llm=model,
            allow_delegation=True,
        )
        task = Task(
            description="What do the figures add up to?",
            expected_output="a sentence",
            agent=writer,
        )
        Crew(name="team", agents=[writer, researcher], tasks=[task]).kickoff()

    return once
