"""Interventions in runs of AG2's classic API: all operators, and planted errors that are found again."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest
from installed import installed

if not installed("autogen"):
    pytest.skip("needs AG2's classic API", allow_module_level=True)

import stock
from autogen import ConversableAgent
from autogen.agentchat import initiate_group_chat
from autogen.agentchat.group import AgentTarget, TerminateTarget
from autogen.agentchat.group.patterns import DefaultPattern
from confirmed_planted import ALL, check_confirmed
from interventions import Stage, check_operators, check_planted, check_tools
from scripted_llm import ScriptedLLM

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.framework("autogen")


def chat(url: str) -> str:
    """Let the three agents hand over to each other; return the last one's words."""
    server = {"model": "gpt-small", "base_url": url, "api_key": "scripted", "price": [0, 0]}
    model = {"config_list": [server], "cache_seed": None}
    tools = {"Storekeeper": [stock.count_stock], "Analyst": [stock.weekly_sales], "Buyer": []}
    team = [
        ConversableAgent(
            name, system_message=f"You are {name}.", llm_config=model, functions=tools[name]
        )
        for name in stock.AGENTS
    ]
    for one, other in itertools.pairwise(team):
        one.handoffs.set_after_work(AgentTarget(other))
    pattern = DefaultPattern(initial_agent=team[0], agents=team, group_after_work=TerminateTarget())
    result, _variables, _last = initiate_group_chat(pattern, stock.TASK, max_rounds=12)
    return str(result.chat_history[-1]["content"])


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    """The team as a group chat."""
    with ScriptedLLM(stock.policy) as server:
        yield Stage(lambda: chat(server.url), server)


@pytest.mark.parametrize("error", stock.ERRORS, ids=lambda error: error.name)
def test_a_planted_error_is_the_earliest_that_flips(stage: Stage, error: stock.Error) -> None:
    """Held replays flip at the planted error alone; naive ones at the first answer, wherever it is."""
    check_planted(stage, error)


@pytest.mark.parametrize("error", ALL, ids=lambda error: error.name)
def test_a_planted_error_is_confirmed(stage: Stage, error: stock.Error) -> None:
    """The experiment of `mast-trace confirm` proves the planted step, and no earlier one."""
    check_confirmed(stage, error)


def test_operators(stage: Stage) -> None:
    """Each operator serves, changes and asks what it says."""
    check_operators(stage)


def test_tools(stage: Stage) -> None:
    """A tool call's result and arguments are changed, and the call is dropped."""
    check_tools(stage)
