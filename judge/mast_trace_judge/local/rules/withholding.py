"""Mode 2.4, information withholding."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

from mast_trace_judge.local.acts import (
    USERS,
    failed,
    finding,
    first_line,
    is_said,
    is_team,
    is_tool,
    name_words,
    ordinary,
)
from mast_trace_judge.local.arithmetic import derived
from mast_trace_judge.local.figures import known_values
from mast_trace_judge.local.rules._inputs import readers_of
from mast_trace_judge.local.rules._registry import rule
from mast_trace_judge.local.stated import arguments, ids, leaves, sentences, stems
from mast_trace_judge.local.texts import values, words
from mast_trace_judge.verdict import Evidence

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from mast_trace.trajectory import Step, Trajectory
    from mast_trace_judge.local.rules._inputs import Inbox
    from mast_trace_judge.verdict import ModeFinding

_NAME = re.compile(
    r"(?<=[a-z,:] )[A-Z][a-z'-]{3,}\b|\b[\w.+-]{1,64}@[\w-]{1,63}\.\w{2,12}\b|\b(?=\w*\d)(?=\w*[A-Za-z])[A-Za-z0-9_-]{5,}\b"
)
_SOUGHT = 20
"""Turns of a run, the first ones, whose names and figures are looked for in all other texts."""
_READ = 2000
"""Characters of a result in which names are sought."""
_NAMES = 8
"""Number of names above which a result is a listing, which nobody repeats in full."""
_DAYS = frozenset(
    [
        *("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday", "january"),
        *("february", "march", "april", "june", "july", "august", "september", "october"),
        *("november", "december"),
    ]
)
"""Words that are translated or written as figures."""
_STEM = 4
"""Letters by which words are told apart; shorter ones are in any text."""
_TEXT = 3
"""Words from which an argument is a text and no name."""
_SHORT, _LONG = 10, 100
"""Figures from which a result tells something, and from which hardly a word stands for them."""
_ASKED = 4
"""Letters of a word's stem by which a task may ask about something."""
_ASKS = re.compile(r"\b(?:whether|where|mark|flag|ob|si) (?P<asked>[^.;,]+)", re.IGNORECASE)
_SAYS = re.compile(
    r"\b(?:is|are|ist|sind|es|son) (?P<not>not |nicht |kein\w* |no )?(?P<what>\w+)", re.IGNORECASE
)
_OPTIONAL = re.compile(
    r"\b(?:optional\w*|nice|if you|if it|not (?:needed|necessary|required)|if possible)\b",
    re.IGNORECASE,
)
_RESTRICTS = re.compile(
    r"\b(?:only|without|exclu\w*|extra|except|lacks?|missing|separate\w*|unconfirmed|prelim\w*|revis\w*|estimat\w*|subject to"
    r"|none|(?:^|[,;:.] ?|and )(?:no|yes|not|nein|ja)(?=\W*(?:$|[.,;)]))|ohne|nur|sin|sans|solo)\b|\(p\)|\d\*",
    re.IGNORECASE,
)
"""Words by which a restriction may be passed on in place of those of the result."""
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?!\w|\.\d)")
_ROWS, _COLUMNS = 2, 6
"""Fewest rows, and most columns of figures, of a table whose columns somebody adds up."""
_FACTS = 25
"""Number of figures above which a result is a listing, which nobody repeats in full."""


@rule("2.4", needs_end=True, contradicts=True)
def withheld_answer(trajectory: Trajectory) -> list[ModeFinding]:
    """A result has what the task asks about in one of its words, and no message has that word (heuristic).

    Definition: MAST 2.4, where no success is recorded; unless a failure is, another agent has the last word. The task asks whether or where something is so. A clause of a short result says that it is, or
    that it is not, the agent's next message passes on a figure of that result, and no later message has a word that
    the two share, another one that only this clause brought, or one of restriction.
    """
    if trajectory.outcome == "success":
        return []
    told = [each for each in ordinary(trajectory) if is_said(each)]
    said = frozenset[str]().union(*(stems(each.text) for each in told))
    asked = [
        {word for word in stems(match["asked"]) if len(word) >= _ASKED}
        for sentence in sentences(trajectory.task)
        for match in _ASKS.finditer(sentence)
        if not _OPTIONAL.search(sentence)
    ]
    for result in trajectory.steps if asked and told else ():
        if not is_tool(result) or failed(result) or len(result.text) > _READ:
            continue
        after = [each for each in told if each.index > result.index]
        own = result.requested_by or result.agent
        message = next((each for each in after if each.agent == own), None)
        figures = known_values([result.text]) - known_values([trajectory.task])
        if message is None or not figures & known_values([message.text]):
            continue
        # An agent that answers alone may have told it by what it did.
        if trajectory.outcome != "failure" and told[-1].agent == message.agent:
            continue
        before = stems(
            " ".join([trajectory.task, *(s.text for s in trajectory.steps[: result.index])])
        )
        for clause in (
            part for each in sentences(result.text) for part in re.split(r"[,;] ", each)
        ):
            about = next((each & stems(clause) for each in asked if each & stems(clause)), set())
            if not about or about & said or not _is_so(clause, about):
                continue
            others = {word for word in stems(clause) - before if len(word) >= _STEM}
            if any(_RESTRICTS.search(each.text) or others & stems(each.text) for each in after):
                continue
            why = f"{result.tool} returned what the task asks about, and no message has a word of it: {clause[:80]}"
            quotes = [clause, first_line(message)]
            return [finding("2.4", 0.65, Evidence.HEURISTIC, why, [result, message], quotes)]
    return []


