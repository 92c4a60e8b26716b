"""The question before replays run, and the progress bar while they do."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from mast_trace.exceptions import ConfigurationError
from mast_trace_dashboards.cli.output import console, warn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from mast_trace_judge.replay.conducting import Progress as State


def run_question(command: Sequence[str], cost: str, *, yes: bool) -> None:
    """Tell what will run and what it costs, and ask.

    Raises:
        ConfigurationError: standard input is no terminal, so that nobody can be asked.
    """
    if yes:
        return
    text = (
        f"{cost} This runs `{' '.join(command)}` again and again. Recorded tools are answered from the record; "
        "files, databases and whatever else its own code touches are real."
    )
    if not sys.stdin.isatty():
        raise ConfigurationError(f"{text} Add --yes to run it.")
    warn(text)
    typer.confirm("Run it?", abort=True, err=True)


@contextmanager
def replay_bar(expected: int | None) -> Iterator[Callable[[State], None]]:
    """Show live calls and replays while replays run; yield the function that updates them.

    Args:
        expected: live model calls in all; None if unknown.
    """
    errors = console(stderr=True)
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[spent]}"),
        TimeElapsedColumn(),
    )
    with Progress(
        *columns, console=errors, transient=True, disable=not errors.is_terminal
    ) as progress:
        task = progress.add_task("Starting", total=expected, spent="")

        def changed(state: State) -> None:
            place = f"step {state.step}" if state.step >= 0 else "whole program"
            progress.update(
                task,
                description=f"{state.phase}, {place}" if state.phase else "Concluding",
                completed=state.live_calls,
                spent=f"{state.replays} replays, {state.live_calls} live calls",
            )

        yield changed
