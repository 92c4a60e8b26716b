"""The graph of messages between agents: a column of boxes with arrows that the template writes as SVG.

The order of agents in a column, in which arrows are short, cross little, and lead down from those who began.

Arrows between agents of a column are arcs beside it. Short arcs rarely cross, so the sum of their lengths is made
small by sifting (Rudell 1993): each agent in turn goes to the place where the sum is least, until none moves.
"""

from __future__ import annotations

import math
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final, NamedTuple, TypeVar

from mast_trace_dashboards.printable import counted
from mast_trace_dashboards.web.conversation.table import BOXES, MOST_BOXES, Choice
from mast_trace_dashboards.web.run_view import Blamed
from mast_trace_dashboards.web.text_changes import visible

WIDTH: Final = 400
BOX_WIDTH: Final = 164
BOX_HEIGHT: Final = 24
LEFT: Final = (WIDTH - BOX_WIDTH) / 2
_PITCH: Final = 38
_TOP: Final = 6
_TIP: Final = 7.0
_NEAR: Final = 16.0
_FAR: Final = LEFT - 20
_ROOM: Final = 13.0
_ALONG: Final = (0.5, 0.42, 0.58, 0.34, 0.66, 0.26, 0.74, 0.18, 0.82)
"""Places on an arrow where its number may stand, as parts of its way."""


@dataclass(frozen=True)
class Span:
    """An arrow from the box in one place to that in another, with its number."""

    sender: int
    to: int
    times: int

    @property
    def rows(self) -> int:
        """The number of places from one to the other."""
        return abs(self.to - self.sender)

    @property
    def side(self) -> int:
        """The side of the column: 1 for the right one, -1 for the left one."""
        return 1 if self.to > self.sender else -1


@dataclass(frozen=True)
class Arc:
    """A curve, and the place of its number.

    Attributes:
        path: as SVG's ``d``.
        thickness: of the line, by the number of times.
        x: of the number; None if there is no room for it.
        y: likewise.
    """

    path: str
    thickness: float
    x: float | None
    y: float | None


def top_of(place: int) -> float:
    """Return the upper edge of the box in a place."""
    return float(_TOP + place * _PITCH)


def height_of(boxes: int) -> int:
    """Return the height of a column."""
    return 2 * _TOP + max(boxes - 1, 0) * _PITCH + BOX_HEIGHT


def arcs_of(spans: Sequence[Span]) -> list[Arc]:
    """Return a curve for each arrow, the numbers of the busiest ones placed first."""
    ports = _ports(spans)
    farthest = {side: max((s.rows for s in spans if s.side == side), default=1) for side in (1, -1)}
    curves = [_curve(span, number, ports, farthest[span.side]) for number, span in enumerate(spans)]
    taken: list[tuple[float, float, float]] = []
    places: dict[int, tuple[float, float]] = {}
    for number in sorted(range(len(spans)), key=lambda number: -spans[number].times):
        half = 4.0 * len(str(spans[number].times)) + 1
        for part in _ALONG:
            x, y = _at(curves[number], part)
            if all(abs(x - a) > half + b or abs(y - c) > _ROOM for a, c, b in taken):
                taken.append((x, y, half))
                places[number] = round(x, 1), round(y + 4, 1)
                break
    return [
        Arc(
            path="M{:.1f} {:.1f} C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}".format(
                *curves[number]
            ),
            thickness=round(min(1.2 + math.log2(span.times) / 2, 4.0), 1),
            x=places[number][0] if number in places else None,
            y=places[number][1] if number in places else None,
        )
        for number, span in enumerate(spans)
    ]


def _ports(spans: Sequence[Span]) -> dict[tuple[int, bool], float]:
    """Return the y at which each arrow leaves and reaches its boxes, by its number and whether it leaves.

    Arrows to places above use the upper half of a box's edge, the nearest at the top, others the lower half, the
    nearest at the bottom: so arrows of one box do not cross there.
    """
    ends: dict[tuple[int, int, bool], list[tuple[int, int, bool]]] = defaultdict(list)
    for number, span in enumerate(spans):
        down = span.to > span.sender
        ends[span.sender, span.side, not down].append((span.rows, number, True))
        ends[span.to, span.side, down].append((span.rows, number, False))
    ports: dict[tuple[int, bool], float] = {}
    for (place, _, above), of_edge in ends.items():
        middle = top_of(place) + BOX_HEIGHT / 2
        reach = BOX_HEIGHT / 2 - 3
        for rank, (_, number, leaves) in enumerate(sorted(of_edge)):
            away = reach * (1 - (rank + 0.5) / len(of_edge))
            ports[number, leaves] = middle - away if above else middle + away
    return ports


