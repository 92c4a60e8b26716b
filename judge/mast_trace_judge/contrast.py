"""Contrast of a run with good runs of the same program: the first step that does what none of them does.

Compared are relations, and no sentences: who calls which tool, from where its arguments come, what is done again,
who writes to whom, what a message takes over from results, and what happens before what. The same is asked of each
good run against the others: a kind of difference by which more than one good run in ten would be accused says
nothing, and neither does a contrast that accuses more than one in ten.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from mast_trace.trajectory import StepKind
from mast_trace_judge.local.figures import figures
from mast_trace_judge.local.rules._evidence import call_key, failed, is_said, result_key
from mast_trace_judge.local.rules._facts import (
    Known,
    acts,
    arguments,
    days,
    fields,
    ids,
    leaves,
    owner,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mast_trace.trajectory import Step, Trajectory

FEWEST: Final = 3
"""Good runs from which a contrast speaks: of fewer, nothing tells how much good runs differ."""
MOST_ACCUSED: Final = 0.1
"""Share of good runs that a kind of difference may accuse."""
_CONSTANT: Final = 5
_FEW: Final = 10
"""Good runs below which a new action may well be a rare branch that none of them took."""
_RARE: Final = frozenset({"message", "tool", "argument", "failure"})
_COMPARED: Final = frozenset({"value", "truth", "result", "passes"})
"""Kinds of which a new one is nothing unusual: only other values and missing ones are."""
_LONGEST: Final = 8000
_NAME: Final = 5
_SHORT: Final = 40
"""Characters of a value that is compared as such; longer ones are texts."""
_AGENT: Final = re.compile(" (?:calls|writes to) ")
_TRUTHS: Final = {"true": "true", "yes": "true", "false": "false", "no": "false"}
_IN_VAIN: Final = " in vain"
_Any = TypeVar("_Any")


class Relation(NamedTuple):
    """Something that holds at a step of a run.

    Attributes:
        kind: of relation; good runs decide for each kind whether it tells anything.
        says: the relation in words.
        step: its index.
        of: the action of that step; equal to ``says`` for the action itself.
    """

    kind: str
    says: str
    step: int
    of: str


@dataclass(frozen=True)
class Relations:
    """The relations of a run.

    Attributes:
        trace_id: of the run.
        task: its task.
        all: the relations, in the order of the steps.
        open: what messages could have taken over from results, as relations say it.
    """

    trace_id: str
    task: str
    all: tuple[Relation, ...]
    open: frozenset[str]


@dataclass(frozen=True)
class FirstDifference:
    """The first difference of a run from all good ones.

    Attributes:
        step: index of the step.
        why: one sentence.
        good: good runs that were read.
        accused: of these, the ones that the same kinds of difference set apart from the others.
        good_run: a good run that shows it.
        good_step: the step there; None if it has no such step.
    """

    step: int
    why: str
    good: int
    accused: int
    good_run: str = ""
    good_step: int | None = None


class _Difference(NamedTuple):
    step: int
    kind: str
    why: str
    shown_by: str
    """The relation of good runs to look at."""


def contrasted(run: Relations, good: Sequence[Relations]) -> FirstDifference | None:
    """Return the first difference of a run from all good runs; None if there is none that tells anything.

    Args:
        run: the relations of the run.
        good: those of good runs of the same program and version, the nearest first.
    """
    if len(good) < FEWEST or not run.all:
        return None
    few = True
    apart = [
        {each.kind for each in _differences(one, [*good[:number], *good[number + 1 :]], few=few)}
        for number, one in enumerate(good)
    ]
    loud: set[str] = set()
    # The kinds by which good runs differ most say nothing, until few enough good runs would be accused.
    for kind, _ in [*Counter(kind for kinds in apart for kind in kinds).most_common(), ("", 0)]:
        accused = sum(not kinds <= loud for kinds in apart)
        if accused <= MOST_ACCUSED * len(good):
            break
        loud.add(kind)
    told = [each for each in _differences(run, good, few=few) if each.kind not in loud]
    if not told:
        return None
    first = min(told, key=lambda each: each.step)
    shown = [(one.trace_id, each.step) for one in good for each in one.all if each.says == first.shown_by]
    good_run, good_step = shown[0] if shown else (good[0].trace_id, None)
    return FirstDifference(first.step, first.why, len(good), accused, good_run, good_step)


def _differences(run: Relations, good: Sequence[Relations], *, few: bool) -> Iterator[_Difference]:
    """Yield what a run does that no good run does, or does without what all good runs do with it."""
    yield from _new(run, good, few=few)
    yield from _other_values(run, good)
    yield from _missing(run, good, few=few)


def _new(run: Relations, good: Sequence[Relations], *, few: bool) -> Iterator[_Difference]:
    known = {each.says for other in good for each in other.all}
    counts = [Counter(each.says for each in other.all) for other in good]
    seen: defaultdict[str, list[int]] = defaultdict(list)
    none = f"in none of {len(good)} good runs"
    for each in run.all:
        seen[each.says].append(each.step)
        if each.says not in known:
            # A new action tells by itself; its arguments do not.
            told = each.says == each.of or (each.of in known and each.kind not in _COMPARED)
            if told and not (few and each.kind in _RARE):
                yield _Difference(each.step, f"new {each.kind}", f"{each.says}, {none}", each.of)
        elif each.says == each.of:
            most = max(count[each.says] for count in counts)
            if len(seen[each.says]) == 2 * most + 1:
                why = f"{each.says} more than {most} times, {none}"
                yield _Difference(seen[each.says][most], f"more {each.kind}", why, each.of)


def _other_values(run: Relations, good: Sequence[Relations]) -> Iterator[_Difference]:
    """Yield arguments that are the same in all good runs, whatever their tasks, and another one here."""
    tasks = {other.task for other in good}
    if len(tasks) == 1 and run.task not in tasks:
        return
    values = [_by_name(other) for other in good]
    for name, each in _by_name(run).items():
        known = [other.get(name, {}).keys() for other in values]
        if known[0] and all(one == known[0] for one in known):
            for value, relation in each.items():
                # Values of the world may agree by chance.
                chance = relation.kind == "result" and len(good) < _CONSTANT
                if value not in known[0] and not chance:
                    usual = " or ".join(sorted(known[0]))
                    why = f"{name} is {value}, and {usual} in {len(good)} of {len(good)} good runs"
                    yield _Difference(relation.step, f"other {relation.kind}", why, f"{name}={min(known[0])}")


def _by_name(run: Relations) -> dict[str, dict[str, Relation]]:
    found: defaultdict[str, dict[str, Relation]] = defaultdict(dict)
    for each in run.all:
        if each.kind in {"value", "truth", "result"}:
            name, _, value = each.says.partition("=")
            found[name].setdefault(value, each)
    return found


def _missing(run: Relations, good: Sequence[Relations], *, few: bool) -> Iterator[_Difference]:
    """Yield the steps before which, or at which, something is missing that all good runs have there."""
    before = _shared([_before(other) for other in good])
    beside = _shared([_beside(other) for other in good])
    own, ours = _before(run), _beside(run)
    all_of = f"in {len(good)} of {len(good)} good runs"
    told = {each.says for each in run.all}
    before.pop("", None)
    first = {each.of: each for each in reversed(run.all) if each.says == each.of}
    lacking: defaultdict[str, list[Relation]] = defaultdict(list)
    for each in sorted(first.values(), key=lambda each: each.step):
        for missing in before.get(each.of, frozenset()) - own[each.of]:
            # Messages come in any order.
            if missing != each.of and (each.kind != "message" or missing not in own[""]):
                lacking[missing].append(each)
        for kind, missing in sorted(beside.get(each.of, frozenset()) - ours.get(each.of, frozenset())):
            if missing in run.open and missing not in told:
                why = f"{each.says}, and not: {missing}; {all_of}"
                yield _Difference(each.step, f"lacks {kind}", why, missing)
    for missing, steps in sorted(lacking.items()):
        # Who had to do it speaks too early, or others act too early; a message of others may come at any time.
        own_or_act = (each for each in steps if each.kind == "act" or _by_one(each.of, missing))
        each = next(own_or_act, steps[0])
        why = f"{each.says}, and not before it: {missing}; {all_of}"
        yield _Difference(each.step, f"without before {each.kind}", why, missing)


def _by_one(of: str, other: str) -> bool:
    """Return whether two actions are of one agent."""
    return _AGENT.split(of, 1)[0] == _AGENT.split(other, 1)[0]


def _before(run: Relations) -> dict[str, frozenset[str]]:
    """Return the calls before the first time of each action, with their numbers of times; all under no action."""
    found: dict[str, frozenset[str]] = {}
    seen: set[str] = set()
    times: Counter[str] = Counter()
    for each in run.all:
        if each.says == each.of:
            found.setdefault(each.says, frozenset(seen))
            times[each.says] += 1
            if each.kind in {"tool", "act"}:
                number = times[each.says]
                seen.add(each.says if number == 1 else f"{each.says} {number} times")
            elif each.kind == "failure":
                seen.add(each.says.removesuffix(_IN_VAIN))
    return found | {"": frozenset(seen)}


def _beside(run: Relations) -> dict[str, frozenset[tuple[str, str]]]:
    """Return what holds at any step of each action."""
    found: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)
    for each in run.all:
        if each.kind == "passes":
            found[each.of].add((each.kind, each.says))
    return {of: frozenset(says) for of, says in found.items()}


def _shared(runs: Sequence[dict[str, frozenset[_Any]]]) -> dict[str, frozenset[_Any]]:
    """Return what all runs have with an action that all have."""
    return {
        of: frozenset.intersection(*(run[of] for run in runs))
        for of in runs[0]
        if all(of in run for run in runs)
    }


def relations(trajectory: Trajectory) -> Relations:
    """Return the relations of a run, in the order of its steps."""
    reading = _Reading(Known(trajectory))
    found = tuple(reading.all_of(trajectory))
    return Relations(trajectory.trace_id, trajectory.task[:_LONGEST], found, frozenset(reading.open))


@dataclass
class _Reading:
    """Reads the relations of one run."""

    known: Known
    open: set[str] = field(default_factory=set)
    _made: dict[tuple[str, str, str], str] = field(default_factory=dict)
    _said: dict[str, set[str]] = field(default_factory=dict)
    _stands: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    _heard: defaultdict[str, dict[str, Step]] = field(default_factory=lambda: defaultdict(dict))

    def all_of(self, trajectory: Trajectory) -> Iterator[Relation]:
        for step in trajectory.read_steps:
            if step.synthetic:
                continue
            if step.kind is StepKind.TOOL:
                yield from self._of_tool(step)
            elif is_said(step):
                yield from self._of_message(step)

    def _of_tool(self, step: Step) -> Iterator[Relation]:
        of = f"{owner(step)} calls {step.tool}"
        if failed(step):
            yield Relation("failure", of + _IN_VAIN, step.index, of + _IN_VAIN)
            return
        yield Relation("act" if acts(step) else "tool", of, step.index, of)
        key = call_key(step)
        if self._made.get(key) in {"", result_key(step)}:
            yield Relation("again", f"{of} again in the same way", step.index, of)
        if acts(step):
            # Afterwards other results are possible; done twice is twice, whatever the result.
            self._made = {each: result for each, result in self._made.items() if not result}
        self._made[key] = "" if acts(step) else result_key(step)
        known = self.known.before(step)
        for name, value in leaves(arguments(step)):
            given = f"{of} with {name}"
            yield Relation("argument", given, step.index, of)
            yield Relation("origin", f"{given} from {_origin(known, value)}", step.index, given)
            if isinstance(value, str | bool) and _is_word(str(value)):
                yield Relation("value", f"{given}={value}", step.index, given)
        self._heard[owner(step)][step.tool] = step
        text = step.text[:_LONGEST]
        for name, value in fields(text):
            for mark in _marks(str(value)):
                self._stands[mark].add(f"{name} of {step.tool}")
        for mark in _marks(text):
            if mark not in self._stands:
                self._stands[mark].add(f"a figure of {step.tool}")

    def _of_message(self, step: Step) -> Iterator[Relation]:
        of = f"{step.agent} writes to {', '.join(sorted(step.recipients)) or 'nobody'}"
        yield Relation("message", of, step.index, of)
        text = step.text[:_LONGEST]
        whole = len(step.text) <= _LONGEST
        known = self.known.before(step)
        marks = _marks(text)
        if len(marks) > 1 and marks == self._said.get(of):
            yield Relation("again", f"{of} again with the same figures", step.index, of)
        self._said[of] = marks
        for mark, places in self._stands.items():
            for place in places:
                says = f"{step.agent} tells {place}"
                self.open.add(says)
                # A text that is not read whole may take over everything.
                if mark in marks or not whole:
                    yield Relation("passes", says, step.index, of)
        for result in self._heard.pop(step.agent, {}).values():
            for name, value in fields(result.text, known.trajectory.task + text):
                if _is_word(read := str(value).lower()):
                    says = f"{step.agent} goes on where {name} of {result.tool}={_TRUTHS.get(read, read)}"
                    kind = "truth" if read in _TRUTHS else "result"
                    yield Relation(kind, says, step.index, of)
        for kind, named in _from_nowhere(known, text):
            yield Relation(kind, f"{step.agent} states {named} from nowhere", step.index, of)


def _origin(known: Known, value: Any) -> str:
    """Return whether the run holds the value of an argument before, or values that it may be made of."""
    if isinstance(value, bool) or value is None:
        return "the call"
    text = str(value)
    if isinstance(value, int | float):
        found = figures(text)
        if all(each.readings & known.values for each in found):
            return "the run"
        return "the run" if all(map(known.has_figure, found)) else "nowhere"
    if dates := days(text):
        read = {reading[1:] for reading in known.dates}
        held = all(any(one[1:] in read for one in day.readings) for day in dates)
    else:
        # Short words stand anywhere.
        held = text.isalpha() and len(text) < _NAME
        held = held or any(text.lower() in each.lower() for each in known.texts)
    return "the run" if held else "nowhere"


def _from_nowhere(known: Known, text: str) -> Iterator[tuple[str, str]]:
    """Yield the kinds of values that a text states and the run does not hold before."""
    inside = [range(day.start, day.end) for day in days(text)]
    outside = (each for each in figures(text) if not any(each.start in day for day in inside))
    if not all(known.has_figure(each) for each in outside if _large(each.literal)):
        yield "figure", "a figure"
    read = {reading[1:] for reading in known.dates}
    if not all(any(one[1:] in read for one in day.readings) for day in days(text)):
        yield "date", "a date"
    if ids(text) - known.names:
        yield "name", "an identifier"


def _is_word(text: str) -> bool:
    return len(text) <= _SHORT and text.split() == [text]


def _large(literal: str) -> bool:
    return sum(sign.isdigit() for sign in literal) >= 2


def _marks(text: str) -> set[str]:
    """Return the figures, dates and identifiers of a text in one spelling."""
    dates = days(text)
    marks = {f"date {one[1:]}" for day in dates for one in day.readings} | set(ids(text))
    return marks | {
        f"{value:g}"
        for each in figures(text)
        if _large(each.literal) and not any(day.start <= each.start < day.end for day in dates)
        for value in each.as_one
    }
