"""Modes 2.4, 2.2, 3.1 and 3.2: what the task asks for and what a run leaves open of it."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

from mast_trace.trajectory.vocabulary import loaded
from mast_trace_judge.local.rules._evidence import (
    failed,
    finding,
    first_line,
    is_said,
    is_tool,
    name_words,
)
from mast_trace_judge.local.rules._facts import (
    Known,
    acts,
    amounts,
    arguments,
    owner,
    prompts,
    sentences,
    stem,
    stems,
)
from mast_trace_judge.local.rules._registry import rule
from mast_trace_judge.local.texts import quote
from mast_trace_judge.verdict import Evidence

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mast_trace.trajectory import Step, Trajectory
    from mast_trace_judge.verdict import ModeFinding

_TELL = re.compile(
    r"\b(?:whether|mark|flag|say so (?:where|if|when)|(?:tell|warn|inform) (?:me|us) (?:if|when|where))\b(?P<what>[^,.;?!]{4,120})",
    re.IGNORECASE,
)
_OPTIONAL = re.compile(
    r"\b(?:optional\w*|nice|not (?:necessary|needed|required)|if (?:it|you|there|possible)|would be|could|might|may|skip\w*)\b",
    re.IGNORECASE,
)
_DEFERS = re.compile(
    r"\b(?:some other time|another (?:time|day)|(?:come|done|do|follow|see about \w+ \w+|handle \w+) later|later on|did(?: not|n't) get to"
    r"|have(?: not|n't) (?:done|got)|still (?:open|to be|has to|have to|needs? to|outstanding|missing)|will follow|somebody will|someone will|for (?:now|another)"
    r"|remains? (?:open|to be)|not (?:done|started) yet|can wait|postponed|to be done|left for)\b",
    re.IGNORECASE,
)
_LONG = 1500
"""Characters of a result above which it is a document, of which nobody tells everything."""
_PLAIN = 5
"""Letters of a word above which it is about something."""
_DONE = re.compile(
    r"\b(?P<verb>sent|mailed|e-?mailed|notified|booked|ordered|scheduled|published|uploaded|posted|submitted|filed|reserved"
    r"|cancell?ed|transferred|deployed|shipped)\b|\bon (?:its|the|their) way\b",
    re.IGNORECASE,
)
_NOT_DONE = re.compile(
    r"\b(?:not|no|never|will|if|once|when|must|to be|should|can|could|already|please|until|before|after|by the)\b|n't\b|\?",
    re.IGNORECASE,
)
_PRESENT = {"notifi": "notify", "cancell": "cancel"}
_TOOL_NAME = re.compile(r"\b[a-z]+(?:_[a-z]+)+\b")


@rule("2.4", needs_end=True, contradicts=True)
def unanswered_fact(trajectory: Trajectory) -> list[ModeFinding]:
    """A result holds something that the task asks to be told, and no message speaks of it (heuristic).

    Definition: MAST 2.4, "failure to share or communicate important data". The task says "whether" or
    "mark"; words of five letters or more behind it are in a short result, and none of them is in any
    message or argument. The step in error is the next message of the agent that had the result.
    """
    asked = [
        {word for word in stems(match["what"]) if len(word) >= _PLAIN}
        for match in _TELL.finditer(trajectory.task[:4000])
    ]
    steps = trajectory.steps
    results = [s for s in steps if is_tool(s) and not failed(s) and len(s.text) <= _LONG]
    after = _next_words(steps) if asked else {}
    said: frozenset[str] | None = None
    for result in results if asked else ():
        for words in asked:
            common = words & stems(result.text)
            if not common or result.index not in after:
                continue
            if said is None:
                said = frozenset[str]().union(
                    *(
                        stems(s.arguments if is_tool(s) else f"{s.text} {s.arguments}")
                        for s in steps
                    )
                )
            if common & said:
                continue
            word = min(common)
            place = result.text.lower().find(word)
            why = f"The task asks about it, {result.tool} returned it to {owner(result)}, and no message speaks of it."
            answer = after[result.index]
            told = [quote(result.text, place, place + len(word)), first_line(answer)]
            return [finding("2.4", 0.6, Evidence.HEURISTIC, why, [result, answer], told)]
    return []


@rule("3.1", needs_end=True, contradicts=True)
def deferred_item(trajectory: Trajectory) -> list[ModeFinding]:
    """An agent puts off something that the task asks for, and nobody does it (heuristic).

    Definition: MAST 3.1. One sentence has a word such as "later" and a word of the task, of a sentence
    that calls nothing optional; no later call that changes something has the word in its name, its
    arguments or its result. Only teams with tools are looked at.
    """
    steps = trajectory.steps
    if not any(is_tool(step) for step in steps):
        return []
    wanted: set[str] = set()
    for sentence in sentences(trajectory.task[:4000]):
        if not _OPTIONAL.search(sentence):
            wanted |= {word for word in stems(sentence) if len(word) >= 4}
    last: dict[str, int] = {}
    for step in steps:
        if not is_said(step) or not _DEFERS.search(step.text):
            continue
        for sentence in sentences(step.text):
            left = (
                wanted & stems(sentence)
                if _DEFERS.search(sentence) and "?" not in sentence
                else set()
            )
            if left:
                last = last or _last_done(steps)
                left = {word for word in left if last.get(word, -1) < step.index}
            if left and not _OPTIONAL.search(step.text):
                why = f"{step.agent} puts off what the task asks for, and nobody does it."
                return [finding("3.1", 0.6, Evidence.HEURISTIC, why, [step], [sentence[:160]])]
    return []


@rule("3.2", contradicts=True)
def claimed_act(trajectory: Trajectory) -> list[ModeFinding]:
    """An agent says that something was sent, booked or the like, and no call has to do with it (heuristic).

    Definition: MAST 3.2. The agent changes things by tools. A sentence has a participle such as "sent"
    and a noun that the task holds; no call before it has the noun or the verb in its name, its
    arguments or its result.
    """
    calls: list[Step] = []
    done: set[str] = set()
    acting: set[str] = set()
    wanted = {word for word in stems(trajectory.task[:4000]) if len(word) >= 4}
    for step in trajectory.steps:
        if is_tool(step):
            calls.append(step)
            acting |= {owner(step)} if acts(step) and not failed(step) else set()
        elif is_said(step) and step.agent in acting:
            for clause in re.split(r"(?<=[.;!?])\s+|\n|, | and ", step.text[:2000]):
                match = _DONE.search(clause)
                if match is None or _NOT_DONE.search(clause):
                    continue
                verb = stem(match["verb"] or "send")
                verb = _PRESENT.get(verb, verb)
                before = stems(clause[: match.start()]) & wanted
                if not before:
                    continue
                done |= {word for call in calls for word in _words_of(call)}
                calls.clear()
                if not before & done and verb not in done:
                    why = f"{step.agent} says that something was done, and no call before it has to do with it."
                    return [finding("3.2", 0.6, Evidence.HEURISTIC, why, [step], [clause[:160]])]
    return []


@rule("3.2", contradicts=True)
def unused_tool(trajectory: Trajectory) -> list[ModeFinding]:
    """An agent gives a result without the tool that its prompt names for it, and the figure is wrong (heuristic).

    Definition: MAST 3.2. The prompt names exactly one tool, which nobody has called; the message has a
    figure of three digits or more that no text before it holds and that is no sum, difference,
    multiple or sum with one multiple of what the run holds.
    """
    told = {a: set(_TOOL_NAME.findall(text)) for a, text in prompts(trajectory).items()}
    tools = {step.tool for step in trajectory.steps if step.tool}
    owed = {a for a, names in told.items() if len(names) == 1 and not names & tools}
    known = Known(trajectory)
    for step in trajectory.steps if owed and tools else ():
        if is_said(step) and step.agent in owed:
            for each in amounts(step.text):
                if not known.before(step).has_figure(each) and not known.has_sum(each):
                    (tool,) = told[step.agent]
                    why = f"{step.agent} is to use {tool}, which nobody called, and states {each.literal}, which nothing in the run makes."
                    told_ = [quote(step.text, each.start, each.end)]
                    return [finding("3.2", 0.6, Evidence.HEURISTIC, why, [step], told_)]
    return []


@rule("2.2", contradicts=True)
def took_one_of_equals(trajectory: Trajectory) -> list[ModeFinding]:
    """An agent acts for one of several records that nothing tells apart, and nobody asked which (heuristic).

    Definition: MAST 2.2, "inability to request additional information". A result lists records that
    differ by their identifiers alone; a later call has the identifier of one of them, which no other
    text has named before, and no message in between asks.
    """
    equal: dict[str, Step] = {}
    for step in trajectory.steps:
        if is_tool(step):
            used = {str(each).lower() for each in arguments(step).values()}
            taken = [name for name in equal if name in used] if acts(step) else []
            if len(taken) == 1:
                result = equal[taken[0]]
                why = f"{step.agent} takes {taken[0]} of records in the result of {result.tool} that nothing else tells apart, and nobody asked."
                told = [first_line(result), quote(step.arguments)]
                return [finding("2.2", 0.6, Evidence.HEURISTIC, why, [result, step], told)]
            equal |= dict.fromkeys(_alike(step), step)
        elif equal:
            low = step.text.lower()
            equal = {} if "?" in low else {k: v for k, v in equal.items() if k not in low}
    return []


def _next_words(steps: Sequence[Step]) -> dict[int, Step]:
    """Return the next message of its agent after each call."""
    coming: dict[str, Step] = {}
    found = {}
    for step in reversed(steps):
        if is_said(step):
            coming[step.agent] = step
        elif is_tool(step) and owner(step) in coming:
            found[step.index] = coming[owner(step)]
    return found


def _alike(result: Step) -> Iterator[str]:
    """Yield the identifiers of a result's records that are equal but for them."""
    value = loaded(result.text) if len(result.text) <= _LONG else None
    lists = [value, *value.values()] if isinstance(value, dict) else [value]
    for rows in lists:
        groups: dict[str, list[str]] = defaultdict(list)
        for row in rows if isinstance(rows, list) and len(rows) <= 10 else ():
            if isinstance(row, dict) and "id" in row and len(row) >= 2:
                rest = sorted((k, str(v)) for k, v in row.items() if k != "id")
                groups[str(rest)].append(str(row["id"]).lower())
        for group in groups.values():
            if len(group) >= 2:
                yield from group


def _words_of(step: Step) -> set[str]:
    words = {stem(word) for word in name_words(step.tool)}
    return words | stems(step.arguments[:4000]) | stems(step.text[:4000])


def _last_done(steps: Sequence[Step]) -> dict[str, int]:
    """Return the last call that changes something and holds each word."""
    good = (step for step in steps if acts(step) and not failed(step))
    return {word: step.index for step in good for word in _words_of(step)}
