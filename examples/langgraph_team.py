"""A LangGraph supervisor with two agents finds out what a customer owes.

::

    python langgraph_team.py                     # scripted model: all goes well
    python langgraph_team.py repeated-call       # scripted model: an agent repeats a tool call
    OPENAI_API_KEY=... python langgraph_team.py  # a real model (OPENAI_BASE_URL, OPENAI_MODEL)
"""

from __future__ import annotations

import os
import sys

from langchain.agents import create_agent
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph_supervisor import create_supervisor
from scenarios import model_for

import mast_trace

mast_trace.instrument()

PAGES = (
    {"R-1041": 1240.00, "R-1044": 860.50, "R-1052": 1310.00},
    {"R-1057": 2075.00, "R-1063": 990.00, "R-1070": 455.25},
    {"R-1078": 1610.00, "R-1081": 720.00},
)
TASK = "How much does Hartmann GmbH owe us in all open invoices together?"
RIGHT_ANSWER = f"{sum(sum(page.values()) for page in PAGES):,.2f}"


@tool
def open_invoices(customer: str, page: int) -> dict[str, object]:
    """List a customer's open invoices with their amounts in EUR, three to a page."""
    return {"customer": customer, "page": page, "pages": len(PAGES), "invoices": PAGES[page - 1]}


@tool
def add(amounts: list[float]) -> float:
    """Add amounts up."""
    return round(sum(amounts), 2)


def main() -> None:
    """Ask the team, and check its answer against the invoices."""
    model = ChatOpenAI(model=os.environ.get("OPENAI_MODEL", "gpt-5-mini"))
    analyst = create_agent(
        model,
        tools=[open_invoices],
        name="analyst",
        system_prompt="You are the analyst. Read the invoices and report what they add up to.",
    )
    reviewer = create_agent(
        model,
        tools=[add],
        name="reviewer",
        system_prompt="You are the reviewer. Check the analyst's total with your tool.",
    )
    team = create_supervisor(
        [analyst, reviewer],
        model=model,
        prompt="You are the supervisor. Hand over to one agent at a time, then answer the user.",
    ).compile(name="invoice team")

    answer = team.invoke({"messages": [("user", TASK)]})["messages"][-1].text
    success = RIGHT_ANSWER in answer
    mast_trace.record_outcome(success, "" if success else f"the invoices add up to {RIGHT_ANSWER}")
    print(answer)


if __name__ == "__main__":
    for scenario in sys.argv[1:] or ("verified",):
        with model_for("langgraph_team.py", scenario):
            main()
