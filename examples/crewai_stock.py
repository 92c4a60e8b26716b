"""Three CrewAI agents decide how many kettles to order: one counts, one forecasts, one decides.

::

    pip install "crewai>=1.10,<1.16" mast-trace
    python crewai_stock.py                       # scripted model: all goes well
    python crewai_stock.py ignored-stock         # scripted model: an agent ignores another's answer
    OPENAI_API_KEY=... python crewai_stock.py    # a real model (OPENAI_BASE_URL, OPENAI_MODEL)
"""

from __future__ import annotations

import os
import re
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from crewai import LLM, Agent, Crew, Task
from crewai.tools import tool
from scripted_llm import Call, Reply, ScriptedLLM, by_speaker

import mast_trace

if TYPE_CHECKING:
    from collections.abc import Iterator

mast_trace.instrument()

IN_STOCK, SOLD_A_WEEK, WEEKS = 130, 85, 4
RIGHT_ANSWER = WEEKS * SOLD_A_WEEK - IN_STOCK


@tool("count_stock")
def count_stock(item: str) -> str:
    """Count the pieces of an item in the warehouse."""
    return f"{item}: {IN_STOCK} pieces in stock"


@tool("weekly_sales")
def weekly_sales(item: str) -> str:
    """Look up how many pieces of an item are sold in a week."""
    return f"{item}: {SOLD_A_WEEK} pieces a week"


def crew() -> Crew:
    """Return the agents and their tasks, one after the other."""
    model = LLM(
        model=os.environ.get("OPENAI_MODEL", "openai/gpt-5-mini"),
        base_url=os.environ.get("OPENAI_BASE_URL"),
    )
    storekeeper = Agent(
        role="Storekeeper",
        goal="report what is in stock",
        backstory="You count, you do not guess.",
        tools=[count_stock],
        llm=model,
    )
    analyst = Agent(
        role="Analyst",
        goal="forecast what will be sold",
        backstory="You know the sales figures.",
        tools=[weekly_sales],
        llm=model,
    )
    buyer = Agent(
        role="Buyer",
        goal="order what will be missing, and no more",
        backstory="You rely on what your colleagues report.",
        llm=model,
    )
    count = Task(
        description="How many kettles are in stock?",
        expected_output="a number",
        agent=storekeeper,
    )
    forecast = Task(
        description=f"How many kettles shall we sell in {WEEKS} weeks?",
        expected_output="a number",
        agent=analyst,
    )
    decide = Task(
        description=f"How many kettles must we order to last {WEEKS} weeks?",
        expected_output="one sentence with one number",
        agent=buyer,
        context=[count, forecast],
    )
    return Crew(name="stock", agents=[storekeeper, analyst, buyer], tasks=[count, forecast, decide])


COUNTED = (
    Reply(calls=(Call("count_stock", {"item": "kettle"}),)),
    "There are 130 kettles in stock.",
)
FORECAST = (
    Reply(calls=(Call("weekly_sales", {"item": "kettle"}),)),
    "At 85 kettles a week we shall sell 340 in four weeks.",
)
SCRIPTS = {
    "ordered": {
        "Storekeeper": COUNTED,
        "Analyst": FORECAST,
        "Buyer": ("340 will be sold and 130 are there: order 210 kettles.",),
    },
    "ignored-stock": {
        "Storekeeper": COUNTED,
        "Analyst": FORECAST,
        "Buyer": ("340 will be sold in four weeks: order 340 kettles.",),
    },
}


@contextmanager
def model_for(name: str) -> Iterator[None]:
    """Use the user's own model where one is set up, else the scripted one."""
    if os.environ.get("OPENAI_API_KEY"):
        yield
        return
    with ScriptedLLM(by_speaker(SCRIPTS[name])) as server:
        os.environ.update(OPENAI_BASE_URL=server.url, OPENAI_API_KEY="scripted")
        yield


def main() -> None:
    """Ask the crew, and check its answer against stock and sales."""
    answer = str(crew().kickoff().raw)
    # Not in a longer number, such as 2100.
    success = bool(re.search(rf"(?<![\d.,]){RIGHT_ANSWER}(?![.,]?\d)", answer))
    mast_trace.record_outcome(success, "" if success else f"{RIGHT_ANSWER} kettles will be missing")
    print(answer)


if __name__ == "__main__":
    with model_for(sys.argv[1] if len(sys.argv) > 1 else "ordered"):
        main()
