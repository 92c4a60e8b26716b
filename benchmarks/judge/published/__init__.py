"""Readers of published sets of labelled runs. The data itself never ships with the project."""

from __future__ import annotations

import os
from pathlib import Path

_ROOT = Path(__file__).parents[3]


def data_folder(given: str | None = None) -> Path:
    """Return the folder with the published sets: the given one, else MAST_TRACE_DATA, else the usual."""
    folder = Path(given or os.environ.get("MAST_TRACE_DATA") or _ROOT / ".." / "shared" / "data")
    if not folder.is_dir():
        raise SystemExit(
            f"There are no published sets in {folder}: name their folder in MAST_TRACE_DATA."
        )
    return folder