def _is_so(clause: str, about: set[str]) -> bool:
    """Return whether a clause says that something is, or is not, what one of the words means."""
    match = _SAYS.search(clause)
    if match is None:
        return False
    return bool(about & (stems(clause[: match.start()]) if match["not"] else stems(match["what"])))


@rule("2.4", needs_end=True, of_failures=True)
def withheld_findings(trajectory: Trajectory) -> list[ModeFinding]:
    """No later text has anything new of what an agent's tools returned, and nobody else was shown it (heuristic).

    Definition: MAST 2.4, "failure to share or communicate important data". Looks at the figures, words,
    names and dates that only the tool results of one turn hold; counted when the agent then
    speaks to others, and no later text or argument has one of them, a rounded figure, or one that follows
    from them. More probable where a figure of three digits or more is among them, the message has nothing at all of the
    results, and the recorded inputs of the others' models show that they never saw them. It proves nothing: a
    conclusion may need no word of what it was drawn from, and nobody may need the rest. One agent
    alone has nobody from whom to withhold anything.
    """
    steps = ordinary(trajectory)
    if trajectory.outcome == "success" or not is_team(steps):
        return []
    readers = readers_of(trajectory)
    agents = {*trajectory.agents, *readers}
    sought = 0
    last_said: Mapping[float | str, int] | None = None
    shown_to: Mapping[str, set[str]] | None = None
    known: set[float | str] = _tokens(trajectory.task)
    results: dict[str, list[Step]] = defaultdict(list)
    for step in steps:
        if is_tool(step) and step.error is None:
            known |= _tokens(f"{step.arguments} {' '.join(name_words(step.tool))}")
            results[step.agent].append(step)
            continue
        if not is_said(step) or not _to_agents(step, agents):
            known |= _tokens(step.text)
            continue
        found = results.pop(step.agent, [])
        # A receipt is nobody's data, nor is its number.
        found = [each for each in found if not _is_receipt(each, known)]
        held = {token for result in found for token in _tokens(result.text)}
        told = held - known
        named = known_values([" ".join(ids(result.text)) for result in found])
        facts = {token for token in told if isinstance(token, float)} - named
        known |= told | _tokens(step.text)
        if not any(abs(fact) >= _SHORT for fact in facts) or len(facts) > _FACTS:
            continue
        if last_said is None:
            last_said = _last_occurrence(steps)
        shown_to = shown_to or _shown_to(readers.values())
        others = [inbox for name, inbox in readers.items() if name != step.agent]
        if (
            any(last_said.get(token, -1) >= step.index for token in told)
            or (sought := sought + 1) > _SOUGHT
            or _makes(found, facts, (token for token, at in last_said.items() if at >= step.index))
            or any(shown_to.get(result.message_id, set()) - {step.agent} for result in found)
            or any(inbox.quotes(result) for inbox in others for result in found)
        ):
            continue
        seen = bool(others) and all(s.message_id for s in found)
        long = any(abs(fact) >= _LONG for fact in facts)
        return [
            finding(
                "2.4",
                0.6 if seen and long and not held & _tokens(step.text) else 0.4,
                Evidence.HEURISTIC,
                f"No later text has a figure or word that was new in what {_first(found, facts)} returned to {step.agent}"
                f"{', and nobody else was shown it' if seen else ''}.",
                [*found, step],
                [first_line(found[0]), first_line(step)],
            )
        ]
    return []


def _is_receipt(result: Step, known: set[float | str]) -> bool:
    """Return whether a result repeats a text that its call was given, with nothing new but a number."""
    new = _tokens(result.text) - known
    given = (str(value) for _, value in leaves(arguments(result)))
    repeated = any(len(each.split()) >= _TEXT and each in result.text for each in given)
    return repeated and len(new) == 1 and isinstance(next(iter(new)), float)


