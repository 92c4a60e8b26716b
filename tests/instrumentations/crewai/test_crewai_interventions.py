"""Interventions in runs of a CrewAI crew: all operators, and planted errors that are found again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from installed import installed

if not installed("crewai"):
    pytest.skip("needs CrewAI; `nox -s framework` has an environment", allow_module_level=True)

import crewai
import crewai_programs
import stock
from confirmed_planted import ALL, check_confirmed
from crewai import Agent, Crew, Task
from crewai.tools import tool
from interventions import Stage, check_operators, check_planted, check_tools
from scripted_llm import ScriptedLLM

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [
    pytest.mark.framework("crewai"),
    pytest.mark.skipif(
        crewai.__version__.startswith("0."), reason="the script calls tools natively"
    ),
]


def crew(server: ScriptedLLM) -> Crew:
    """Return the team, whose buyer is shown what the others report."""
    model = crewai_programs.llm(server)
    tools = {
        "Storekeeper": [tool("count_stock")(stock.count_stock)],
        "Analyst": [tool("weekly_sales")(stock.weekly_sales)],
        "Buyer": [],
    }
    team = [
        Agent(role=name, goal="help", backstory="You know.", tools=tools[name], llm=model)
        for name in stock.AGENTS
    ]
    count = Task(description="Count the kettles.", expected_output="a number", agent=team[0])
    sell = Task(description="Forecast the sales.", expected_output="a number", agent=team[1])
    order = Task(
        description=stock.TASK, expected_output="a line", agent=team[2], context=[count, sell]
    )
    return Crew(name="stock", agents=team, tasks=[count, sell, order])


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    """The team as a crew with three tasks in sequence."""
    with ScriptedLLM(stock.policy) as server:
        yield Stage(lambda: str(crew(server).kickoff().raw), server)


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
