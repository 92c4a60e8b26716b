"""Labelled runs, and the folder that holds them."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mast_trace.exceptions import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mast_trace.trajectory import Trajectory

DATA_VARIABLE = "MAST_TRACE_DATA"
"""The environment variable that names the folder with labelled runs."""


@dataclass(frozen=True)
class LabelledRun:
    """A run with people's labels; missing ones are None or empty.

    Attributes:
        subset: part of the data set, such as ``algorithm-generated``.
        name: of its file in the subset.
        trajectory: the run, its steps numbered as the labels count them.
        group: runs of the same question share it; cross-validation never divides a group.
        step: the decisive step.
        agent: the agent that people blame, in their spelling.
        marked: every step that people marked as a failure.
        modes: whether the run shows a failure mode, by code, for every examined mode.
        success: whether the run solved its task.
        annotators: other judges' answers on the modes, by annotator.
        extra: other fields of the file.
    """

    subset: str
    name: str
    trajectory: Trajectory
    group: str = ""
    step: int | None = None
    agent: str = ""
    marked: frozenset[int] = frozenset()
    modes: Mapping[str, bool] = field(default_factory=dict)
    success: bool | None = None
    annotators: Mapping[str, Mapping[str, bool]] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)


def data_folder(given: str | Path | None = None) -> Path:
    """Return the folder with labelled runs: the given one, else the environment's, else the usual.

    Raises:
        ConfigurationError: there is no such folder.
    """
    folder = Path(given or os.environ.get(DATA_VARIABLE) or Path("..") / "shared" / "data")
    if not folder.is_dir():
        raise ConfigurationError(f"no labelled runs in {folder}: set {DATA_VARIABLE}")
    return folder
