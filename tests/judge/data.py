"""The folder with labelled runs, for the tests that need it."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def folder() -> Path | None:
    """Return the folder; None where there is none."""
    named = Path(os.environ.get("MAST_TRACE_DATA") or ROOT / ".." / "shared" / "data")
    return named if (named / "who-and-when").is_dir() else None


def labelled_runs() -> Path:
    """Return the folder; skip the test where there is none."""
    found = folder()
    if found is None:
        pytest.skip("no labelled runs: MAST_TRACE_DATA does not name the folder with them")
    return found
