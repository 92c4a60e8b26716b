"""Modes 3.2, no or incomplete verification, and 3.3, incorrect verification."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from mast_trace_judge.local.phrases import Phrases
from mast_trace_judge.local.rules._evidence import (
    checks,
    ending,
    failed,
    finding,
    first_line,
    is_said,
    is_tool,
    name_words,
    ordinary,
)
from mast_trace_judge.local.rules._registry import Reach, rule
from mast_trace_judge.local.texts import code_blocks, number, numbers, quote, values
from mast_trace_judge.verdict import Evidence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mast_trace.trajectory import Step, Trajectory
    from mast_trace_judge.verdict import ModeFinding

_WRITES = frozenset(
    ["write", "edit", "create", "save", "patch", "apply", "replace", "insert", "generate", "commit"]
)
_SKIPS = Phrases(
    r"\b(?:(?:skip(?:ping|ped)?|without|no need (?:for|to)|not? (?:yet )?(?:been )?)"
    r" ?(?:any |the |further |additional |do(?:ing)? (?:a |the )?)?"
    r"(?:test(?:s|ed|ing)?|check(?:s|ed|ing)?|verif(?:y|ied|ying|ication)|review(?:s|ed|ing)?"
    r"|validat(?:e|ed|ing|ion)|double-check(?:ing)?)|untested|unverified)\b",
    *("test", "check", "verif", "review", "validat"),
)
_PASSES = Phrases(
    r"\b(?:approved?|lgtm|looks? (?:good|correct|right|fine)|all tests (?:pass(?:ed)?|succeed(?:ed)?)"
    r"|(?:is|are|was|were|has been|have been) (?:now )?(?:correct|verified|validated|confirmed)"
    r"|(?:verified|validated|confirmed)[.!:]|(?:works|working|passes|passed|runs) (?:as expected"
    r"|correctly|successfully)|no (?:issues|errors|problems) (?:found|remain)|ready to (?:ship|go))\b",
    *("approve", "lgtm", "look", "all tests ", "correct", "verified", "validated", "confirmed"),
    *("expected", "successfully", " found", " remain", "ready to "),
)
_DOUBTS = re.compile(
    r"\b(?:not|n't|fail(?:s|ed|ure|ing)?|error|wrong|incorrect|however|but|issue|must|fix|unless)\b",
    re.IGNORECASE,
)


@rule("3.2")
def unchecked_artefact(trajectory: Trajectory) -> list[ModeFinding]:
    """After the last artefact nothing tests, runs or reviews it (exact).

    Definition: MAST 3.2, "(partial) omission of proper checking or confirmation of task outcomes".
    An artefact is a fenced block of code or the work of a tool that writes. That no tool and no
    checking agent acts after it is a fact; that it should have been checked is the rule's judgement,
    hence the probability. A transcript in which nothing is ever run says nothing of checks.
    """
    if trajectory.outcome == "success":
        return []
    steps = ordinary(trajectory)
    if not any(step.span_id or _verifies(step) for step in steps):
        return []
    last = max((i for i, step in enumerate(steps) if _makes(step)), default=None)
    if last is None or any(_verifies(step) for step in steps[last + 1 :]):
        return []
    artefact = steps[last]
    return [
        finding(
            "3.2",
            0.75 if trajectory.outcome == "failure" else 0.6,
            Evidence.EXACT if artefact.span_id else Evidence.HEURISTIC,
            f"Nothing tests or reviews what {artefact.agent} made last.",
            [artefact],
            [first_line(artefact)],
        )
    ]


@rule("3.2")
def idle_checker(trajectory: Trajectory) -> list[ModeFinding]:
    """An agent whose name says that it checks never acts after the answer is there.

    Definition: MAST 3.2. Exact where the agent is addressed or handed to in recorded spans; it is
    part of the team, and the run ends without it.
    """
    if trajectory.outcome == "success":
        return []
    steps = ordinary(trajectory)
    acting = {step.agent for step in steps}
    known = {name for step in steps for name in (*step.recipients, step.handoff_to)}
    idle = sorted(name for name in known - acting if checks(name))
    last = next((step for step in reversed(steps) if is_said(step)), None)
    if not idle or last is None:
        return []
    return [
        finding(
            "3.2",
            0.7 if trajectory.outcome == "failure" else 0.5,
            Evidence.EXACT if last.span_id else Evidence.HEURISTIC,
            f"{idle[0]} belongs to the team and never acted.",
            [ending(steps), last],
            [first_line(last)],
        )
    ]


@rule("3.2")
def skipped_check(trajectory: Trajectory) -> list[ModeFinding]:
    """An agent says that it leaves out a check (heuristic).

    Definition: MAST 3.2; counted when no tool ran after those words that does more than write.
    """
    if trajectory.outcome == "success":
        return []
    steps = ordinary(trajectory)
    for position in range(len(steps) - 1, -1, -1):
        step = steps[position]
        if _verifies(step) and is_tool(step):
            return []
        match = _SKIPS.search(step.text) if is_said(step) else None
        if match:
            return [
                finding(
                    "3.2",
                    0.65,
                    Evidence.HEURISTIC,
                    f"{step.agent} leaves the check out.",
                    [step],
                    [quote(step.text, *match.span())],
                )
            ]
    return []


@rule("3.2")
def unsupported_answer(trajectory: Trajectory) -> list[ModeFinding]:
    """The final figure comes from no tool and not from the task, and nobody checked it.

    Definition: MAST 3.2 (heuristic). Looks at the numbers of the last message in runs that use
    tools: one that no tool returned was worked out in somebody's head. Counted when no tool ran and
    no checking agent spoke after it came up.
    """
    steps = ordinary(trajectory)
    if trajectory.outcome == "success" or not any(is_tool(step) for step in steps):
        return []
    last = next((step for step in reversed(steps) if is_said(step)), None)
    if last is None:
        return []
    returned = values([trajectory.task, *(step.text for step in steps if is_tool(step))])
    own = [match for match in numbers(last.text) if number(match[0]) not in returned]
    own = [match for match in own if len(match[0]) >= 3]
    if not own:
        return []
    origins = _origins(steps, {number(match[0]) for match in own})
    checked = next((step.index for step in reversed(steps) if _verifies(step)), -1)
    for match in own:
        origin = origins[number(match[0])]
        if checked > origin.index:
            continue
        return [
            finding(
                "3.2",
                0.6 if trajectory.outcome == "failure" else 0.4,
                Evidence.HEURISTIC,
                f"The figure {match[0]} in the answer is {origin.agent}'s own: no tool returned it, "
                "and nobody checked it.",
                [origin, last],
                [quote(last.text, *match.span())],
            )
        ]
    return []


def _origins(steps: Sequence[Step], figures: set[float]) -> dict[float, Step]:
    """Return who said each figure first."""
    origins: dict[float, Step] = {}
    for step in steps:
        if is_said(step):
            for figure in figures & values([step.text]):
                origins.setdefault(figure, step)
            if len(origins) == len(figures):
                break
    return origins


@rule("3.3", Reach.BACK)
def passed_a_failure(trajectory: Trajectory) -> list[ModeFinding]:
    """A check passes although the last tool run before it failed (exact where spans say so).

    Definition: MAST 3.3, "failure to adequately validate or cross-check crucial information". The
    failing run must be the last one before the words of approval, and the words must come without
    any reservation.
    """
    last_run: Step | None = None
    for step in ordinary(trajectory):
        if is_tool(step):
            last_run = step
            continue
        if last_run is None or not failed(last_run) or not is_said(step):
            continue
        match = _PASSES.search(step.text)
        if match is None or _DOUBTS.search(quote(step.text, *match.span(), limit=300)):
            continue
        if not checks(step.agent) and step.agent != last_run.agent:
            continue
        exact = last_run.error is not None and bool(last_run.span_id) and checks(step.agent)
        return [
            finding(
                "3.3",
                0.85 if exact else 0.6,
                Evidence.EXACT if exact else Evidence.HEURISTIC,
                f"{step.agent} passes the work although {last_run.tool or 'the last run'} failed.",
                [last_run, step],
                [first_line(last_run), quote(step.text, *match.span())],
            )
        ]
    return []


def _makes(step: Step) -> bool:
    """Whether a step leaves an artefact behind."""
    if is_tool(step):
        return bool(_WRITES & name_words(step.tool)) and not failed(step)
    return is_said(step) and any(block.count("\n") >= 2 for block in code_blocks(step.text))


def _verifies(step: Step) -> bool:
    """Whether a step can show that an artefact is wrong: a run, a look-up or a reviewer's word."""
    return (is_tool(step) and not _WRITES & name_words(step.tool)) or (
        checks(step.agent) and is_said(step)
    )
