"""Advice about each failure mode: sentences of this project, so that no text of a run becomes advice."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

ADVICE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "1.1": "Before answering, compare the result with every constraint of the task.",
        "1.2": "Do the work of your own role only, and leave the rest to the agent whose role it is.",
        "1.3": "Do not repeat a step that is done; use its result, or change what you ask.",
        "1.4": "Restate what is already known from earlier messages before going on.",
        "1.5": "Stop as soon as the goal is met, and say so in the agreed way.",
        "2.1": "Go on from the progress made so far; do not start the dialogue again.",
        "2.2": "Ask when data are missing or unclear; do not assume them.",
        "2.3": "Check that the next step serves the task before taking it.",
        "2.4": "Pass on every fact that the next agent needs, in full.",
        "2.5": "Use what the other agents have reported, and say where you disagree.",
        "2.6": "Do what you announced, and copy figures from tool results as they stand.",
        "3.1": "Do not finish before every part of the task has its result.",
        "3.2": "Check the result with a tool or a calculation before handing it on.",
        "3.3": "When checking, compute the result again instead of reading it over.",
    }
)
"""A sentence for each code of `mast_trace.taxonomy.FAILURE_MODES`."""

WITHOUT_MODE: Final = (
    "Check such a step against what was read before it, and do not hand it on unchecked."
)
"""The sentence for a step whose failure mode is not known."""

GENERAL: Final = (
    "Work carefully and in order.",
    "Read the task again before you begin.",
    "Keep every answer short, clear and complete.",
    "Take the time that the work needs.",
    "Think before each step, and explain your reasons.",
    "Work well together with the other agents.",
    "Write in a friendly and precise tone.",
    "Try to give the best answer that you can.",
    "Pay attention to detail.",
    "Structure longer answers.",
    "Avoid needless words.",
    "Be thorough.",
)
"""Sentences that say nothing about any run, for the placebo."""
