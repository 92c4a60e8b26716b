"""Mode 2.6, reasoning-action mismatch, where a result's figures are given under each other's names."""

from __future__ import annotations

import re
from collections import defaultdict, deque
from functools import lru_cache
from itertools import combinations, islice, permutations
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from mast_trace.trajectory.vocabulary import loaded
from mast_trace_judge.local.acts import finding, is_said, is_tool
from mast_trace_judge.local.arithmetic import near
from mast_trace_judge.local.figures import figures, known_values
from mast_trace_judge.local.rules._registry import Reach, rule
from mast_trace_judge.local.stated import stem, stems
from mast_trace_judge.local.texts import prose, quote
from mast_trace_judge.verdict import Evidence

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from mast_trace.trajectory import Step, Trajectory
    from mast_trace_judge.local.figures import Figure
    from mast_trace_judge.verdict import ModeFinding

_LONGEST = 4000
"""Characters of a result that is read; longer ones are documents."""
_NOTHING: Mapping[str, frozenset[float]] = MappingProxyType({})
_MOST = 40
"""Names of a result; with more it is a listing."""
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
_NAMED = re.compile(
    r"(?:^|[\n,;|{(]|\band\b)[ \t]*[-*\u2022]?[ \t]*[\"'*]*(?P<name>[^\W\d_][\w ./-]{0,30}?|(?:19|20)\d\d)"
    r"[\"'*]*(?:[ \t]*[:=\uff1a][ \t]*|[ \t]+(?:is|was|of|ist|es)[ \t]+)[\"'*$\u20ac\u00a3]*"
    r"(?P<figure>[-+\u2212]?\d(?:[\d.,']*\d)?)"
)

_KINDS: Mapping[str, frozenset[str]] = {
    "average": frozenset(
        ["average", "avg", "mean", "durchschnitt", "mittel", "mittelwert", "promedio", "media"]
    ),
    "largest": frozenset(["max", "maximum", "peak", "highest", "largest", "maximal", "maximo"]),
    "smallest": frozenset(["min", "minimum", "lowest", "smallest", "minimal", "minimo"]),
    "median": frozenset(["median", "p50", "mediana"]),
    "total": frozenset(["total", "sum", "summe", "gesamt", "suma"]),
}
"""Words for what a figure may be of several others."""
_KIND_WORD = re.compile(
    r"\b(?:" + "|".join(sorted(word for words in _KINDS.values() for word in words)) + r")\b",
    re.IGNORECASE,
)
_BREAK = re.compile(
    r"[,;.\n()|\u3002\uff0c]|:\s+(?=[^\W\d_])|\b(?:and|und|y|while|but|versus|vs|than|from|to)\b",
    re.IGNORECASE,
)
_DOUBTED = re.compile(
    r"\b(?:not|wrong|incorrect|instead|rather|if|forecast|expected|previously|nicht|falsch|statt|wenn"
    r"|no|confus\w*|swap\w*|mix\w*|correct\w*|unlike|except|without|vs|versus|compared)\b|n't\b|[\"\u201c\u00ab?]",
    re.IGNORECASE,
)
"""A sentence with one of these speaks of how it is not, or sets one thing against another."""
_IS = re.compile(
    r"(?:[:=]|\b(?:is|was|were|are|of|at|ist|war|waren|es|fue|era)|[\u662f\u4e3a\uff1a])\s*[$\u20ac\u00a3]?\s*$"
)
_COMPARES = re.compile(
    r"\s*(?:%|\w+)?\s*(?:more|less|higher|lower|above|below|short|ahead|behind|over|under|fewer|better"
    r"|worse|mehr|weniger|m[aá]s|menos)\b"
)
_SURE = 0.85
_COUNTED = re.compile(r"(?<![\w.,])(\d{1,6}) ([a-z]{4,})\b")
_PLACE = re.compile(
    r"of|out of|from|to|(?:\w+ )?(?:page|offset|limit|start|end|index|line|row|step|run|rank|number|no|id|version|level|seite|zeile|nr)s?"
)
"""Names of figures that tell where something stands, and count nothing."""
_LISTED = re.compile(r"[^\w\n]*,[^\w\n]*")
_CLOSE = 40
"""Characters between a name and its figure."""
_SHORT = 300
"""Characters of a result up to which its names are of things of one kind."""
_MOST_GIVEN = 50
"""Words for what a figure may be, the first ones of a message, that are looked at."""
_FEWEST = 2
"""Named figures of a result, of which one may stand for another."""
_LOOKED_BACK = 8
"""Results with which each message is compared, the nearest ones."""


