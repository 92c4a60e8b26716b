"""Writes a replayed run to a file, which the page of the original run compares with it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from mast_trace.exceptions import ConfigurationError
from mast_trace.trajectory import to_dict
from mast_trace_dashboards.cli.drafts import draft_of

if TYPE_CHECKING:
    from pathlib import Path

    from mast_trace.trajectory import Trajectory


def write_replay(path: Path, run: Trajectory | None) -> None:
    """Write a replayed run as JSON, in the form of a downloaded run.

    Raises:
        ConfigurationError: there is no run, or the file cannot be written.
    """
    if run is None:
        raise ConfigurationError(f"nothing was written to {path}: the program recorded no run")
    text = json.dumps({"trajectory": to_dict(run), "verdict": None}, ensure_ascii=False)
    try:
        with draft_of(path) as draft:
            draft.write_text(f"{text}\n", encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise ConfigurationError(f"cannot write {path}: {error.strerror or error}") from error
