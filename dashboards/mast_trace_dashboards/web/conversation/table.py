"""The messages between agents as a table, the same as the graph with all numbers; the choice of agents in the address."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, NamedTuple
from urllib.parse import urlencode

from mast_trace.exceptions import ConfigurationError
from mast_trace_dashboards.web.filters import whole

BOXES: Final = 16
"""Boxes of a graph unless more are asked for: they fit on a screen, and on two of a phone."""
MOST_BOXES: Final = 100
"""Most boxes that may be asked for; the table has all numbers of larger teams."""
MOST_CHOSEN: Final = 50
_STEP: Final = 24
_NOT_KEPT: Final = ("part", "known", "token", "labelled")
"""Parameters of an address that do not belong into a link: the requested part, a secret, and what was just saved."""


@dataclass(frozen=True)
class Choice:
    """The content of a graph.

    Attributes:
        agents: only messages from or to one of these; none means all.
        least: only pairs with as many messages.
        boxes: number of boxes, of which the last may stand for several agents.
        others: parameters of the address that say nothing about the graph.
    """

    agents: tuple[str, ...] = ()
    least: int = 1
    boxes: int = BOXES
    others: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, parameters: Iterable[tuple[str, str]]) -> Choice:
        """Read it from the parameters of an address: ``with`` (any number of them), ``least``, ``boxes``.

        Raises:
            ConfigurationError: a number is none, or too many agents are named.
        """
        agents: list[str] = []
        numbers = {"least": 1, "boxes": BOXES}
        others: list[tuple[str, str]] = []
        for name, value in parameters:
            if name == "with":
                agents += [value] if value else []
            elif name in numbers:
                numbers[name] = _number(name, value) if value.strip() else numbers[name]
            elif name not in _NOT_KEPT:
                others.append((name, value))
        if len(agents) > MOST_CHOSEN:
            raise ConfigurationError(f"A graph is limited to {MOST_CHOSEN} chosen agents at most.")
        boxes = min(max(numbers["boxes"], 2), MOST_BOXES)
        chosen = tuple(dict.fromkeys(agents))
        return cls(chosen, max(numbers["least"], 1), boxes, tuple(others))

    def takes(self, sender: str, recipient: str, times: int) -> bool:
        """Return whether the messages from one agent to another are to be shown."""
        named = not self.agents or sender in self.agents or recipient in self.agents
        return named and times >= self.least

    @property
    def is_narrow(self) -> bool:
        """True if some messages are not to be shown."""
        return bool(self.agents) or self.least > 1

    @property
    def has_own_size(self) -> bool:
        """True if another number of boxes was asked for than the usual one."""
        return self.boxes != BOXES

    def toggled(self, agent: str) -> str:
        """Return the address of the graph with one agent chosen too, or no longer."""
        if agent in self.agents:
            kept = tuple(each for each in self.agents if each != agent)
        else:
            kept = (*self.agents, agent)
        return replace(self, agents=kept).address()

    def larger(self) -> str:
        """Return the address of the graph with more boxes; empty if it has as many as there may be."""
        if self.boxes >= MOST_BOXES:
            return ""
        return replace(self, boxes=min(self.boxes + _STEP, MOST_BOXES)).address()

    def whole(self) -> str:
        """Return the address of the graph of all messages."""
        return Choice(others=self.others).address()

    def address(self) -> str:
        """Return the address of the page with this choice, relative to the page itself."""
        given = [*self.others, *(("with", agent) for agent in self.agents)]
        if self.least > 1:
            given.append(("least", str(self.least)))
        if self.has_own_size:
            given.append(("boxes", str(self.boxes)))
        return f"?{urlencode(given)}#graph"


def _number(name: str, text: str) -> int:
    number = whole(text.strip())
    if number is None:
        raise ConfigurationError(f"{name} is a whole number, not {text[:40]!r}.")
    return number


MOST_LINES: Final = 2000
"""Most lines that a page can carry; the download of the run has every message."""


class MessageCount(NamedTuple):
    """The number of messages, or of hand-offs, from one agent to another."""

    sender: str
    to: str
    times: int
    handed: bool


class Table(NamedTuple):
    """The lines, and the number of those that there would be without a limit."""

    lines: list[MessageCount]
    all_lines: int


def table_of(
    messages: Mapping[tuple[str, str], int],
    handed: Mapping[tuple[str, str], int],
    choice: Choice,
) -> Table:
    """Return all lines, messages before hand-offs, the busiest first.

    If there are more than `MOST_LINES`, those of the chosen agents and numbers come first.

    Args:
        messages: number of messages from one agent to another.
        handed: number of hand-offs from one agent to another.
        choice: of agents and messages.
    """
    lines = [
        MessageCount(sender, to, times, kind)
        for kind, counted in ((False, messages), (True, handed))
        for (sender, to), times in counted.items()
    ]
    lines.sort(key=lambda line: (line.handed, -line.times))
    if len(lines) <= MOST_LINES:
        return Table(lines, len(lines))
    lines.sort(key=lambda line: not choice.takes(line.sender, line.to, line.times))
    return Table(lines[:MOST_LINES], len(lines))
