"""Rows of the run page: one step each, with its marks, and its text with quoted passages, as Markdown or as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from markdown_it import MarkdownIt
from markupsafe import Markup, escape

from mast_trace_dashboards.web.text_changes import visible

if TYPE_CHECKING:
    from mast_trace.trajectory import Step
    from mast_trace_dashboards.web.finding.run_costs import CallCosts
    from mast_trace_judge.confirmation import SuccessRate

CLIP = 1500
"""Characters of a text that are shown before it is unfolded."""
_GIST = 100
"""Characters of a text in the lanes: more than a line holds."""
_TOLD = 240
"""Characters of a message there: more than the three lines hold that it has as a part of the conversation."""
_DEEPEST = 6
"""Levels of JSON that fold by themselves."""
_IN_LINE = 60
"""Characters of JSON that stand in one line."""
_MARKED = re.compile(
    r"^(?: {0,3}(?:#{1,6} |[-*+] |\d+[.)] |> |```|~~~)|\|.*\|$)|\*\*\S|`[^`]+`|\]\(", re.MULTILINE
)
"""Signs of Markdown; a text without them stays as it was written."""


def _markdown() -> MarkdownIt:
    """Return the renderer of recorded texts: markup is escaped, no picture is loaded, and links lead to the web alone."""
    made = MarkdownIt("commonmark", {"html": False, "breaks": True})
    made.enable("table").disable("image")
    made.validateLink = lambda url: url.startswith(("https://", "http://"))  # type: ignore[method-assign]
    # The outline of the page is the page's own.
    made.add_render_rule("heading_open", lambda *_: '<p class="heading">')
    made.add_render_rule("heading_close", lambda *_: "</p>\n")
    return made


_MARKDOWN: Final = _markdown()


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
    rate: SuccessRate | None = None
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
    def formatted(self) -> Markup | None:
        """Its text as Markdown, or as JSON whose parts fold; None where it is to be shown as it was written.

        It is shown so where the verdict quotes it, without signs of Markdown, and as the plain answer of a tool.
        """
        if len(self.pieces) != 1 or self.pieces[0].quoted:
            return None
        if self.is_json:
            return folding(self.step.text)
        text = visible(self.pieces[0].text)
        if self.step.tool or not _MARKED.search(text):
            return None
        return Markup(_MARKDOWN.render(text))  # noqa: S704  # made by the renderer, which escapes

    @property
    def arguments(self) -> Markup | str:
        """The shown part of its arguments, folding or as `pretty` has them; empty if there are none."""
        asked = self.step.arguments
        return "" if asked in ("", "{}") else folding(asked[:CLIP]) or visible(pretty(asked[:CLIP]))

    @property
    def gist(self) -> str:
        """The beginning of its text, else of its error, in one line."""
        most = _GIST if self.step.tool or self.repeats is not None else _TOLD
        return " ".join((self.step.text or self.step.error or "")[:most].split())

    @property
    def asked(self) -> str:
        """The beginning of what a tool was asked, in one line; empty if it was asked nothing."""
        asked = self.step.arguments
        return "" if asked in ("", "{}") else " ".join(asked[:_GIST].split())

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


def folding(text: str) -> Markup | None:
    """Return JSON as a list whose parts fold; None for other texts, and for JSON without a long part."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return _entries(value) if any(map(_folds, parts)) else None


def _folds(part: Any) -> bool:
    return isinstance(part, dict | list) and len(json.dumps(part)) > _IN_LINE


def _entries(value: Any, deep: int = 0) -> Markup:
    if not _folds(value) or deep == _DEEPEST:
        return escape(visible(json.dumps(value, ensure_ascii=False)))
    named = value.items() if isinstance(value, dict) else enumerate(value)
    lines = [
        Markup("<li><details open><summary>{} <small>{}</small></summary>{}</details></li>").format(
            visible(name), len(part), _entries(part, deep + 1)
        )
        if _folds(part) and deep + 1 < _DEEPEST
        else Markup("<li><b>{}</b> {}</li>").format(visible(name), _entries(part, deep + 1))
        for name, part in named
    ]
    return Markup('<ul class="entries">{}</ul>').format(Markup().join(lines))


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
