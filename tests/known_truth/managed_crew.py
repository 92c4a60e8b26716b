"""The crew of ``examples/crewai_stock.py`` under CrewAI's own manager, which hands each task to one of it."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "examples"))

import crewai_stock
from crewai import Crew, Process


def managed() -> Crew:
    """Return the crew."""
    made = SEQUENTIAL()
    model = made.agents[0].llm
    return Crew(
        name="managed stock",
        agents=made.agents,
        tasks=made.tasks,
        process=Process.hierarchical,
        manager_llm=model,
    )


SEQUENTIAL = crewai_stock.crew

if __name__ == "__main__":
    crewai_stock.crew = managed
    crewai_stock.main()
