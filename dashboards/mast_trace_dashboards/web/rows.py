"""Rows of the run page: one step each, with its marks and the quoted passages of its text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mast_trace.trajectory import Step
    from mast_trace_dashboards.web.confirmation_view import ValuePoint
    from mast_trace_dashboards.web.finding.run_costs import CallCosts

CLIP = 1500
"""Characters of a text that are shown before it is unfolded."""
_GIST = 100
"""Characters of a text in the lanes: more than a line holds."""


@dataclass(frozen=True)
class QuotedPiece:
    """A piece of a text, and whether the verdict quotes it."""

    text: str
    quoted: bool


@dataclass(frozen=True)
class Row:
    """One step on the page.

    Attributes:
        step: the step.
        colour: number of its agent's colour.
        rank: 1 for the step to look at first, 2 and 3 for the next, else 0.
        decisive: whether the verdict names it as the decisive error, not only as a candidate.
        marks: words for what replays have shown of it, such as "confirmed by replay".
        rate: V at the step; None where replays have not measured it.
        replayable: whether a replay can run on from it.
        spent: tokens and cost of the model calls that produced it; None if there is none.
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
    marks: tuple[str, ...] = ()
    rate: ValuePoint | None = None
    replayable: bool = False
    spent: CallCosts | None = None
    modes: tuple[str, ...] = ()
    pieces: Sequence[QuotedPiece] = ()
    quotes: tuple[str, ...] = ()
    left: float = 0.0
    width: float = 0.0
    repeats: int | None = None
    clipped: bool = False

    @property
    def folds(self) -> bool:
        """True if it only repeats an earlier step, so that it can be folded with its neighbours."""
        return self.repeats is not None and not self.rank

    @property
    def is_json(self) -> bool:
        """True if its text is shown as JSON, with a line for each value."""
        return "".join(piece.text for piece in self.pieces) != self.step.text[:CLIP]

    @property
    def arguments(self) -> str:
        """The shown part of its arguments, as `pretty` has them; empty if there are none."""
        asked = self.step.arguments
        return "" if asked in ("", "{}") else pretty(asked[:CLIP])

    @property
    def gist(self) -> str:
        """The beginning of its text, else of its error, in one line."""
        return " ".join((self.step.text or self.step.error or "")[:_GIST].split())

    @property
    def milliseconds(self) -> float:
        """The duration of the step."""
        return max(self.step.end - self.step.start, 0) / 1e6


@dataclass(frozen=True)
class StepBlock:
    """Consecutive steps, shown one by one or folded into one line."""

    rows: Sequence[Row]
    folded: bool

    @property
    def modes(self) -> tuple[str, ...]:
        """The failure modes that its steps are evidence of."""
        return tuple(dict.fromkeys(code for row in self.rows for code in row.modes))


def pretty(text: str) -> str:
    """Return an object or a list in JSON with a line for each value; any other text as it is."""
    if not text.lstrip().startswith(("{", "[")):
        return text
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text


def shown(text: str, quotes: Sequence[str]) -> str:
    """Return a text as `pretty` has it, unless that would tear a quoted passage apart."""
    lines = pretty(text)
    torn = (quote in text and quote not in lines and pretty(quote) not in lines for quote in quotes)
    return text if any(torn) else lines


def blocks(rows: Sequence[Row]) -> Iterator[StepBlock]:
    """Yield the rows in order; two or more repeating steps in a row are folded together."""
    for folds, group in groupby(rows, key=lambda row: row.folds):
        together = list(group)
        if folds and len(together) > 1:
            yield StepBlock(together, folded=True)
        else:
            yield StepBlock(together, folded=False)


def pieces_of(text: str, quotes: Sequence[str]) -> Iterator[QuotedPiece]:
    """Cut a text at the ends of quotes; of overlapping quotes the longer one counts."""
    wanted = sorted((quote for quote in set(quotes) if quote in text), key=len, reverse=True)
    cut = re.compile("|".join(map(re.escape, wanted))) if wanted else None
    done = 0
    for match in cut.finditer(text) if cut else ():
        yield QuotedPiece(text[done : match.start()], quoted=False)
        yield QuotedPiece(match[0], quoted=True)
        done = match.end()
    yield QuotedPiece(text[done:], quoted=False)
