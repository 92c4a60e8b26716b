"""Interventions in runs of MetaGPT roles: operators, and planted errors that are found again."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from installed import installed

if not installed("metagpt.team"):
    pytest.skip("needs MetaGPT; `nox -s framework` has an environment", allow_module_level=True)

import stock
from confirmed_planted import check_confirmed
from interventions import Stage, check_operators, check_planted
from metagpt_programs import Action, Message, Role, UserRequirement, team

if TYPE_CHECKING:
    from metagpt_programs import Model

pytestmark = pytest.mark.framework("metagpt")

FACTS = {
    "Storekeeper": stock.count_stock("kettle"),
    "Analyst": stock.weekly_sales("kettle"),
    "Buyer": stock.TASK,
}
"""The facts in the prompt of each role, which has no tool."""
WITHOUT_TOOLS = [error for error in stock.ERRORS if "item" not in error.name]


class Count(Action):
    """Ask the model about the stock."""


class Forecast(Action):
    """Ask the model about the sales."""


class Order(Action):
    """Ask the model for the order."""


class Member(Role):
    """Says one thing when the member before has spoken."""

    def __init__(self, profile: str, after: type[Action], action: type[Action]) -> None:
        super().__init__(name=profile, profile=profile, goal="help")
        self._watch([after])
        self.set_actions([action])

    async def _act(self) -> Message:
        heard = "\n".join(message.content for message in self.rc.memory.get())
        prompt = f"{heard}\n{FACTS[self.profile]}"
        text = await self.rc.todo._aask(prompt, [f"You are {self.profile}."])
        return Message(content=text, role=self.profile, cause_by=type(self.rc.todo))


def program() -> str:
    """Let the three roles speak one after the other; return the last one's words."""
    members = [
        Member("Storekeeper", UserRequirement, Count),
        Member("Analyst", Count, Forecast),
        Member("Buyer", Forecast, Order),
    ]
    made = team(*members)
    made.run_project(stock.TASK)
    asyncio.run(made.run(n_round=6))
    return str(members[-1].rc.memory.get()[-1].content)


@pytest.fixture
def stage(server: Model) -> Stage:
    """The three roles."""
    return Stage(program, server)


@pytest.mark.parametrize("error", WITHOUT_TOOLS, ids=lambda error: error.name)
def test_a_planted_error_is_the_earliest_that_flips(stage: Stage, error: stock.Error) -> None:
    """Held replays flip at the planted error alone; naive ones at the first answer, wherever it is."""
    check_planted(stage, error)


@pytest.mark.parametrize("error", WITHOUT_TOOLS, ids=lambda error: error.name)
def test_a_planted_error_is_confirmed(stage: Stage, error: stock.Error) -> None:
    """The experiment of `mast-trace confirm` proves the planted step, and no earlier one."""
    check_confirmed(stage, error)


def test_operators(stage: Stage) -> None:
    """Each operator serves, changes and asks what it says."""
    check_operators(stage)
