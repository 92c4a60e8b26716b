"""The register of the rules: each registers itself where it is defined."""

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
    """Everything before a finding: later steps do not refute it."""
    END = "end"
    """The run as a whole and its last step alone."""


_codes: dict[Rule, str] = {}
_reaches: dict[Rule, Reach] = {}
_of_what_lacks: set[Rule] = set()
_of_failures: set[Rule] = set()
_contradicting: set[str] = set()


def rule(
    code: str,
    reach: Reach = Reach.WHOLE,
    *,
    needs_end: bool = False,
    of_failures: bool = False,
    contradicts: bool = False,
) -> Callable[[Rule], Rule]:
    """Register a rule.

    Args:
        code: of the failure mode that it finds; rules of one mode apply in the order of their
            definition.
        reach: the part of the run that its findings depend on.
        needs_end: whether it finds that something is lacking. It is not applied to a run without a
            known end, where that may still come.
        of_failures: whether it explains a failure and does not show one: its findings are ordinary
            in successful runs, so that it is applied only where other evidence shows that the run
            failed.
        contradicts: whether its findings contradict a good end of a run, which is suspect then even
            where nobody recorded a failure. The last step of such a finding is the one in error.
    """

    def enter(function: Rule) -> Rule:
        _codes[function], _reaches[function] = code, reach
        if needs_end:
            _of_what_lacks.add(function)
        if of_failures:
            _of_failures.add(function)
        if contradicts:
            _contradicting.add(name_of(function))
        return function

    return enter


def registered() -> tuple[Rule, ...]:
    """Return every rule, by the taxonomy's order of its mode."""
    return tuple(sorted(_codes, key=lambda each: _codes[each]))


def reach_of(function: Rule) -> Reach:
    """Return the part of a run that a rule's findings follow from."""
    return _reaches.get(function, Reach.WHOLE)


def name_of(function: Rule) -> str:
    """Return the name of a rule: the one that a plugin's declares, or that of the function."""
    return str(getattr(function, "name", None) or getattr(function, "__name__", ""))


def code_of(function: Rule) -> str:
    """Return the code of the failure mode that a rule finds."""
    return _codes[function]


def needs_end(function: Rule) -> bool:
    """Return whether a rule finds that something is lacking at the end of a run."""
    return function in _of_what_lacks


def explains_failures(function: Rule) -> bool:
    """Return whether a rule is applied only to runs that are known to have failed."""
    return function in _of_failures


def contradicts_good_end(name: str) -> bool:
    """Return whether the findings of the rule of this name contradict a good end of a run."""
    return name in _contradicting
