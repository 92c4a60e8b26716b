"""The parts that the teams in this folder share: their task, their tools, and a model's script.

A desk knows the orders, a shipper knows the tariff. Nothing here is about telemetry.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.append(str(Path(__file__).parents[1]))

from scripted_llm import Call, Reply, Request, ScriptedLLM

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TASK = "What does it cost to send order A-17?"
DESK = "You are the desk. Look the order up, then let the shipper name the price."
SHIPPER = "You are the shipper. Look the price up and say it in one sentence."
ANSWER = "Sending order A-17 to Lisbon costs 24.90 EUR."
GUESS = "Sending order A-17 to Lisbon costs about 30 EUR."
MODEL = os.environ.get("OPENAI_MODEL", "gpt-5-mini")

_TARIFF = {"Lisbon": 8.3, "Porto": 8.1}


def find_order(order: str) -> str:
    """Look an order up.

    Args:
        order: its number.
    """
    return f"{order}: 3 kg, to Lisbon"


def postage(city: str, kilograms: int) -> str:
    """Look up what a parcel costs.

    Args:
        city: its destination.
        kilograms: its weight.
    """
    if city not in _TARIFF:
        raise ValueError(f"no tariff for {city!r}")
    return f"{_TARIFF[city] * kilograms:.2f} EUR"


def _call(name: str, **arguments: object) -> Reply:
    return Reply(calls=(Call(name, arguments),))


def _script(scenario: str, delegate: Reply, finish: str) -> Callable[[Request], Reply | str]:
    city, answer = {"posted": ("Lisbon", ANSWER), "no-tariff": ("Lissabon", GUESS)}[scenario]
    final: Reply | str = _call(finish, answer=answer) if finish else answer
    desk = iter([_call("find_order", order="A-17"), delegate, final])
    shipper = iter([_call("postage", city=city, kilograms=3), final])

    def script(request: Request) -> Reply | str:
        # Frameworks differ in where they put an agent's instructions, but each shows only its own.
        return next(shipper if SHIPPER in json.dumps(request) else desk)

    return script


@contextmanager
def model_for(hand_over: str, *, finish: str = "", **arguments: object) -> Iterator[None]:
    """Let a program run: on the user's own model where one is set up, else on a scripted one.

    The first argument of the program chooses the script: ``posted``, by default, or ``no-tariff``,
    in which the shipper's tool fails and the shipper guesses.

    Args:
        hand_over: the framework's tool for letting another agent act.
        finish: the tool with which an agent answers, where plain text does not do it.
        arguments: of ``hand_over``.
    """
    if os.environ.get("OPENAI_API_KEY"):
        yield
        return
    scenario = sys.argv[1] if len(sys.argv) > 1 else "posted"
    script = _script(scenario, _call(hand_over, **arguments), finish)
    with ScriptedLLM(script) as server:
        os.environ.update(OPENAI_BASE_URL=server.url, OPENAI_API_KEY="scripted")
        yield
