"""The figures of a result, each under the name that the result gives it."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from mast_trace.trajectory.vocabulary import loaded
from mast_trace_judge.local.figures import figures

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

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
