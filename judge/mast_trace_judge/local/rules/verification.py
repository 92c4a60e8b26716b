"""Modes 3.2, no or incomplete verification, and 3.3, incorrect verification."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from mast_trace.trajectory.vocabulary import loaded
from mast_trace_judge.local.acts import (
    checks,
    doubted,
    ending,
    failed,
    finding,
    first_line,
    has_failed,
    is_said,
    is_tool,
    name_words,
    ordinary,
)
from mast_trace_judge.local.figures import known_values
from mast_trace_judge.local.phrases import Phrases
from mast_trace_judge.local.rules._registry import Reach, rule
from mast_trace_judge.local.stated import COUNT_WORDS, stems, transacts
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
    r"\b(?:(?:(?:i|we)(?:'ll| will|'ve| have)? |let'?s |let me )?skip(?:ping|ped)? "
    r"(?:any |the |further |all |a )?(?:test(?:s|ing)\b|check(?:s|ing)?\b|verification|review|validation)"
    r"|(?:without|no need (?:for|to)) (?:any |the |further |additional |do(?:ing)? (?:a |the )?)?"
    r"(?:test(?:s|ing)?\b|check(?:s|ing)?\b|verif(?:y(?:ing)?\b|ication)|review(?:s|ing)?\b"
    r"|validat(?:e|ing|ion)|double-check(?:ing)?)"
    r"|not (?:yet )?(?:been )?(?:tested|checked|verified|reviewed|validated)|untested|unverified)\b",
    *("test", "check", "verif", "review", "validat"),
)
_POSSIBLE = 0.45
_OF_CODE = re.compile(r"[`(]")
"""Characters of sentences about a program's behaviour."""
_PASSES = Phrases(
    r"\b(?:approved?|lgtm|looks? (?:good|correct|right|fine)|all tests (?:pass(?:ed)?|succeed(?:ed)?)"
    r"|(?:is|are|was|were|has been|have been) (?:now )?(?:correct|verified|validated|confirmed)"
    r"|(?:verified|validated|confirmed)[.!:]|(?:works|working|passes|passed|runs) (?:as expected"
    r"|correctly|successfully)|no (?:issues|errors|problems) (?:found|remain)|ready to (?:ship|go))\b",
    *("approve", "lgtm", "look", "all tests ", "correct", "verified", "validated", "confirmed"),
    *("expected", "successfully", " found", " remain", "ready to "),
)
_PROBLEMS = re.compile(
    r"(?:un(?:resolved|met|tested|covered|verified|satisfied|matched|supported|defined)|fail(?:ed|ures?)|errors?|broken|invalid"
    r"|violations?|conflicts?|mismatches)",
    re.IGNORECASE,
)
"""Names of fields that count what is wrong."""
_VERDICTS = re.compile(
    r"(?:match(?:es)?|ok|valid|verified|correct|consistent|complete|passed)",
    re.IGNORECASE,
)
"""Names of fields that say whether all is right."""
_FOUND = re.compile(r"match(?:es)?|complete", re.IGNORECASE)
_SEARCHES = frozenset(
    [
        "screen",
        "search",
        "find",
        "scan",
        "lookup",
        "duplicate",
        "duplicates",
        "sanctions",
        "list",
        "page",
    ]
)
_MENDS = re.compile("edit|fix|format|resolve|patch|replace|rename|correct|repair", re.IGNORECASE)
"""Beginnings of the names of tools by which a problem is mended."""
_FORBIDS = {
    True: re.compile(
        r"(?:suspicious|suspected|fraud\w*|flagged|blocked|expired|recalled|overdue|duplicate|banned|unsafe|breached)",
        re.IGNORECASE,
    ),
    False: re.compile(r"(?:allowed|eligible|permitted)", re.IGNORECASE),
}
"""Names of fields that speak against a deal, by their value: who tells of it in other words makes none."""
_DENIES = re.compile(
    r"\b(?:no|not|never|cannot|unable|in(?:valid|correct|complete|consistent)|un\w{4,}|differ\w*|mismatch\w*|wrong|reject\w*"
    r"|refus\w*|expired|denied|missing|instead|other|only)\b|n't\b|\?",
    re.IGNORECASE,
)
_SHORT = 3
_CHECKS = frozenset(
    [
        *("test", "tests", "pytest", "run", "execute", "exec", "check", "verify", "validate"),
        *("lint", "build", "compile", "code"),
    ]
)
_DOUBTS = re.compile(
    r"\b(?:fail(?:s|ed|ure|ing)?|error|however|but|issue|must|fix|refus\w*|reject\w*|red|as intended)\b",
    re.IGNORECASE,
)


