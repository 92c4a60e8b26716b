"""Writes the reports of `mast-trace check`, also where nothing could be compared."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

import typer

from mast_trace.exceptions import ConfigurationError, MastTraceError
from mast_trace_dashboards.cli.drafts import draft_of
from mast_trace_dashboards.cli.output import fail
from mast_trace_dashboards.gate.reports import junit_without, markdown_without

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MISUSED: Final = 2
"""Exit status of arguments and settings that cannot be used."""
UNDECIDED: Final = 3
"""Exit status if nothing could have been found worse: nothing judged, no baseline, too few runs, no database."""


@contextmanager
def never_worse(junit_file: Path | None, markdown_file: Path | None) -> Iterator[None]:
    """End a check that compared nothing as undecided or misused, with reports that say why.

    Status 1, with which other commands fail, would mean that a rate is higher.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except (MastTraceError, OSError) as error:
        reason = str(error)
        for path, write in ((junit_file, junit_without), (markdown_file, markdown_without)):
            if path is not None:
                # The reason may be that this file cannot be written.
                with suppress(ConfigurationError):
                    write_report(path, write(reason))
        fail(reason)
        misused = isinstance(error, ConfigurationError)
        raise typer.Exit(MISUSED if misused else UNDECIDED) from error


def write_report(path: Path, text: str) -> None:
    """Write a report.

    Raises:
        ConfigurationError: the file cannot be written.
    """
    try:
        with draft_of(path) as draft:
            draft.write_text(text, encoding="utf-8", errors="replace")
    except OSError as error:
        raise ConfigurationError(f"cannot write {path}: {error.strerror or error}") from error
