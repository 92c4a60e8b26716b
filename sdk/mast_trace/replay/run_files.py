"""Files with recorded runs, as `mast-trace export` and `mast-trace cases add` write them."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from mast_trace.trajectory import Trajectory, trajectory_from_dict

_GZIP: Final = b"\x1f\x8b"


def lines_of(path: str | Path) -> list[dict[str, Any]]:
    """Return the runs of a file in its order, each as the JSON object of one line.

    Args:
        path: JSON lines, also compressed by gzip.

    Raises:
        ValueError: the file is no such file; the message names it and the line.
        OSError: it cannot be read.
    """
    data = Path(path).read_bytes()
    try:
        text = (gzip.decompress(data) if data.startswith(_GZIP) else data).decode("utf-8")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is no file of runs: {error}") from None
    found: list[dict[str, Any]] = []
    # Texts of runs may hold other line separators than the one that ends a run.
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            shape = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"line {number} of {path} is no run: {error}") from None
        if not isinstance(shape, dict):
            raise ValueError(f"line {number} of {path} is no run, but a {type(shape).__name__}")  # noqa: TRY004
        found.append(shape)
    return found


def run_of(shape: dict[str, Any], path: str | Path = "") -> Trajectory:
    """Return the run of one line.

    Raises:
        ValueError: the line holds no run.
    """
    try:
        return trajectory_from_dict(shape.get("trajectory", shape))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"{path or 'the line'} holds no run: {error}") from None


def masks_in(path: str | Path) -> list[tuple[str, str]]:
    """Return the masks that a case holds of its runs, as pairs of a pattern and a name.

    Raises:
        ValueError: the file holds something else in their place.
        OSError: it cannot be read.
    """
    try:
        return [(str(a), str(b)) for shape in lines_of(path) for a, b in shape.get("masks") or ()]
    except TypeError as error:
        raise ValueError(f"{path} holds masks that are none: {error}") from None


def runs_of(path: str | Path) -> list[Trajectory]:
    """Return the only run of a file, after the interrupted runs that it continues.

    Raises:
        ValueError: the file holds no run, or several that do not continue each other.
        OSError: it cannot be read.
    """
    runs = sorted((run_of(shape, path) for shape in lines_of(path)), key=lambda each: each.start)
    if not runs or not _is_chain(runs):
        raise ValueError(f"{path} holds {len(runs)} runs; a replay needs a file with one.")
    return runs


def _is_chain(runs: Sequence[Trajectory]) -> bool:
    return all(own.resumes == other.trace_id for other, own in pairwise(runs))
