"""Interventions in runs of an AG2 1.x group chat: all operators, and planted errors that are found again."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("ag2.network", reason="needs AG2 1.x (`import ag2`)")

import stock
from ag2 import Agent
from ag2.config import OpenAIConfig
from ag2.knowledge import MemoryKnowledgeStore
from ag2.network import (
    EV_CHANNEL_CLOSED,
    WORKFLOW_TYPE,
    Hub,
    HubClient,
    LocalLink,
    Passport,
    TransitionGraph,
)
from confirmed_planted import SOME, check_confirmed
from interventions import Stage, check_operators, check_planted, check_tools
from scripted_llm import ScriptedLLM

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.framework("ag2")


async def chat(url: str) -> str:
    """Let the three agents speak once each; return the last one's words."""
    model = OpenAIConfig(model="gpt-small", base_url=url, api_key="scripted")
    tools = {"Storekeeper": [stock.count_stock], "Analyst": [stock.weekly_sales], "Buyer": []}
    hub = await Hub.open(MemoryKnowledgeStore())
    user = await HubClient(LocalLink(hub), hub=hub).register_human(Passport(name="user"))
    team = [
        Agent(name, f"You are {name}.", config=model, tools=tools[name]) for name in stock.AGENTS
    ]
    members = [await hub.register(agent, attach_plugin=False) for agent in team]
    order = [user.agent_id, *(member.agent_id for member in members)]
    graph = TransitionGraph.round_robin(order, max_turns=4).to_dict()
    channel = await user.open(
        type=WORKFLOW_TYPE, target=order[1:], intent="order kettles", knobs={"graph": graph}
    )
    await channel.send(stock.TASK)
    closed = await user.next_envelope(predicate=lambda each: each.event_type == EV_CHANNEL_CLOSED)
    said = [each.event_data for each in await hub.read_wal(closed.channel_id)]
    await hub.close()
    return next(text for text in reversed([str(each) for each in said]) if "Order" in text)


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    """The team as a group chat, in which every agent speaks once."""
    with ScriptedLLM(stock.policy) as server:
        yield Stage(lambda: asyncio.run(chat(server.url)), server)


@pytest.mark.parametrize("error", stock.ERRORS, ids=lambda error: error.name)
def test_a_planted_error_is_the_earliest_that_flips(stage: Stage, error: stock.Error) -> None:
    """Held replays flip at the planted error alone; naive ones at the first answer, wherever it is."""
    check_planted(stage, error)


@pytest.mark.parametrize("error", SOME, ids=lambda error: error.name)
def test_a_planted_error_is_confirmed(stage: Stage, error: stock.Error) -> None:
    """The experiment of `mast-trace confirm` proves the planted step, and no earlier one."""
    check_confirmed(stage, error, frameworks=["ag2"])


def test_operators(stage: Stage) -> None:
    """Each operator serves, changes and asks what it says."""
    check_operators(stage)


def test_tools(stage: Stage) -> None:
    """A tool call's result and arguments are changed, and the call is dropped."""
    check_tools(stage)
