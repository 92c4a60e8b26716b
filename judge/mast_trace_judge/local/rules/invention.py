"""Mode 2.6, reasoning-action mismatch, where a value comes from nowhere: in a report on results, or in an act."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

from mast_trace.trajectory.vocabulary import loaded
from mast_trace_judge.local.acts import (
    doubted,
    failed,
    finding,
    is_said,
    is_tool,
    name_words,
)
from mast_trace_judge.local.arithmetic import (
    COUNTED,
    TOO_MANY,
    derived,
    derived_twice,
    in_other_unit,
    near,
    reachable,
)
from mast_trace_judge.local.dates import days
from mast_trace_judge.local.figures import known_values
from mast_trace_judge.local.measures import measured
from mast_trace_judge.local.rules._registry import rule
from mast_trace_judge.local.stated import (
    Known,
    acts,
    amounts,
    arguments,
    fields,
    ids,
    owner,
    transacts,
)
from mast_trace_judge.local.texts import quote
from mast_trace_judge.verdict import Evidence

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mast_trace.trajectory import Step, Trajectory
    from mast_trace_judge.local.figures import Figure
    from mast_trace_judge.verdict import ModeFinding

_FEW = 8
"""Fields of a result, with more of which it is a listing."""
_SOUGHT = 20
"""Figures from nowhere, the first ones of a run, of which it is asked what they stand for."""
_SHORT = 40
"""Characters up to which a text is a value."""
_TELLS = 10
"""Figures below it stand everywhere."""
_CENT = 0.006
_MULTIPLES = range(1, COUNTED)
_SHARE = re.compile(
    r"%|\bper ?cent|\bprozent|\b(?:tax|vat|tip|discount|interest|margin|rate)\b", re.IGNORECASE
)
_CLAUSE = re.compile(r"(?:[^,;:.]|[,;:.](?!\s|$))*(?:[,;:.]|$)")
_PROPOSES = re.compile(
    r"\b(?:offer\w*|bid\w*|propos\w*|suggest\w*|counter\w*|how about|what about|make it|meet (?:me|you|us|in)|let us|let's|could|would"
    r"|might|should|may|shall|settle|deal|estimat\w*|guess|biete\w*|gebot|angebot|schlage|vorschlag|w[\u00fcu]rde\w*|k[\u00f6o]nnte\w*"
    r"|ofre\w*|ofert\w*|propon\w*|propuest\w*|podr\w*|offr\w*|pourr\w*)\b",
    re.IGNORECASE,
)
"""Words of what its speaker sets itself, such as a price for which it would buy."""
_LONG = 4
"""Letters from which a value is a name."""
_SETTLES = re.compile(r"pay|refund|charge|transfer|withdraw|deposit", re.IGNORECASE)
"""Beginnings of tools whose numbers are owed; how much is bought may be somebody's judgement."""
_COMPUTED = re.compile(
    r"\d[^\n=]{0,20}[-+*/x\u00d7\u00b7\u00f7\u2212][^\n=]{0,40}[=\u2248]\s*[^\w\s]?\s*$"
)
"""An expression before the figure that it makes."""
_EXPRESSION = 80
"""Characters of it that are looked at."""
_TECHNICAL = frozenset(
    [
        "id",
        "ref",
        "reference",
        "timeout",
        "ms",
        "gas",
        "limit",
        "port",
        "zip",
        "nonce",
        "timestamp",
        "code",
    ]
)
"""Words of the names of arguments whose numbers the agent may choose."""
_TWO = 2
"""Values under one name: the one that all calls have, and another."""


@rule("2.6", contradicts=True)
def misreported_figure(trajectory: Trajectory) -> list[ModeFinding]:
    """A report on results gives a figure that nothing in the run gives, in place of one that no later text has (heuristic).

    Definition: MAST 2.6. The agent's results since its last message are JSON objects of few fields, numbers or short texts with units. The message passes
    on one of their figures, and not another one, which stands in no later text or argument, however rounded. It has,
    undoubted, a figure of three digits or more that no text holds and that follows from those by no two steps of
    arithmetic. No text speaks of shares.
    """
    known, results = Known(trajectory), defaultdict[str, list["Step"]](list)
    last: dict[float, int] = {}
    sought = 0
    for step in trajectory.steps:
        if is_tool(step):
            results[owner(step)].append(step)
        elif is_said(step) and (found := results.pop(step.agent, [])):
            told = _figures_of(found)
            said = known_values([step.text])
            # Figures of the message itself are not sought behind it.
            left = {v: by for v, by in told.items() if not any(near(v, each) for each in said)}
            if len(left) == len(told) or not left:
                continue
            new = _invented(step.text, known.before(step))
            if len(new) != 1 or (sought := sought + 1) > _SOUGHT:
                continue
            last = last or _last_places(trajectory)
            unsaid = {
                value: by
                for value, by in left.items()
                if not any(at >= step.index and near(value, each) for each, at in last.items())
            }
            if len(unsaid) == 1 and said & told.keys():
                ((value, result),) = unsaid.items()
                why = (
                    f"{step.agent} states {new[0].literal}, which nothing in the run gives; "
                    f"{result.tool} returned {value:g}, which no later step has."
                )
                told_by = [quote(result.text), quote(step.text, *new[0].span, limit=300)]
                return [finding("2.6", 0.65, Evidence.HEURISTIC, why, [result, step], told_by)]
    return []