@lru_cache(maxsize=128)
def labelled_values(text: str) -> Mapping[str, frozenset[float]]:
    """Return the readings of each named figure in a result; names that come twice are left out.

    Names are in lower case, words divided by single spaces. Read are JSON objects, with the years or
    names of lists of rows, and texts of the form ``name: figure``.
    """
    if len(text) > _LONGEST:
        return _NOTHING
    value = loaded(text) if text.lstrip()[:1] in ("{", "[") else None
    found = _of_json(value, "") if value is not None else _of_text(text)
    pairs = list(islice(found, _MOST + 1))
    if len(pairs) > _MOST:
        return _NOTHING
    named: dict[str, frozenset[float]] = {}
    for name, readings in _by_year(pairs):
        named[name] = frozenset() if name in named else readings
    return MappingProxyType({name: each for name, each in named.items() if name and each})


def _by_year(
    pairs: list[tuple[str, frozenset[float]]],
) -> list[tuple[str, frozenset[float]]]:
    """Return ``revenue 2019`` and ``revenue 2020`` under the years alone, where these tell them apart."""
    years = [_YEAR.findall(name) for name, _ in pairs]
    if len(pairs) < 2 or any(len(found) != 1 for found in years):
        return pairs
    return [(found[0], readings) for found, (_, readings) in zip(years, pairs, strict=True)]


def _of_json(value: Any, name: str) -> Iterator[tuple[str, frozenset[float]]]:
    if isinstance(value, dict):
        row = _row(value)
        for key, each in [row] if row else value.items():
            yield from _of_json(each, str(key))
    elif isinstance(value, list):
        for each in value:
            yield from _of_json(each, name if not isinstance(each, (int, float)) else "")
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield _folded(name), frozenset({float(value)})
    elif isinstance(value, str):
        found = figures(value)
        if len(found) == 1 and len(value) <= 30:
            yield _folded(name), found[0].readings


def _row(value: Mapping[str, Any]) -> tuple[str, Any] | None:
    """Return a row's name and figure, of ``{"year": 2019, "sales": 120}``."""
    if len(value) != 2:
        return None
    (_, one), (_, other) = value.items()
    years = [isinstance(each, int) and 1900 <= each <= 2100 for each in (one, other)]
    if isinstance(one, str) or (years[0] and not years[1]):
        return str(one), other
    return None


def _of_text(text: str) -> Iterator[tuple[str, frozenset[float]]]:
    for match in _NAMED.finditer(text):
        found = figures(match["figure"])
        if len(found) == 1:
            yield _folded(match["name"]), found[0].readings


def _folded(name: str) -> str:
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    return " ".join(re.sub(r"[_\s./-]+", " ", spaced).lower().split())


@rule("2.6", Reach.BACK)
def mislabelled_value(trajectory: Trajectory) -> list[ModeFinding]:
    """An agent gives a result's peak as the average, or the like (heuristic).

    Definition: MAST 2.6. The result names both, with different figures; the message has the one
    name right before the other's figure, which no other result holds, and the figure that belongs
    to the name nowhere.
    """
    for result, step in _read(trajectory):
        kinds = _kinds(labelled_values(result.text))
        if len(kinds) < _FEWEST:
            continue
        text = prose(step.text)
        for kind, start, figure in _given(text):
            own = kinds.get(kind)
            if (
                own is None
                or _holds_near(text, own)
                or figure.readings & _elsewhere(trajectory, result, step)
            ):
                continue
            taken = [name for name, of in kinds.items() if figure.readings & of]
            sentence = quote(step.text, start, figure.end, limit=300)
            if len(taken) == 1 and not _DOUBTED.search(sentence):
                why = (
                    f"{step.agent} gives {figure.literal} as the {kind}, which is the {taken[0]} "
                    f"in what {result.tool} returned."
                )
                return [_misread(result, step, why, start, figure.end)]
    return []