@rule("3.2", needs_end=True, of_failures=True)
def unchecked_artefact(trajectory: Trajectory) -> list[ModeFinding]:
    """No tool ran and no agent named a checker spoke after the last artefact (heuristic).

    Definition: MAST 3.2, "(partial) omission of proper checking or confirmation of task outcomes".
    An artefact is a fenced block of code or the work of a tool that writes, by its name. The need for a check
    is the rule's judgement, and a checker may have another name. A transcript without any run of a tool or program gives no
    evidence about checks.
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
            _POSSIBLE,
            Evidence.HEURISTIC,
            f"No tool ran and no agent named a checker spoke after what {artefact.agent} made last.",
            [artefact],
            [first_line(artefact)],
        )
    ]


@rule("3.2", needs_end=True, of_failures=True)
def idle_checker(trajectory: Trajectory) -> list[ModeFinding]:
    """An agent whose name marks it as a checker is addressed or handed to, and never acts (heuristic).

    Definition: MAST 3.2. The run ends before it acts, or its acts were not recorded.
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
            _POSSIBLE,
            Evidence.HEURISTIC,
            f"{idle[0]}, a checker by its name, was addressed, and no act of its is recorded.",
            [ending(steps), last],
            [first_line(last)],
        )
    ]


@rule("3.2", needs_end=True, of_failures=True)
def skipped_check(trajectory: Trajectory) -> list[ModeFinding]:
    """An agent says that it leaves out a check (heuristic).

    Definition: MAST 3.2. It counts if afterwards no tool ran that does more than write. Sentences
    about checks that a program omits, and reports of skipped tests, do not count.
    """
    if trajectory.outcome == "success":
        return []
    steps = ordinary(trajectory)
    for position in range(len(steps) - 1, -1, -1):
        step = steps[position]
        if _verifies(step) and is_tool(step):
            return []
        match = _SKIPS.search(step.text) if is_said(step) else None
        if match and not _OF_CODE.search(quote(step.text, *match.span(), limit=300)):
            return [
                finding(
                    "3.2",
                    0.65,
                    Evidence.HEURISTIC,
                    f"{step.agent} speaks of a check that is left out, and no tool ran after it.",
                    [step],
                    [quote(step.text, *match.span())],
                )
            ]
    return []


@rule("3.2", needs_end=True, of_failures=True)
def unsupported_answer(trajectory: Trajectory) -> list[ModeFinding]:
    """The final figure comes from no tool and not from the task, and nobody checked it.

    Definition: MAST 3.2 (heuristic). It examines the numbers of the last message in runs that use
    tools: the model computed a number that no tool returned. It counts if no tool ran and no
    checking agent spoke after the number first appeared.
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
                f"The figure {match[0]} in the answer stands in no result and not in the task; {origin.agent} "
                "states it first, and no tool ran after that.",
                [origin, last],
                [quote(last.text, *match.span())],
            )
        ]
    return []


def _origins(steps: Sequence[Step], figures: set[float]) -> dict[float, Step]:
    """Return the message in which each figure first appears."""
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
    any reservation. Exact where the run is that of a check and its span says that it failed; evidence
    from texts alone counts only in runs that failed.
    """
    run_failed = has_failed(trajectory)
    last_run: Step | None = None
    for step in ordinary(trajectory):
        if is_tool(step):
            last_run = step
            continue
        if last_run is None or not failed(last_run) or not is_said(step):
            continue
        match = approves(step)
        if match is None:
            continue
        if not checks(step.agent) and step.agent != last_run.agent:
            continue
        exact = (
            last_run.error is not None
            and bool(last_run.span_id)
            and checks(step.agent)
            and bool(_CHECKS & name_words(last_run.tool))
        )
        if not exact and not run_failed:
            continue
        return [
            finding(
                "3.3",
                0.85 if exact else 0.6,
                Evidence.EXACT if exact else Evidence.HEURISTIC,
                f"{step.agent} speaks of success right after {last_run.tool or 'the last run'} failed.",
                [last_run, step],
                [first_line(last_run), quote(step.text, *match.span())],
            )
        ]
    return []


