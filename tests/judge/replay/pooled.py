"""A hand-made team that asks about several items at once, in a plain pool of threads, with a tool in each."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import openai

import mast_trace

mast_trace.instrument()
ITEMS = ("kettle", "pot", "pan", "cup", "jug", "bowl")


@mast_trace.tool
def stock(item: str) -> int:
    """Count the pieces of an item."""
    return 10 + ITEMS.index(item)


def ask(client: openai.OpenAI, text: str) -> str:
    """Ask the model, and return its answer."""
    messages = [{"role": "user", "content": text}]
    made = client.chat.completions.create(model="small", messages=messages)
    return made.choices[0].message.content or ""


def price(client: openai.OpenAI, item: str) -> str:
    """Ask for the price of what is there of an item."""
    return ask(client, f"Price of {stock(item)} pieces of {item}?")


def main() -> None:
    """Ask for all prices at once, then for their sum."""
    client = openai.OpenAI()
    with mast_trace.run("prices", input="All prices."), mast_trace.agent("clerk") as clerk:
        with ThreadPoolExecutor(len(ITEMS)) as pool:
            said = [*pool.map(lambda item: price(client, item), ITEMS)]
        clerk.reply(ask(client, f"Sum of: {', '.join(said)}?"))


if __name__ == "__main__":
    main()
