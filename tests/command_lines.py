"""Command lines that documents name, read by the real command line."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperGroup

from mast_trace_dashboards.cli.app import app

if TYPE_CHECKING:
    from collections.abc import Sequence

_SHELL = re.compile(r" (?:\|\|?|>) ")
_CODE = re.compile(r"^ {3,}(mast-trace .+)$|`([^`\n]+)`", re.MULTILINE)
_SUBSTITUTED = re.compile(r"\$\([^)]*\)")


def understand(words: Sequence[str]) -> None:
    """Read the words of a command line up to the moment at which it would run.

    Raises:
        click.UsageError: a command, an option or a value is none.
    """
    command: Any = typer.main.get_command(app)
    context = command.make_context("mast-trace", list(words))
    while isinstance(command, TyperGroup):
        rest = [*context._protected_args, *context.args]
        if not rest:
            assert command.invoke_without_command, words
            return
        name, found, rest = command.resolve_command(context, rest)
        assert found is not None
        context = found.make_context(name, rest, parent=context)
        command = found


def understand_mention(line: str) -> None:
    """Read a command line that a document mentions, where what it needs may be left out.

    Raises:
        click.UsageError: as `understand`.
    """
    try:
        line = _SUBSTITUTED.sub("x", _SHELL.split(line)[0])
        understand(shlex.split(line, comments=True)[1:])
    except typer.Exit:
        return  # an option that shows something and ends
    except Exception as error:
        if type(error).__name__ != "MissingParameter":
            raise


def named_in(markdown: str) -> list[str]:
    """Return the command lines of mast-trace in a document: lines of its own, and between backquotes."""
    found = (indented or inline for indented, inline in _CODE.findall(markdown))
    return [line.strip() for line in found if line.strip().startswith("mast-trace ")]
