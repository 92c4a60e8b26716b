"""The best that a task asks for: the cheapest, the warmest, the most of something."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

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
