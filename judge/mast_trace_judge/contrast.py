"""Contrast of a run with good runs of the same program: the first step that does what none of them does.

Compared are relations, and no words: who calls which tool, from where its arguments come, what fails, who writes to
whom, of which results a message passes figures on, and what happens before what. The same is asked of each good run
against the others: a kind of difference by which more than one good run in ten would be accused says nothing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from mast_trace.trajectory import StepKind
from mast_trace_judge.local.arithmetic import derived
from mast_trace_judge.local.figures import figures, known_values
from mast_trace_judge.local.rules._evidence import call_key, failed, is_said
from mast_trace_judge.local.rules._facts import arguments, days, fields, ids, leaves, owner

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from mast_trace.trajectory import Step, Trajectory

FEWEST: Final = 3
"""Good runs from which a contrast speaks: of fewer, nothing tells how much good runs differ."""
MOST_ACCUSED: Final = 0.1
"""Share of good runs that a kind of difference may accuse."""
_FEW: Final = 10
"""Good runs below which a new action may well be a rare branch that none of them took."""
_RARE: Final = frozenset({"message", "tool", "names"})
_LONGEST: Final = 8000
_MOST_KNOWN: Final = 120
_END: Final = "the run ends"


class Relation(NamedTuple):
    """Something that holds at a step of a run.

    Attributes:
        kind: of relation; good runs decide for each kind whether it tells anything.
        says: the relation in words, without any value of the run.
        step: its index.
        of: the action of that step; equal to ``says`` for the action itself.
    """

    kind: str
    says: str
    step: int
    of: str


Relations = tuple[Relation, ...]


@dataclass(frozen=True)
class FirstDifference:
    """The first difference of a run from all good ones.

    Attributes:
        step: index of the step.
        why: one sentence.
        good: good runs that were read.
        accused: of these, the ones that the same kinds of difference set apart from the others.
    """

    step: int
    why: str
    good: int
    accused: int


class _Difference(NamedTuple):
    step: int
    kind: str
    why: str


def relations(trajectory: Trajectory) -> Relations:
    """Return the relations of a run, in the order of its steps."""
    return tuple(_relations(trajectory))


def contrasted(run: Relations, good: Sequence[Relations]) -> FirstDifference | None:
    """Return the first difference of a run from all good runs; None if there is none that tells anything.

    Args:
        run: the relations of the run.
        good: those of good runs of the same program and version.
    """
    if len(good) < FEWEST or not run:
        return None
    apart = [
        list(_differences(each, [*good[:number], *good[number + 1 :]]))
        for number, each in enumerate(good)
    ]
    by_kind = Counter(kind for found in apart for kind in {each.kind for each in found})
    loud = {kind for kind, times in by_kind.items() if times > MOST_ACCUSED * len(good)}
    accused = sum(any(each.kind not in loud for each in found) for found in apart)
    if accused > MOST_ACCUSED * len(good):
        return None
    told = [each for each in _differences(run, good) if each.kind not in loud]
    if not told:
        return None
    first = min(told, key=lambda each: each.step)
    return FirstDifference(first.step, first.why, len(good), accused)


def _differences(run: Relations, good: Sequence[Relations]) -> Iterator[_Difference]:
    """Yield what a run does that no good run does, or does without what all good runs do with it."""
    known = {each.says for other in good for each in other}
    counts = [Counter(each.says for each in other) for other in good]
    most = {says: max(each[says] for each in counts) for says in known}
    before = _shared(_before(other) for other in good)
    beside = _shared(_beside(other) for other in good)
    own, ours = _before(run), _beside(run)
    seen: Counter[str] = Counter()
    all_of = f"in none of {len(good)} good runs"
    for each in run:
        seen[each.says] += 1
        if each.says not in known:
            # A new action tells by itself; its arguments do not. It may be a rare branch, too.
            if (
                each.kind == "passes"
                or (each.says != each.of and each.of not in known)
                or (each.kind in _RARE and len(good) < _FEW)
            ):
                continue
            yield _Difference(each.step, f"new {each.kind}", f"{each.says}, {all_of}")
        elif each.says == each.of and seen[each.says] == most[each.says] + 2:
            steps = [one.step for one in run if one.says == each.says]
            why = f"{each.says} more than {most[each.says]} times, {all_of}"
            yield _Difference(steps[most[each.says]], f"more {each.kind}", why)
        if each.says == each.of and seen[each.says] == 1:
            for kind, missing in sorted(before.get(each.says, frozenset()) - own[each.says]):
                if kind != "tool":
                    continue  # Messages come in any order.
                why = f"{each.says}, and not before it: {missing}; in {len(good)} of {len(good)} good runs"
                yield _Difference(each.step, f"without {kind}", why)
            if len(good) < _FEW:
                continue
            for kind, missing in sorted(beside.get(each.says, frozenset()) - ours[each.says]):
                why = f"{each.says}, and not: {missing}; in {len(good)} of {len(good)} good runs"
                yield _Difference(each.step, f"lacks {kind}", why)


Pairs = dict[str, frozenset[tuple[str, str]]]


def _before(run: Relations) -> Pairs:
    """Return what comes before each action for the first time."""
    found: Pairs = {}
    seen: set[tuple[str, str]] = set()
    for each in run:
        if each.says == each.of:
            found.setdefault(each.says, frozenset(seen))
            seen.add((each.kind, each.says))
    return found


def _beside(run: Relations) -> Pairs:
    """Return what holds at any step of each action."""
    found: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)
    for each in run:
        found[each.of].add((each.kind, each.says))
    return {of: frozenset(says) for of, says in found.items()}


def _shared(runs: Iterable[Pairs]) -> Pairs:
    """Return what all runs with an action have with it."""
    found: Pairs = {}
    for run in runs:
        for of, says in run.items():
            found[of] = found[of] & says if of in found else says
    return found


@dataclass
class _Texts:
    """Figures, dates and names that a run holds up to a step, by where they stand."""

    task: str
    results: str = ""
    messages: str = ""

    def origin(self, value: Any) -> str:
        """Return where a value comes from."""
        for place, text in (
            ("the task", self.task),
            ("a result", self.results),
            ("a message", self.messages),
        ):
            if _holds(text, value):
                return place
        numbers = known_values([self.task, self.results, self.messages])
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if is_number and (len(numbers) > _MOST_KNOWN or derived(float(value), numbers)):
            return "a calculation"
        return "nowhere"


def _holds(text: str, value: Any) -> bool:
    if isinstance(value, bool) or value is None:
        return False
    if isinstance(value, int | float):
        return float(value) in known_values([text])
    dates = days(str(value))
    if dates:
        read = {one[1:] for day in days(text) for one in day.readings}
        return any(one[1:] in read for day in dates for one in day.readings)
    return str(value).lower() in text.lower()


def _relations(trajectory: Trajectory) -> Iterator[Relation]:
    texts = _Texts(trajectory.task[:_LONGEST])
    stands: defaultdict[str, set[str]] = defaultdict(set)
    made: set[tuple[str, str, str]] = set()
    for step in trajectory.read_steps:
        if step.synthetic:
            continue
        if step.kind is StepKind.TOOL:
            yield from _of_tool(step, texts, made)
            for name, value in fields(step.text[:_LONGEST]):
                for mark in _marks(str(value)):
                    stands[mark].add(f"{name} of {step.tool}")
            for mark in _marks(step.text[:_LONGEST]):
                if mark not in stands:
                    stands[mark].add(f"a figure of {step.tool}")
            texts.results += "\n" + step.text[:_LONGEST]
        elif is_said(step):
            yield from _of_message(step, texts, stands)
            texts.messages += "\n" + step.text[:_LONGEST]
    if trajectory.steps and trajectory.finished:
        yield Relation("end", _END, trajectory.steps[-1].index, _END)


def _of_tool(step: Step, texts: _Texts, made: set[tuple[str, str, str]]) -> Iterator[Relation]:
    of = f"{owner(step)} calls {step.tool}"
    yield Relation("tool", of, step.index, of)
    if (key := call_key(step)) in made and not failed(step):
        yield Relation("again", f"{of} again in the same way", step.index, of)
    if not failed(step):
        made.add(key)
    given = arguments(step)
    yield Relation("names", f"{of} with {', '.join(sorted(given)) or 'nothing'}", step.index, of)
    for name, value in leaves(given):
        origin = texts.origin(value)
        yield Relation("origin", f"{of}, {name} from {origin}", step.index, of)


def _of_message(step: Step, texts: _Texts, stands: Mapping[str, set[str]]) -> Iterator[Relation]:
    of = f"{step.agent} writes to {', '.join(sorted(step.recipients)) or 'nobody'}"
    yield Relation("message", of, step.index, of)
    text = step.text[:_LONGEST]
    before = texts.task + texts.results + texts.messages
    numbers = known_values([before])
    dates = {one[1:] for day in days(before) for one in day.readings}
    names = ids(before)
    # A text that is not read whole may pass on everything.
    passed = set().union(*stands.values()) if len(step.text) > _LONGEST else set()
    for mark in _marks(text):
        passed |= stands.get(mark, set())
    for each in sorted(passed):
        yield Relation("passes", f"{step.agent} tells {each}", step.index, of)
    if any(
        one.readings.isdisjoint(numbers)
        and _large(one.literal)
        and not _follows(one.as_one, numbers)
        for one in figures(text)
    ):
        yield Relation("figure", f"{step.agent} states a figure from nowhere", step.index, of)
    if any(all(one[1:] not in dates for one in day.readings) for day in days(text)):
        yield Relation("date", f"{step.agent} states a date from nowhere", step.index, of)
    if ids(text) - names:
        yield Relation("name", f"{step.agent} states an identifier from nowhere", step.index, of)


def _large(literal: str) -> bool:
    return sum(sign.isdigit() for sign in literal) >= 2


def _follows(values: Iterable[float], numbers: set[float]) -> bool:
    return len(numbers) > _MOST_KNOWN or any(derived(each, numbers) for each in values)


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
