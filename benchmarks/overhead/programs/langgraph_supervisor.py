"""A supervisor over two agents with tools: 7 calls of the model and 5 of tools make a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scripted_llm import Call, Reply, last_text, messages_of, system_text

if TYPE_CHECKING:
    from collections.abc import Callable

STEPS = 12
"""Calls of the model and of tools in a run."""
FRAMEWORK = "langgraph"
PEERS = ("openinference", "openllmetry", "openlit")

_PAGE = "Quarterly revenue by region, in thousands of euros, with remarks. " * 12


def script(request: dict[str, Any]) -> Reply | str:
    """Answer as the supervisor and its two agents."""
    who = system_text(request)
    if "supervisor" in who:
        return _supervisor(messages_of(request))
    if "researcher" in who:
        if "page" not in last_text(request):
            return Reply("Reading.", calls=(Call("read", {"page": 1}), Call("read", {"page": 2})))
        return "The figures are 20 and 22."
    if last_text(request) != "42":
        return Reply(calls=(Call("add", {"a": 20, "b": 22}),))
    return "Total: 42."


def _supervisor(history: list[dict[str, Any]]) -> Reply | str:
    if not any(message["role"] == "tool" for message in history):
        return Reply("Find the figures.", calls=(Call("transfer_to_researcher"),))
    if not any("Total:" in str(message.get("content")) for message in history):
        return Reply("Add them up.", calls=(Call("transfer_to_analyst"),))
    return "The total is 42."


def prepare(url: str) -> Callable[[], Any]:
    """Build the team; return a function that runs it once."""
    from langchain.agents import create_agent
    from langchain_core.tools import tool
    from langchain_openai import ChatOpenAI
    from langgraph_supervisor import create_supervisor

    @tool
    def read(page: int) -> str:
        """Read a page."""
        return f"page {page}: {_PAGE}"

    @tool
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    model = ChatOpenAI(model="scripted", base_url=url, api_key="scripted", max_retries=0)
    researcher = create_agent(
        model, [read], name="researcher", system_prompt="You are the researcher. " + _PAGE
    )
    analyst = create_agent(
        model, [add], name="analyst", system_prompt="You are the analyst. " + _PAGE
    )
    team = create_supervisor(
        [researcher, analyst], model=model, prompt="You are the supervisor. " + _PAGE
    ).compile(name="team")
    question = {"messages": [{"role": "user", "content": "What do the figures add up to?"}]}
    return lambda: team.invoke(question)