def _curve(
    span: Span, number: int, ports: dict[tuple[int, bool], float], farthest: int
) -> tuple[float, ...]:
    """Return the eight numbers of a cubic curve that bends out the farther, the more places it passes."""
    edge = WIDTH / 2 + span.side * BOX_WIDTH / 2
    share = (span.rows - 1) / (farthest - 1) if farthest > 1 else 0.0
    widest = min(_FAR, _NEAR + 14.0 * (farthest - 1))
    bend = span.side * (_NEAR + (widest - _NEAR) * share**0.8) / 0.75
    begin, end = ports[number, True], ports[number, False]
    return (edge, begin, edge + bend, begin, edge + bend, end, edge + span.side * _TIP, end)


def _at(curve: Sequence[float], part: float) -> tuple[float, float]:
    """Return a point of a cubic curve."""
    rest = 1 - part
    shares = (rest**3, 3 * rest**2 * part, 3 * rest * part**2, part**3)
    x, y = (sum(s * c for s, c in zip(shares, curve[axis::2], strict=True)) for axis in (0, 1))
    return x, y


_BEFORE: Final = 4.0
"""Factor of the length of an arrow if its later agent stands above the earlier one: reading goes down."""
_WORK: Final = 2_000_000
"""Additions after which no further round begins: about a second."""
Agent = TypeVar("Agent")
_ARROWS_OF_A_BOX: Final = 4
"""Most arrows for each box, the busiest: more of them cover each other."""
_FOLDED_COLOUR: Final = 7


