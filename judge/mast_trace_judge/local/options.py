"""Options that a run compared, read from results of tools, and the best that its task asks for: the cheapest, the most."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from mast_trace_judge.local.acts import is_tool
from mast_trace_judge.local.figures import figures

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from mast_trace.trajectory import Step, Trajectory

_A_NAME = 40
"""Characters up to which an argument or a cell is a name."""
_LONGEST = 20_000
"""Characters of arguments or of a result that are read; longer ones are documents."""
_BEGINS = re.compile(r"[\s\"'*-]*(?P<name>[A-Z][\w-]+|(?=\w*\d)[\w-]{2,})\b")
"""A name at the beginning of a part of a list: a word with a capital letter, or one with a digit."""
MOST = 50
"""Number of options with which nothing is compared any more."""


@dataclass(frozen=True)
class Value:
    """A value of an option: one property, as a result gives it.

    Attributes:
        text: word for word.
        step: the call that returned it.
    """

    text: str
    step: Step

    @property
    def number(self) -> float | None:
        """The figure of the value; None unless it has one figure of one reading."""
        found = figures(self.text)
        if len(found) != 1 or len(found[0].readings) != 1:
            return None
        return next(iter(found[0].readings))

    @property
    def frame(self) -> str:
        """The text around the figure; equal frames have one unit and one currency."""
        return re.sub(r"\d+(?:[.,]\d+)*", "#", self.text.strip().lower())


Options = dict[str, dict[str, Value]]
"""Values by option, in lower case, and by property."""


def options_of(trajectory: Trajectory) -> Options:
    """Return the options of a run: arguments in which equal calls differ, and rows of results.

    Other calls that name an option add a property to it. A property that is returned twice with different values is left out, for it may have changed.
    """
    table: dict[str, dict[str, list[Value]]] = defaultdict(lambda: defaultdict(list))
    calls: dict[str, list[tuple[Step, Mapping[str, Any]]]] = defaultdict(list)
    for step in trajectory.steps:
        if is_tool(step) and step.error is None:
            calls[step.tool].append((step, _object(step.arguments)))
            for option, name, text in _rows(step.text):
                table[option][name].append(Value(text, step))
    compared = {tool: list(_by_argument(made)) for tool, made in calls.items()}
    for tool, found in compared.items():
        for option, step in found:
            table[option][tool].append(Value(step.text, step))
    if len(table) > MOST:
        return {}
    for tool, made in calls.items():
        for step, arguments in made if not compared[tool] else ():
            for option in {str(value).strip().lower() for value in arguments.values()} & set(table):
                table[option][tool].append(Value(step.text, step))
    return {option: _settled(values) for option, values in table.items()}


def choices_in(text: str) -> Iterator[list[str]]:
    """Yield the names of things that a result lists: a field of JSON's objects, or what its lines or parts begin with."""
    value = _loaded(text) if text.lstrip()[:1] in ("[", "{") else None
    if value is None:
        marks = (each for each in ("\n", ";", "|") if each in text.strip())
        parts = [part for part in text[:_LONGEST].split(next(marks, ", ")) if part.strip()]
        found = [match["name"] for part in parts if (match := _BEGINS.match(part))]
        if len(found) == len(parts) and _is_list(found):
            yield found
        return
    for rows in lists_of(value):
        if not all(isinstance(row, dict) for row in rows):
            columns = [rows]
        else:
            columns = [[row.get(key) for row in rows] for key in rows[0]]
        for column in columns:
            if all(map(is_choice, column)) and _is_list(list(map(str, column))):
                yield list(map(str, column))


def is_choice(value: Any) -> bool:
    """Return whether a value may name one of several things: a short text, or a number of three digits or more."""
    if isinstance(value, int):
        return not isinstance(value, bool) and abs(value) >= 100
    return isinstance(value, str) and 2 <= len(value) <= _A_NAME


def _is_list(names: list[str]) -> bool:
    return 2 <= len(names) <= MOST and len({name.lower() for name in names}) == len(names)


def lists_of(value: Any) -> Iterator[list[Any]]:
    """Yield the lists of JSON that are in no other list."""
    if isinstance(value, list):
        yield from [value] if value else []
    elif isinstance(value, dict):
        for each in value.values():
            yield from lists_of(each)


def _settled(values: Mapping[str, list[Value]]) -> dict[str, Value]:
    return {
        name: each[-1] for name, each in values.items() if len({value.text for value in each}) == 1
    }


def _by_argument(
    made: list[tuple[Step, Mapping[str, Any]]],
) -> Iterable[tuple[str, Step]]:
    """Yield the value of the one argument in which calls of a tool differ, with each call."""
    keys = {tuple(sorted(arguments)) for _, arguments in made}
    if len(keys) != 1:
        return
    differing = [
        key
        for key in next(iter(keys))
        if len({json.dumps(arguments[key], sort_keys=True) for _, arguments in made}) > 1
    ]
    if len(differing) != 1:
        return
    for step, arguments in made:
        value = arguments[differing[0]]
        if _is_name(value):
            yield value.strip().lower(), step