@rule("2.6", Reach.BACK)
def swapped_values(trajectory: Trajectory) -> list[ModeFinding]:
    """An agent gives two of a result's figures under each other's names, such as years (heuristic).

    Definition: MAST 2.6. Both must be exchanged, in one message, each name beside its figure with
    nothing between that could divide them, and no other result may hold the figures.
    """
    for result, step in _read(trajectory):
        named = labelled_values(result.text)
        pairs = _beside(prose(step.text), named)
        for one, other in combinations(pairs, 2):
            first, second = pairs[one], pairs[other]
            if named[one] & named[other]:
                continue
            if not (first.readings & named[other] and second.readings & named[one]):
                continue
            start, end = min(first.start, second.start), max(first.end, second.end)
            doubted = _DOUBTED.search(quote(step.text, start, end, limit=400))
            if not doubted and not (first.readings | second.readings) & _elsewhere(
                trajectory, result, step
            ):
                why = f"{step.agent} exchanges what {result.tool} returned for {one} and {other}."
                return [_misread(result, step, why, start, end)]
    return []


@rule("2.6", Reach.BACK)
def misattributed_value(trajectory: Trajectory) -> list[ModeFinding]:
    """An agent says that one thing is what a result gives as another one's figure (heuristic).

    Definition: MAST 2.6. As for `swapped_values`, but only one of the two is given: in so many words
    ("north was 150"), and the figure that the result has for it is not in the message. Names that
    share a word ("price", "price difference") are left alone, and so are long results.
    """
    for result, step in _read(trajectory):
        named = labelled_values(result.text) if len(result.text) <= _SHORT else {}
        text = prose(step.text)
        pairs = _beside(text, named) if named else {}
        for name, figure in pairs.items():
            taken = [other for other, of in named.items() if figure.readings & of]
            if len(taken) != 1 or set(name.split()) & set(taken[0].split()):
                continue
            if _holds_near(text, named[name]):
                continue
            if not _IS.search(text[: figure.start]) or _COMPARES.match(text[figure.end :]):
                continue
            sentence = quote(step.text, *figure.span, limit=300)
            if not _DOUBTED.search(sentence) and not figure.readings & _elsewhere(
                trajectory, result, step
            ):
                why = (
                    f"{step.agent} gives {figure.literal} for {name}, which is what {result.tool} "
                    f"returned for {taken[0]}."
                )
                return [_misread(result, step, why, *figure.span)]
    return []


@rule("2.6", Reach.BACK, contradicts=True)
def absorbed_count(trajectory: Trajectory) -> list[ModeFinding]:
    """An agent gives the sum of a result's two counts as one of them, as "all 63 pass" after 61 passed and 2 failed (heuristic).

    Definition: MAST 2.6. The message holds neither count, nor a word that stands with the other one in the result, and no
    later message has the right count, or the answer keeps the wrong one.
    """
    results: dict[str, Step] = {}
    said = [each for each in trajectory.steps if is_said(each)]
    for step in trajectory.steps:
        if is_tool(step) and step.error is None:
            results[step.requested_by or step.agent] = step
        elif is_said(step) and (result := results.pop(step.agent, None)):
            counts, stated, told = _counts(result.text), known_values([step.text]), stems(step.text)
            for (name, count), (other, rest) in permutations(counts.items(), 2):
                if not rest or stated & {count, rest} or other in told or name in other:
                    continue
                for figure in figures(step.text):
                    sentence = quote(step.text, *figure.span, limit=300)
                    literal = re.escape(figure.literal)
                    of_all = re.search(rf"\b{literal} (?:of|out of|/|von) {literal}\b", sentence)
                    named = [each for each in _clauses(step.text) if name in stems(each[0])]
                    near_by = any(
                        each.start() <= figure.start <= each.end() + _CLOSE for each in named
                    )
                    if count + rest in figure.readings and (near_by or of_all):
                        why = f"{step.agent} gives {figure.literal} where {result.tool} returned {count} and {rest} of another kind."
                        later = known_values(e.text for e in said if e.index > step.index)
                        answer = known_values([said[-1].text])
                        kept = count not in answer and count + rest in answer
                        if not _DOUBTED.search(sentence) and (kept or count not in later):
                            return [_misread(result, step, why, *figure.span)]
    return []


def _clauses(text: str) -> Iterator[re.Match[str]]:
    return re.finditer(r"(?:[^,;.]|[,;.](?!\s|$))*(?:[,;.]|$)", text)


def _counts(text: str) -> dict[str, int]:
    """Return the whole numbers of a short result by the stem of the word that stands with each."""
    if len(text) > _SHORT:
        return {}
    named = {name: value for name, values in labelled_values(text).items() for value in values}
    named |= {match[2]: float(match[1]) for match in _COUNTED.finditer(text)}
    return {
        stem(name): int(value)
        for name, value in named.items()
        if value.is_integer() and not _PLACE.fullmatch(name)
    }


