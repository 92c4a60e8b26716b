"""Three classic AG2 agents with hand-offs: 5 calls of the model and 3 of tools make a run."""

from __future__ import annotations

import contextlib
import io
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from scripted_llm import Call, Reply, messages_of, system_text

if TYPE_CHECKING:
    from collections.abc import Callable

STEPS = 8
"""Calls of the model and of tools in a run."""
FRAMEWORK = "autogen"
PEERS = ("openinference", "openinference, with OpenAI's", "openlit", "agentops")

_PAGE = "Quarterly revenue by region, in thousands of euros, with remarks. " * 12


def script(request: dict[str, Any]) -> Reply | str:
    """Answer as one of the three."""
    who, done = system_text(request), messages_of(request)[-1]["role"] == "tool"
    if "researcher" in who:
        calls = (Call("read", {"page": 1}), Call("read", {"page": 2}))
        return "The figures are 20 and 22." if done else Reply("Reading.", calls=calls)
    if "analyst" in who:
        return "Total: 42." if done else Reply(calls=(Call("add", {"a": 20, "b": 22}),))
    return "The total is 42."


def prepare(url: str) -> Callable[[], Any]:
    """Build the team; return a function that runs it once."""
    from autogen import ConversableAgent
    from autogen.agentchat import initiate_group_chat
    from autogen.agentchat.group import AgentTarget, TerminateTarget
    from autogen.agentchat.group.patterns import DefaultPattern

    def read(page: int) -> str:
        """Read a page."""
        return f"page {page}: {_PAGE}"

    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    settings = {"model": "scripted", "base_url": url, "api_key": "scripted", "price": [0, 0]}
    model = {"config_list": [settings], "cache_seed": None}

    def once() -> None:
        agents = [
            ConversableAgent(
                name,
                system_message=f"You are the {name}. {_PAGE}",
                llm_config=model,
                functions=tools,
                human_input_mode="NEVER",
            )
            for name, tools in (("researcher", [read]), ("analyst", [add]), ("supervisor", []))
        ]
        for agent, following in pairwise(agents):
            agent.handoffs.set_after_work(AgentTarget(following))
        pattern = DefaultPattern(
            initial_agent=agents[0], agents=agents, group_after_work=TerminateTarget()
        )
        with contextlib.redirect_stdout(io.StringIO()):
            initiate_group_chat(pattern, "What do the figures add up to?", max_rounds=12)

    return once
