"""A LangGraph agent asks mast-trace, over MCP, why another system's run failed.

::

    mast-trace demo                              # gives it runs to look at
    OPENAI_API_KEY=... python investigator.py    # a real model (OPENAI_BASE_URL, OPENAI_MODEL)
    OPENAI_API_KEY=... python investigator.py 4f2a   # about this run
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import TYPE_CHECKING, Any

from langchain.agents import create_agent
from langchain_core.tools import StructuredTool
from langchain_openai import ChatOpenAI
from mcp import Client, StdioServerParameters

if TYPE_CHECKING:
    from mcp_types import Tool

ROLE = (
    "You investigate failed runs of agents with mast-trace. Read the verdict, then the decisive step and "
    "its input. Answer in two sentences: who erred at which step, and on what evidence."
)


async def investigate(run: str) -> str:
    """Return the agent's answer about a run."""
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "mast_trace_dashboards", "mcp"],
        env={
            name: text
            for name, text in os.environ.items()
            if name.startswith(("MAST_TRACE_", "PYTHON"))
        },
    )
    model = ChatOpenAI(model=os.environ.get("OPENAI_MODEL", "gpt-5-mini"))
    async with Client(server) as client:
        tools = [_as_tool(client, each) for each in (await client.list_tools()).tools]
        agent = create_agent(model, tools=tools, name="investigator", system_prompt=ROLE)
        question = {"role": "user", "content": f"Why did the run {run} fail?"}
        done = await agent.ainvoke({"messages": [question]})
    return str(done["messages"][-1].content)


def _as_tool(client: Client, tool: Tool) -> StructuredTool:
    async def call(**arguments: Any) -> str:
        answer = await client.call_tool(tool.name, arguments)
        return "\n".join(part.text for part in answer.content if part.type == "text")

    return StructuredTool(
        name=tool.name,
        description=tool.description or "",
        args_schema=tool.input_schema,
        coroutine=call,
    )


if __name__ == "__main__":
    print(asyncio.run(investigate(sys.argv[1] if len(sys.argv) > 1 else "last")))
