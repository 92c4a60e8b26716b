"""Assembles the commands, and turns errors into messages and exit statuses.

Commands whose modules are imported when they are called.

Importing all of them takes a second, which would delay a command that only shows a run, and `--help`.
"""

from __future__ import annotations

import difflib
import logging
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

import mast_trace
from mast_trace.exceptions import ConfigurationError, MastTraceError
from mast_trace.urls import masked
from mast_trace_dashboards.cli.output import HelpTable, fail, warn
from mast_trace_dashboards.commands import COMMANDS, PARTS, has_command
from mast_trace_dashboards.printable import safe

if TYPE_CHECKING:
    Register = Callable[[typer.Typer], None]

_GOING_ON = (("up",), ("collect",), ("judge", "work"), ("alerts", "run"))
"""Commands that run until they are stopped."""


class LazyGroup(TyperGroup):
    """The group of all commands; those of further plugins are known when they are called."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 (newer Typers hold a click of their own)
        """Return the names of all commands of mast-trace."""
        return [name for part in PARTS.values() for name in part if has_command(name)]

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find a command; a slip is answered with the names that are close to it."""
        name = args[0]
        if not (ctx.resilient_parsing or name.startswith("-") or self.get_command(ctx, name)):
            close = ", ".join(difflib.get_close_matches(name, self.list_commands(ctx)))
            ctx.fail(f"No such command {name!r}.{f' Did you mean {close}?' if close else ''}")
        found, command, rest = super().resolve_command(ctx, args)
        alone = not rest or (rest[0].startswith("-") and rest[0] not in ctx.help_option_names)
        if alone and "list" in getattr(command, "commands", ()):
            rest = ["list", *rest]  # a group that has a list shows it
        return found, command, rest

    def invoke(self, ctx: Any) -> Any:
        """Run a command; what is wrong with an argument is said without pydantic's words, and harmlessly."""
        try:
            return super().invoke(ctx)
        except Exception as error:
            wrong: Any = error
            if isinstance(error, typer.BadParameter):
                # It brings pydantic along, which takes longer than most commands.
                from mast_trace_collector.settings import plain

                wrong.message = plain(error.message)
            if hasattr(
                error, "format_message"
            ):  # a shell may have put names of files into the line
                wrong.message = safe(wrong.message)
            raise

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        """Import a command; None if there is none of this name."""
        if cmd_name not in self.commands and (register := _register(cmd_name)):
            self.commands[cmd_name] = made = _commands(register)[cmd_name]
            for name in COMMANDS:
                if name.startswith(f"{cmd_name} ") and has_command(name):
                    made.commands |= _commands(_of_table(name))
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
        (part,) = (part for part, names in PARTS.items() if name in names)
        return TyperCommand(name, help=COMMANDS[name].help, rich_help_panel=part)


def _register(name: str) -> Register | None:
    """Return the function that adds a command."""
    if name in COMMANDS:
        return _of_table(name) if has_command(name) else None
    # They bring pydantic along, which takes longer than the help itself.
    from mast_trace_collector.plugins import answers
    from mast_trace_dashboards.plugins import Plugin

    added = answers(Plugin, lambda each: dict(each.commands()))
    return next((commands[name] for _, commands in added if name in commands), None)


def _of_table(name: str) -> Register:
    module, _, attribute = COMMANDS[name].made_of.partition(":")
    made = getattr(import_module(module), attribute)

    def register(part: typer.Typer) -> None:
        if isinstance(made, typer.Typer):
            part.add_typer(made)
        else:
            part.command(name.rpartition(" ")[2])(made)

    return register


def _commands(register: Register) -> dict[str, Any]:
    """Return the commands that a function adds, by name."""
    part = typer.Typer()
    register(part)
    return dict(typer.main.get_group(part).commands)


app = typer.Typer(
    name="mast-trace",
    cls=LazyGroup,
    help="See why a multi-agent LLM run failed. Begin with `mast-trace demo`.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"mast-trace {mast_trace.__version__}\n")
        raise typer.Exit


@app.callback()
def _every_command(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", is_eager=True, callback=_print_version
        ),
    ] = False,
) -> None:
    pass


def run(arguments: Sequence[str]) -> int:
    """Run one command line; return the exit status: 0, 1 (not found, or a "no"), 2 (misused) or 3 (undecided)."""
    # The driver writes to standard error what its exception, and so our message, repeats.
    logging.getLogger("clickhouse_connect").addHandler(logging.NullHandler())
    _warn_of_visible_secrets(arguments)
    if not {"-h", "--help"}.isdisjoint(arguments):
        rich_utils = import_module("typer.rich_utils")  # slow to import, and only help needs it
        rich_utils.Table = HelpTable  # type: ignore[attr-defined]
    try:
        app(args=list(arguments), prog_name="mast-trace")
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else 1
    except ConfigurationError as error:
        fail(str(error))
        return 2
    except MastTraceError as error:
        fail(str(error))
        return 1
    except BrokenPipeError:
        # The reader of the output has exited (`| head`); Python would complain once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        if error.filename is None:
            raise
        # A read-only folder, a full disk, a file in place of a folder.
        fail(f"cannot use {os.fsdecode(error.filename)}: {error.strerror}")
        return 1
    return 0


def _warn_of_visible_secrets(arguments: Sequence[str]) -> None:
    """Warn that everyone on the machine can read the arguments of a running command."""
    goes_on = any(tuple(arguments[: len(names)]) == names for names in _GOING_ON)
    if goes_on and any(masked(argument) != argument for argument in arguments):
        warn(
            "the list of processes shows the password in this command line to everyone on this "
            "machine: set MAST_TRACE_DATABASE_URL, or a file by --config, instead"
        )
