"""A team of three that orders kettles, and policies for its model that read their input.

The storekeeper counts what is in stock, the analyst forecasts what will be sold, the buyer orders the
difference. Each planted error is one wrong answer of one agent; everybody after it builds on it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from scripted_llm import Call, Reply, messages_of, system_text

if TYPE_CHECKING:
    from collections.abc import Callable

STOCK = {"kettle": 130, "pot": 40}
SALES = {"kettle": 85, "pot": 50}
WEEKS = 4
TASK = "How many kettles must we order to last four weeks?"
AGENTS = ("Storekeeper", "Analyst", "Buyer")
executed: list[str] = []
"""Names of the tools that were executed; tests clear it."""


def count_stock(item: str) -> str:
    """Count the pieces of an item in the warehouse."""
    executed.append("count_stock")
    return f"{item}: {STOCK[item]} pieces in stock"


def weekly_sales(item: str) -> str:
    """Look up how many pieces of an item are sold in a week."""
    executed.append("weekly_sales")
    return f"{item}: {SALES[item]} pieces a week"


def is_right(answer: str) -> bool:
    """Return whether an answer orders the pieces that will be missing."""
    return "210" in answer


def agent_of(request: dict) -> str:
    """Return the name of the agent that asks."""
    found = re.search(r"You are (?:an? )?(\w+)", system_text(request))
    return found[1] if found else ""


def read(request: dict, pattern: str) -> int | None:
    """Return the number that a pattern finds last in the request; None if it finds none."""
    texts = [
        str(message.get("content") or message.get("output") or "")
        for message in messages_of(request)
    ]
    found = re.findall(pattern, "\n".join(texts))
    return int(found[-1]) if found else None


def policy(request: dict) -> Reply | str:
    """Answer without an error, whoever asks."""
    agent = agent_of(request)
    if agent == "Storekeeper":
        counted = read(request, r"(\d+) pieces in stock")
        if counted is None:
            return Reply(calls=(Call("count_stock", {"item": "kettle"}),))
        return f"There are {counted} kettles in stock."
    if agent == "Analyst":
        sold = read(request, r"(\d+) pieces a week")
        if sold is None:
            return Reply(calls=(Call("weekly_sales", {"item": "kettle"}),))
        return f"We shall sell {WEEKS * sold} kettles."
    there = read(request, r"There are (\d+) kettles in stock")
    needed = read(request, r"We shall sell (\d+) kettles")
    return f"Order {(needed or 0) - (there or 0)} kettles."


@dataclass(frozen=True)
class Error:
    """A planted error.

    Attributes:
        name: its name.
        agent: the agent that errs.
        answer: the wrong answer to a request, or None where the agent answers as the policy does.
    """

    name: str
    agent: str
    answer: Callable[[dict], Reply | str | None]


def _wrong_item(tool: str, done: str) -> Callable[[dict], Reply | None]:
    def answer(request: dict) -> Reply | None:
        if read(request, done) is None:
            return Reply(calls=(Call(tool, {"item": "pot"}),))
        return None

    return answer


def _after(done: str, wrong: str) -> Callable[[dict], str | None]:
    return lambda request: None if read(request, done) is None else wrong


ERRORS = (
    Error(
        "counts another item", "Storekeeper", _wrong_item("count_stock", r"(\d+) pieces in stock")
    ),
    Error(
        "misreads the count",
        "Storekeeper",
        _after(r"(\d+) pieces in stock", "There are 310 kettles in stock."),
    ),
    Error(
        "asks for another item's sales",
        "Analyst",
        _wrong_item("weekly_sales", r"(\d+) pieces a week"),
    ),
    Error(
        "forgets the weeks", "Analyst", _after(r"(\d+) pieces a week", "We shall sell 85 kettles.")
    ),
    Error("ignores the stock", "Buyer", lambda _request: "Order 340 kettles."),
)


class Model:
    """The team's model: errs as planted until it is cured.

    Attributes:
        error: the planted error; None once it is cured.
    """

    def __init__(self) -> None:
        self.error: Error | None = None

    def __call__(self, request: dict) -> Reply | str:
        """Answer a request."""
        wrong = None
        if self.error is not None and agent_of(request) == self.error.agent:
            wrong = self.error.answer(request)
        return policy(request) if wrong is None else wrong
