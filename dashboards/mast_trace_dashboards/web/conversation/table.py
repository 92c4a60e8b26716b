"""The messages between agents as a table: the same as the graph, with all numbers."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mast_trace_dashboards.web.conversation.choice import Choice

MOST_AGENTS: Final = 40
"""Most agents with a row and a column of their own, the busiest; the others share one."""
SHADES: Final = 4
"""Number of shades of a cell."""

MOST_LINES: Final = 2000
"""Most lines that a page can carry; the download of the run has every message."""


@dataclass(frozen=True)
class Cell:
    """The messages and hand-offs from one agent to another; ``shade`` is 0 for none, up to `SHADES`."""

    times: int
    shade: int


@dataclass(frozen=True)
class AgentMatrix:
    """The matrix: a row for each sender, a column for each recipient, in the order of their first action.

    Attributes:
        agents: names of rows and columns.
        rows: the cells of each row.
        folded: number of the agents that share the last row and column; 0 if each has its own.
    """

    agents: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    folded: int


def agent_matrix(
    messages: Mapping[tuple[str, str], int],
    handed: Mapping[tuple[str, str], int],
    order: Sequence[str],
    *,
    more_than: int,
) -> AgentMatrix | None:
    """Return the matrix; None where a picture with arrows has room for all agents.

    Args:
        messages: number of messages from one agent to another.
        handed: number of hand-offs from one agent to another.
        order: agents by their first action.
        more_than: number of agents up to which there is no matrix.
    """
    traffic: Counter[str] = Counter()
    for counted in (messages, handed):
        for (sender, to), times in counted.items():
            traffic.update({sender: times, to: times})
    if len(traffic) <= more_than:
        return None
    folded = len(traffic) - MOST_AGENTS + 1 if len(traffic) > MOST_AGENTS else 0
    shown = {agent for agent, _ in traffic.most_common(len(traffic) - folded)}
    named = [agent for agent in dict.fromkeys([*order, *traffic]) if agent in shown]
    places = {agent: place for place, agent in enumerate(named)}
    sums: Counter[tuple[int, int]] = Counter()
    for counted in (messages, handed):
        for (sender, to), times in counted.items():
            sums[places.get(sender, len(named)), places.get(to, len(named))] += times
    names = [*named, f"{folded:,} others"] if folded else named
    most = max(sums.values())
    rows = [
        [Cell(sums[row, column], _shade(sums[row, column], most)) for column in range(len(names))]
        for row in range(len(names))
    ]
    return AgentMatrix(names, rows, folded)


def _shade(times: int, most: int) -> int:
    """Return a shade by the logarithm, so that few messages are seen beside many."""
    if not times:
        return 0
    return 1 + min(int(SHADES * math.log(times) / math.log(most + 1)), SHADES - 1)


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
