"""The geometry of arrows beside a column of boxes: those that lead down on the right, others on the left."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

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