def _last_places(trajectory: Trajectory) -> dict[float, int]:
    """Return the index of the last step whose text or arguments have each figure."""
    return {
        value: step.index
        for step in trajectory.steps
        for value in known_values([f"{step.text} {step.arguments}"])
    }


def _figures_of(results: list[Step]) -> dict[float, Step]:
    """Return the figures of results that no argument and no other one of them has; none where one is no object of few fields."""
    found: dict[float, Step] = {}
    given = known_values([each.arguments for each in results])
    for result in results:
        value = loaded(result.text) if result.text.lstrip().startswith("{") else None
        if not isinstance(value, dict) or len(value) > _FEW or failed(result):
            return {}
        for _, each in fields(result.text):
            for number in _numbers(each):
                year = 1900 <= number <= 2100
                if not year and abs(number) >= _TELLS and number not in given:
                    found[number] = result
    return found


def _numbers(value: object) -> list[float]:
    """Return the number of a field, or the figures of a short one that has some with a unit, such as 82 x 103 cm."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return [float(value)]
    short = value if isinstance(value, str) and len(value) <= _SHORT else ""
    return [each.value for each in measured(short)]


def _follows(value: float, values: set[float], *, sums: bool) -> bool:
    """Return whether a figure follows from others by two steps of arithmetic, is a product rounded, or a sum of multiples."""
    if (
        any(in_other_unit(value, each) for each in values)
        or derived(value, values, COUNTED)
        or derived_twice(value, values)
    ):
        return True
    factors = {*values, *map(float, range(2, COUNTED))}
    made = (each * by for each in values for by in factors)
    parts = (each / by for each in values for by in factors if by)
    if any(abs(value - each) < _CENT for each in (*made, *parts)):
        return True
    return sums and reachable(value, sorted(values), _MULTIPLES)


def _invented(text: str, known: Known, *, sums: bool = False) -> list[Figure]:
    """Return the figures of a text that the run neither holds nor implies, without those that follow from another of them."""
    # Shares are of sums that nobody states.
    if len(known.values) > TOO_MANY or any(map(_SHARE.search, known.texts)):
        return []
    names = "".join(ids(text))
    new: list[Figure] = []
    values = set(known.values)
    for each in amounts(text):
        clause = next(part for part in _CLAUSE.finditer(text) if each.start < part.end())
        # The message itself computes it; equations have a rule of their own.
        computed = _COMPUTED.search(text[max(0, each.start - _EXPRESSION) : each.start])
        if each.literal in names or computed or doubted(clause[0], 0, len(clause[0])):
            continue
        if _PROPOSES.search(clause[0]):
            continue
        follows = any(_follows(value, values, sums=sums) for value in each.as_one)
        if not (each.readings & values or follows):
            new.append(each)
            values |= each.readings
    return new


@rule("2.6", contradicts=True)
def acted_on_invention(trajectory: Trajectory) -> list[ModeFinding]:
    """A call has a value that nothing before it gives (heuristic).

    Definition: MAST 2.6. It is a number of three digits or more in a call that moves money, which does not follow from what
    the run holds by two steps of arithmetic and is no sum of multiples; no text speaks of shares. Or it is a name in a
    call that moves goods or money, or an identifier in one that looks it up, and all other calls that succeed have one
    of the task, always the same, under that name of an argument, though not for that tool. The message by which the
    agent asks for the call gives it nothing.
    """
    known = Known(trajectory)
    usual: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    names: list[tuple[Step, Step, str, str]] = []
    for step, asked, name, value in _given(trajectory):
        if not isinstance(value, str):
            if (
                transacts(step)
                and _SETTLES.match(step.tool)
                and not name_words(name) & _TECHNICAL
                and _invented(str(value), known.before(asked), sums=True)
            ):
                return [_from_nowhere(step, name, str(value))]
        elif len(value) >= _LONG and value.split() == [value] and not days(value):
            usual[name][value.lower()].add(step.tool)
            # A search may call things otherwise, and a new file may have any name.
            if transacts(step) or (ids(value) and not acts(step)):
                names.append((step, asked, name, value))
    for step, asked, name, value in names:
        if _departs(step, value.lower(), usual[name], trajectory.task.lower()):
            held = Known(trajectory).before(asked).texts
            if not any(value.lower() in each.lower() for each in held):
                return [_from_nowhere(step, name, value)]
    return []


def _given(trajectory: Trajectory) -> Iterator[tuple[Step, Step, str, str | float]]:
    """Yield each text and number that a call is given, with the message that asks for the call, or the call itself."""
    steps = trajectory.steps
    for step in steps:
        if not is_tool(step) or failed(step):
            continue
        last = steps[step.index - 1] if step.index else step
        asked = last if not is_tool(last) and last.agent == owner(step) else step
        for name, value in arguments(step).items():
            if isinstance(value, (str, int, float)) and not isinstance(value, bool):
                yield step, asked, name, value


def _departs(step: Step, text: str, usual: Mapping[str, set[str]], task: str) -> bool:
    """Return whether a call has another name than all others, which have one of the task for other tools."""
    if len(usual) != _TWO:
        return False
    other = next(each for each in usual if each != text)
    related = other in text or text in other
    return not related and other in task and step.tool not in usual[other]


def _from_nowhere(step: Step, name: str, value: str) -> ModeFinding:
    why = f"{owner(step)} calls {step.tool} with {name} = {value}, which nothing in the run gives before."
    return finding("2.6", 0.65, Evidence.HEURISTIC, why, [step], [quote(step.arguments)])
