"""The messages between agents as a table: the same as the graph, with all numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mast_trace_dashboards.web.conversation.choice import Choice

MOST_LINES: Final = 2000
"""Most lines that a page can carry; the download of the run has every message."""


class Line(NamedTuple):
    """The number of messages, or of hand-offs, from one agent to another."""

    sender: str
    to: str
    times: int
    handed: bool


class Table(NamedTuple):
    """The lines, and the number of those that there would be without a limit."""

    lines: list[Line]
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
        Line(sender, to, times, kind)
        for kind, counted in ((False, messages), (True, handed))
        for (sender, to), times in counted.items()
    ]
    lines.sort(key=lambda line: (line.handed, -line.times))
    if len(lines) <= MOST_LINES:
        return Table(lines, len(lines))
    lines.sort(key=lambda line: not choice.takes(line.sender, line.to, line.times))
    return Table(lines[:MOST_LINES], len(lines))
