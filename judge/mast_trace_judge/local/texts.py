"""Features of a text that rules and attribution use: similarity, numbers, code, failure, quotes."""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_COMPARED = 3000
"""Characters that similarity compares; the rest of a longer text adds cost and little else."""

_WORDS_BELOW = 0.4
"""Distance by which the share of common words may be below that of common 4-grams: a changed
word affects few of them."""
_A_WORD = 24
"""Characters per different word above which a text is no prose with spaces between words."""
_REMEMBERED = 20_000
"""Length up to which the results for a text are cached: several rules ask for them."""
_STOPS = ("\n", ". ", "! ", "? ")
_NUMBER = re.compile(
    # The first character comes first: what is in front of it is looked at only where there is one.
    r"[-+\d](?<![\w.][-+\d])(?:(?<=\d)|(?<=[-+])\d)"
    r"(?:\d{0,2}(?:,\d{3})+|\d*)(?:\.\d+)?(?![\w]|\.\d|,\d{3})"
)
_FENCE = re.compile(r"```[^\n`]*\n(.*?)(?:```|\Z)", re.DOTALL)
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_'-]{2,}")
_FAILED = re.compile(
    r"exitcode: [1-9]|exit(?:ed)?(?: with)?(?: unix)?(?: exit)? ?code:? [1-9]|execution failed"
    r"|Traceback \(most recent call last\)|^\s*(?:\w+\.)*\w*(?:Error|Exception): "
    r"|^\s*Error\b|\"error\": ?(?:\"[^\"]|true)|\b[1-9]\d* (?:tests? )?failed\b|^FAILED\b",
    re.IGNORECASE | re.MULTILINE,
)
_FAILURE_SIGNS = ("exit", "fail", "traceback", "error", "exception")
"""One of these is in every match of `_FAILED`."""


def fold(text: str) -> str:
    """Return the text in lower case with single spaces, cut to the compared length."""
    if len(text) > _COMPARED:
        text = text[: _COMPARED // 2] + " " + text[-_COMPARED // 2 :]
    return " ".join(text.split()).lower()


@lru_cache(maxsize=256)
def grams(text: str) -> frozenset[str]:
    """Return the set of character 4-grams of the folded text."""
    folded = fold(text)
    if len(folded) < 4:
        return frozenset({folded} if folded else ())
    return frozenset([folded[i : i + 4] for i in range(len(folded) - 3)])


@lru_cache(maxsize=256)
def _folded_words(text: str) -> frozenset[str]:
    return frozenset(fold(text).split())


def similarity(one: str, other: str) -> float:
    """Dice coefficient of the two texts' character 4-grams: 0 unlike, 1 alike."""
    a, b = grams(one), grams(other)
    if not a or not b:
        return 0.0
    return 2 * len(a & b) / (len(a) + len(b))


def alike(one: str, other: str, threshold: float) -> bool:
    """Return whether `similarity` reaches the threshold; cheap where the lengths rule it out."""
    lengths = sorted((min(len(one), _COMPARED), min(len(other), _COMPARED)))
    if 2 * lengths[0] < lengths[1]:
        return False
    # Texts that share so few words share no such part of their 4-grams; words are found quickly.
    some, more = _folded_words(one), _folded_words(other)
    most = max(len(some), len(more))
    if lengths[1] < _A_WORD * most and len(some & more) < (threshold - _WORDS_BELOW) * most:
        return False
    a, b = grams(one), grams(other)
    smaller, larger = sorted((len(a), len(b)))
    if not smaller or 2 * smaller < threshold * (smaller + larger):
        return False
    return 2 * len(a & b) >= threshold * (smaller + larger)


def number(literal: str) -> float:
    """Read a number as `numbers` finds it; commas group thousands."""
    value = float(literal.replace(",", ""))
    return value if math.isfinite(value) else 0.0


def numbers(text: str) -> tuple[re.Match[str], ...]:
    """Find every free-standing number; parts of names, versions and dates with dots are none."""
    return _numbers(text) if len(text) <= _REMEMBERED else tuple(_NUMBER.finditer(text))


def values(texts: Iterable[str]) -> set[float]:
    """Return the numbers that occur in any of the texts."""
    found: set[float] = set()
    for text in texts:
        found |= _values(text) if len(text) <= _REMEMBERED else _read_values(text)
    return found


@lru_cache(maxsize=256)
def _numbers(text: str) -> tuple[re.Match[str], ...]:
    return tuple(_NUMBER.finditer(text))


@lru_cache(maxsize=256)
def _values(text: str) -> frozenset[float]:
    return _read_values(text)


def _read_values(text: str) -> frozenset[float]:
    return frozenset({number(literal) for literal in {match[0] for match in numbers(text)}})


def code_blocks(text: str) -> list[str]:
    """Return the contents of the fenced code blocks; an unclosed one runs to the end."""
    return [block.strip() for block in _FENCE.findall(text) if block.strip()]


def prose(text: str) -> str:
    """Return the beginning of a text with its fenced code blocks blank, each character in its place.

    That is all of it, unless it is a document.
    """
    start = text[:_REMEMBERED]
    return _FENCE.sub(lambda block: " " * len(block[0]), start) if "```" in start else start


def words(text: str) -> set[str]:
    """Return the words of three letters or more, in lower case."""
    return {word.lower() for word in _WORD.findall(text)}


def says_failed(text: str) -> re.Match[str] | None:
    """Find the mark of a failed execution in its output: an exit code, a traceback, an error line."""
    return _says_failed(text[:_REMEMBERED])


@lru_cache(maxsize=256)
def _says_failed(start: str) -> re.Match[str] | None:
    lower = start.lower()
    # Five searches for a word cost a tenth of one for the pattern, and most texts have none.
    if not any(sign in lower for sign in _FAILURE_SIGNS):
        return None
    return _FAILED.search(start)


def quote(text: str, start: int = 0, end: int | None = None, limit: int = 160) -> str:
    """Return a passage of the text, word for word, at most ``limit`` long.

    The passage is the sentence around ``start:end``, or the first line that is not empty.
    """
    if end is None:
        start += len(text[start:]) - len(text[start:].lstrip())
        line_end = text.find("\n", start)
        end = len(text) if line_end < 0 else line_end
        return text[start : min(end, start + limit)].strip()
    first = max(0, end - limit - 2)  # the rest is cut in any case
    stops = [(text.rfind(stop, first, start), stop) for stop in _STOPS]
    before = max((place + len(stop) for place, stop in stops if place >= 0), default=0)
    left = max(before, end - limit, 0)
    after = [text.find(stop, end, start + limit + 2) for stop in _STOPS]
    right = min([place + 1 for place in after if place >= 0], default=len(text))
    return text[min(left, start) : min(max(right, end), min(left, start) + limit)].strip()
