"""Steps as the run page shows them: marked, timed, repetitions folded, quotes found."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from itertools import groupby, zip_longest
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mast_trace.trajectory import Step, Trajectory
    from mast_trace_judge.verdict import Verdict

PAGE = 500
"""Steps that are sent at once."""
CLIP = 1500
"""Characters of a text that are shown before it is unfolded."""
_COLOURS = 8


@dataclass(frozen=True)
class Piece:
    """A piece of a text, and whether the verdict quotes it."""

    text: str
    quoted: bool


@dataclass(frozen=True)
class Row:
    """One step on the page.

    Attributes:
        step: the step.
        colour: number of its agent's colour.
        rank: 1 for the likeliest decisive step, 2 and 3 for the next, else 0.
        modes: codes whose evidence it is.
        pieces: its text as far as it is shown, in pieces; those that the verdict quotes are marked.
        quotes: passages that the verdict quotes from the rest.
        left: where its bar begins, in per cent of the run.
        width: of its bar, likewise.
        repeats: number of the earlier step that it repeats; None if it is new.
        clipped: whether its text goes on after what is shown.
    """

    step: Step
    colour: int
    rank: int = 0
    modes: tuple[str, ...] = ()
    pieces: Sequence[Piece] = ()
    quotes: tuple[str, ...] = ()
    left: float = 0.0
    width: float = 0.0
    repeats: int | None = None
    clipped: bool = False

    @property
    def folds(self) -> bool:
        """Whether it can be folded away with its neighbours: it says nothing new."""
        return self.repeats is not None and not self.rank

    @property
    def milliseconds(self) -> float:
        """How long it took."""
        return max(self.step.end - self.step.start, 0) / 1e6


@dataclass(frozen=True)
class Block:
    """Steps that follow each other, shown as they are or folded into one line."""

    rows: Sequence[Row]
    folded: bool

    @property
    def modes(self) -> tuple[str, ...]:
        """The failure modes that its steps are evidence of."""
        return tuple(dict.fromkeys(code for row in self.rows for code in row.modes))


@dataclass(frozen=True)
class Edge:
    """How often one agent wrote to another."""

    sender: str
    recipient: str
    times: int


@dataclass(frozen=True)
class Page:
    """A run's steps.

    Attributes:
        rows: one for each step.
        colours: number of each agent's colour.
        edges: who writes to whom.
        handed: who hands over to whom.
        places: the step in which each quote of the verdict stands.
    """

    rows: Sequence[Row]
    colours: dict[str, int]
    edges: Sequence[Edge]
    handed: Sequence[Edge] = ()
    places: Mapping[str, int] = field(default_factory=dict)


def page_of(run: Trajectory, verdict: Verdict | None) -> Page:
    """Return all steps of a run as rows."""
    colours = {agent: number % _COLOURS for number, agent in enumerate(run.agents)}
    ranks, modes, quotes = _findings(verdict)
    first_seen: dict[tuple[str, ...], int] = {}
    rows: list[Row] = []
    span = max(run.end - run.start, 1)
    for step in run.steps:
        repeats = first_seen.setdefault(_content(step), step.index)
        rows.append(
            Row(
                step=step,
                colour=colours.get(step.agent, 0),
                rank=ranks.get(step.index, 0),
                modes=tuple(modes.get(step.index, ())),
                pieces=tuple(_pieces(step.text[:CLIP], quotes)),
                quotes=tuple(q for q in quotes if q in step.text and q not in step.text[:CLIP]),
                left=round(100 * max(step.start - run.start, 0) / span, 2),
                width=round(max(100 * max(step.end - step.start, 0) / span, 0.4), 2),
                repeats=repeats if repeats != step.index else None,
                clipped=len(step.text) > CLIP,
            )
        )
    said = Counter((s.agent, to) for s in run.steps for to in s.recipients if s.agent)
    handed = Counter((s.agent, s.handoff_to) for s in run.steps if s.handoff_to)
    return Page(rows, colours, _edges(said), _edges(handed), _places(run, verdict))


def blocks(rows: Sequence[Row]) -> Iterator[Block]:
    """Yield the rows in order, stretches of two and more that only repeat folded together."""
    for folds, group in groupby(rows, key=lambda row: row.folds):
        together = list(group)
        if folds and len(together) > 1:
            yield Block(together, folded=True)
        else:
            yield Block(together, folded=False)


def parting(left: Sequence[Row], right: Sequence[Row]) -> int | None:
    """Return the first step in which two runs differ; None if neither says anything else."""
    for number, (one, other) in enumerate(zip_longest(left, right)):
        if one is None or other is None or _content(one.step) != _content(other.step):
            return number
    return None


def _content(step: Step) -> tuple[str, ...]:
    return (step.kind.value, step.agent, step.tool, step.arguments, step.text)


def _places(run: Trajectory, verdict: Verdict | None) -> dict[str, int]:
    """Find each quote, first among the steps of its own finding."""
    places: dict[str, int] = {}
    for finding in verdict.modes if verdict else ():
        own = [run.steps[n] for n in finding.steps if n < len(run.steps)]
        for quote in finding.quotes:
            found = next((s.index for s in (*own, *run.steps) if quote in s.text), None)
            if quote and found is not None:
                places.setdefault(quote, found)
    return places


def _pieces(text: str, quotes: Sequence[str]) -> Iterator[Piece]:
    """Cut a text where quotes begin and end; where they overlap, the longer one stands."""
    wanted = sorted((quote for quote in set(quotes) if quote in text), key=len, reverse=True)
    cut = re.compile("|".join(map(re.escape, wanted))) if wanted else None
    done = 0
    for match in cut.finditer(text) if cut else ():
        yield Piece(text[done : match.start()], quoted=False)
        yield Piece(match[0], quoted=True)
        done = match.end()
    yield Piece(text[done:], quoted=False)


def _findings(
    verdict: Verdict | None,
) -> tuple[dict[int, int], dict[int, list[str]], list[str]]:
    ranks: dict[int, int] = {}
    modes: dict[int, list[str]] = {}
    quotes: list[str] = []
    if verdict is None:
        return ranks, modes, quotes
    likeliest = [verdict.decisive.step] if verdict.decisive else []
    likeliest += [candidate.step for candidate in verdict.candidates]
    ranks |= {number: rank for rank, number in enumerate(list(dict.fromkeys(likeliest))[:3], 1)}
    for finding in verdict.modes:
        quotes += [quote for quote in finding.quotes if quote]
        for number in finding.steps:
            modes.setdefault(number, []).append(finding.code)
    return ranks, modes, quotes


def _edges(counted: Counter[tuple[str, str]]) -> list[Edge]:
    return [Edge(sender, to, times) for (sender, to), times in counted.most_common(60)]