def _read(trajectory: Trajectory) -> Iterator[tuple[Step, Step]]:
    """Yield each message with the results before it that name a figure of it, the nearest ones."""
    results: deque[tuple[Step, frozenset[float]]] = deque(maxlen=_LOOKED_BACK)
    for step in trajectory.steps:
        if is_said(step):
            said = known_values([step.text]) if results else set()
            for result, values in results:
                if not values.isdisjoint(said):
                    yield result, step
        elif is_tool(step) and step.error is None:
            named = labelled_values(step.text)
            if len(named) >= _FEWEST:
                results.append((step, frozenset[float]().union(*named.values())))


def _elsewhere(trajectory: Trajectory, result: Step, step: Step) -> set[float]:
    """Return the figures that agents were given before a message by anything but a result."""
    given = (each.text for each in trajectory.steps[: step.index] if not is_said(each))
    return known_values([trajectory.task, *(text for text in given if text != result.text)])


def _kinds(named: Mapping[str, frozenset[float]]) -> dict[str, frozenset[float]]:
    """Return the figures that are of several others, by kind; none where a kind comes twice."""
    found: dict[str, frozenset[float]] = {}
    for name, readings in named.items():
        kinds = {kind for word in name.split() if (kind := _kind(word))}
        if len(kinds) == 1:
            kind = kinds.pop()
            if kind in found:
                return {}
            found[kind] = readings
    return found


def _kind(word: str) -> str:
    return next((kind for kind, words in _KINDS.items() if word.lower() in words), "")


def _given(text: str) -> Iterator[tuple[str, int, Figure]]:
    """Yield the kinds that a text names right before a figure."""
    stated = figures(text)
    for match in islice(_KIND_WORD.finditer(text), _MOST_GIVEN):
        figure = next((each for each in stated if each.start >= match.end()), None)
        if figure is not None and _together(text, match.end(), figure.start):
            yield _kind(match[0]), match.start(), figure


def _holds_near(text: str, own: Iterable[float]) -> bool:
    return any(near(value, each) for value in known_values([text]) for each in own)


def _beside(text: str, named: Mapping[str, frozenset[float]]) -> dict[str, Figure]:
    """Return the figure that stands beside each name in a text, where that is plain."""
    names: dict[str, list[tuple[int, int]]] = defaultdict(list)
    longest = sorted(named, key=len, reverse=True)
    pattern = "|".join(re.escape(name).replace("\\ ", r"[\s_-]+") for name in longest)
    for match in re.finditer(rf"(?<![\w.,])(?:{pattern})(?!\w|[.,]\d)", text, re.IGNORECASE):
        names[" ".join(re.split(r"[\s_-]+", match[0].lower()))].append(match.span())
    places = [span for spans in names.values() for span in spans]
    stated = [
        each
        for each in figures(text)
        if not any(start < each.end and each.start < end for start, end in places)
    ]
    found = {}
    for name, spans in names.items():
        if len(spans) != 1 or name not in named:
            continue
        start, end = spans[0]
        after = next((each for each in stated if each.start >= end), None)
        before = next((each for each in reversed(stated) if each.end <= start), None)
        near_by = [
            each
            for each, gap in (
                (after, (end, after and after.start)),
                (before, (before and before.end, start)),
            )
            if each is not None and _together(text, *gap) and not _is_listed(text, each, stated)
        ]
        if len(near_by) == 1:
            found[name] = near_by[0]
    return found


def _is_listed(text: str, figure: Figure, stated: list[Figure]) -> bool:
    """Return whether another figure follows at once: a list that a name heads is of other things."""
    after = next((each for each in stated if each.start >= figure.end), None)
    return after is not None and bool(_LISTED.fullmatch(text[figure.end : after.start]))


def _together(text: str, start: int, end: int) -> bool:
    """Return whether nothing between a name and a figure divides them."""
    between = text[start:end]
    return len(between) <= _CLOSE and not (_BREAK.search(between) or _KIND_WORD.search(between))


def _misread(result: Step, step: Step, why: str, start: int, end: int) -> ModeFinding:
    return finding(
        "2.6",
        _SURE,
        Evidence.HEURISTIC,
        why,
        [result, step],
        [quote(result.text), quote(step.text, start, end, limit=300)],
    )
