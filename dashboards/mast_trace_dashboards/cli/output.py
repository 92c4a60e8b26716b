"""Output of the commands: text for people, JSON for programs, both harmless in a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console, JustifyMethod, RenderableType
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from mast_trace_dashboards.document import (
    CommandLine,
    DataTable,
    Folded,
    Heading,
    Line,
    Part,
    Quotes,
    Replaced,
    Sentence,
    Words,
    plain_line,
)
from mast_trace_dashboards.printable import clip, json_text, safe

_WIDTH_OF_FILES = 160
_CLIP = 400
"""Characters of a text that is set against another."""
_STYLES = {
    "strong": "bold",
    "bad": "bold red",
    "good": "bold green",
    "note": "yellow",
    "muted": "dim",
}


@contextmanager
def draft_of(path: Path) -> Iterator[Path]:
    """Open a file for writing that replaces ``path`` once it is complete.

    A device or a pipe, such as ``/dev/stdout``, is written directly: it cannot be replaced. For a
    symbolic link its target is replaced.
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        yield path
        return
    whole = path.resolve()
    draft = whole.with_name(f"{whole.name}.part")
    try:
        yield draft
        draft.replace(whole)
    finally:
        draft.unlink(missing_ok=True)


def console(*, stderr: bool = False) -> Console:
    """Return a console on the present output: colours and the terminal's width only on terminals."""
    made = Console(stderr=stderr, highlight=False)
    if not made.is_terminal:
        made.width = max(made.width, _WIDTH_OF_FILES)
    return made


def plain(text: str, style: str = "") -> Text:
    """Return a text that rich prints unchanged: no markup, no control characters."""
    return Text(safe(text), style=style)


def printed(parts: Sequence[Part]) -> Iterator[RenderableType]:
    """Yield the parts of a document for a terminal."""
    for part in parts:
        match part:
            case Heading():
                yield Text("")
                yield plain(part.text, "bold")
            case Sentence():
                words = _line(part.line, _STYLES.get(part.style, ""))
                yield Padding(words, (0, 0, 0, 2)) if part.style in {"under", "item"} else words
            case Quotes():
                for each in part.quotes:
                    yield Padding(
                        plain(f"\u201c{clip(each.text, 160)}\u201d", "italic"), (0, 0, 0, 2)
                    )
            case DataTable():
                yield Text("")
                yield _table(part)
            case Replaced():
                yield plain(f"{part.name}: {clip(part.after, _CLIP)}", "dim")
            case CommandLine():
                # A command is copied: it is not broken by the table's rules.
                yield Text.assemble(plain(f"{part.effect}: ", "dim"), plain(part.text))
            case Folded():
                yield plain(f"{part.title}:", "dim")
                yield from printed(part.parts)


def _line(line: Line, style: str = "") -> Text:
    text = Text(style=style)
    for word in [line] if isinstance(line, str) else line:
        own = _STYLES.get(word.style, "") if isinstance(word, Words) else ""
        text.append_text(plain(plain_line([word]), own))
    return text


def _table(part: DataTable) -> RichTable:
    table = RichTable(box=None, pad_edge=False, header_style="bold")
    for number, name in enumerate(part.columns):
        counts = number in part.numbers
        justify: JustifyMethod = "right" if counts else "left"
        table.add_column(name.upper(), justify=justify, no_wrap=counts, overflow="fold")
    for row in part.rows:
        table.add_row(*map(_line, row))
    return table


def print_document(parts: Sequence[Part]) -> None:
    """Print a document on standard output."""
    for part in printed(parts):
        console().print(part)


def print_json(value: Any) -> None:
    """Print a value for other programs to read."""
    sys.stdout.write(json_text(value, indent=2) + "\n")


def print_json_line(value: Any) -> None:
    """Print a value on one line, unbuffered: for programs that wait for it."""
    sys.stdout.write(json_text(value) + "\n")
    sys.stdout.flush()


def warn(text: str) -> None:
    """Print a line for people, on standard error."""
    console(stderr=True).print(plain(text), soft_wrap=True)


def fail(text: str) -> None:
    """Print the reason why a command failed."""
    message = Text.assemble(("mast-trace: ", "bold red"), plain(text))
    console(stderr=True).print(message, soft_wrap=True)
