"""Relations that hold in a run, in words: what a contrast compares of it and of good runs."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from mast_trace.trajectory import StepKind
from mast_trace_judge.local.acts import by_user, call_key, failed, is_said, result_key
from mast_trace_judge.local.dates import days, is_same
from mast_trace_judge.local.figures import figures
from mast_trace_judge.local.formulas import A_FIGURE, Heard, mark, mark_of_date
from mast_trace_judge.local.measures import Quantity, measured
from mast_trace_judge.local.stated import (
    Known,
    acts,
    arguments,
    fields,
    ids,
    leaves,
    outside_dates,
    owner,
    transacts,
)
from mast_trace_judge.local.states import States

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from mast_trace.trajectory import Step, Trajectory
    from mast_trace_judge.local.figures import Figure
    from mast_trace_judge.local.formulas import Formula

_VALUES: Final = frozenset(
    {
        "value",
        "truth",
        "side",
        "unit",
        "heard unit",
        "source",
        "rank",
        "rank of two",
        "state",
        "whole",
    }
)
_DOTTED: Final = re.compile(r"(?<![\w.])(?!\d{1,2}\.\d{1,2}\.\d{4}\b)v?\d+(?:\.\d+){2,}(?!\w|\.\d)")
"""Numbers of versions and addresses, which are no dates."""
_CLOCK: Final = re.compile(r"(?<![\d:])\d{1,2}:\d{2}(?![\d:])")
"""Times of day, which are no figures."""
_MOST_DOTTED: Final = 20
"""Dotted numbers of a message that are looked for in all texts before it; a longer list is a listing."""
_LONGEST: Final = 8000
_NAME: Final = 5
"""Letters below which a word stands anywhere by chance."""
_DIGITS: Final = 3
"""Digits below which nearly every number stands in a run, or follows from what does, by chance."""
_FREE: Final = 2
"""Words above which an argument is a text of the agent's own; its values may stand in the run, and its words need not."""
_MOST_MEASURED: Final = 60
"""Figures of one measure that are remembered, and ten of a text: among many, one is another one in another unit by chance."""
_WORDS: Final = re.compile(r"[^\W\d_]+")
_SHORT: Final = 40
"""Characters of a value that is compared as such; longer ones are texts."""
_TRUTHS: Final = {"true": "true", "yes": "true", "false": "false", "no": "false"}
_ASKED: Final = "the last message to "
GIVEN: Final = "what the run was given"
"""The place of values that stand in a task, in a message of the user or in a result before any agent writes them."""
_IN_VAIN: Final = " in vain"
_CALCULATION: Final = re.compile(r"[\d\s.,()]+[+*/^-][\d\s.,()+*/^-]+")
_MOST_ARGUMENTS: Final = 50
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
        actions: the number of actions, failed ones included.
        counts: how often each holds.
        first: the first time of each action.
        before: the calls before that, with their numbers of times; before the end, and under ``""`` for the whole run,
            also the agents that have spoken.
        values: of arguments and results by their names, each with its first relation.
        taken: the places from which each action takes values over, by the relation that says so.
        open: the places from which values could be taken over, with the step of each: fields of results, and the last
            message to each agent.
        spared: what need not be taken over, because it is known, or may stand where the text was not read.
        short: the arguments with a number that is so short that it may be from anywhere.
        held: the named values that stand in an argument, by action and relation.
        computed: the names of the values that each formula takes, by action and formula.
        own: the step and the formulas of each figure and date that an action is the first to state.
        since: the step since which each value that a formula may take is known.
        states: all that each tool has said, in short.
        versions: of a good run's program, and of the run that is compared with it.
    """

    trace_id: str
    task: str
    all: list[Relation] = field(default_factory=list)
    actions: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    first: dict[str, Relation] = field(default_factory=dict)
    before: dict[str, frozenset[str]] = field(default_factory=lambda: {"": frozenset()})
    values: dict[str, dict[str, Relation]] = field(default_factory=dict)
    taken: dict[str, dict[str, str]] = field(default_factory=dict)
    open: dict[str, int] = field(default_factory=dict)
    spared: set[str] = field(default_factory=set)
    short: set[str] = field(default_factory=set)
    held: dict[str, dict[str, str]] = field(default_factory=dict)
    computed: dict[str, dict[str, tuple[str, ...]]] = field(default_factory=dict)
    own: dict[str, list[tuple[int, frozenset[str]]]] = field(default_factory=dict)
    since: dict[str, int] = field(default_factory=dict)
    states: dict[str, set[str]] = field(default_factory=dict)
    versions: tuple[str, str] = ("", "")

    def add(self, kind: str, says: str, step: int, of: str = "") -> None:
        """Add a relation; without ``of``, it is an action."""
        each = Relation(kind, says, step, of or says)
        self.all.append(each)
        self.counts[says] += 1
        self.actions += each.says == each.of
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

    def take(self, how: str, place: str, step: int, of: str) -> None:
        """Add that an action takes a value over from a place."""
        says = f"{how} {place}"
        self.taken.setdefault(of, {})[says] = place
        self.add("takes", says, step, of)

    def compute(
        self, how: str, formulas: Iterable[Formula], step: int, of: str, *, own: bool
    ) -> None:
        """Add the formulas of a value that an action is the first to state; a result that has it makes it no value of its own."""
        said = {f"{how} {each.says}": each.operands for each in formulas}
        self.computed.setdefault(of, {}).update(said)
        if own:
            self.own.setdefault(of, []).append((step, frozenset(said)))

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


def relations(trajectory: Trajectory) -> Relations:
    """Return the relations of a run."""
    reading = _Reading(trajectory)
    for step in trajectory.read_steps[:_MOST_STEPS]:
        if step.kind is StepKind.TOOL and not step.synthetic:
            reading.read_tool(step)
        elif by_user(step):
            reading.read_user(step)
        elif is_said(step):
            reading.read_message(step)
    return reading.end()


class _Reading:
    """Reads the relations of one run."""

    def __init__(self, trajectory: Trajectory) -> None:
        self.found = Relations(trajectory.trace_id, trajectory.task[:_LONGEST])
        self._known = Known(trajectory)
        self._values = Heard(self.found.task)
        self.found.since = self._values.since
        self._steps = trajectory.steps
        self._low: list[str] = []
        self._results = [
            (each.index, each.arguments.lower(), each.text[:_LONGEST].lower())
            for each in self._steps
            if each.kind is StepKind.TOOL and not failed(each)
        ]
        # Results of calls; empty for calls that change something: twice is twice, whatever the result.
        self._made: dict[tuple[str, str, str], str] = {}
        # Those in the last message to each agent.
        self._asked: defaultdict[str, set[str]] = defaultdict(set)
        self._request: defaultdict[str, str] = defaultdict(self.found.task.lower)
        # The marks that each agent has heard, said or looked up.
        self._has: defaultdict[str, set[str]] = defaultdict(set)
        # Those that the user and all agents have written.
        self._written = _marks(self.found.task)
        # The fields of results by the marks that stand in them.
        self._stands: defaultdict[str, set[str]] = defaultdict(set)
        self._latest: defaultdict[tuple[str, str, str], set[tuple[str, str]]] = defaultdict(set)
        self._measured: defaultdict[str, list[Quantity]] = defaultdict(list)
        self._words: set[str] = set()
        self._measure(self.found.task)
        # Texts in lower case, each with its step and with who or what has it.
        self._said = [(self.found.task.lower(), GIVEN, 0)]
        self._broken: defaultdict[int, set[str]] = defaultdict(set)
        self._holding: defaultdict[str, set[str]] = defaultdict(set)
        self._states = States()
        self.found.states = self._states.seen
        # The last result of each tool that an agent has got and not written about.
        self._heard: defaultdict[str, dict[str, Step]] = defaultdict(dict)

    def read_tool(self, step: Step) -> None:
        of, add, at = f"{owner(step)} calls {step.tool}", self.found.add, step.index
        if failed(step):
            add("failure", of + _IN_VAIN, at)
            self._states.fail(step)
            return
        changes, key = acts(step), call_key(step)
        add("act" if changes else "look", of, at)
        if self._made.get(key) in {"", result_key(step)}:
            add("again", f"{of} again in the same way", at, of)
        if changes:
            self._change(step, of)
        self._made[key] = "" if changes else result_key(step)
        self._pick(owner(step), step.arguments, at, of)
        for name, value in islice(leaves(arguments(step)), _MOST_ARGUMENTS):
            self._read_argument(step, of, name, value)
        self._heard[owner(step)][step.tool] = step
        text = step.text[:_LONGEST]
        parts = [(name, str(value)) for name, value in fields(text)] or [(A_FIGURE, text)]
        self._values.result(step, text, parts)
        self._states.note(step, parts if text.lstrip()[:1] in ("{", "[") else [("", text)])
        # The same call again: what it returned before is no longer so.
        for each, place in self._latest.pop(key, ()):
            self._stands[each].discard(place)
            self._holding[place].discard(each)
        for name, part in parts:
            for each in _marks(part):
                self._has[owner(step)].add(each)
                if "." in each and _is_number(each):
                    self._broken[int(float(each))].add(each)
                self._stands[each].add(f"{name} of {step.tool}")
                self._holding[f"{name} of {step.tool}"].add(each)
                self._latest[key].add((each, f"{name} of {step.tool}"))
                self.found.open.setdefault(f"{name} of {step.tool}", step.index)
        self._said.append((text.lower(), GIVEN, at))
        self._measure(text)

    def _change(self, step: Step, of: str) -> None:
        """Add how all things stand at an act, after which a look at them is a new one."""
        self._made = {each: result for each, result in self._made.items() if not result}
        for place, short in self._states.before(step.tool):
            says = f"{of} where {place} says={short}"
            if says not in self.found.counts:
                self.found.add("state", says, step.index, of)
        if transacts(step):
            self._states.go_on(owner(step), step.index)

    def end(self) -> Relations:
        """Return what was found, with what the run left undone."""
        for says, at in self._states.unrepaired():
            self.found.add("unrepaired", says, at)
        self.found.end()
        return self.found

    def _read_argument(self, step: Step, of: str, name: str, value: Any) -> None:
        given, add, at = f"{of} with {name}", self.found.add, step.index
        add("argument", given, at, of)
        if not self._holds(step, value):
            add("origin", f"{given} from nowhere", at, given)
        if isinstance(value, str | bool) and len(str(value)) <= _SHORT:
            add("value", f"{given}={value}", at, given)
        if isinstance(value, str) and _NAME <= len(value) <= _SHORT and not days(value):
            first = ((place, since) for said, place, since in self._said if value.lower() in said)
            for place, since in islice(first, 1):
                add("source", f"{given}, first seen in={place}", since, given)
        if _is_prose(str(value)):
            return
        short = not isinstance(value, str) and sum(map(str.isdigit, str(value))) < _DIGITS
        if short:
            self.found.short.add(given)
        places = self._places(step, _marks(str(value)))
        for place in () if short else sorted(places):
            self.found.take(f"{name} from", place, at, given)
        self._compute(owner(step), f"{name} is", str(value), at, given)
        for place in self._values.names(owner(step), str(value)):
            self.found.held.setdefault(given, {})[f"{name} has {place}"] = place
            add("takes", f"{name} has {place}", at, given)

    def _places(self, step: Step, marks: set[str]) -> set[str]:
        """Return the places from which the values of an argument may be; new ones are no repair of a call that failed."""
        if marks - self._stands.keys() - self._written:
            self._states.go_on(owner(step), step.index)
        places = set[str]().union(*(self._stands[each] for each in self._rounded(marks)))
        if marks & self._asked[owner(step)]:
            places.add(f"{_ASKED}{owner(step)}")
        return places

    def _rounded(self, marks: set[str]) -> set[str]:
        """Return marks with those of results that are rounded to one of them."""
        whole = {int(each) for each in marks if each.isdigit()}
        return marks.union(*(self._broken[each - less] for each in whole for less in (0, 1)))

    def read_user(self, step: Step) -> None:
        """Remember what the user says: it is given, and no action of an agent."""
        text = step.text[:_LONGEST]
        self._said.append((text.lower(), GIVEN, step.index))
        self._measure(text)
        self._written |= _marks(text)
        self._values.message(step)
        for each in step.recipients:
            self._request[each] = text.lower()

    def read_message(self, step: Step) -> None:
        # AG2's helpers, which have no model, are no readers.
        to = ", ".join(sorted(each for each in step.recipients if not each.startswith("_")))
        of, add, at = f"{step.agent} writes to {to or 'all'}", self.found.add, step.index
        add("message", of, at)
        if (speaks := f"{step.agent} speaks") not in self.found.counts:
            add("speaker", speaks, at, of)
        text = step.text[:_LONGEST]
        self._pick(step.agent, text, at, of)
        self._compute(step.agent, f"{step.agent} states", text, at, of)
        for place, whole in self._states.told(text):
            add("whole", f"{of} with entries of {place}={whole}", at, of)
        self._states.go_on(step.agent, at)
        for measure, unit in sorted({each[:2] for each in measured(text)}):
            kind = "heard unit" if unit in self._words else "unit"
            add(kind, f"{step.agent} states {measure} in={unit}", at, of)
        self._tell(step, of, text)
        self._values.message(step)
        self._said.append((text.lower(), of, at))
        known = self._known.before(step)
        for result in self._heard.pop(step.agent, {}).values():
            for name, value in fields(result.text, f"{known.trajectory.task} {text}"):
                if truth := _TRUTHS.get(str(value).lower()):
                    says = f"{step.agent} goes on where {name} of {result.tool}={truth}"
                    add("truth", says, at, of)
        for kind in _from_nowhere(known, text, self._measured):
            add(kind, f"{step.agent} states a new {kind}", at, of)

    def _tell(self, step: Step, of: str, text: str) -> None:
        """Add the places from which a message takes values over, and remember what its receivers hear."""
        # A text that is not read whole may hold everything.
        whole, marks = len(step.text) <= _LONGEST, _marks(text)
        # A value in another unit stands where the first one does.
        for new in measured(text):
            for old in filter(new.is_converted, self._measured[new.measure]):
                marks.add(mark(old.value))
                self._stands[mark(new.value)] |= self._stands[mark(old.value)]
        self._measure(text)
        for each in step.recipients:
            self._asked[each] = marks
            self._request[each] = text.lower()
            self.found.open.pop(f"{_ASKED}{each}", None)
            if whole:
                self.found.open[f"{_ASKED}{each}"] = step.index
        receivers = step.recipients or ("",)
        common = set[str].intersection(*(self._has[each] for each in receivers))
        for each in (step.agent, *receivers):
            self._has[each] |= marks
        self._written |= marks
        for place, there in sorted(self._holding.items()):
            if there & marks:
                self.found.take(f"{step.agent} tells", place, step.index, of)
            # A message may leave out values that all receivers have heard, said or looked up before.
            elif there <= common | marks:
                self.found.spared.add(f"{step.agent} tells {place}")
        if not whole:
            self.found.spared |= {f"{step.agent} tells {place}" for place in self.found.open}

    def _measure(self, text: str) -> None:
        """Remember figures with units, and all words: a unit is heard, too, where it stands alone."""
        for each in measured(text):
            there = self._measured[each.measure]
            if len(there) < _MOST_MEASURED and each not in there:
                there.append(each)
        self._words |= {*_WORDS.findall(text.lower())}

    def _compute(self, agent: str, how: str, text: str, at: int, of: str) -> None:
        for marks, formulas in self._values.formulas(agent, text, self._written):
            own = not any(each in self._stands for each in marks)
            self.found.compute(how, formulas, at, of, own=own)

    def _pick(self, agent: str, text: str, at: int, of: str) -> None:
        """Add the traits of the rows that an agent picks from the results before."""
        for tool, (_, listing) in self._values.listings.items():
            row = listing.pick(text)
            if row is None:
                continue
            self._values.row(agent, tool, row)
            heard = {
                place: word
                for place, word in self._values.words.items()
                if not place.endswith(f" of {tool}")
            }
            asked = f"{self._request[agent]} {self.found.task.lower()}"
            for trait in listing.traits(row, asked, heard):
                says = f"the row of {tool} that {agent} picks has {trait.name}={trait.value}"
                self.found.add(trait.kind, says, at, of)

    def _holds(self, step: Step, value: Any) -> bool:
        """Return whether the run holds the value of an argument before, or values that it may be made of.

        The message by which the agent asks for the call is no origin.
        """
        asked = self._steps[step.index - 1] if step.index else step
        ask = asked.kind is not StepKind.TOOL and asked.agent == owner(step)
        known, text = self._known.before(asked if ask else step), str(value)
        low = text.lower()
        if isinstance(value, bool) or value is None or (text.isalpha() and len(text) < _NAME):
            return True
        if _is_prose(text):
            # A file or a letter is the agent's own.
            return "\n" in text.strip() or not any(_from_nowhere(known, text, self._measured))
        if days(text):
            return "date" not in _from_nowhere(known, text, self._measured)
        if isinstance(value, int | float) or _CALCULATION.fullmatch(text):
            long = (
                each for each in figures(text) if sum(map(str.isdigit, each.literal)) >= _DIGITS
            )
            return all(map(known.has_figure, long))
        self._low += [each.lower() for each in known.texts[len(self._low) :]]
        # A value that another call returns later was right, wherever the agent had it from.
        later = (each for at, given, each in self._results if at > step.index and low not in given)
        return any(low in each for each in (*self._low, *later))


def _from_nowhere(
    known: Known, text: str, before: Mapping[str, Sequence[Quantity]]
) -> Iterator[str]:
    """Yield the kinds of values that a text states and the run neither holds before nor implies."""
    converted = {
        each.value
        for each in measured(text)
        if any(map(each.is_converted, before.get(each.measure, ())))
    }
    new = (each for each in _figures(text) if not known.has_figure(each))
    if any(each.as_one.isdisjoint(converted) for each in new):
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


def _is_prose(text: str) -> bool:
    return sum(map(str.isalpha, text.split())) > _FREE


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).isdigit()


def _figures(text: str) -> list[Figure]:
    plain = _CLOCK.sub(" ", _DOTTED.sub(" ", text))
    return [each for each in outside_dates(plain) if sum(map(str.isdigit, each.literal)) >= 2]


def _marks(text: str) -> set[str]:
    """Return the figures, dates and identifiers of a text in one spelling."""
    dates = {mark_of_date(one) for day in days(text) for one in day.readings}
    return {mark(value) for each in _figures(text) for value in each.as_one} | dates | _names(text)


def _names(text: str) -> set[str]:
    """Return the identifiers of a text, and the numbers of versions and addresses such as 3.72.1."""
    return {*_DOTTED.findall(text), *ids(text)}
