"""Contrast of a run with good runs of the same program: the first step that does what none of them does.

Compared are relations, and no sentences: who calls which tool, from where its arguments come, what is done again,
who writes to whom, which figures of a result a message takes over, which entries of a list it leaves out, which row of
a listing it picks, by which formula and in which unit it states a figure, what comes before what, and how things
stood then. The same is asked of each good run against the others. The kinds of difference by which good runs differ
most from each other are left out until one good run in ten at most would be accused.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from mast_trace_judge.local.relations import GIVEN
from mast_trace_judge.local.stated import deals

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mast_trace_judge.local.relations import Relation, Relations

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
_APART: Final = {20: 0.03, 8: 0.1, 5: 0.14, FEWEST: 0.2}
"""Share of healthy runs of new programs that were set apart, by the number of good runs (benchmarks/contrast/README.md). A thing that all
stored runs have by chance sets none of them apart, so that they tell too little of it themselves.
"""
_UNKNOWN: Final = "none known"
_AGREE: Final = {
    "truth": FEWEST,
    **dict.fromkeys(("value", "side", "unit", "heard unit", "source", "rank", "whole"), _CONSTANT),
    **dict.fromkeys(("rank of two", "state"), _ORDER),
}
"""Good runs from which a value that all have is more than chance, by its kind."""
_UNUSUAL: Final = frozenset(
    {"act", "origin", "again", "figure", "date", "identifier", "unrepaired"}
)
"""Kinds of which a new one tells something. New messages, looks at something and failures are rare branches of good runs."""
_ACTIONS: Final = frozenset({"act", "look", "message"})
_AGENT: Final = re.compile(" (?:calls|writes to) ")


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
    share = next(share for number, share in _APART.items() if number <= len(good))
    why = (
        f"{first.why}. The same comparison sets {sum(not kinds <= loud for kinds in apart)} of these"
        f" {len(good)} good runs apart, and set {share:.0%} of the healthy runs of new programs apart."
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
    yield from _not_computed(run, good)
    yield from _not_before(run, good)


def _new(run: Relations, good: Sequence[Relations]) -> Iterator[FirstDifference]:
    seen: defaultdict[str, list[int]] = defaultdict(list)
    for each in run.all:
        steps = seen[each.says]
        steps.append(each.step)
        if not any(each.says in other.counts for other in good):
            # A new action tells by itself; its arguments do not, and need good runs that have it.
            having = sum(each.of in other.counts for other in good)
            if each.kind in _UNUSUAL and (each.says == each.of or having >= FEWEST):
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
        if not usual or each.keys() <= usual:
            continue
        theirs = [other.values.get(name, {}) for other in good]
        if any(one.keys() != usual for one in theirs):
            continue
        kinds = {relation.kind for one in (each, *theirs) for relation in one.values()}
        if len(good) < max(_AGREE[kind] for kind in kinds):
            continue
        if "value" in kinds and any(len(one.split()) != 1 for one in usual):
            continue
        for value, relation in each.items():
            if value not in usual and _tells(relation, value, run, good):
                why = f"`{name}` = {value}: {' or '.join(sorted(usual))} {_in_all(good)}"
                yield FirstDifference(relation.step, relation.kind, why, f"{name}={min(usual)}")


def _tells(relation: Relation, value: str, run: Relations, good: Sequence[Relations]) -> bool:
    """Return whether a value that no good run has tells something."""
    if relation.kind.startswith("rank"):
        return value == "no"  # all good runs pick the best row
    if relation.kind == "whole":
        return value == "some"
    if relation.kind == "state":
        # A good run that found things so has changed them before it went on.
        place = relation.says.partition("=")[0].rpartition(" where ")[2].removesuffix(" says")
        return any(value in other.states.get(place, ()) for other in good)
    if relation.kind == "source":
        # The words of a program are in all good runs, wherever else they stand first.
        theirs = [other.values.get(relation.of, {}) for other in good]
        own = run.values.get(relation.of, {})
        return value != GIVEN and not all(each in one for each in own for one in theirs)
    if relation.kind in {"truth", "side", "heard unit"}:
        return relation.kind != "heard unit"
    # A task may ask for another value each time.
    named = re.compile(rf"(?<![^\W\d_]){re.escape(value)}", re.IGNORECASE)
    return not named.search(run.task) or all(named.search(other.task) for other in good)


def _not_taken_over(run: Relations, good: Sequence[Relations]) -> Iterator[FirstDifference]:
    """Yield what takes no value over from a place from which it does in all good runs."""
    for of, missing, known in _missing(run, good):
        # An action before the result could not take it over. Else it is the one that does in a good run, or
        # what its agent says instead.
        later = [each for each in run.all if each.says == of and each.step > known]
        place = max(0, _place(good[0], of, missing) - run.counts[of] + len(later))
        agent = f"{_AGENT.split(of, 1)[0]} writes to"
        instead = (
            each
            for each in run.all
            if later and each.step > later[-1].step and each.says.startswith(agent)
        )
        for each in later[place : place + 1] or [*islice(instead, 1)] or later[-1:]:
            why = f"`{of}` without `{missing}`: with it {_in_all(good)}"
            yield FirstDifference(each.step, f"{each.kind} leaves out", why, missing)


def _missing(run: Relations, good: Sequence[Relations]) -> Iterator[tuple[str, str, int]]:
    """Yield actions, what they take over in all good runs and not here, and the step since which it could be."""
    taking = {of for one in good[:FEWEST] for way in (one.taken, one.held) for of in way}
    for of in sorted((run.counts.keys() & taking) - run.short):
        long = [one for one in good if of not in one.short]
        ways = [(run.open, [one.taken for one in long if len(long) >= FEWEST])]
        ways.append((run.since, [one.held for one in good if len(good) >= _CONSTANT]))
        for since, theirs in ways:
            for missing, place in theirs[0].get(of, {}).items() if theirs else ():
                there = place in since and missing not in run.counts and missing not in run.spared
                if there and all(missing in one.get(of, ()) for one in theirs):
                    yield of, missing, since[place]


def _place(run: Relations, of: str, says: str) -> int:
    """Return the number of times that a run takes an action before the one of which a relation holds first."""
    step = next(each.step for each in run.all if each.says == says)
    return sum(each.says == of and each.step < step for each in run.all)


def _not_computed(run: Relations, good: Sequence[Relations]) -> Iterator[FirstDifference]:
    """Yield what states a value of its own by no formula of good runs, where all compute one by the same formula."""
    if len(good) < _CONSTANT:
        return
    for of in sorted(run.own.keys() & good[0].computed.keys()):
        own, theirs = run.computed[of], [other.computed.get(of, {}) for other in good]
        always = {
            says
            for says, values in theirs[0].items()
            # A program may add as many days to each date, and five runs by chance.
            if (len(values) > 1 or len(good) >= _ORDER) and all(says in each for each in theirs)
        }
        missing = min(
            always - own.keys(),
            key=lambda says: (len(theirs[0][says]) == 1, len(says), says),
            default="",
        )
        for step, formulas in run.own[of] if missing else ():
            # A factor or a number of days that another run had is chance.
            usual = (each for each in formulas if each in always or len(own[each]) > 1)
            values = theirs[0][missing]
            if all(run.since.get(each, step) < step for each in values) and not any(
                each in computed for each in usual for computed in theirs
            ):
                why = f"`{of}` without `{missing}`: with it {_in_all(good)}"
                yield FirstDifference(step, "other formula", why, of)


def _not_before(run: Relations, good: Sequence[Relations]) -> Iterator[FirstDifference]:
    """Yield actions before which a call is missing that comes before them in all good runs."""
    lacking: defaultdict[str, list[Relation]] = defaultdict(list)
    # A longer run went on in vain and gave up: its end lacks something as a consequence.
    ends_early = run.actions < min(other.actions for other in good)
    for of, each in sorted(run.first.items(), key=lambda one: one[1].step):
        # Calls and messages may come in any order, but for what moves money or goods.
        ordered = len(good) >= _ORDER and each.kind == "act" and deals(of.rpartition(" ")[2])
        if all(of in other.before for other in good) and (each.kind != "end" or ends_early):
            usual = frozenset.intersection(*(other.before[of] for other in good))
            for missing in usual - run.before[of]:
                if missing != of and (ordered or missing not in run.before[""]):
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
