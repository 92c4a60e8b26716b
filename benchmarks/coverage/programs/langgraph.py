"""A LangGraph supervisor over two agents; among their tool calls one fails and one is made up."""

from __future__ import annotations

from typing import Any

from scripted_llm import Call, Reply, last_text, messages_of, system_text
from truth import Tool, Truth

QUESTION = "What do the figures add up to?"
TRUTH = Truth(
    messages=(
        ("user", QUESTION),
        ("supervisor", "Find the figures."),
        ("researcher", "Reading."),
        ("researcher", "The figures are 20 and 22."),
        ("supervisor", "Add them up."),
        ("analyst", "Total: 42."),
        ("supervisor", "The total is 42."),
    ),
    tools=(
        Tool("supervisor", "transfer_to_researcher"),
        Tool("researcher", "read", {"page": 1}),
        Tool("researcher", "read", {"page": 2}),
        Tool("researcher", "read", {"page": 3}, failed=True),
        Tool("researcher", "search", {"text": "figures"}, failed=True),
        Tool("supervisor", "transfer_to_analyst"),
        Tool("analyst", "add", {"a": 20, "b": 22}),
    ),
    handoffs=(("supervisor", "researcher"), ("supervisor", "analyst")),
)


def script(request: dict[str, Any]) -> Reply | str:
    """Answer as the supervisor and its two agents."""
    who = system_text(request)
    if "supervisor" in who:
        return _supervisor(messages_of(request))
    answered = messages_of(request)[-1]["role"] == "tool"
    if "researcher" in who:
        if answered and "transferred" not in last_text(request):
            return "The figures are 20 and 22."
        pages = [Call("read", {"page": page}) for page in (1, 2, 3)]
        return Reply("Reading.", calls=(*pages, Call("search", {"text": "figures"})))
    return (
        "Total: 42."
        if last_text(request) == "42"
        else Reply(calls=(Call("add", {"a": 20, "b": 22}),))
    )


def _supervisor(history: list[dict[str, Any]]) -> Reply | str:
    texts = [str(message.get("content")) for message in history]
    if "The figures are 20 and 22." not in texts:
        return Reply("Find the figures.", calls=(Call("transfer_to_researcher"),))
    if "Total: 42." not in texts:
        return Reply("Add them up.", calls=(Call("transfer_to_analyst"),))
    return "The total is 42."


def run(url: str, _own: Any = None) -> None:
    """Build the team and run it once."""
    from langchain.agents import create_agent
    from langchain_core.tools import ToolException, tool
    from langchain_openai import ChatOpenAI
    from langgraph_supervisor import create_supervisor

    @tool
    def read(page: int) -> str:
        """Read a page."""
        if page > 2:
            raise ToolException(f"there is no page {page}")
        return f"page {page}: {18 + 2 * page}"

    @tool
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    read.handle_tool_error = True
    model = ChatOpenAI(model="scripted", base_url=url, api_key="scripted", max_retries=0)
    researcher = create_agent(
        model, [read], name="researcher", system_prompt="You are the researcher."
    )
    analyst = create_agent(model, [add], name="analyst", system_prompt="You are the analyst.")
    team = create_supervisor(
        [researcher, analyst], model=model, prompt="You are the supervisor."
    ).compile(name="team")
    answer = team.invoke({"messages": [("user", QUESTION)]})["messages"][-1].text
    if answer != "The total is 42.":
        raise SystemExit(f"the program went wrong: {answer}")