def _first(results: list[Step], facts: set[float]) -> str:
    """Return the first tool that returned one of some figures."""
    return next(each.tool for each in results if facts & _tokens(each.text))


def _tokens(text: str) -> set[float | str]:
    """Return the figures of a text, and the beginnings of its longer words."""
    return {*known_values([text]), *(word[:_STEM] for word in words(text) if len(word) >= _STEM)}


def _makes(found: Iterable[Step], facts: set[float], later: Iterable[float | str]) -> bool:
    """Return whether a later figure follows from facts by one step of arithmetic, is one rounded, or adds a column up."""
    totals = {total for result in found for total in _totals(result.text)}
    return any(
        isinstance(value, float) and (derived(value, facts) or round(value, 4) in totals)
        for value in later
    )


def _totals(text: str) -> Iterator[float]:
    """Yield what the columns of a result add up to, where its figures fill a table."""
    numbers = [float(each) for each in _NUMBER.findall(text)]
    for columns in range(1, min(_COLUMNS, len(numbers) // _ROWS) + 1):
        if len(numbers) % columns == 0:
            yield from (round(sum(numbers[first::columns]), 4) for first in range(columns))


@rule("2.4", needs_end=True, of_failures=True)
def withheld_names(trajectory: Trajectory) -> list[ModeFinding]:
    """An agent passes on none of the names that its tools found (heuristic).

    Definition: MAST 2.4, as for `withheld_findings`, for results without figures: names, addresses
    and ids that only the results of one turn hold. Counted where the agent then speaks to another
    one, nobody was shown the results, and none of the names occurs in any later text or argument.
    """
    if trajectory.outcome == "success":
        return []
    readers = readers_of(trajectory)
    steps = ordinary(trajectory)
    agents = {*trajectory.agents, *readers}
    results: dict[str, list[Step]] = defaultdict(list)
    sought = 0
    for place, step in enumerate(steps):
        if is_tool(step) and not failed(step):
            results[step.agent].append(step)
            continue
        if not is_said(step) or not _to_agents(step, agents):
            continue
        found = results.pop(step.agent, [])
        names = {name for result in found for name in _names(result.text[:_READ])}
        if not 0 < len(names) <= _NAMES or values(s.text for s in found):
            continue
        if (sought := sought + 1) > _SOUGHT:
            return []
        before = [
            trajectory.task,
            *(f"{s.text} {s.arguments}" for s in steps[:place] if s not in found),
        ]
        before += [result.arguments for result in found]
        later = [f"{s.text} {s.arguments}" for s in steps[place:]]
        if _mentioned(names, before) or _mentioned(names, later):
            continue
        others = [inbox for name, inbox in readers.items() if name != step.agent]
        if any(inbox.quotes(result) for inbox in others for result in found):
            continue
        return [
            finding(
                "2.4",
                0.5,
                Evidence.HEURISTIC,
                f"No later text has one of the names that {found[0].tool} returned to {step.agent}.",
                [*found, step],
                [first_line(found[0]), first_line(step)],
            )
        ]
    return []


def _names(text: str) -> set[str]:
    """Return the names, addresses and ids in a result; words that begin a sentence may be none."""
    return {match[0].lower() for match in _NAME.finditer(text)} - _DAYS


def _mentioned(names: set[str], texts: Iterable[str]) -> bool:
    return any(name in text.lower() for text in texts for name in names)


def _shown_to(readers: Iterable[Inbox]) -> Mapping[str, set[str]]:
    """Return the agents that were shown each message whole, one or two names.

    One of the two may be the author's.
    """
    shown: dict[str, set[str]] = defaultdict(set)
    for inbox in readers:
        for identity in inbox.ids:
            if identity and len(shown[identity]) < 2:
                shown[identity].add(inbox.name)
    return shown


def _to_agents(step: Step, agents: Iterable[str]) -> bool:
    """Return whether a message is for another agent, as far as is known; one agent alone has no others."""
    if step.recipients:
        return any(name.lower() not in USERS for name in step.recipients)
    return any(name != step.agent and name.lower() not in USERS for name in agents)


def _last_occurrence(steps: list[Step]) -> Mapping[float | str, int]:
    """Return the last step that says each figure and word or passes it to a tool."""
    last: dict[float | str, int] = {}
    for step in steps:
        text = step.arguments if is_tool(step) else f"{step.text} {step.arguments}"
        last.update(dict.fromkeys(_tokens(text), step.index))
    return last
