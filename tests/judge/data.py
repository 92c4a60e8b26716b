"""The folder with labelled runs, for the tests that need it."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def labelled_runs() -> Path:
    """Return the folder; skip the test where there is none."""
    folder = Path(os.environ.get("MAST_TRACE_DATA") or ROOT / ".." / "shared" / "data")
    if not (folder / "who-and-when").is_dir():
        pytest.skip("no labelled runs: MAST_TRACE_DATA does not name the folder with them")
    return folder
