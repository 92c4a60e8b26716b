"""Three AG2 1.x agents that hand over in a channel: 6 calls of the model and 4 of tools make a run."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from scripted_llm import Call, Reply, system_text

if TYPE_CHECKING:
    from collections.abc import Callable

STEPS = 10
"""Calls of the model and of tools in a run."""
FRAMEWORK = "ag2"
PEERS = ()

_PAGE = "Quarterly revenue by region, in thousands of euros, with remarks. " * 12


def script(request: dict[str, Any]) -> Reply | str:
    """Answer as one of the three."""
    who, done = system_text(request), request["messages"][-1]["role"] == "tool"
    if "researcher" in who:
        calls = (Call("read", {"page": 1}), Call("read", {"page": 2}))
        return "The figures are 20 and 22." if done else Reply("Reading.", calls=calls)
    if "analyst" in who:
        return "Total: 42." if done else Reply(calls=(Call("add", {"a": 20, "b": 22}),))
    return "The total is 42." if done else Reply(calls=(Call("finish", {"answer": "42"}),))


def prepare(url: str) -> Callable[[], Any]:
    """Build the team; return a function that runs it once."""
    from ag2 import Agent
    from ag2.config import OpenAIConfig
    from ag2.knowledge import MemoryKnowledgeStore
    from ag2.network import (
        EV_CHANNEL_CLOSED,
        Finish,
        Hub,
        HubClient,
        LocalLink,
        Passport,
        TransitionGraph,
    )

    def read(page: int) -> str:
        """Read a page."""
        return f"page {page}: {_PAGE}"

    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    def finish(answer: str) -> Finish:
        """End with the answer."""
        return Finish(summary=answer)

    model = OpenAIConfig(model="scripted", base_url=url, api_key="scripted", max_retries=0)
    tools = {"researcher": [read], "analyst": [add], "supervisor": [finish]}
    loop = asyncio.new_event_loop()

    async def once() -> None:
        hub = await Hub.open(MemoryKnowledgeStore(), expectation_sweep_interval=0)
        user = await HubClient(LocalLink(hub), hub=hub).register_human(Passport(name="user"))
        agents = [
            Agent(name, f"You are the {name}. {_PAGE}", config=model, tools=given)
            for name, given in tools.items()
        ]
        members = [await hub.register(agent, attach_plugin=False) for agent in agents]
        order = [user.agent_id, *(member.agent_id for member in members)]
        channel = await user.open(
            type="workflow",
            target=order[1:],
            knobs={"graph": TransitionGraph.round_robin(order, max_turns=8).to_dict()},
        )
        await channel.send("What do the figures add up to?")
        await user.next_envelope(predicate=lambda e: e.event_type == EV_CHANNEL_CLOSED)
        await hub.close()

    return lambda: loop.run_until_complete(once())
