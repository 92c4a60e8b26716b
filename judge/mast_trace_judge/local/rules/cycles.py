"""Modes 1.3 and 1.4: a cycle of several steps, and an agent that begins anew."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Hashable
from typing import TYPE_CHECKING

from mast_trace.semconv import Termination
from mast_trace.trajectory import Step
from mast_trace_judge.local.acts import (
    by_user,
    call_key,
    failed,
    finding,
    first_line,
    is_said,
    is_tool,
    ordinary,
)
from mast_trace_judge.local.dates import days
from mast_trace_judge.local.rules._registry import rule
from mast_trace_judge.local.stated import acts, amounts, arguments, ids, transacts
from mast_trace_judge.verdict import Evidence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mast_trace.trajectory import Trajectory
    from mast_trace_judge.verdict import ModeFinding

_LONGEST = 8
"""Steps of a cycle."""
_ROUNDS, _OF_TALK = 3, 4
_CODE = re.compile(r"\w*\d\w*")
_SAID = 2
"""Values that a message has in each round."""
_OF_ROUNDS = re.compile(
    r"\b(?:rounds?|\w+ times|repeat\w*|hold|guard\w*|wait\w*|watch\w*|monitor\w*|keep|poll\w*|drill\w*|practi[sc]e|rehears\w*)\b",
    re.IGNORECASE,
)
"""A task with one of these words may be one of equal rounds."""
_UNDOES = re.compile(r"(?:cancel|undo|delete|remove|void|revert|release)", re.IGNORECASE)
_TWICE = re.compile(
    r"\b(?:twice|again|second|two|three|four|several|every|each|times|repeat\w*|monthly|recurring)\b",
    re.IGNORECASE,
)
_LIMITS = frozenset([Termination.MAX_TURNS, Termination.RECURSION_LIMIT, Termination.BUDGET])


@rule("1.3", contradicts=True)
def cycle_until_limit(trajectory: Trajectory) -> list[ModeFinding]:
    """The run ends by a limit in a cycle of steps that brought nothing new in three rounds (heuristic).

    Definition: MAST 1.3, "unnecessary reiteration of previously completed steps". Steps are alike if
    agent, recipients, tool, arguments and result are, however a message is worded; two agents take part and call a
    tool. Those who only talk are often told how many turns to take: of a run with
    tools four rounds count in which one says the same two values. From the
    second round on no message has a date, a figure of three digits or an identifier that nothing before
    it holds, and the first round has some. The task asks for no rounds. The step in error is the first one of the second round, or the change right
    before it, which changed nothing.
    """
    if trajectory.termination_reason not in _LIMITS or _OF_ROUNDS.search(trajectory.task):
        return []
    steps = ordinary(trajectory)
    keys = [_key(step) for step in steps[-200:]]
    base = len(steps) - len(keys)
    for length in range(2, _LONGEST + 1):
        start = len(keys)
        while start > length and keys[start - 1] == keys[start - 1 - length]:
            start -= 1
        first = start - length
        rest = steps[base + start :]
        if (
            len({step.agent for step in rest}) > 1
            and any(map(is_tool, steps))
            and (any(map(is_tool, rest)) or _says_the_same(steps[base + first :], length))
            and len(keys) - first >= _ROUNDS * length
            and _brings_nothing(steps, base + start, length)
        ):
            again = base + start - acts(steps[base + start - 1])
            block = [steps[base + first], steps[again]]
            agents = ", ".join(dict.fromkeys(step.agent for step in rest[:length]))
            rounds = (len(keys) - first) // length
            why = f"{agents} go through the same {length} steps {rounds} times with nothing new, until the limit."
            told = [first_line(step) for step in block]
            return [finding("1.3", 0.7, Evidence.HEURISTIC, why, block, told)]
    return []


@rule("1.3", contradicts=True)
def done_twice(trajectory: Trajectory) -> list[ModeFinding]:
    """An agent does again what it has done with success, of which one is meant to be enough (heuristic).

    Definition: MAST 1.3. Both calls have the same arguments, two at least, and other results, and their tool's name
    begins with such a verb. Nothing was undone and no user has spoken in between; the task speaks of no number of times.
    """
    done: dict[Hashable, Step] = {}
    for step in () if _TWICE.search(trajectory.task) else trajectory.steps:
        if by_user(step) or (is_tool(step) and _UNDOES.match(step.tool)):
            done.clear()
        if not transacts(step) or failed(step):
            continue
        first = done.setdefault(call_key(step), step)
        # Results of one kind: both have done it. Other words may be of a refusal.
        other = first.text != step.text
        one_kind = _CODE.sub("", first.text) == _CODE.sub("", step.text)
        if first is not step and len(arguments(step)) > 1 and other and one_kind:
            why = f"{step.agent} calls {step.tool} again with the same arguments; it had succeeded."
            told = [first_line(first), first_line(step)]
            return [finding("1.3", 0.65, Evidence.HEURISTIC, why, [first, step], told)]
    return []


@rule("1.4", contradicts=True)
def began_anew(trajectory: Trajectory) -> list[ModeFinding]:
    """An agent that had been shown a part of the run is shown nothing of it in a later turn, and asks (heuristic).

    Definition: MAST 1.4, "unexpected context truncation, disregarding recent interaction history". Its
    turn was shown system prompts and the task alone, and its message has a question mark and no figure
    of three digits, identifier or date.
    """
    texts, own = trajectory.texts, defaultdict[str, list[Step]](list)
    informed: set[str] = set()
    for step in trajectory.steps:
        own[step.agent].append(step)
    for call in trajectory.invocations:
        if call.kind != "agent" or not call.input_ids or not own[call.agent]:
            continue
        told = zip(call.input_ids, call.input_roles, strict=False)
        if any(
            role != "system" and getattr(texts.get(each), "content", "") != trajectory.task
            for each, role in told
        ):
            informed.add(call.agent)
            continue
        if call.agent not in informed:
            continue
        place = bisect_left(own[call.agent], call.start, key=lambda step: step.start)
        said = next((s for s in own[call.agent][place : place + _LONGEST] if is_said(s)), None)
        asks = said is not None and "?" in said.text and not _values(said.text)
        if place and said is not None and asks and said.start <= call.end:
            why = f"{said.agent} was shown nothing of the run, in which it had spoken, and asks."
            return [finding("1.4", 0.65, Evidence.HEURISTIC, why, [said], [first_line(said)])]
    return []


def _key(step: Step) -> Hashable:
    if is_tool(step):
        return (*call_key(step), step.text, step.error)
    return step.agent, step.recipients


def _says_the_same(steps: Sequence[Step], length: int) -> bool:
    """Return whether one message of the round has some values in each of many rounds."""
    if len(steps) < _OF_TALK * length:
        return False
    rounds = ([_values(step.text) for step in steps[place::length]] for place in range(length))
    told = ([set[Hashable]().union(*values) for values in each] for each in rounds)
    return any(len(set.intersection(*each)) >= _SAID for each in told)


def _brings_nothing(steps: Sequence[Step], second: int, length: int) -> bool:
    """Return whether no message from the second round on has a value that nothing before it holds."""
    told = [f"{step.text}\n{step.arguments}" for step in steps[:second]]
    later = [step.text for step in steps[second:] if is_said(step)]
    if not any(map(_values, told[second - length :])):
        return False
    known = {value for text in told for each in _values(text) for value in each}
    return all(each & known for text in later for each in _values(text))


def _values(text: str) -> list[set[Hashable]]:
    """Return the readings of each date, identifier and figure of three digits in a text."""
    named: list[set[Hashable]] = [{reading[1:] for reading in day.readings} for day in days(text)]
    named += [{name} for name in ids(text)]
    return named + [{*each.readings} for each in amounts(text)]
