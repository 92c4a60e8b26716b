"""Assembles the commands, and turns errors into messages and exit statuses."""

from __future__ import annotations

import logging
import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

import mast_trace
from mast_trace.exceptions import ConfigurationError, MastTraceError
from mast_trace.urls import masked
from mast_trace_dashboards.cli.lazy_group import LazyGroup
from mast_trace_dashboards.cli.output import fail, warn

if TYPE_CHECKING:
    from collections.abc import Sequence

_GOING_ON = (("up",), ("collect",), ("judge", "work"), ("alerts", "run"))
"""Commands that run until they are stopped."""

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
