"""The graph of messages between agents: boxes and arrows that the template writes as SVG."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mast_trace_dashboards.web.run_view import Edge

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

WIDTH: Final = 440
HEIGHT: Final = 320
MOST_AGENTS: Final = 12
"""Most agents with arrows of their own; the busiest are drawn, the others share a box."""
_LABEL = 16
_CHARACTER = 7.2
_BOX_HEIGHT = 26.0
_BEND = 0.12
_TIP = 7.0


@dataclass(frozen=True)
class Node:
    """An agent's box: its centre, its width, and its text."""

    x: float
    y: float
    width: float
    agent: str
    label: str
    colour: int

    @property
    def left(self) -> float:
        """The x of its left edge."""
        return round(self.x - self.width / 2, 1)

    @property
    def top(self) -> float:
        """The y of its upper edge."""
        return self.y - _BOX_HEIGHT / 2


@dataclass(frozen=True)
class Arrow:
    """The messages, or the hand-offs, from one agent to another.

    Attributes:
        path: of the curve, as SVG's ``d``.
        thickness: of the line, by the number of times.
        x: of the number beside the curve.
        y: likewise.
        times: the number.
        colour: of the sender.
        handed: whether control went over, instead of words.
    """

    path: str
    thickness: float
    x: float
    y: float
    times: int
    colour: int
    handed: bool


@dataclass(frozen=True)
class Graph:
    """The graph, and a sentence that describes it.

    Attributes:
        folded: the number of agents that one box stands for; 0 if each has its own.
    """

    nodes: Sequence[Node]
    arrows: Sequence[Arrow]
    summary: str
    folded: int = 0


def drawn(
    messages: Mapping[tuple[str, str], int],
    handed: Mapping[tuple[str, str], int],
    colours: Mapping[str, int],
) -> Graph | None:
    """Return the graph; None where there is nothing to draw.

    Args:
        messages: number of messages from one agent to another.
        handed: number of hand-offs from one agent to another.
        colours: number of each agent's colour.
    """
    traffic: Counter[str] = Counter()
    for counted in (messages, handed):
        for (sender, to), times in counted.items():
            if sender != to:
                traffic.update({sender: times, to: times})
    if not traffic:
        return None
    folded = len(traffic) - MOST_AGENTS + 1 if len(traffic) > MOST_AGENTS else 0
    others = f"{folded:,} others"
    shown = {agent for agent, _ in traffic.most_common(len(traffic) - folded)}
    names = {agent: agent if agent in shown else others for agent in traffic}
    edges = [_folded(messages, names), _folded(handed, names)]
    agents = _ordered(list(dict.fromkeys(names[agent] for agent in traffic)), edges)
    nodes = {node.agent: node for node in _placed(agents, colours)}
    arrows = [
        _arrow(nodes, edge, handed=bool(kind))
        for kind, of_kind in enumerate(edges)
        for edge in of_kind
    ]
    busiest = max((edge for of_kind in edges for edge in of_kind), key=lambda edge: edge.times)
    summary = (
        f"{len(traffic):,} agents; most often {busiest.sender} writes to {busiest.recipient}, "
        f"{busiest.times} times"
    )
    return Graph(list(nodes.values()), arrows, summary, folded)


def _folded(counted: Mapping[tuple[str, str], int], names: Mapping[str, str]) -> list[Edge]:
    """Return the arrows between the boxes, without those inside of a box."""
    sums: Counter[tuple[str, str]] = Counter()
    for (sender, to), times in counted.items():
        if sender != to and names[sender] != names[to]:
            sums[names[sender], names[to]] += times
    return [Edge(sender, to, times) for (sender, to), times in sums.most_common()]


def _ordered(agents: list[str], edges: Sequence[Sequence[Edge]]) -> list[str]:
    """Return agents in an order around the ellipse that keeps those who write to each other close.

    Agents change places as long as that shortens the arrows, weighted by their messages; the first agent
    stays at the top.
    """
    count = len(agents)
    weights: Counter[tuple[str, str]] = Counter()
    for each in (edge for of_kind in edges for edge in of_kind):
        weights[each.sender, each.recipient] += each.times

    def length(order: Sequence[str]) -> int:
        places = {agent: place for place, agent in enumerate(order)}
        total = 0
        for (one, other), times in weights.items():
            apart = abs(places[one] - places[other])
            total += times * min(apart, count - apart)
        return total

    best, shortest = list(agents), length(agents)
    improved = True
    while improved:
        improved = False
        for tried in _neighbours(best):
            if (found := length(tried)) < shortest:
                best, shortest, improved = tried, found, True
                break
    return best


def _neighbours(order: Sequence[str]) -> Iterator[list[str]]:
    """Yield the orders that differ by an exchange, by a stretch turned around, or by one that moved."""
    for one in range(1, len(order)):
        for other in range(one + 1, len(order)):
            before, middle, after = order[:one], order[one : other + 1], order[other + 1 :]
            yield [*before, middle[-1], *middle[1:-1], middle[0], *after]
            yield [*before, *reversed(middle), *after]
            yield [*before, *middle[1:], middle[0], *after]
            yield [*before, middle[-1], *middle[:-1], *after]


def _placed(agents: Sequence[str], colours: Mapping[str, int]) -> Iterator[Node]:
    """Put the agents on an ellipse, the first one at the top."""
    for number, agent in enumerate(agents):
        angle = 2 * math.pi * number / len(agents) - math.pi / 2
        label = agent if len(agent) <= _LABEL else agent[: _LABEL - 1] + "…"
        width = len(label) * _CHARACTER + 18
        reach = (WIDTH - width) / 2 - 4
        yield Node(
            x=round(WIDTH / 2 + reach * math.cos(angle), 1),
            y=round(HEIGHT / 2 + (HEIGHT / 2 - 24) * math.sin(angle), 1),
            width=round(width, 1),
            agent=agent,
            label=label,
            colour=colours.get(agent, 7),
        )


def _arrow(nodes: Mapping[str, Node], edge: Edge, *, handed: bool) -> Arrow:
    """Draw a curve that bends to its right, so that the two directions do not overlap."""
    source, target = nodes[edge.sender], nodes[edge.recipient]
    across, down = target.x - source.x, target.y - source.y
    bend = _BEND * (2 if handed else 1)
    middle = (
        (source.x + target.x) / 2 - down * bend,
        (source.y + target.y) / 2 + across * bend,
    )
    begin, end = _at_edge(source, middle, 0.0), _at_edge(target, middle, _TIP)
    path = (
        f"M{begin[0]:.1f} {begin[1]:.1f} Q{middle[0]:.1f} {middle[1]:.1f} {end[0]:.1f} {end[1]:.1f}"
    )
    return Arrow(
        path=path,
        thickness=round(min(1.5 + math.log2(edge.times) / 2, 4.0), 1),
        x=round((begin[0] + 2 * middle[0] + end[0]) / 4, 1),
        y=round((begin[1] + 2 * middle[1] + end[1]) / 4 + 4, 1),
        times=edge.times,
        colour=source.colour,
        handed=handed,
    )


def _at_edge(node: Node, seen_from: tuple[float, float], gap: float) -> tuple[float, float]:
    """Return the point where the line from the node's centre leaves its box, plus a gap."""
    across, down = seen_from[0] - node.x, seen_from[1] - node.y
    length = math.hypot(across, down) or 1.0
    half_width, half_height = node.width / 2, _BOX_HEIGHT / 2
    out = min(
        half_width / abs(across) if across else math.inf,
        half_height / abs(down) if down else math.inf,
    )
    out = min(out + gap / length, 1.0)
    return node.x + across * out, node.y + down * out
