"""Output of the commands: text for people, JSON for programs, both harmless in a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.measure import Measurement
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Column, Table
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

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn

_WIDTH_OF_FILES = 160
_ENDLESS: Final = 1_000_000
"""A width at which nothing is broken."""
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


class _HarmlessConsole(Console):
    """A console to which nothing that is printed can send a control character: styles alone are its own."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Render as rich does; control characters in texts are shown as symbols."""
        for each in super().render(renderable, options):
            yield each if each.control else Segment(safe(each.text), each.style)


class FittedTable(Table):
    """A table whose columns shrink between words, the widest first.

    The next command needs ids and names whole: words break only where nothing else is left, those of the
    first column and of columns without wrapping never.

    Args:
        names: of its columns.
        numbers: names of further columns, which hold numbers.
        given: further arguments of `rich.table.Table`.
    """

    def __init__(self, *names: str, numbers: Sequence[str] = (), **given: Any) -> None:
        plainly = {"box": None, "pad_edge": False, "header_style": "bold", "title_justify": "left"}
        right = (Column(name, justify="right") for name in numbers)
        super().__init__(*names, *right, **{**plainly, **given})

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render the table, no wider than the console."""
        wide = options.update(width=_ENDLESS)
        # A step's whole text may be a line of a million characters.
        found = [
            _measured(each, console, wide).with_maximum(options.max_width) for each in self.columns
        ]
        widths = [each.maximum for each in found]
        self._set(widths)
        around = Measurement.get(console, wide, self).maximum - sum(widths)
        room = options.max_width - around
        fixed = [w if each.no_wrap else 1 for each, w in zip(self.columns, widths, strict=True)]
        words = [each.minimum for each in found]
        for least in (words, words[:1]):
            _shrink(widths, [*map(max, zip_longest(fixed, least, fillvalue=0))], room)
        self._set(widths)
        yield from super().__rich_console__(console, options)

    def _set(self, widths: Sequence[int]) -> None:
        for each, width in zip(self.columns, widths, strict=True):
            each.width = width
            each.overflow = "fold"


def _measured(column: Column, console: Console, options: ConsoleOptions) -> Measurement:
    """Return the width of a column's longest word, and of its longest line."""
    cells = [Measurement.get(console, options, each) for each in (column.header, *column.cells)]
    return Measurement(max(c.minimum for c in cells), max(c.maximum for c in cells))


def _shrink(widths: list[int], least: Sequence[int], room: int) -> None:
    """Take from the widest column, as long as one is wider than it must be and all are wider than the room."""
    while sum(widths) > room:
        free = [number for number, width in enumerate(widths) if width > least[number]]
        if not free:
            return
        widths[max(free, key=widths.__getitem__)] -= 1


class HelpTable(Table):
    """A table of typer's help whose names of options stay whole: people type them."""

    def add_row(self, *cells: RenderableType | None, **given: Any) -> None:
        """Add a row; columns of names do not shrink, and no word of others is cut off."""
        super().add_row(*cells, **given)
        for column, cell in zip(self.columns, cells, strict=False):
            column.no_wrap = column.no_wrap or str(cell).startswith("-")
            column.overflow = "fold"


def console(*, stderr: bool = False) -> Console:
    """Return a console on the present output: colours and the terminal's width only on terminals."""
    made = _HarmlessConsole(stderr=stderr, highlight=False)
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
                # A command is copied: it has a line of its own.
                yield Text.assemble(plain(f"{part.effect}:\n  ", "dim"), plain(part.text))
            case Folded():
                yield plain(f"{part.title}:", "dim")
                yield from printed(part.parts)


def _line(line: Line, style: str = "") -> Text:
    text = Text(style=style)
    for word in [line] if isinstance(line, str) else line:
        own = _STYLES.get(word.style, "") if isinstance(word, Words) else ""
        text.append_text(plain(plain_line([word]), own))
    return text


def _table(part: DataTable) -> FittedTable:
    table = FittedTable()
    for number, name in enumerate(part.columns):
        table.add_column(name.upper(), justify="right" if number in part.numbers else "left")
    for row in part.rows:
        table.add_row(*map(_line, row))
    return table


def shown_progress(*columns: ProgressColumn) -> Progress:
    """Return a bar on standard error that vanishes at its end; it is shown on a terminal alone."""
    from rich.progress import Progress  # slow to import, and few commands need it

    shown = console(stderr=True)
    return Progress(*columns, console=shown, transient=True, disable=not shown.is_terminal)


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


def say(text: str, style: str = "", *, soft_wrap: bool = False) -> None:
    """Print a line for people, on standard output."""
    console().print(plain(text, style), soft_wrap=soft_wrap)


def warn(text: str) -> None:
    """Print a line for people, on standard error."""
    console(stderr=True).print(plain(text), soft_wrap=True)


def fail(text: str) -> None:
    """Print the reason why a command failed."""
    message = Text.assemble(("mast-trace: ", "bold red"), plain(text))
    console(stderr=True).print(message, soft_wrap=True)
