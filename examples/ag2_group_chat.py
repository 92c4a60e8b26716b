"""Three AG2 agents plan a trip in a group chat: they speak in turn until one calls `finish`.

::

    python ag2_group_chat.py                     # scripted model: all goes well
    python ag2_group_chat.py misread-price       # scripted model: an agent misreads a tool's answer
    OPENAI_API_KEY=... python ag2_group_chat.py  # a real model (OPENAI_BASE_URL, OPENAI_MODEL)
"""

from __future__ import annotations

import asyncio
import math
import os
import sys

from ag2 import Agent
from ag2.config import OpenAIConfig
from ag2.knowledge import MemoryKnowledgeStore
from ag2.network import (
    EV_CHANNEL_CLOSED,
    EV_PACKET,
    WORKFLOW_TYPE,
    Finish,
    Hub,
    HubClient,
    LocalLink,
    Passport,
    TransitionGraph,
)
from scenarios import model_for

import mast_trace

mast_trace.instrument()

FLIGHT, ROOM, TRAVELLERS, NIGHTS = 198, 118, 2, 3
TASK = (
    "We are two, and fly from Vienna to Lisbon for three nights. What do flights and hotel cost "
    "together? Our budget is 1,200 EUR."
)
RIGHT_ANSWER = f"{TRAVELLERS * FLIGHT + NIGHTS * ROOM} EUR"


def flight_price(origin: str, destination: str) -> str:
    """Look up a return flight."""
    return f"{origin}-{destination} and back: {FLIGHT} EUR per person"


def hotel_price(city: str) -> str:
    """Look up a double room."""
    return f"Double room in {city}: {ROOM} EUR per night"


def calculate(expression: str) -> float:
    """Work out a sum of products, such as 2 * 3 + 4 * 5."""
    return sum(math.prod(map(float, term.split("*"))) for term in expression.split("+"))


def finish(answer: str) -> Finish:
    """End the chat with the answer for the user."""
    return Finish(summary=answer)


def team() -> list[Agent]:
    """Return the three agents, in the order in which they speak."""
    model = OpenAIConfig(model=os.environ.get("OPENAI_MODEL", "gpt-5-mini"))
    return [
        Agent(
            "researcher",
            "You are the researcher. Look up prices and report them.",
            config=model,
            tools=[flight_price, hotel_price],
        ),
        Agent(
            "planner",
            "You are the planner. Turn the prices into a total.",
            config=model,
            tools=[finish],
        ),
        Agent(
            "auditor",
            "You are the auditor. Check the total; if it is right, finish with it.",
            config=model,
            tools=[calculate, finish],
        ),
    ]


async def chat() -> str:
    """Open the chat, put the task to it, and wait for the answer."""
    hub = await Hub.open(MemoryKnowledgeStore())
    user = await HubClient(LocalLink(hub), hub=hub).register_human(Passport(name="user"))
    members = [await hub.register(agent, attach_plugin=False) for agent in team()]
    order = [user.agent_id, *(member.agent_id for member in members)]
    channel = await user.open(
        type=WORKFLOW_TYPE,
        target=order[1:],
        intent="plan a trip",
        knobs={"graph": TransitionGraph.round_robin(order, max_turns=12).to_dict()},
    )
    await channel.send(TASK)
    closed = await user.next_envelope(predicate=lambda e: e.event_type == EV_CHANNEL_CLOSED)
    packets = [e for e in await hub.read_wal(closed.channel_id) if e.event_type == EV_PACKET]
    await hub.close()
    return str(packets[-1].event_data["routing"].get("summary", ""))


def main() -> None:
    """Ask the team, and check its answer against the prices."""
    answer = asyncio.run(chat())
    success = RIGHT_ANSWER in answer
    mast_trace.record_outcome(success, "" if success else f"the trip costs {RIGHT_ANSWER}")
    print(answer)


if __name__ == "__main__":
    for scenario in sys.argv[1:] or ("verified",):
        with model_for("ag2_group_chat.py", scenario):
            main()
