"""The spans of a run as a tree."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

MOST_SPANS: Final = 2000
"""Most spans of a tree."""
_DEEPEST: Final = 40
"""Levels below which spans are no longer moved to the right, and no longer nested."""


@dataclass(frozen=True)
class TreeRow:
    """One span of the tree, in the order of reading.

    Attributes:
        span: a row of the query `run_tree`.
        depth: levels above it, at most `_DEEPEST`.
        inside: number of the spans below it, on all levels.
        step: number of the step that the span holds; None if it holds none.
        left: start of its bar, in per cent of the run.
        width: of its bar, likewise.
        orphan: whether its parent is named, and is not in the run.
    """

    span: Mapping[str, Any]
    depth: int
    inside: int
    step: int | None
    left: float
    width: float
    orphan: bool

    @property
    def milliseconds(self) -> float:
        """Its duration."""
        return float(self.span["DurationNs"]) / 1e6


def tree_rows(spans: Sequence[Mapping[str, Any]], steps: Mapping[str, int]) -> list[TreeRow]:
    """Return the spans of a run, each before those below it, siblings by time.

    Spans that are each other's ancestors are placed as if the first of them had no parent.

    Args:
        spans: rows of the query `run_tree`.
        steps: the number of the step that each span holds, by its id.
    """
    known = {span["SpanId"]: span for span in spans}
    below: dict[str, list[str]] = defaultdict(list)
    tops: list[str] = []
    for span in spans:
        parent = span["ParentSpanId"]
        if parent in known and parent != span["SpanId"]:
            below[parent].append(span["SpanId"])
        else:
            tops.append(span["SpanId"])
    order = list(_walk(tops, below))
    seen = {identity for identity, _ in order}
    for identity in known:
        if identity not in seen:
            more = list(_walk([identity], below, seen))
            order += more
            seen.update(each for each, _ in more)
    inside = _counts(order)
    begin = min((span["StartNs"] for span in spans), default=0)
    end = max((span["StartNs"] + span["DurationNs"] for span in spans), default=0)
    whole = max(end - begin, 1)
    rows = []
    for place, (identity, depth) in enumerate(order):
        span = known[identity]
        rows.append(
            TreeRow(
                span=span,
                depth=min(depth, _DEEPEST),
                inside=inside[place],
                step=steps.get(identity),
                left=round(100 * (span["StartNs"] - begin) / whole, 2),
                width=round(max(100 * span["DurationNs"] / whole, 0.4), 2),
                orphan=bool(span["ParentSpanId"]) and span["ParentSpanId"] not in known,
            )
        )
    return rows


def _walk(
    tops: Sequence[str], below: Mapping[str, Sequence[str]], seen: set[str] | None = None
) -> Iterator[tuple[str, int]]:
    """Yield spans with their depth, each before those below it."""
    met = set(seen or ())
    waiting = [(identity, 0) for identity in reversed(tops)]
    while waiting:
        identity, depth = waiting.pop()
        if identity in met:
            continue
        met.add(identity)
        yield identity, depth
        waiting += [(each, depth + 1) for each in reversed(below.get(identity, ()))]


def _counts(order: Sequence[tuple[str, int]]) -> list[int]:
    """Return the number of spans below each."""
    inside = [0] * len(order)
    open_rows: list[int] = []
    for place, (_, depth) in enumerate(order):
        while open_rows and order[open_rows[-1]][1] >= depth:
            open_rows.pop()
        for each in open_rows:
            inside[each] += 1
        open_rows.append(place)
    return inside
