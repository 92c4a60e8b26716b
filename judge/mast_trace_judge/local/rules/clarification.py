"""Mode 2.2, fail to ask for clarification."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from mast_trace_judge.local.acts import by_user, failed, finding, is_said, is_tool, name_words
from mast_trace_judge.local.phrases import Phrases
from mast_trace_judge.local.rules._registry import rule
from mast_trace_judge.local.stated import acts, owner
from mast_trace_judge.local.texts import quote
from mast_trace_judge.verdict import Evidence

if TYPE_CHECKING:
    from mast_trace.trajectory import Trajectory
    from mast_trace_judge.verdict import ModeFinding

_ASSUMES = Phrases(
    r"\b(?:(?:i|we)(?:'ll| will| shall| have to| can)? (?:just |simply |therefore )?assume\b"
    r"|let(?:'s| us| me) (?:just |simply )?assume\b|(?:by|just|simply) assuming\b"
    r"|(?:using|use|with|based on) (?:a |an |some |the )?"
    r"(?:hypothetical|placeholder|dummy|mock|made-up|simulated|assumed|sample|example) "
    r"(?:data|values?|figures?|numbers?|prices?|results?|dataset)"
    r"|for (?:the sake of|the purpose of|demonstration|illustration)[^.\n]{0,40}assum\w+)",
    *("assum", "hypothetical", "placeholder", "dummy", "mock", "made-up", "simulated"),
    *("sample", "example"),
)
_TELLS_TO_ASK = re.compile(
    r"\bask (?:which|who|whom|them|him|her|back|the (?:user|customer|client|caller))\b|\bplease (?:clarify|specify)\b",
    re.IGNORECASE,
)
_ASKING = re.compile(
    r"(?:ask|question|clarify|message|send|confirm|notify|email|mail|call|hand)", re.IGNORECASE
)
_SHORT = 2000
"""Characters of a result that an agent reads whole."""
_ASKS = Phrases(
    r"\b(?:could|can|would) you (?:please )?(?:clarify|specify|provide|confirm|tell)"
    r"|\bplease (?:clarify|specify|confirm|provide)\b|\bdo you mean\b",
    *(" you ", "please "),
)
_GENERAL = re.compile(r"\b(?:if|where|when|unless|unclear|doubt)\b", re.IGNORECASE)
"""Sentences of what holds in general, and may not hold here."""
_MANUALS = frozenset(["docs", "doc", "help", "file", "policy", "manual", "readme", "page"])
"""Words of the names of tools that read what holds in general."""


@rule("2.2", contradicts=True)
def acted_without_asking(trajectory: Trajectory) -> list[ModeFinding]:
    """A result tells an agent to ask, and its next step is an act (heuristic).

    Definition: MAST 2.2, "inability to request additional information when faced with unclear or incomplete data".
    The act asks nobody by its tool's name, and no user speaks in the run after its beginning.
    """
    if any(step.index and by_user(step) for step in trajectory.steps):
        return []
    for result, step in pairwise(trajectory.steps):
        told = _TELLS_TO_ASK.search(result.text[:_SHORT]) if is_tool(result) else None
        if told is None or failed(result) or not acts(step) or owner(step) != owner(result):
            continue
        general = _GENERAL.search(quote(result.text, *told.span(), limit=300))
        if general or name_words(result.tool) & _MANUALS:
            continue
        if failed(step) or _ASKING.match(step.tool):
            continue
        why = f"{result.tool} says to ask, and {step.agent} calls {step.tool}: {told[0]}"
        told_of = [quote(result.text, *told.span()), quote(step.arguments)]
        return [finding("2.2", 0.65, Evidence.HEURISTIC, why, [result, step], told_of)]
    return []


@rule("2.2", of_failures=True)
def assumed_instead_of_asking(trajectory: Trajectory) -> list[ModeFinding]:
    """An agent puts an assumption or made-up data where something is missing, and nobody asks.

    Definition: MAST 2.2, "inability to request additional information when faced with unclear or
    incomplete data" (heuristic). A weak sign of a wrong answer, too: `benchmarks/judge/rules.md`.
    """
    if trajectory.outcome == "success":
        return []
    assumed = None
    count = 0
    for step in trajectory.steps:
        if not is_said(step):
            continue
        if _ASKS.search(step.text):
            return []
        match = _ASSUMES.search(step.text)
        if match:
            count += 1
            assumed = assumed or (step, match)
    if assumed is None:
        return []
    step, match = assumed
    return [
        finding(
            "2.2",
            min(0.6, 0.35 + 0.08 * count),
            Evidence.HEURISTIC,
            f"{step.agent} speaks of an assumption or of made-up data, and nobody asks.",
            [step],
            [quote(step.text, *match.span())],
        )
    ]