def label_of(name: str, room: int) -> str:
    """Return a name in at most ``room`` columns, shortened in its middle: names often differ at their ends.

    Args:
        name: as recorded.
        room: columns, of which letters of East Asia and emoji take two.
    """
    line = " ".join(visible(name).split()) or "unknown"
    if _columns(line) <= room:
        return line
    end = _fitting(line[::-1], room // 3)[::-1]
    return f"{_fitting(line, room - 1 - _columns(end)).rstrip()}…{end.lstrip()}"


def _columns(text: str) -> int:
    return sum(map(_width, text))


def _width(character: str) -> int:
    if unicodedata.category(character) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _fitting(text: str, room: int) -> str:
    """Return as much of a text's beginning as fits."""
    used = 0
    for number, character in enumerate(text):
        used += _width(character)
        if used > room:
            return text[:number]
    return text


def ordered(
    agents: Sequence[Agent], times: Mapping[tuple[Agent, Agent], int], *, last: bool = False
) -> list[Agent]:
    """Return agents in an order in which those who write to each other stand close.

    Args:
        agents: by their first action; the first one stays at the top.
        times: number of messages from one to another.
        last: whether the last one stays at the bottom.
    """
    numbers = {agent: number for number, agent in enumerate(agents)}
    pulls = [
        (numbers[sender], numbers[to], 1 + math.log2(count))
        for (sender, to), count in times.items()
        if sender != to
    ]
    order = list(range(len(agents)))
    moving = order[1:-1] if last else order[1:]
    each = len(order) * (3 * len(pulls) + len(order)) + 1
    for _ in range(max(1, min(20, _WORK // each))):
        before = list(order)
        for agent in moving:
            order = _sifted(order, agent, pulls, last=last)
        if order == before:
            break
    return [agents[number] for number in order]


def _sifted(
    order: Sequence[int], agent: int, pulls: Sequence[tuple[int, int, float]], *, last: bool
) -> list[int]:
    """Return the order with one agent at its best place, the others in the order that they have."""
    rest = [each for each in order if each != agent]
    places = {each: place for place, each in enumerate(rest)}
    # Arrows that pass a gap grow by one place if the agent goes there.
    passing = [0.0] * (len(rest) + 1)
    own: list[tuple[int, float, float]] = []
    for sender, to, pull in pulls:
        earlier, later = min(sender, to), max(sender, to)
        if agent == earlier:
            own.append((places[later], pull, pull * _BEFORE))
        elif agent == later:
            own.append((places[earlier], pull * _BEFORE, pull))
        else:
            one, other = places[earlier], places[later]
            weight = pull if one < other else pull * _BEFORE
            passing[min(one, other) + 1] += weight
            passing[max(one, other) + 1] -= weight
    costs = list(accumulate(passing))
    for gap in range(len(rest) + 1):
        for place, above, below in own:
            costs[gap] += above * (place - gap + 1) if place >= gap else below * (gap - place)
    gaps = range(1, len(rest) + (0 if last else 1))
    here = order.index(agent)
    best = min(gaps, key=lambda gap: (round(costs[gap], 6), abs(gap - here)))
    return [*rest[:best], agent, *rest[best:]]


class AgentPair(NamedTuple):
    """The messages, or the hand-offs, from one agent to another; None stands for the folded ones."""

    sender: str | None
    to: str | None
    handed: bool


@dataclass(frozen=True)
class Box:
    """A box.

    Attributes:
        agent: its name; None for the box that stands for several agents.
        label: its text.
        colour: number of its colour.
        top: its upper edge.
        mark: ``decisive``, ``mode`` or empty: its part in the verdict.
        chosen: whether the graph is limited to its messages.
    """

    agent: str | None
    label: str
    colour: int
    top: float
    mark: str = ""
    chosen: bool = False


@dataclass(frozen=True)
class Arrow:
    """The messages, or the hand-offs, from one agent to another.

    Attributes:
        arc: the curve.
        times: the number.
        colour: of the sender.
        handed: whether control went over, instead of words.
        of_rest: whether one end is the box that stands for several agents.
        words: the same as a sentence.
    """

    arc: Arc
    times: int
    colour: int
    handed: bool
    of_rest: bool
    words: str


@dataclass(frozen=True)
class Graph:
    """The graph, and a sentence that describes it.

    Attributes:
        nodes: the boxes from top to bottom.
        arrows: between them.
        height: of the picture.
        summary: a sentence about all messages.
        agents: number of agents that exchange messages.
        folded: number of agents that the last box stands for; 0 if each has its own.
        pairs: number of arrows without the limit on them.
        names: of all agents that write to others or are written to, by their first action.
    """

    nodes: Sequence[Box]
    arrows: Sequence[Arrow]
    height: int
    summary: str
    agents: int
    folded: int
    pairs: int
    names: Sequence[str]

    @property
    def unnumbered(self) -> int:
        """The number of arrows that have no room for their number."""
        return sum(arrow.arc.x is None for arrow in self.arrows)


def drawn(
    messages: Mapping[tuple[str, str], int],
    handed: Mapping[tuple[str, str], int],
    colours: Mapping[str, int],
    choice: Choice | None = None,
    blamed: Blamed | None = None,
) -> Graph | None:
    """Return the graph; None where no agent writes to another one.

    Args:
        messages: number of messages from one agent to another.
        handed: number of hand-offs from one agent to another.
        colours: number of each agent's colour, in the order of the agents' first action.
        choice: of agents and messages; all by default.
        blamed: the agents that the verdict names, which are never folded.
    """
    choice, blamed = choice or Choice(), blamed or Blamed()
    found = {
        AgentPair(sender, to, kind): times
        for kind, counted in ((False, messages), (True, handed))
        for (sender, to), times in counted.items()
        if sender != to
    }
    if not found:
        return None
    kept = {
        pair: times
        for pair, times in found.items()
        if choice.takes(pair.sender or "", pair.to or "", times)
    }
    traffic = _traffic(kept)
    named = [] if blamed.decisive is None else [blamed.decisive]
    shown = _shown(traffic, choice.boxes, [*choice.agents, *named, *sorted(blamed.modes)])
    sums: Counter[AgentPair] = Counter()
    for pair, times in kept.items():
        ends = [each if each in shown else None for each in (pair.sender, pair.to)]
        if ends[0] != ends[1]:
            sums[AgentPair(ends[0], ends[1], pair.handed)] += times
    pairs = _busiest(sums, _ARROWS_OF_A_BOX * max(choice.boxes, BOXES))
    first = [agent for agent in dict.fromkeys([*colours, *traffic]) if agent in shown]
    folded = len(traffic) - len(first)
    order = ordered([*first, None] if folded else first, _both(pairs), last=bool(folded))
    nodes = [_node(*each, colours, choice, blamed, folded) for each in enumerate(order)]
    everybody = _traffic(found)
    return Graph(
        nodes=nodes,
        arrows=_arrows(pairs, nodes),
        height=height_of(len(nodes)),
        summary=_summary(found),
        agents=len(everybody),
        folded=folded,
        pairs=len(sums),
        names=[agent for agent in dict.fromkeys([*colours, *everybody]) if agent in everybody],
    )


def _traffic(pairs: Mapping[AgentPair, int]) -> Counter[str]:
    traffic: Counter[str] = Counter()
    for pair, times in pairs.items():
        traffic.update({pair.sender or "": times, pair.to or "": times})
    return traffic


def _shown(traffic: Counter[str], boxes: int, always: Sequence[str]) -> set[str]:
    """Return the agents with a box of their own: those who must have one, and the busiest."""
    if len(traffic) <= boxes:
        return set(traffic)
    named = [agent for agent in dict.fromkeys(always) if agent in traffic][: MOST_BOXES - 1]
    kept = set(named)
    others = [agent for agent, _ in traffic.most_common() if agent not in kept]
    room = max(boxes - 1 - len(named), 0)
    # A box that stands for one agent would save no room.
    return {*named, *(others if len(others) - room == 1 else others[:room])}


def _busiest(sums: Counter[AgentPair], most: int) -> dict[AgentPair, int]:
    """Return the busiest pairs, and of each box at least its busiest one."""
    taken: dict[AgentPair, int] = {}
    seen: set[str | None] = set()
    for pair, times in sums.most_common():
        if len(taken) < most or not {pair.sender, pair.to} <= seen:
            taken[pair] = times
            seen |= {pair.sender, pair.to}
    return taken


def _both(pairs: Mapping[AgentPair, int]) -> Counter[tuple[str | None, str | None]]:
    both: Counter[tuple[str | None, str | None]] = Counter()
    for pair, times in pairs.items():
        both[pair.sender, pair.to] += times
    return both


def _node(
    place: int,
    agent: str | None,
    colours: Mapping[str, int],
    choice: Choice,
    blamed: Blamed,
    folded: int,
) -> Box:
    if agent is None:
        return Box(None, f"{folded:,} more agents", _FOLDED_COLOUR, top_of(place))
    mark = "decisive" if agent == blamed.decisive else "mode" if agent in blamed.modes else ""
    return Box(
        agent=agent,
        label=label_of(agent, 19 if mark else 21),
        colour=colours.get(agent, _FOLDED_COLOUR),
        top=top_of(place),
        mark=mark,
        chosen=agent in choice.agents,
    )


def _arrows(pairs: Mapping[AgentPair, int], nodes: Sequence[Box]) -> list[Arrow]:
    places = {node.agent: place for place, node in enumerate(nodes)}
    arcs = arcs_of([Span(places[p.sender], places[p.to], times) for p, times in pairs.items()])
    return [
        Arrow(
            arc=arc,
            times=times,
            colour=nodes[places[pair.sender]].colour,
            handed=pair.handed,
            of_rest=None in (pair.sender, pair.to),
            words=_words(pair, times),
        )
        for arc, (pair, times) in zip(arcs, pairs.items(), strict=True)
    ]


def _words(pair: AgentPair, times: int) -> str:
    sender, to = (
        "others" if agent is None else agent or "unknown" for agent in (pair.sender, pair.to)
    )
    verb = "hands over to" if pair.handed else "writes to"
    return f"{sender} {verb} {to}, {times:,} {'time' if times == 1 else 'times'}"


def _summary(found: Mapping[AgentPair, int]) -> str:
    busiest = max(found, key=lambda pair: found[pair])
    return f"{counted(len(_traffic(found)), 'agent')}; most often {_words(busiest, found[busiest])}"
