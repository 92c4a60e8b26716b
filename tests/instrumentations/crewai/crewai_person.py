"""A crew whose task a person reviews; the model is that of the environment."""

from __future__ import annotations

import os

from crewai import LLM, Agent, Crew, Task

import mast_trace

if __name__ == "__main__":
    mast_trace.instrument()
    model = LLM(model="openai/gpt-4o", base_url=os.environ["OPENAI_BASE_URL"], api_key="scripted")
    clerk = Agent(role="clerk", goal="Advise", backstory="A clerk.", llm=model)
    task = Task(
        description="Advise on kettles.", expected_output="Advice.", agent=clerk, human_input=True
    )
    Crew(agents=[clerk], tasks=[task]).kickoff()
