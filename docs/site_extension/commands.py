"""Reference of the commands, from the command line itself."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperGroup

from mast_trace import doctor
from mast_trace_dashboards.cli.app import app
from site_extension.markdown import cell, table

if TYPE_CHECKING:
    from argparse import Action
    from collections.abc import Iterator

_HOME = re.compile(r"/(?:root|home/[^/\s]+)(?=/|\b)")


def commands() -> str:
    """Return Markdown: each command with its usage, what it does, arguments and options."""
    root = typer.main.get_command(app)
    context = root.make_context("mast-trace", [], resilient_parsing=True)
    return "\n".join(_group(root, context))


def _group(group: Any, context: Any) -> Iterator[str]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        own = type(context)(command, info_name=name, parent=context)
        if not getattr(command, "hidden", False):
            yield from _command(command, own)


def _command(command: Any, context: Any) -> Iterator[str]:
    depth = context.command_path.count(" ")
    yield f"{'#' * (depth + 1)} {context.command_path}\n"
    yield f"```text\n{' '.join([context.command_path, *command.collect_usage_pieces(context)])}\n```\n"
    # A form feed ends what is shown of a docstring.
    help_text = inspect.cleandoc(command.help or "").split("\f")[0]
    yield f"{help_text}\n"
    shown = [
        each for each in command.get_params(context) if each.name != "help" and not _is_hidden(each)
    ]
    rows = [_row(parameter, context) for parameter in shown]
    if rows:
        yield table(("argument or option", "meaning", "default"), rows)
    if context.command_path == "mast-trace doctor":
        # Its options are the SDK's own.
        options = [each for each in doctor.parser()._actions if each.dest != "help"]  # noqa: SLF001
        yield table(("option", "meaning"), map(_sdk_row, options))
    if isinstance(command, TyperGroup):
        yield from _group(command, context)


def _sdk_row(action: Action) -> tuple[str, str]:
    value = f" `{(action.metavar or action.dest).upper()}`" if action.nargs != 0 else ""
    return f"`{action.option_strings[-1]}`{value}", cell(action.help or "")


def _is_hidden(parameter: Any) -> bool:
    return bool(getattr(parameter, "hidden", False))


def _row(parameter: Any, context: Any) -> tuple[str, str, str]:
    if parameter.param_type_name == "argument":
        return f"`{parameter.metavar or parameter.name.upper()}`", cell(parameter.help or ""), ""
    names = ", ".join(f"`{name}`" for name in [*parameter.opts, *parameter.secondary_opts])
    if not parameter.is_flag:
        names += f" `{parameter.metavar or parameter.display_type(context)}`".replace("|", r"\|")
    several = " May be given several times." if parameter.multiple else ""
    variable = f" Variable: `{parameter.envvar}`." if parameter.envvar else ""
    return names, cell((parameter.help or "") + several + variable), _default(parameter, context)


def _default(parameter: Any, context: Any) -> str:
    shown = parameter.show_default
    if isinstance(shown, str):
        return cell(shown)
    value = parameter.get_default(context, call=False)
    if shown is False or value in {None, ""} or parameter.is_flag or callable(value):
        return ""
    if isinstance(value, list | tuple):
        value = ", ".join(map(str, value))
    return f"`{_HOME.sub('~', str(getattr(value, 'value', value)))}`" if value != "" else ""
