"""The register of the rules: each enters itself where it is defined."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mast_trace.trajectory import Trajectory
    from mast_trace_judge.verdict import ModeFinding

Rule = Callable[["Trajectory"], list["ModeFinding"]]


class Reach(Enum):
    """The part of a run that a rule's findings follow from, which counts where steps are unread."""

    WHOLE = "whole"
    BACK = "back"
    """What came before a finding: what comes later takes nothing back."""
    END = "end"
    """The run as a whole and its last step alone."""


_codes: dict[Rule, str] = {}
_reaches: dict[Rule, Reach] = {}


def rule(code: str, reach: Reach = Reach.WHOLE) -> Callable[[Rule], Rule]:
    """Enter a rule into the register.

    Args:
        code: of the failure mode that it finds; rules of one mode apply in the order of their
            definition.
        reach: what its findings follow from.
    """

    def enter(function: Rule) -> Rule:
        _codes[function], _reaches[function] = code, reach
        return function

    return enter


def registered() -> tuple[Rule, ...]:
    """Return every rule, by the taxonomy's order of what it finds."""
    return tuple(sorted(_codes, key=lambda each: _codes[each]))


def reach_of(function: Rule) -> Reach:
    """Return the part of a run that a rule's findings follow from."""
    return _reaches.get(function, Reach.WHOLE)
