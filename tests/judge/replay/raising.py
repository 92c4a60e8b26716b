"""A hand-made program whose tools raise, as functions of its own and of LangChain."""

from __future__ import annotations

import os
from pathlib import Path

import openai
from langchain_core.tools import tool

import mast_trace

mast_trace.instrument()


class NoOrder(LookupError):
    """There is no such order."""


@mast_trace.tool
def order(number: int) -> str:
    """Look an order up."""
    Path(os.environ["EXECUTED"]).touch()
    raise NoOrder(f"no order {number}")


@tool
def stock(item: str) -> str:
    """Look a stock up."""
    Path(os.environ["EXECUTED"]).touch()
    raise KeyError(item)


with mast_trace.run("desk", input="Go."), mast_trace.agent("clerk") as clerk:
    notes = []
    for asked in (lambda: order(7), lambda: stock.invoke({"item": "kettle"})):
        try:
            asked()
        except (NoOrder, KeyError) as error:
            notes.append(f"{type(error).__name__}: {error}")
    question = [{"role": "user", "content": "; ".join(notes)}]
    said = openai.OpenAI().chat.completions.create(model="m", messages=question)
    clerk.reply(said.choices[0].message.content)
