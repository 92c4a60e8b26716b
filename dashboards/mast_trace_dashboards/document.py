"""Results in words: parts that pages, terminals and Markdown render, so that each sentence is written once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, Literal, TypeAlias

from mast_trace_dashboards.printable import clip, safe

_QUOTED: Final = 300
"""Characters of a quote, and of a text that is set against another, outside of pages."""
# An entity is text to Markdown, also in a table, in HTML and in a mention.
_MARKUP: Final = re.compile(r"[\\`*_{}\[\]()<>#+!|~@&\"':/=^$-]")


@dataclass(frozen=True)
class Words:
    """Words in a line.

    Attributes:
        text: the words.
        style: ``code`` is a command or a name to type, ``chip`` a badge.
        to: address of a page, or ``#step-3``; pages alone have links.
    """

    kind: ClassVar[str] = "words"
    text: str
    style: Literal["", "strong", "muted", "code", "chip", "bad", "good"] = ""
    to: str = ""


@dataclass(frozen=True)
class Quote:
    """A passage of the run, with the step in which it stands; None where that is not known."""

    kind: ClassVar[str] = "quote"
    text: str
    step: int | None = None


@dataclass(frozen=True)
class Bar:
    """A share from 0 to 1 with its interval, drawn on pages; the words beside it say the same."""

    kind: ClassVar[str] = "bar"
    share: float
    low: float
    high: float


Line: TypeAlias = "str | Sequence[str | Words | Quote | Bar]"


@dataclass(frozen=True)
class Heading:
    """A heading, with its name for links of a page."""

    kind: ClassVar[str] = "heading"
    text: str
    name: str = ""


@dataclass(frozen=True)
class Sentence:
    """One or several sentences.

    Attributes:
        line: its words.
        style: ``lead`` goes ahead of others, which are ``under`` it; ``item`` is one of a list.
    """

    kind: ClassVar[str] = "sentence"
    line: Line
    style: Literal["", "lead", "under", "muted", "note", "item", "bad", "good"] = ""


@dataclass(frozen=True)
class Quotes:
    """Passages that stand side by side."""

    kind: ClassVar[str] = "quotes"
    quotes: Sequence[Quote]


@dataclass(frozen=True)
class DataTable:
    """A table.

    Attributes:
        name: for readers of a page who do not see it.
        columns: its headings.
        rows: a line for each cell.
        numbers: the columns of numbers.
    """

    kind: ClassVar[str] = "table"
    name: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Line]]
    numbers: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Replaced:
    """A text in place of another.

    Attributes:
        name: a sentence without its end.
        before: the earlier text; empty where it is not known.
        after: the text in its place.
    """

    kind: ClassVar[str] = "replaced"
    name: str
    before: str
    after: str


@dataclass(frozen=True)
class CommandLine:
    """A command with its effect; pages show a link in its place where they have a page for it."""

    kind: ClassVar[str] = "command"
    effect: str
    text: str
    to: str = ""


@dataclass(frozen=True)
class Folded:
    """Parts that pages show on request."""

    kind: ClassVar[str] = "fold"
    title: str
    parts: Sequence[Part]


Part: TypeAlias = "Heading | Sentence | Quotes | DataTable | Replaced | CommandLine | Folded"


def step_link(step: int, agent: str | None = None) -> Words:
    """Return a link to a step, with its agent where that is given; below 0 is the start."""
    if step < 0:
        return Words("start")
    name = f"step {step}" if agent is None else f"{agent or 'unknown agent'}, step {step}"
    return Words(name, to=f"#step-{step}")


def plain_line(line: Line) -> str:
    """Return the words of a line without links; bars have none."""
    return line if isinstance(line, str) else "".join(map(_plain, line))


def _plain(word: str | Words | Quote | Bar) -> str:
    if isinstance(word, str):
        return word
    if isinstance(word, Words):
        return f"`{word.text}`" if word.style == "code" else word.text
    return f"\n\u201c{clip(word.text, _QUOTED)}\u201d" if isinstance(word, Quote) else ""


def markdown_safe(text: str) -> str:
    """Return a text as one line that Markdown does not read as markup."""
    line = " ".join(safe(text).split())
    return _MARKUP.sub(lambda match: f"&#{ord(match[0])};", line)


def markdown(parts: Sequence[Part], escape: Callable[[str], str] = markdown_safe) -> str:
    """Return parts as Markdown.

    Args:
        parts: of the document.
        escape: applied to each text.
    """
    return "\n".join(_markdown(parts, escape))


def _markdown(parts: Sequence[Part], escape: Callable[[str], str]) -> Iterator[str]:
    for part in parts:
        match part:
            case Heading():
                yield f"\n### {escape(part.text)}\n"
            case Sentence():
                item = part.style == "item"
                yield f"{'* ' if item else ''}{escape(plain_line(part.line))}"
                yield from () if item else ("",)
            case Quotes():
                yield from (f"> {escape(clip(each.text, _QUOTED))}" for each in part.quotes)
            case DataTable():
                yield f"\n| {' | '.join(map(escape, part.columns))} |"
                yield "|---" * len(part.columns) + "|"
                for row in part.rows:
                    cells = (escape(" ".join(plain_line(cell).split())) for cell in row)
                    yield f"| {' | '.join(cells)} |"
                yield ""
            case Replaced():
                yield escape(f"{part.name}: {clip(part.after, _QUOTED)}")
            case CommandLine():
                yield f"{escape(part.effect)}: `{part.text}`\n"
            case Folded():
                yield f"{escape(part.title)}:"
                yield from _markdown(part.parts, escape)