def _rows(text: str) -> Iterable[tuple[str, str, str]]:
    """Yield option, property and value of a list of rows that have equal keys and one name each."""
    value = _loaded(text) if text.lstrip()[:1] in ("[", "{") else None
    if isinstance(value, dict) and len(value) == 1:
        value = next(iter(value.values()))
    if not isinstance(value, list) or not 2 <= len(value) <= MOST:
        return
    if not all(isinstance(row, dict) and row.keys() == value[0].keys() for row in value):
        return
    names = [key for key in value[0] if all(_is_name(row[key]) for row in value)]
    names = [key for key in names if len({row[key].lower() for row in value}) == len(value)]
    if len(names) != 1:
        return
    for row in value:
        for key, each in row.items():
            if key != names[0]:
                yield row[names[0]].strip().lower(), key, str(each)


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _A_NAME and not figures(value)


def _object(arguments: str) -> Mapping[str, Any]:
    value = _loaded(arguments)
    return value if isinstance(value, dict) else {}


def _loaded(text: str) -> Any:
    if len(text) > _LONGEST:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


_MONEY = (
    r"(?<![a-z])(?:price|cost|fare|fee|rate|amount|usd|eur|gbp|chf|preis|kosten|precio)s?(?![a-z])"
    r"|[$\u20ac\u00a3\u00a5\u20b9]"
)
_WARMTH = r"(?<![a-z])(?:temp(?:erature)?s?|weather|celsius|fahrenheit|wetter)(?![a-z])|\u00b0"
_WAY = r"(?<![a-z])(?:distances?|km|kilomet(?:er|re)s?|mi|miles?|met(?:er|re)s?|entfernung|distancia)(?![a-z])"
_LENGTH = rf"{_WAY}|(?<![a-z])(?:length|duration|time|minutes?|min|hours?|h|dauer)(?![a-z])"
_SUPERLATIVES: tuple[tuple[re.Pattern[str], int, str], ...] = tuple(
    (re.compile(rf"\b(?:{words})\b", re.IGNORECASE), sign, of)
    for words, sign, of in (
        (r"cheapest|least expensive|lowest[- ](?:price|cost|fare|rate)d?|g[u\u00fc]nstigste[nrs]?", 1, _MONEY),
        (r"billigste[nrs]?|m[a\u00e1]s barat[oa]s?", 1, _MONEY),
        (r"most expensive|dearest|priciest|teuerste[nrs]?|m[a\u00e1]s car[oa]s?", -1, _MONEY),
        (r"warmest|hottest|w[a\u00e4]rmste[nrs]?|m[a\u00e1]s c[a\u00e1]lid[oa]", -1, _WARMTH),
        (r"coldest|coolest|k[a\u00e4]lteste[nrs]?|m[a\u00e1]s fr[i\u00ed][oa]", 1, _WARMTH),
        (r"nearest|closest|n[a\u00e4]chste[nrs]?|m[a\u00e1]s cercan[oa]", 1, _WAY),
        (r"shortest|k[u\u00fc]rzeste[nrs]?|m[a\u00e1]s cort[oa]", 1, _LENGTH),
        (r"longest|farthest|furthest|l[a\u00e4]ngste[nrs]?", -1, _LENGTH),
    )
)  # fmt: skip
"""Words for the best of several, the sign of better (1: less), and words for what is measured."""
_MOST_OF = re.compile(
    r"\b(?P<word>highest|largest|greatest|most|lowest|smallest|fewest|least) (?P<of>[a-z]{4,20})\b",
    re.IGNORECASE,
)
_LESS = frozenset({"lowest", "smallest", "fewest", "least"})
_SENTENCE = re.compile(r"[^.!?\n]+")
_BOUND = re.compile(
    r"\b(?:not|n't|no|never|except|excluding|exclude\w*|avoid\w*|without|unless|but|under|below|over|above|within"
    r"|if|only|must|prefer\w*|require\w*|between|budget|minim\w*|maxim\w*|at (?:least|most)|(?:more|less|fewer|better|worse|other) than|second"
    r"|third|next|nicht|kein\w*|ohne|\u00fcber|h\u00f6chstens|mindestens|sin|menos de|m[a\u00e1]s de)\b",
    re.IGNORECASE,
)
"""A sentence with one of these sets a condition that results alone do not decide."""


class Wish(NamedTuple):
    """The best that a text asks for, or claims to be.

    Attributes:
        word: the word or words for it.
        sign: 1 where less is better, -1 where more is.
        of: matches names and units of what is measured.
    """

    word: str
    sign: int
    of: re.Pattern[str]


def wish_of(task: str) -> Wish | None:
    """Return what the task wants most; None where it wants nothing, several things, or sets conditions."""
    wishes: dict[tuple[int, str], Wish] = {}
    free = False
    for sentence in _SENTENCE.findall(task):
        found = list(wishes_of(sentence))
        wishes |= {(each.sign, each.of.pattern): each for each in found}
        free = free or (bool(found) and not _BOUND.search(sentence))
    return next(iter(wishes.values())) if len(wishes) == 1 and free else None


def wishes_of(sentence: str) -> Iterator[Wish]:
    """Yield what a sentence calls the best."""
    for pattern, sign, of in _SUPERLATIVES:
        found = pattern.search(sentence)
        if found:
            yield Wish(found[0], sign, re.compile(of, re.IGNORECASE))
    for match in _MOST_OF.finditer(sentence):
        if not any(pattern.search(match[0]) for pattern, _, _ in _SUPERLATIVES):
            stem = match["of"].lower().rstrip("s")[:8]
            sign = 1 if match["word"].lower() in _LESS else -1
            yield Wish(match[0], sign, re.compile(re.escape(stem), re.IGNORECASE))
