"""Labelled runs, and the names of their agents."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mast_trace.trajectory import Trajectory

_SUFFIX = re.compile(r"\s*\(.*\)\s*$")


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


def same_agent(one: str, other: str) -> bool:
    """Return whether two names are of one agent: suffixes such as ``(thought)`` and case are no part."""
    return plain_name(one).lower() == plain_name(other).lower()


def plain_name(name: str) -> str:
    """Return an agent's name without the suffix in brackets that Magentic-One adds."""
    return _SUFFIX.sub("", name).strip()
