"""Steps for the run page: marked, timed, repetitions folded, quotes found."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import groupby, zip_longest
from typing import TYPE_CHECKING

from mast_trace_dashboards.certainty import marked

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator, Sequence

    from mast_trace.trajectory import Step
    from mast_trace.trajectory.outline import Outline
    from mast_trace_dashboards.stored_run import StoredRun
    from mast_trace_judge.verdict import Verdict

PAGE = 500
"""Number of steps that are sent at once."""
CLIP = 1500
"""Characters of a text that are shown before it is unfolded."""
MOST_EDGES = 60
"""Most pairs of agents in the table of messages, the busiest first."""
MOST_AGENTS = 60
"""Most agents that are listed above the steps."""
MOST_TICKS = 400
"""Most steps in the timeline of agents."""
_COLOURS = 8
_QUOTED_WITHIN = 1024 * 1024
"""Characters of a step within which the verdict's quotes are marked."""


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
        decisive: whether the verdict names it as the decisive error, not only as a candidate.
        modes: codes of failure modes that it is evidence of; only possible ones have a question
            mark.
        pieces: the shown part of its text, in pieces; quoted ones are marked.
        quotes: passages that the verdict quotes from the rest.
        left: start of its bar, in per cent of the run.
        width: of its bar, likewise.
        repeats: number of the earlier step that it repeats; None if it is new.
        clipped: whether its text, its arguments or its error are longer than shown.
    """

    step: Step
    colour: int
    rank: int = 0
    decisive: bool = False
    modes: tuple[str, ...] = ()
    pieces: Sequence[Piece] = ()
    quotes: tuple[str, ...] = ()
    left: float = 0.0
    width: float = 0.0
    repeats: int | None = None
    clipped: bool = False

    @property
    def folds(self) -> bool:
        """Whether it only repeats an earlier step, so that it can be folded with its neighbours."""
        return self.repeats is not None and not self.rank

    @property
    def milliseconds(self) -> float:
        """The duration of the step."""
        return max(self.step.end - self.step.start, 0) / 1e6


@dataclass(frozen=True)
class Block:
    """Consecutive steps, shown one by one or folded into one line."""

    rows: Sequence[Row]
    folded: bool

    @property
    def modes(self) -> tuple[str, ...]:
        """The failure modes that its steps are evidence of."""
        return tuple(dict.fromkeys(code for row in self.rows for code in row.modes))


@dataclass(frozen=True)
class Edge:
    """The number of messages from one agent to another."""

    sender: str
    recipient: str
    times: int


@dataclass(frozen=True)
class Tick:
    """A step in the timeline of agents."""

    number: int
    agent: str
    colour: int
    decisive: bool


class Page:
    """A run's steps, and its agents.

    Attributes:
        outline: of the run.
        count: the number of its steps.
        colours: number of each agent's colour.
    """

    def __init__(self, stored: StoredRun, verdict: Verdict | None) -> None:
        """Read the run's outline.

        Raises:
            StorageError: the database does not answer.
        """
        self._stored = stored
        self.outline = stored.outline
        self.count = len(self.outline)
        agents = enumerate(self.outline.agents)
        self.colours = {agent: number % _COLOURS for number, agent in agents}
        self._ranks, self._modes, self._quotes = _findings(verdict)
        self._decisive = verdict.decisive.step if verdict and verdict.decisive else None

    @property
    def named(self) -> list[tuple[str, int]]:
        """The first agents, with their colours."""
        return list(self.colours.items())[:MOST_AGENTS]

    @property
    def edges(self) -> list[Edge]:
        """Messages between pairs of agents, the busiest pairs first."""
        return _edges(self.outline.said)

    @property
    def handed(self) -> list[Edge]:
        """Hand-offs between pairs of agents, the busiest pairs first."""
        return _edges(self.outline.handed)

    @property
    def ticks(self) -> list[Tick]:
        """The first steps, without their texts."""
        return [
            Tick(n, self.outline.actor(n), self._colour(n), n == self._decisive)
            for n in range(min(self.count, MOST_TICKS))
        ]

    def rows(self, begin: int, end: int) -> list[Row]:
        """Return the steps from one number up to, not including, another.

        Raises:
            StorageError: the database does not answer.
        """
        numbers = range(max(begin, 0), min(end, self.count))
        marked = [n for n in numbers if n in self._ranks or n in self._modes]
        others = [n for n in numbers if n not in self._ranks and n not in self._modes]
        # Quotes are searched in the whole text; other steps are read only as far as they are shown.
        steps = self._stored.steps(others, clip=CLIP + 1)
        steps += self._stored.steps(marked, clip=_QUOTED_WITHIN)
        return [self._row(step) for step in sorted(steps, key=lambda step: step.index)]

    def _row(self, step: Step) -> Row:
        run, number = self.outline.run, step.index
        span = max(run.end - run.start, 1)
        repeats = self.outline.repeats[number]
        quotes = self._quotes
        return Row(
            step=step,
            colour=self._colour(number),
            rank=self._ranks.get(number, 0),
            decisive=number == self._decisive,
            modes=tuple(self._modes.get(number, ())),
            pieces=tuple(_pieces(step.text[:CLIP], quotes)),
            quotes=tuple(q for q in quotes if q in step.text and q not in step.text[:CLIP]),
            left=round(100 * max(step.start - run.start, 0) / span, 2),
            width=round(max(100 * max(step.end - step.start, 0) / span, 0.4), 2),
            repeats=repeats if repeats != number else None,
            clipped=max(map(len, (step.text, step.arguments, step.error or ""))) > CLIP,
        )

    def _colour(self, number: int) -> int:
        return self.colours.get(self.outline.actor(number), 0)


def blocks(rows: Sequence[Row]) -> Iterator[Block]:
    """Yield the rows in order; two or more repeating steps in a row are folded together."""
    for folds, group in groupby(rows, key=lambda row: row.folds):
        together = list(group)
        if folds and len(together) > 1:
            yield Block(together, folded=True)
        else:
            yield Block(together, folded=False)


def parting(left: Outline, right: Outline) -> int | None:
    """Return the first step in which two runs differ; None if they are equal."""
    likenesses = zip_longest(left.likenesses, right.likenesses)
    return next((number for number, (one, other) in enumerate(likenesses) if one != other), None)


def _pieces(text: str, quotes: Sequence[str]) -> Iterator[Piece]:
    """Cut a text at the ends of quotes; of overlapping quotes the longer one counts."""
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
    likeliest += [candidate.step for candidate in verdict.named_candidates]
    ranks |= {number: rank for rank, number in enumerate(list(dict.fromkeys(likeliest))[:3], 1)}
    for finding in verdict.modes:
        quotes += [quote for quote in finding.quotes if quote]
        for number in finding.steps:
            modes.setdefault(number, []).append(marked(finding))
    return ranks, modes, quotes


def _edges(counted: Counter[tuple[str, str]]) -> list[Edge]:
    return [Edge(sender, to, times) for (sender, to), times in counted.most_common(MOST_EDGES)]
