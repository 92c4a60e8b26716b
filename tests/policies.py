"""Model servers that read their input, so that a correction of one agent reaches the next."""

from __future__ import annotations

import re
import threading
from typing import TYPE_CHECKING

from scripted_llm import Reply, last_text, system_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Policy = Callable[[dict], Reply | str]


class Planted:
    """A policy with a wrong answer in one agent's place, until it is cured.

    Attributes:
        agent: name of the agent that errs.
        cured: whether the policy is right everywhere from now on.
    """

    def __init__(self, policy: Policy, agent: str, wrong: Policy) -> None:
        self._policy = policy
        self._wrong = wrong
        self.agent = agent
        self.cured = False

    def __call__(self, request: dict) -> Reply | str:
        """Answer a request."""
        errs = not self.cured and f"You are {self.agent}." in system_text(request)
        return (self._wrong if errs else self._policy)(request)


def shop(request: dict) -> str:
    """Answer as the team of ``shop.py`` should."""
    said = last_text(request)
    if said.startswith("Which item"):
        return "kettle"
    if found := re.search(r"stock of (\w+) is (\d+)", said):
        return f"There are {found[2]} pieces of {found[1]}."
    if found := re.search(r"need (\d+)\. There are (\d+)", said):
        return f"Missing: {int(found[1]) - int(found[2])}."
    found = re.search(r"Missing: (-?\d+)", said)
    return f"Order {found[1]} pieces." if found else "Order nothing."


class Counting:
    """A policy that counts its requests by agent.

    Attributes:
        asked: names of the agents that have asked, in order.
    """

    def __init__(self, policy: Policy, agents: Mapping[str, str]) -> None:
        self._policy = policy
        self._agents = agents
        self._lock = threading.Lock()
        self.asked: list[str] = []

    def __call__(self, request: dict) -> Reply | str:
        """Answer a request."""
        prompt = system_text(request)
        with self._lock:
            self.asked.append(next((n for n, mark in self._agents.items() if mark in prompt), ""))
        return self._policy(request)
