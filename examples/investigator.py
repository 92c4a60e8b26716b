"""A LangGraph agent asks mast-trace, over MCP, why another system's run failed.

::

    mast-trace demo                              # gives it runs to look at
    OPENAI_API_KEY=... python investigator.py    # a real model (OPENAI_BASE_URL, OPENAI_MODEL)
    OPENAI_API_KEY=... python investigator.py 4f2a   # about this run
"""

from __future__ import annotations

import argparse
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


def main() -> None:
    """Print the agent's answer about the run that the command line names."""
    parser = argparse.ArgumentParser(
        description="Ask a LangGraph agent, over mast-trace's MCP server, why a run failed.",
        epilog="OPENAI_API_KEY is needed; OPENAI_BASE_URL and OPENAI_MODEL choose another model.",
    )
    parser.add_argument(
        "run", nargs="?", default="last", help="the run's id, its beginning, or last (the default)"
    )
    run = parser.parse_args().run
    if not os.environ.get("OPENAI_API_KEY"):
        print(
            "The agent asks a real model: set OPENAI_API_KEY (to any text, where OPENAI_BASE_URL is a "
            "server of yours that wants no key).",
            file=sys.stderr,
        )
        sys.exit(2)
    print(asyncio.run(investigate(run)))


if __name__ == "__main__":
    main()
