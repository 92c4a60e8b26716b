"""Mode 3.2, no or incomplete verification, where an agent claims a check."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

from mast_trace.content import content_hash
from mast_trace.trajectory import StepKind
from mast_trace_judge.local.acts import (
    by_user,
    checks,
    doubted,
    failed,
    finding,
    first_line,
    is_said,
    is_tool,
    name_words,
)
from mast_trace_judge.local.phrases import Phrases
from mast_trace_judge.local.rules._registry import rule
from mast_trace_judge.local.stated import acts, owner, sentences, stem, stems
from mast_trace_judge.local.texts import quote
from mast_trace_judge.verdict import Evidence

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mast_trace.trajectory import Step, Trajectory
    from mast_trace_judge.verdict import ModeFinding

_RAN = Phrases(
    r"(?:\b(?:i|we)(?:'ve| have)? (?:just |also |then |now |already |independently )?(?:re-?)?"
    r"(?:ran|run|executed) (?:the |all |both |every |my |our |a |this |these )[^.\n]{0,40}?"
    r"(?:tests?|suites?|pytest|unittests?)\b"
    r"|(?:^|[.:*]\s*)(?:re-?)?ran (?:both |all |the |full |every |these |it )[^.\n]{0,40}?"
    r"(?:tests?|suites?|pytest|class(?:es)?)\b"
    r"|\bcollected [1-9]\d* items?\b|\b[1-9]\d* passed in \d|\bran [1-9]\d* tests? in \d"
    r"|\ball (?:\d+ |the |unit |of the )*tests? (?:now |are |have )?pass(?:ed|ing|es)?\b)",
    *("ran ", "run ", "executed ", "collected ", " passed in ", "tests pass", "test pass"),
    *("tests now pass", "tests are pass", "tests have pass"),
)
_THOUGHT = re.compile(
    r"mental|by hand|manual|\btrac(?:e|ed|es|ing)\b|in my head|\bwould\b|\bshould\b|\bexpect"
    r"|walk(?:ed|ing)? through|\bonce\b|\bif\b|\bwill\b|\bnot\b|n't\b|\bcould\b|\bplease\b|\?"
    r"|\bensure\b|\buntil\b|\bwhen\b|\bconfirm that\b|print\(|assert|line by line",
    re.IGNORECASE,
)
"""A line with one of these words does not claim that something was run."""
_EXECUTES = re.compile(r"exec|terminal|runner|interpreter|sandbox|shell|proxy", re.IGNORECASE)
_ONLY_READS_OR_WRITES = frozenset(
    [
        *("read", "write", "edit", "create", "save", "search", "find", "list", "open", "view"),
        *("fetch", "lookup", "browse", "get", "show", "append", "insert", "replace"),
    ]
)
_RUNS = frozenset(
    [
        *("test", "tests", "pytest", "run", "execute", "exec", "check", "verify", "validate"),
        *("lint", "build", "compile", "code", "shell", "bash", "terminal", "command", "cmd"),
        *("ci", "pipeline", "job", "workflow", "status", "result", "results", "report", "log"),
    ]
)
_OF_TESTS = re.compile(r"\btests?\b|pytest|passed", re.IGNORECASE)
_RESULTS = re.compile(r"\bpass(?:ed|es)?\b|\bfail(?:ed|s|ures?)?\b|\bgreen\b", re.IGNORECASE)
_WITH_TOOLS = 0.6
_SENDS = re.compile(
    r"(?:send|e?mail|notify|message|post|deliver|ship|dispatch|publish|share|forward|submit|issue|order|print|upload)",
    re.IGNORECASE,
)
_SENT = re.compile(
    r"\b(?P<what>[a-z]{4,}) (?:(?:is|are) on (?:its|their|the) way|(?:was|were|has been|have been) (?:sent|shipped|posted|mailed|ordered|issued))\b",
    re.IGNORECASE,
)
_DONE = re.compile(
    r"\b(?:is|are|has been|have been|was|were) (?:now )?(?P<what>ordered|booked|paid|refunded|shipped|reserved|transferred)\b",
    re.IGNORECASE,
)
_QUESTION = re.compile(
    r"\?$|^\W*(?:find out|check|see|has|have|is|are|was|were|did|who|when)\b", re.IGNORECASE
)
_DOES = re.compile(
    r"(?:make|create|add|submit|place|book|reserve|reservation|pay|order|send|issue|process|confirm|complete|finali|update|set|write|post"
    r"|put|run|exec|call|request|schedule|register|transfer|refund|charge|buy|purchase|ship|checkout|sell|do)",
    re.IGNORECASE,
)
"""Beginnings of the names of tools that may have done it under another word."""
_EMPTY = frozenset({"", content_hash("")})
"""Hashes of a message without a text; where content is not captured, there is another."""
_SILENT = 3
"""Number of empty messages of a checker from which it is not merely late."""


@rule("3.2")
def claimed_check(trajectory: Trajectory) -> list[ModeFinding]:
    """An agent says that it ran tests, and nothing was run (heuristic).

    Definition: MAST 3.2, "(partial) omission of proper checking or confirmation of task outcomes".
    Counted in runs in which no tool ran that can check and no agent is there that executes code:
    tools that look up or write, as their names say, and of which no argument and no result speaks
    of tests. No one else may have brought results of tests, either. A recorded run without any tool
    may have run them where nobody records: it counts for less.
    """
    if any(_could_run(step) or _EXECUTES.search(step.agent) for step in trajectory.steps):
        return []
    claims = [(step, text) for step in trajectory.steps if is_said(step) for text in _claims(step)]
    if not claims:
        return []
    recorded = any(step.span_id for step in trajectory.steps)
    used = any(is_tool(step) for step in trajectory.steps)
    first, _ = claims[0]
    return [
        finding(
            "3.2",
            _WITH_TOOLS if used else 0.4 if recorded else min(0.8, 0.55 + 0.05 * len(claims)),
            Evidence.HEURISTIC,
            f"{first.agent} says that tests were run, and no recorded tool could have run any.",
            [step for step, _ in claims],
            [text for _, text in claims[:3]],
        )
    ]


@rule("2.6", contradicts=True)
def claimed_act(trajectory: Trajectory) -> list[ModeFinding]:
    """An agent that acts by tools says that something was sent, and no call was about it (heuristic).

    Definition: MAST 2.6, "mismatch between reasoning and action". The task asks for the thing, and before the
    message no call, no result and no other message has its name. No tool sends anything by its name. Or it says so of an
    order, booking or payment that the task asks for, has called tools, and nobody any that may have done it.
    """
    orders = [each for each in sentences(trajectory.task) if not _QUESTION.search(each)]
    asked = stems(" ".join(orders))
    active: set[str] = set()
    using: set[str] = set()
    done = False
    known = frozenset[str]()
    for step in trajectory.steps:
        if is_tool(step):
            name = step.tool.rpartition("__")[2]  # behind the name of an MCP server
            if _SENDS.match(name):
                return []
            known |= stems(f"{' '.join(name_words(step.tool))} {step.arguments} {step.text}")
            if acts(step) and not failed(step):
                active.add(owner(step))
                done = done or bool(_DOES.match(name))
            using.add(owner(step))
            continue
        claims = not done and is_said(step) and step.agent in using - active
        deal = _DONE.search(step.text) if claims else None
        if (
            deal is not None
            and stem(deal["what"]) in asked - known
            and not doubted(step.text, *deal.span())
        ):
            why = (
                f"{step.agent} says that it was done, and no call of the run is about it: {deal[0]}"
            )
            return [finding("2.6", 0.65, Evidence.HEURISTIC, why, [step], [deal[0]])]
        match = _SENT.search(step.text) if is_said(step) and step.agent in active else None
        if match is not None and stem(match["what"]) in asked - known:
            why = f"{step.agent} says that it was done, and no call of the run is about it: {match[0]}"
            return [finding("2.6", 0.65, Evidence.HEURISTIC, why, [step], [match[0]])]
        if not by_user(step):
            known |= stems(step.text)
    return []


@rule("3.2", needs_end=True)
def silent_checker(trajectory: Trajectory) -> list[ModeFinding]:
    """An agent whose name says that it checks has turns and never says a word (heuristic).

    Definition: MAST 3.2. Counted from three empty messages on, where it uses no tool either.
    """
    empty: dict[str, list[Step]] = defaultdict(list)
    active: set[str] = set()
    for step in trajectory.steps:
        if step.kind is StepKind.TOOL or step.text.strip() or step.arguments:
            active.add(step.agent)
        elif checks(step.agent) and step.content_hash in _EMPTY:
            empty[step.agent].append(step)
    return [
        finding(
            "3.2",
            0.6,
            Evidence.HEURISTIC,
            f"{agent} had {len(steps)} turns to check the work and said nothing in any.",
            steps,
            [first_line(step) for step in steps],
        )
        for agent, steps in empty.items()
        if agent not in active and len(steps) >= _SILENT
    ]


def _could_run(step: Step) -> bool:
    """Return whether a step may have run tests, or brings what they said, for all that is known of it."""
    if not is_tool(step):
        return not is_said(step) and bool(step.span_id) and bool(_RESULTS.search(step.text))
    words = name_words(step.tool)
    harmless = bool(words & _ONLY_READS_OR_WRITES) and not words & _RUNS
    return not harmless or bool(_OF_TESTS.search(f"{step.arguments}\n{step.text}"))


def _claims(step: Step) -> Iterator[str]:
    """Yield the passages of a message that claim that tests were run."""
    match = _RAN.search(step.text)
    while match is not None:
        start = step.text.rfind("\n", 0, match.end()) + 1
        end = step.text.find("\n", match.end())
        line = step.text[start : end if end >= 0 else len(step.text)]
        if not _THOUGHT.search(line):
            yield quote(step.text, *match.span())
            return
        rest = match.end()
        found = _RAN.pattern.search(step.text, rest)
        match = found
