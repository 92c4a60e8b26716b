"""Labelled sets that `mast-trace dataset build` has written."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mast_trace.exceptions import ConfigurationError
from mast_trace.trajectory import trajectory_from_dict
from mast_trace_judge.study.datasets.labelled import LabelledRun
from mast_trace_judge.study.datasets.set_files import CARD, FORMAT, PARQUET, RUNS, shapes_of

_FIRST = 1000
"""Characters of a file's first line, whose first keys tell of a set."""


def labelled_run(shape: Mapping[str, Any]) -> LabelledRun:
    """Return a run of a set from its JSON form; a fault of the environment names no agent.

    Raises:
        KeyError: a field is missing.
        ValueError: the run cannot be read.
        TypeError: its step is no number.
    """
    if not isinstance(shape["step"], int):
        raise TypeError(f"its step is {shape['step']!r}")
    return LabelledRun(
        subset=shape["source"],
        name=shape["id"],
        trajectory=trajectory_from_dict(shape["run"]),
        group=shape["group"],
        step=shape["step"],
        agent=shape["agent"],
        modes={shape["mode"]: True} if shape["mode"] else {},
        success=not shape["failed"],
        extra={key: shape[key] for key in ("operator", "decisive", "split", "framework")},
    )


def operator_of(run: LabelledRun) -> str:
    """Return the operator that planted a run's fault; empty if none did."""
    return str(run.extra.get("operator", ""))


def set_at(path: Path) -> Path | None:
    """Return the folder of the set that a path names, itself or one of its files; None if it names no set.

    Runs that somebody else calls ``runs.jsonl`` are no set.
    """
    folder = path if path.is_dir() else path.parent
    is_named = path.is_dir() or path.name in {RUNS, PARQUET}
    return folder if is_named and is_set(folder) else None


def is_set(folder: Path) -> bool:
    """Return whether a folder holds a set that `mast-trace dataset build` has written."""
    lines = folder / RUNS
    if (folder / CARD).is_file():
        return lines.is_file() or (folder / PARQUET).is_file()
    if not lines.is_file():
        return False
    with lines.open(encoding="utf-8", errors="replace") as file:
        first = file.readline(_FIRST)
    return all(f'"{key}": ' in first for key in ("format", "source", "group", "operator"))


def read_injected(
    folder: Path, *, held_out: bool | None = None, survivors: bool = False
) -> list[LabelledRun]:
    """Read the failures of a set whose step and agent are known.

    Args:
        folder: of the set.
        held_out: only runs of operators that are held out, or only the others; all if absent.
        survivors: whether runs that succeeded although a fault was planted are read as well.

    Raises:
        ConfigurationError: the folder holds no set of this version.
    """
    found = []
    for place, shape in shapes_of(folder):
        try:
            if shape["format"] != FORMAT:
                raise ConfigurationError(
                    f"{place} has format {shape['format']}; this version reads {FORMAT}"
                )
            if not (shape["failed"] or survivors) or (
                held_out is not None and shape["held_out_operator"] != held_out
            ):
                continue
            run = labelled_run(shape)
        except (ValueError, KeyError, TypeError) as error:
            raise ConfigurationError(f"{place} is no labelled run: {error}") from error
        found.append(run)
    return found
