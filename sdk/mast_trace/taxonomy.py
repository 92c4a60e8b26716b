"""The 14 failure modes of MAST (arXiv 2503.13657) in three categories, by code.

Names are the paper's; the definitions are this project's own one-sentence readings of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType


class Category(Enum):
    """The stage of a run in which a failure mode has its root; the value is the code's prefix."""

    SPECIFICATION = 1
    INTER_AGENT = 2
    VERIFICATION = 3

    @property
    def title(self) -> str:
        """The category's name in the paper."""
        return {
            Category.SPECIFICATION: "Specification issues",
            Category.INTER_AGENT: "Inter-agent misalignment",
            Category.VERIFICATION: "Task verification",
        }[self]


@dataclass(frozen=True)
class FailureMode:
    """One of the 14 modes: ``code`` such as "1.3", the paper's name, one or two short words, and its definition."""

    code: str
    name: str
    short: str
    definition: str

    @property
    def category(self) -> Category:
        """The category that the code's first digit names."""
        return Category(int(self.code[0]))


_MODES = (
    FailureMode(
        "1.1",
        "Disobey task specification",
        "off task",
        "The result or the way to it breaks a constraint that the task stated.",
    ),
    FailureMode(
        "1.2",
        "Disobey role specification",
        "off role",
        "An agent acts outside its assigned role, or as another agent.",
    ),
    FailureMode(
        "1.3",
        "Step repetition",
        "repeats",
        "A step that is already complete is done again without anything new coming of it.",
    ),
    FailureMode(
        "1.4",
        "Loss of conversation history",
        "forgets",
        "Context that an agent once had is gone, and it goes on from an earlier state.",
    ),
    FailureMode(
        "1.5",
        "Unaware of termination conditions",
        "no stop",
        "The run goes on although the condition to stop was met, or nobody knows that condition.",
    ),
    FailureMode(
        "2.1",
        "Conversation reset",
        "restarts",
        "A dialogue restarts without reason, and the progress made so far is dropped.",
    ),
    FailureMode(
        "2.2",
        "Fail to ask for clarification",
        "guesses",
        "An agent meets unclear or missing data and assumes instead of asking.",
    ),
    FailureMode(
        "2.3",
        "Task derailment",
        "drifts",
        "The work drifts away from the objective to something irrelevant or unproductive.",
    ),
    FailureMode(
        "2.4",
        "Information withholding",
        "withholds",
        "An agent has what another one needs and does not pass it on.",
    ),
    FailureMode(
        "2.5",
        "Ignored other agent's input",
        "ignores",
        "What another agent said is disregarded, and the work goes on as if it had not been said.",
    ),
    FailureMode(
        "2.6",
        "Reasoning-action mismatch",
        "misread",
        "What an agent says that it does or found differs from what it does or found.",
    ),
    FailureMode(
        "3.1",
        "Premature termination",
        "ends early",
        "The run ends before its objectives are met or the information for them is exchanged.",
    ),
    FailureMode(
        "3.2",
        "No or incomplete verification",
        "unchecked",
        "The result is not checked, or only a part of it, so that an error passes unseen.",
    ),
    FailureMode(
        "3.3",
        "Incorrect verification",
        "wrong check",
        "A check takes place and passes what is wrong.",
    ),
)

FAILURE_MODES: Mapping[str, FailureMode] = MappingProxyType({mode.code: mode for mode in _MODES})
"""Every failure mode by its code, in the taxonomy's order."""


def mode_words(code: str) -> str:
    """Return a mode's code with its short words, such as "2.6 misread"; the code alone if it is no mode's."""
    known = FAILURE_MODES.get(code)
    return f"{code} {known.short}" if known else code


SPECIFICATION_CODES: tuple[str, ...] = tuple(
    mode.code for mode in _MODES if mode.category is Category.SPECIFICATION
)
"""Codes of the specification violations; the shipped alert watches their rate."""
