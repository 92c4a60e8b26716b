"""Output of the commands: text for people, JSON for programs, both harmless in a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from mast_trace_dashboards.printable import json_text, safe

_WIDTH_OF_FILES = 160


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