@rule("3.3", contradicts=True)
def passed_over_problem(trajectory: Trajectory) -> list[ModeFinding]:
    """An agent whose check counts problems, or denies, says nothing of it, and nobody checks again (heuristic).

    Definition: MAST 3.3, "failure to adequately validate or cross-check crucial information". A result has a count of
    problems, or a verdict that is false, by its field's name, or speaks against a payment or the like that follows. The
    agent's next message has neither the count nor a word of the field or of the result's texts, and no reservation. The
    tool is not called again.
    """
    found: list[ModeFinding] = []
    following: dict[str, Step] = {}
    later: set[str] = set()
    deals = False
    for step in reversed(trajectory.steps):
        own = step.requested_by or step.agent
        if is_tool(step):
            message = following.get(own)
            last = step.tool not in later and not failed(step)
            counted = _problems(step, deals=deals) if last else None
            deals = deals or (transacts(step) and not failed(step))
            if (
                message is not None
                and is_said(message)
                and counted
                and not any(map(_MENDS.match, later))
                and not _tells(message, *counted)
            ):
                why = f"{step.tool} says {counted[1]}, and {message.agent} says nothing of it."
                quotes = [first_line(step), first_line(message)]
                steps = [step, message]
                found = [finding("3.3", 0.65, Evidence.HEURISTIC, why, steps, quotes)]
            later.add(step.tool)
        # A message without a text asks for the next call.
        if is_said(step) or is_tool(step):
            following[step.agent] = step
    return found


def _problems(step: Step, *, deals: bool) -> tuple[int, str, set[str]] | None:
    """Return the number of problems that a result counts, or 0 where it says yes or no, its words, and their stems; None for none."""
    told = loaded(step.text) if step.text.lstrip().startswith("{") else None
    if not isinstance(told, dict):
        return None
    for name, count in told.items():
        # No match may be what a search is for, and a page is seldom the whole.
        if _FOUND.fullmatch(name) and name_words(step.tool) & _SEARCHES:
            continue
        if (type(count) is int and count > 0 and _PROBLEMS.fullmatch(name)) or (
            isinstance(count, bool)
            and (
                (not count and _VERDICTS.fullmatch(name))
                or (deals and _FORBIDS[count].fullmatch(name))
            )
        ):
            texts = [name, *(each for each in told.values() if isinstance(each, str))]
            said = f"{name}: {str(count).lower()}"
            return 0 if isinstance(count, bool) else count, said, set(stems(" ".join(texts)))
    return None


def _tells(message: Step, count: int, _: str, words: set[str]) -> bool:
    """Return whether a message has a number of problems, a word of what was said of them, or a reservation."""
    about = {word for word in words & stems(message.text) if len(word) > _SHORT}
    told = known_values([message.text]) | {
        COUNT_WORDS.get(word) for word in message.text.lower().split()
    }
    denies = not count and _DENIES.search(message.text)
    return bool(about or (count and count in told) or denies or _DOUBTS.search(message.text))


def approves(step: Step) -> re.Match[str] | None:
    """Find the words with which a message approves something, in a sentence without any reservation."""
    match = _PASSES.search(step.text)
    if match is None or doubted(step.text, *match.span()):
        return None
    if _DOUBTS.search(quote(step.text, *match.span(), limit=300)):
        return None
    return match


def _makes(step: Step) -> bool:
    """Return whether a step leaves an artefact behind."""
    if is_tool(step):
        return bool(_WRITES & name_words(step.tool)) and not failed(step)
    return is_said(step) and any(block.count("\n") >= 2 for block in code_blocks(step.text))


def _verifies(step: Step) -> bool:
    """Return whether a step can show that an artefact is wrong: a run, a look-up or a reviewer's word."""
    return (is_tool(step) and not _WRITES & name_words(step.tool)) or (
        checks(step.agent) and is_said(step)
    )
