"""Three AG2 1.x agents in a channel; the first hands over by a tool, the last ends the talk."""

from __future__ import annotations

import asyncio
from typing import Any

from scripted_llm import Call, Reply, messages_of, system_text
from truth import Tool, Truth

QUESTION = "What do the figures add up to?"
TRUTH = Truth(
    messages=(
        ("user", QUESTION),
        ("researcher", "The figures are 20 and 22."),
        ("analyst", "Total: 42."),
        ("writer", "The total is 42."),
    ),
    tools=(
        Tool("researcher", "read", {"page": 1}),
        Tool("researcher", "read", {"page": 2}),
        Tool("researcher", "read", {"page": 3}, failed=True),
        Tool("researcher", "search", {"text": "figures"}, failed=True),
        Tool("researcher", "hand_over", {"to": "analyst"}),
        Tool("analyst", "add", {"a": 20, "b": 22}),
        Tool("writer", "finish", {"answer": "The total is 42."}),
    ),
    handoffs=(("researcher", "analyst"),),
)


def script(request: dict[str, Any]) -> Reply | str:
    """Answer as one of the three."""
    who, messages = system_text(request), messages_of(request)
    rounds = sum(1 for message in messages if message.get("tool_calls"))
    if "researcher" in who:
        pages = [Call("read", {"page": page}) for page in (1, 2, 3)]
        calls = (*pages, Call("search", {"text": "figures"}))
        turns = (Reply(calls=calls), Reply(calls=(Call("hand_over", {"to": "analyst"}),)))
        return (*turns, "The figures are 20 and 22.")[rounds]
    if "analyst" in who:
        return (Reply(calls=(Call("add", {"a": 20, "b": 22}),)), "Total: 42.")[rounds]
    finish = Call("finish", {"answer": "The total is 42."})
    return (Reply(calls=(finish,)), "The total is 42.")[rounds]


def run(url: str, own: Any = None) -> None:
    """Open a channel and wait for the answer; with AG2's own telemetry if a provider is given."""
    answer = asyncio.run(_talk(url, own))
    if answer != "The total is 42.":
        raise SystemExit(f"the program went wrong: {answer}")


def _team(url: str, own: Any) -> list[Any]:
    from ag2 import Agent
    from ag2.config import OpenAIConfig
    from ag2.network import Finish, Handoff

    def read(page: int) -> str:
        """Read a page."""
        if page > 2:
            raise ValueError(f"there is no page {page}")
        return f"page {page}: {18 + 2 * page}"

    def hand_over(to: str) -> Handoff:
        """Hand over to an agent."""
        return Handoff(target=to, reason="the figures are known")

    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    def finish(answer: str) -> Finish:
        """End with the answer."""
        return Finish(summary=answer)

    def telemetry(name: str) -> list[Any]:
        from ag2.middleware.builtin import TelemetryMiddleware

        return [TelemetryMiddleware(tracer_provider=own, agent_name=name)]

    model = OpenAIConfig(model="scripted", base_url=url, api_key="scripted", max_retries=0)
    tools = {"researcher": [read, hand_over], "analyst": [add], "writer": [finish]}
    return [
        Agent(
            name,
            f"You are the {name}.",
            config=model,
            tools=given,
            middleware=telemetry(name) if own else [],
        )
        for name, given in tools.items()
    ]


async def _talk(url: str, own: Any) -> str:
    from ag2.knowledge import MemoryKnowledgeStore
    from ag2.network import (
        EV_CHANNEL_CLOSED,
        AgentTarget,
        FromSpeaker,
        Hub,
        HubClient,
        LocalLink,
        Passport,
        TerminateTarget,
        Transition,
        TransitionGraph,
    )

    store = MemoryKnowledgeStore()
    traced = {"tracer_provider": own} if own else {}
    hub = await Hub.open(store, expectation_sweep_interval=0, **traced)
    if own:
        from ag2.network.hub.telemetry import HubTelemetryListener

        hub.register_listener(HubTelemetryListener(store, tracer_provider=own))
    user = await HubClient(LocalLink(hub), hub=hub).register_human(Passport(name="user"))
    members = [await hub.register(agent, attach_plugin=False) for agent in _team(url, own)]
    first, second, last = (member.agent_id for member in members)
    graph = TransitionGraph(
        initial_speaker=user.agent_id,
        transitions=[
            Transition(when=FromSpeaker(user.agent_id), then=AgentTarget(first)),
            Transition(when=FromSpeaker(second), then=AgentTarget(last)),
        ],
        default_target=TerminateTarget(),
        max_turns=10,
    )
    channel = await user.open(
        type="workflow", target=[first, second, last], knobs={"graph": graph.to_dict()}
    )
    await channel.send(QUESTION)
    closed = await user.next_envelope(predicate=lambda e: e.event_type == EV_CHANNEL_CLOSED)
    events = [e.event_data for e in await hub.read_wal(closed.channel_id)]
    await hub.close()
    return str([data["body"] for data in events if data.get("body")][-1])
