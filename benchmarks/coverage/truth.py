"""The truth about one run of a program, with which recordings are compared."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Tool:
    """A tool call that an agent made; ``failed`` if the tool raised or does not exist."""

    agent: str
    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    failed: bool = False


@dataclass(frozen=True)
class Truth:
    """One run.

    Attributes:
        messages: author and text of each, the user's first; without what a framework writes in an
            agent's name, and without results of tools.
        tools: every tool call, hand-overs by tools included.
        handoffs: source and target of each.
        termination: whether the framework knows why it stopped.
    """

    messages: tuple[tuple[str, str], ...]
    tools: tuple[Tool, ...] = ()
    handoffs: tuple[tuple[str, str], ...] = ()
    termination: bool = True
