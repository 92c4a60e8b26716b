"""Agents of AG2 1.x that ask a person through a hook: ``ag2_person.py WAY``.

The ways are ``tool`` (a tool asks), ``thread`` (likewise, from a thread of the hook), ``approval`` (AG2's own
middleware asks before a tool is executed), ``twice`` (both) and ``own`` (a hook that asks nobody).
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from ag2 import Agent, Context, tool
from ag2.config import OpenAIConfig
from ag2.middleware import approval_required

import mast_trace


def log(what: str) -> None:
    """Note that something was really executed."""
    with Path(os.environ["EXECUTED"]).open("a", encoding="utf-8") as file:
        file.write(f"{what}\n")


@tool
async def confirm(what: str, ctx: Context) -> str:
    """Ask a person whether something may be done."""
    log("confirm")
    return await ctx.input(f"May I {what}?")


@tool(middleware=[approval_required()])
def delete(what: str) -> str:
    """Delete a file."""
    log("delete")
    return f"{what} is gone"


def typed(event: object) -> str:
    """Ask at the terminal, and make an answer of what is typed."""
    return {"y": "yes", "n": "no"}[input(f"{event} ")]


async def typed_in_a_thread(event: object) -> str:
    """Ask at the terminal without stopping the loop."""
    return {"y": "yes", "n": "no"}[await asyncio.to_thread(input, f"{event} ")]


def own(event: object) -> str:
    """Answer without a person, as a policy does."""
    log("hook")
    return "yes"


HOOKS = {"thread": typed_in_a_thread, "own": own}


async def main(way: str) -> None:
    """Ask the agent to delete a file."""
    config = OpenAIConfig(model="m", base_url=os.environ["OPENAI_BASE_URL"], api_key="scripted")
    tools = {"approval": [delete], "twice": [confirm, delete]}.get(way, [confirm])
    agent = Agent("careful", config=config, tools=tools, hitl_hook=HOOKS.get(way, typed))
    reply = await agent.ask("Delete the file")
    mast_trace.record_outcome(reply.body is not None and "no" not in reply.body.split())


if __name__ == "__main__":
    mast_trace.instrument()
    asyncio.run(main(sys.argv[1]))
