"""Commands whose modules are imported when they are called.

Importing all of them takes a second, which would delay a command that only shows a run, and `--help`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand, TyperGroup

from mast_trace_collector.plugins import answers
from mast_trace_dashboards.commands import COMMANDS, has_command
from mast_trace_dashboards.plugins import Plugin

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Register = Callable[[typer.Typer], None]


class LazyGroup(TyperGroup):
    """The group of all commands; those of further plugins are known when they are called."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 (newer Typers hold a click of their own)
        """Return the names of all commands of mast-trace."""
        return [name for name in COMMANDS if " " not in name and has_command(name)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        """Import a command; None if there is none of this name."""
        if cmd_name not in self.commands and (register := _register(cmd_name)):
            part = typer.Typer()
            register(part)
            for inside in _inside(cmd_name):
                inside(_group(part))
            self.commands[cmd_name] = typer.main.get_group(part).commands[cmd_name]
        return self.commands.get(cmd_name)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help of the whole, for which no command is imported."""
        shown, self.commands = self.commands, _Shown()
        try:
            super().format_help(ctx, formatter)
        finally:
            self.commands = shown


class _Shown(dict[str, Any]):
    """Commands as the help of the whole shows them."""

    def __contains__(self, name: object) -> bool:
        return True

    def get(self, name: str, default: Any = None) -> Any:  # noqa: ARG002
        return TyperCommand(name, help=COMMANDS[name].help)


def _register(name: str) -> Register | None:
    """Return the function that adds a command."""
    if name in COMMANDS:
        return _of_table(name) if has_command(name) else None
    added = answers(Plugin, lambda each: dict(each.commands()))
    return next((commands[name] for _, commands in added if name in commands), None)


def _inside(group: str) -> Iterator[Register]:
    """Yield the functions that add further commands to a group."""
    for name in COMMANDS:
        if name.startswith(f"{group} ") and has_command(name):
            yield _of_table(name)


def _of_table(name: str) -> Register:
    register: Register = import_module(COMMANDS[name].module).register
    return register


def _group(part: typer.Typer) -> typer.Typer:
    (group,) = part.registered_groups
    assert group.typer_instance
    return group.typer_instance
