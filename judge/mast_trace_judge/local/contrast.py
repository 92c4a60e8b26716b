"""Contrast of a run with good runs of the same program: the first step that does what none of them does.

Compared are relations, and no sentences: who calls which tool, from where its arguments come, what is done again,
who writes to whom, which figures of a result a message takes over, and what comes before what. The same is asked of
each good run against the others. The kinds of difference by which good runs differ most from each other are left
out until one good run in ten at most would be accused.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from mast_trace.trajectory import StepKind
from mast_trace_judge.intervals import wilson
from mast_trace_judge.local.acts import call_key, failed, is_said, result_key
from mast_trace_judge.local.figures import figures
from mast_trace_judge.local.stated import (
    Known,
    acts,
    arguments,
    days,
    fields,
    ids,
    is_same,
    leaves,
    outside_dates,
    owner,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mast_trace.trajectory import Step, Trajectory
    from mast_trace_judge.local.figures import Figure

FEWEST: Final = 3
"""Good runs from which a contrast speaks: of fewer, nothing tells how much good runs differ."""
MOST_ACCUSED: Final = 0.1
"""Share of good runs that the same comparison may accuse."""
_CONSTANT: Final = 5
"""Good runs from which an argument that all give is more than chance."""
_RARE: Final = 15
"""Good runs from which an act of none of them is more than a rare branch: of 5, one in five runs may have it."""
_ORDER: Final = 8
"""Good runs from which the order of two calls is more than chance: in 5, it is the same in one of 16 cases."""
_UNKNOWN: Final = "none known"
_VALUES: Final = frozenset({"value", "truth"})
_UNUSUAL: Final = frozenset({"act", "origin", "again", "figure", "date", "identifier"})
"""Kinds of which a new one tells something. New messages, looks at something and failures are rare branches of good runs."""
_ACTIONS: Final = frozenset({"act", "look", "message"})
_DOTTED: Final = re.compile(r"(?<![\w.])(?!\d{1,2}\.\d{1,2}\.\d{4}\b)v?\d+(?:\.\d+){2,}(?!\w|\.\d)")
"""Numbers of versions and addresses, which are no dates."""
_MOST_DOTTED: Final = 20
"""Dotted numbers of a message that are looked for in all texts before it; a longer list is a listing."""
_LONGEST: Final = 8000
_NAME: Final = 5
"""Letters below which a word stands anywhere by chance."""
_DIGITS: Final = 3
"""Digits below which nearly every number stands in a run, or follows from what does, by chance."""
_SHORT: Final = 40
"""Characters of a value that is compared as such; longer ones are texts."""
_AGENT: Final = re.compile(" (?:calls|writes to) ")
_TRUTHS: Final = {"true": "true", "yes": "true", "false": "false", "no": "false"}
_ASKED: Final = "the last message to "
_IN_VAIN: Final = " in vain"
_MOST_STEPS: Final = 300
"""Steps of a run that are read; a difference behind them is not found."""


class Relation(NamedTuple):
    """Something that holds at a step of a run.

    Attributes:
        kind: of relation; good runs decide for each kind whether it tells anything.
        says: the relation in words.
        step: its index.
        of: the action that it belongs to; equal to ``says`` for the action itself.
    """

    kind: str
    says: str
    step: int
    of: str


@dataclass
class Relations:
    """The relations of a run.

    Attributes:
        trace_id: of the run.
        task: its task.
        all: the relations, in the order of the steps.
        counts: how often each holds.
        first: the first time of each action.
        before: the calls before that, with their numbers of times; before the end, and under ``""`` for the whole run,
            also the agents that have spoken.
        values: of arguments and results by their names, each with its first relation.
        taken: the places from which each action takes values over, by the relation that says so.
        open: the places from which values could be taken over, with the step of each: fields of results, and the last
            message to each agent.
        versions: of a good run's program, and of the run that is compared with it.
    """

    trace_id: str
    task: str
    all: list[Relation] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    first: dict[str, Relation] = field(default_factory=dict)
    before: dict[str, frozenset[str]] = field(default_factory=lambda: {"": frozenset()})
    values: dict[str, dict[str, Relation]] = field(default_factory=dict)
    taken: dict[str, dict[str, str]] = field(default_factory=dict)
    open: dict[str, int] = field(default_factory=dict)
    versions: tuple[str, str] = ("", "")

    def add(self, kind: str, says: str, step: int, of: str = "") -> None:
        """Add a relation; without ``of``, it is an action."""
        each = Relation(kind, says, step, of or says)
        self.all.append(each)
        self.counts[says] += 1
        if kind in _VALUES:
            name, _, value = says.partition("=")
            self.values.setdefault(name, {}).setdefault(value, each)
        elif not of:
            self.first.setdefault(says, each)
            self.before.setdefault(says, self.before[""])
            if kind not in {"message", "end"}:
                number, call = self.counts[says], says.removesuffix(_IN_VAIN)
                again = f"{call} {number} times" if number > 1 and kind != "failure" else call
                self.before[""] |= {again}

    @property
    def actions(self) -> int:
        """The number of actions, failed ones included."""
        return sum(each.says == each.of for each in self.all)

    def take(self, how: str, place: str, step: int, of: str) -> None:
        """Add that an action takes a value over from a place."""
        says = f"{how} {place}"
        self.taken.setdefault(of, {})[says] = place
        self.add("takes", says, step, of)

    def end(self) -> None:
        """Add the last message as an action of its own, before which all agents speak and all calls are made."""
        last = next((each for each in reversed(self.all) if each.kind == "message"), None)
        if last is None:
            return
        speak = [each for each in self.all if each.kind == "speaker"]
        says = f"{last.says} at the end"
        self.add("end", says, last.step)
        self.before[says] = self.before[""] | {each.says for each in speak}
        self.before[""] = self.before[says]


class FirstDifference(NamedTuple):
    """A difference of a run from all good ones.

    Attributes:
        step: index of the step.
        kind: of difference.
        why: one sentence, with the number of good runs.
        shown_by: the relation of good runs that shows it.
        good_run: the nearest good run that has it; empty if none has such a step.
        good_step: the step there.
    """

    step: int
    kind: str
    why: str
    shown_by: str = ""
    good_run: str = ""
    good_step: int = 0


def contrasted(run: Relations, good: Sequence[Relations]) -> FirstDifference | None:
    """Return the first difference of a run from all good runs; None if there is none that tells anything.

    Args:
        run: the relations of the run.
        good: those of good runs of the same program, the nearest first. Where they are of other versions than the
            run, the sentence is about that.
    """
    if len(good) < FEWEST:
        return None
    apart = [
        {each.kind for each in _differences(one, [*good[:number], *good[number + 1 :]])}
        for number, one in enumerate(good)
    ]
    loud: set[str] = set()
    for kind, _ in Counter(kind for kinds in apart for kind in sorted(kinds)).most_common():
        if sum(not kinds <= loud for kinds in apart) <= MOST_ACCUSED * len(good):
            break
        loud.add(kind)
    if len(good) < _RARE:
        loud.add("new act")
    told = [each for each in _differences(run, good) if each.kind not in loud]
    first = min(told, key=lambda each: each.step, default=None)
    if first is None:
        return None
    accused = sum(not kinds <= loud for kinds in apart)
    limit = wilson(accused, len(good))[1]
    why = (
        f"{first.why}. The same comparison sets {accused} of these {len(good)} good runs apart,"
        f" and of all good runs up to {limit:.0%}."
    )
    theirs, own = {each.versions[0] for each in good}, good[0].versions[1]
    if own not in theirs:
        named = ", ".join(sorted(each or _UNKNOWN for each in theirs))
        why = (
            f"All good runs are of another version ({named}, this run of {own or _UNKNOWN}): {why}"
        )
    for each in good:
        for relation in each.all:
            if relation.says == first.shown_by:
                return first._replace(why=why, good_run=each.trace_id, good_step=relation.step)
    return first._replace(why=why)


def _differences(run: Relations, good: Sequence[Relations]) -> Iterator[FirstDifference]:
    """Yield what a run does that no good run does, and what it does without something that all have there."""
    yield from _new(run, good)
    yield from _other_values(run, good)
    yield from _not_taken_over(run, good)
    yield from _not_before(run, good)


def _new(run: Relations, good: Sequence[Relations]) -> Iterator[FirstDifference]:
    having = Counter(says for other in good for says in other.counts)
    seen: defaultdict[str, list[int]] = defaultdict(list)
    for each in run.all:
        steps = seen[each.says]
        steps.append(each.step)
        if each.says not in having:
            # A new action tells by itself; its arguments do not, and need good runs that have it.
            if each.kind in _UNUSUAL and (each.says == each.of or having[each.of] >= FEWEST):
                why = f"`{each.says}`: in none of {len(good)} good runs"
                yield FirstDifference(each.step, f"new {each.kind}", why, each.of)
        elif each.kind in _ACTIONS and len(steps) > 2:
            most = max(other.counts[each.says] for other in good)
            if len(steps) != 2 * most + 1:
                continue
            why = f"`{each.says}` more than {most} times: in none of {len(good)} good runs"
            yield FirstDifference(steps[most], f"more {each.kind}", why, each.of)


def _other_values(run: Relations, good: Sequence[Relations]) -> Iterator[FirstDifference]:
    """Yield the values that are others than in all good runs, which agree, whatever their tasks."""
    tasks = {other.task for other in good}
    if len(tasks) == 1 and run.task not in tasks:
        return
    for name, each in run.values.items():
        usual = good[0].values.get(name, {}).keys()
        if not usual or any(other.values.get(name, {}).keys() != usual for other in good):
            continue
        if not all(map(_is_word, usual)):
            continue
        for value, relation in each.items():
            chance = relation.kind != "truth" and len(good) < _CONSTANT
            # A task may ask for another thing each time.
            if value not in usual and not chance and value.lower() not in run.task.lower():
                why = f"`{name}` = {value}: {' or '.join(sorted(usual))} {_in_all(good)}"
                yield FirstDifference(relation.step, relation.kind, why, f"{name}={min(usual)}")


def _not_taken_over(run: Relations, good: Sequence[Relations]) -> Iterator[FirstDifference]:
    """Yield what takes no value over from a place from which it does in all good runs."""
    for of in sorted(run.counts.keys() & good[0].taken.keys()):
        usual = set.intersection(*({*other.taken.get(of, ())} for other in good))
        for missing in sorted(usual - run.counts.keys()):
            known = run.open.get(good[0].taken[of][missing])
            if known is None:
                continue
            later = (each for each in run.all if each.says == of and each.step > known)
            # An action before the result could not take it over.
            if each := next(later, None):
                why = f"`{of}` without `{missing}`: with it {_in_all(good)}"
                yield FirstDifference(each.step, f"{each.kind} leaves out", why, missing)


def _not_before(run: Relations, good: Sequence[Relations]) -> Iterator[FirstDifference]:
    """Yield actions before which a call is missing that comes before them in all good runs."""
    lacking: defaultdict[str, list[Relation]] = defaultdict(list)
    # A longer run went on in vain and gave up: its end lacks something as a consequence.
    ends_early = run.actions < min(other.actions for other in good)
    for of, each in sorted(run.first.items(), key=lambda one: one[1].step):
        if all(of in other.before for other in good) and (each.kind != "end" or ends_early):
            usual = frozenset.intersection(*(other.before[of] for other in good))
            for missing in usual - run.before[of]:
                # Messages come in any order, and calls often.
                never = missing not in run.before[""]
                if missing != of and (never or (each.kind != "message" and len(good) >= _ORDER)):
                    lacking[missing].append(each)
    for missing, steps in sorted(lacking.items()):
        # The one who had to do it speaks too early, or somebody acts too early. Others may write at any time.
        agent = _AGENT.split(missing, 1)[0]
        early = (
            each for each in steps if each.kind == "act" or _AGENT.split(each.of, 1)[0] == agent
        )
        each = next(early, steps[0])
        why = f"`{each.of}` without `{missing}` before it: with it {_in_all(good)}"
        yield FirstDifference(each.step, f"too early {each.kind}", why, missing)


def _in_all(good: Sequence[Relations]) -> str:
    return f"in {len(good)} of {len(good)} good runs"


def relations(trajectory: Trajectory) -> Relations:
    """Return the relations of a run."""
    reading = _Reading(trajectory)
    for step in trajectory.read_steps[:_MOST_STEPS]:
        if step.kind is StepKind.TOOL and not step.synthetic:
            reading.read_tool(step)
        elif is_said(step):
            reading.read_message(step)
    reading.found.end()
    return reading.found


class _Reading:
    """Reads the relations of one run."""

    def __init__(self, trajectory: Trajectory) -> None:
        self.found = Relations(trajectory.trace_id, trajectory.task[:_LONGEST])
        self._known = Known(trajectory)
        self._steps = trajectory.steps
        self._low: list[str] = []
        # Results of calls; empty for calls that change something: twice is twice, whatever the result.
        self._made: dict[tuple[str, str, str], str] = {}
        # Those in the last message to each agent.
        self._asked: defaultdict[str, set[str]] = defaultdict(set)
        # The marks that each agent has heard, said or looked up.
        self._has: defaultdict[str, set[str]] = defaultdict(set)
        # The fields of results by the marks that stand in them.
        self._stands: defaultdict[str, set[str]] = defaultdict(set)
        # The last result of each tool that an agent has got and not written about.
        self._heard: defaultdict[str, dict[str, Step]] = defaultdict(dict)

    def read_tool(self, step: Step) -> None:
        of, add, at = f"{owner(step)} calls {step.tool}", self.found.add, step.index
        if failed(step):
            add("failure", of + _IN_VAIN, at)
            return
        changes, key = acts(step), call_key(step)
        add("act" if changes else "look", of, at)
        if self._made.get(key) in {"", result_key(step)}:
            add("again", f"{of} again in the same way", at, of)
        if changes:
            self._made = {each: result for each, result in self._made.items() if not result}
        self._made[key] = "" if changes else result_key(step)
        for name, value in leaves(arguments(step)):
            self._read_argument(step, of, name, value)
        self._heard[owner(step)][step.tool] = step
        text = step.text[:_LONGEST]
        parts = [(name, str(value)) for name, value in fields(text)] or [("a figure", text)]
        for name, part in parts:
            for mark in _marks(part):
                self._has[owner(step)].add(mark)
                self._stands[mark].add(f"{name} of {step.tool}")
                self.found.open.setdefault(f"{name} of {step.tool}", step.index)

    def _read_argument(self, step: Step, of: str, name: str, value: Any) -> None:
        given, add, at = f"{of} with {name}", self.found.add, step.index
        add("argument", given, at, of)
        if not self._holds(step, value):
            add("origin", f"{given} from nowhere", at, given)
        if isinstance(value, str | bool) and len(str(value)) <= _SHORT:
            add("value", f"{given}={value}", at, given)
        marks = _marks(str(value))
        places = set[str]().union(*(self._stands[each] for each in marks))
        if marks & self._asked[owner(step)]:
            places.add(f"{_ASKED}{owner(step)}")
        if not isinstance(value, str) and sum(map(str.isdigit, str(value))) < _DIGITS:
            places |= self.found.open.keys()  # so short a number may be from anywhere
        for place in sorted(places):
            self.found.take(f"{name} from", place, at, given)

    def read_message(self, step: Step) -> None:
        of, add, at = (
            f"{step.agent} writes to {', '.join(sorted(step.recipients))}",
            self.found.add,
            step.index,
        )
        add("message", of, at)
        if (speaks := f"{step.agent} speaks") not in self.found.counts:
            add("speaker", speaks, at, of)
        text = step.text[:_LONGEST]
        # A text that is not read whole may hold everything.
        whole, marks = len(step.text) <= _LONGEST, _marks(text)
        for each in step.recipients:
            self._asked[each] = marks
            self.found.open.pop(f"{_ASKED}{each}", None)
            if whole:
                self.found.open[f"{_ASKED}{each}"] = at
        # A message may leave out values that all receivers have heard, said or looked up before.
        receivers = step.recipients or ("",)
        new = {each for each in marks if any(each not in self._has[one] for one in receivers)}
        for each in (step.agent, *receivers):
            self._has[each] |= marks
        told = (self._stands[each] for each in new) if whole else [set(self.found.open)]
        for place in sorted(set[str]().union(*told)):
            self.found.take(f"{step.agent} tells", place, at, of)
        known = self._known.before(step)
        for result in self._heard.pop(step.agent, {}).values():
            for name, value in fields(result.text, f"{known.trajectory.task} {text}"):
                if truth := _TRUTHS.get(str(value).lower()):
                    says = f"{step.agent} goes on where {name} of {result.tool}={truth}"
                    add("truth", says, at, of)
        for kind in _from_nowhere(known, text):
            add(kind, f"{step.agent} states a new {kind}", at, of)

    def _holds(self, step: Step, value: Any) -> bool:
        """Return whether the run holds the value of an argument before, or values that it may be made of.

        The message by which the agent asks for the call is no origin.
        """
        asked = self._steps[step.index - 1] if step.index else step
        ask = asked.kind is not StepKind.TOOL and asked.agent == owner(step)
        known, text = self._known.before(asked if ask else step), str(value)
        if isinstance(value, bool) or value is None or (text.isalpha() and len(text) < _NAME):
            return True
        if isinstance(value, int | float):
            long = (
                each for each in figures(text) if sum(map(str.isdigit, each.literal)) >= _DIGITS
            )
            return all(map(known.has_figure, long))
        if days(text):
            return "date" not in _from_nowhere(known, text)
        self._low += [each.lower() for each in known.texts[len(self._low) :]]
        return any(text.lower() in each for each in self._low)


def _from_nowhere(known: Known, text: str) -> Iterator[str]:
    """Yield the kinds of values that a text states and the run neither holds before nor implies."""
    if not all(map(known.has_figure, _figures(text))):
        yield "figure"
    if any(
        not any(is_same(one, other) for one in day.readings for other in known.dates)
        for day in days(text)
    ):
        yield "date"
    if ids(text) - known.names or any(
        not any(each in other for other in known.texts)
        for each in _DOTTED.findall(text)[:_MOST_DOTTED]
    ):
        yield "identifier"


def _is_word(text: str) -> bool:
    return text.split() == [text]


def _figures(text: str) -> list[Figure]:
    plain = _DOTTED.sub(" ", text)
    return [each for each in outside_dates(plain) if sum(map(str.isdigit, each.literal)) >= 2]


def _marks(text: str) -> set[str]:
    """Return the figures, dates and identifiers of a text in one spelling."""
    dates = {f"date {one[1:]}" for day in days(text) for one in day.readings}
    return {f"{value:g}" for each in _figures(text) for value in each.as_one} | dates | _names(text)


def _names(text: str) -> set[str]:
    """Return the identifiers of a text, and the numbers of versions and addresses such as 3.72.1."""
    return {*_DOTTED.findall(text), *ids(text)}
