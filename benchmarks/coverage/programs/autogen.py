"""Four agents of AG2 classic; a model, a tool's failure and fixed transitions decide who speaks."""

from __future__ import annotations

import contextlib
import io
from typing import Any

from scripted_llm import Call, Reply, messages_of, system_text
from truth import Tool, Truth

QUESTION = "What do the figures add up to?"
TRUTH = Truth(
    messages=(
        ("_User", QUESTION),
        ("researcher", "Reading."),
        ("researcher", "The figures are 20 and 22."),
        ("analyst", "Total: 42."),
        ("writer", "The total is 42."),
    ),
    tools=(
        Tool("triage", "transfer_to_researcher_1"),
        Tool("researcher", "read", {"page": 1}),
        Tool("researcher", "read", {"page": 2}),
        Tool("researcher", "read", {"page": 3}, failed=True),
        Tool("researcher", "search", {"text": "figures"}, failed=True),
        Tool("analyst", "add", {"a": 20, "b": 22}),
    ),
    handoffs=(("triage", "researcher"), ("researcher", "analyst"), ("analyst", "writer")),
)


def script(request: dict[str, Any]) -> Reply | str:
    """Answer as one of the four."""
    who, done = system_text(request), messages_of(request)[-1]["role"] == "tool"
    if "triage" in who:
        return Reply(calls=(Call("transfer_to_researcher_1"),))
    if "researcher" in who:
        pages = [Call("read", {"page": page}) for page in (1, 2, 3)]
        calls = (*pages, Call("search", {"text": "figures"}))
        read = any("page 1" in str(message.get("content")) for message in messages_of(request))
        return "The figures are 20 and 22." if read else Reply("Reading.", calls=calls)
    if "analyst" in who:
        return "Total: 42." if done else Reply(calls=(Call("add", {"a": 20, "b": 22}),))
    return "The total is 42."


def run(url: str, own: Any = None) -> None:
    """Build the team and run it once; with AG2's own telemetry if there is a provider for it."""
    from autogen import ConversableAgent
    from autogen.agentchat import initiate_group_chat
    from autogen.agentchat.group import (
        AgentTarget,
        OnCondition,
        StringLLMCondition,
        TerminateTarget,
    )
    from autogen.agentchat.group.patterns import DefaultPattern

    def read(page: int) -> str:
        """Read a page."""
        if page > 2:
            raise ValueError(f"there is no page {page}")
        return f"page {page}: {18 + 2 * page}"

    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    settings = {"model": "scripted", "base_url": url, "api_key": "scripted", "price": [0, 0]}
    model = {"config_list": [settings], "cache_seed": None}
    tools: dict[str, list[Any]] = {"triage": [], "researcher": [read], "analyst": [add]}
    triage, researcher, analyst, writer = agents = [
        ConversableAgent(
            name,
            system_message=f"You are the {name}.",
            llm_config=model,
            functions=tools.get(name, []),
            human_input_mode="NEVER",
        )
        for name in ("triage", "researcher", "analyst", "writer")
    ]
    triage.handoffs.add_llm_condition(
        OnCondition(target=AgentTarget(researcher), condition=StringLLMCondition("needs figures"))
    )
    researcher.handoffs.set_after_work(AgentTarget(analyst))
    analyst.handoffs.set_after_work(AgentTarget(writer))
    pattern = DefaultPattern(
        initial_agent=triage, agents=agents, group_after_work=TerminateTarget()
    )
    if own:
        from autogen.opentelemetry import instrument_llm_wrapper, instrument_pattern

        instrument_llm_wrapper(tracer_provider=own, capture_messages=True)
        instrument_pattern(pattern, tracer_provider=own)
    with contextlib.redirect_stdout(io.StringIO()):
        result, _, _ = initiate_group_chat(pattern, QUESTION, max_rounds=20)
    answer = str(result.chat_history[-1]["content"])
    if answer != "The total is 42.":
        raise SystemExit(f"the program went wrong: {answer}")
