"""Finds a model's quotes in the steps of a run, and returns the original passages.

Two texts agree when they are equal after NFKC, without regard to case, space and punctuation. A
number's sign, point and thousands comma are no punctuation: ``3.5`` is not found in ``35``. Nor do
comparisons agree that differ: ``x < 5`` is not found in ``x > 5``.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mast_trace.trajectory import Step, Trajectory

_ELLIPSIS = re.compile(r"\s*(?:\[\s*(?:\.{3,}|…)[^\]]*\]|\(\s*(?:\.{3,}|…)\s*\)|\.{3,}|…)\s*")
_COMPARISON = re.compile(r"[=!]==?|(?<![-=])[<>]=?(?!-)|[≠≤≥]")
_SPELT = {"≠": "!=", "≤": "<=", "≥": ">="}
_LONG = 12
"""Number of folded characters from which a passage is more than a coincidence."""


@dataclass(frozen=True)
class FoldedText:
    """A text folded for comparison, with the place of every folded character in the original."""

    original: str
    folded: str
    places: Sequence[int]

    @classmethod
    def of(cls, text: str) -> FoldedText:
        """Fold a text."""
        folded: list[str] = []
        places: list[int] = []
        for place, char in enumerate(text):
            for piece in _fold(text, place, char):
                if piece == " " and (not folded or folded[-1] == " "):
                    continue
                folded.append(piece)
                places.append(place)
        while folded and folded[-1] == " ":
            folded.pop()
            places.pop()
        return cls(text, "".join(folded), places)

    def find(self, quote: FoldedText, start: int = 0) -> tuple[int, int] | None:
        """Return start and end of a quote in the folded text."""
        at = self.folded.find(quote.folded, start)
        while at >= 0:
            end = at + len(quote.folded)
            if _whole(self.folded, at, end) and not _opposed(quote, self.passage(at, end)):
                return at, end
            at = self.folded.find(quote.folded, at + 1)
        return None

    def passage(self, begin: int, end: int) -> str:
        """Return the original text of a folded range."""
        return self.original[self.places[begin] : self.places[end - 1] + 1]


@dataclass
class QuoteCheck:
    """Looks quotes up in one run."""

    trajectory: Trajectory
    _folded: dict[int, tuple[FoldedText, ...]] = field(default_factory=dict)

    def has_no_text_of_its_own(self, index: int) -> bool:
        """Return whether a step holds nothing to quote: no text, or one that it repeats."""
        steps = self.trajectory.steps
        earlier = {text for step in steps[:index] for text in sources(step)}
        return earlier.issuperset(sources(steps[index]))

    def verify(self, quotes: Sequence[str], steps: Sequence[int]) -> list[tuple[int, str]]:
        """Return ``(step, passage)`` for every quote that the run holds, word for word.

        Args:
            quotes: as the model wrote them; parts around an ellipsis must follow each other.
            steps: those that the model names; numbers that exist.
        """
        found: dict[tuple[int, str], None] = {}
        for said in quotes:
            quote = said.strip()
            parts = [part for part in map(FoldedText.of, _ELLIPSIS.split(quote)) if part.folded]
            if not parts:
                continue
            step, passages = self._look_up(quote, parts, steps)
            found.update(((step, passage), None) for passage in passages)
        return list(found)

    def _look_up(
        self, quote: str, parts: Sequence[FoldedText], steps: Sequence[int]
    ) -> tuple[int, list[str]]:
        found = {step: self._in_step(quote, parts, step) for step in steps}
        # The quote itself comes before a passage of the same words.
        for step, passages in sorted(found.items(), key=lambda item: item[1] != [quote]):
            if passages:
                return step, passages
        if max(len(part.folded) for part in parts) < _LONG:
            return -1, []
        # Folding costs far more than this search for one word, and a run may have thousands of
        # steps.
        word = max((word for part in parts for word in part.folded.split()), key=len)
        elsewhere = (
            (step.index, passages)
            for step in self.trajectory.steps
            if step.index not in steps
            and any(word in text.casefold() for text in sources(step))
            and (passages := self._in_step(quote, parts, step.index))
        )
        first, second = next(elsewhere, None), next(elsewhere, None)
        return first if first and not second else (-1, [])

    def _in_step(self, quote: str, parts: Sequence[FoldedText], step: int) -> list[str]:
        if any(_stands_in(text.original, quote) for text in self._texts(step)):
            return [quote]
        for text in self._texts(step):
            passages: list[str] = []
            start = 0
            for part in parts:
                place = text.find(part, start)
                if place is None:
                    break
                passages.append(text.passage(*place))
                start = place[1]
            else:
                return passages
        return []

    def _texts(self, index: int) -> tuple[FoldedText, ...]:
        if index not in self._folded:
            step = self.trajectory.steps[index]
            self._folded[index] = tuple(FoldedText.of(text) for text in sources(step))
        return self._folded[index]


def sources(step: Step) -> list[str]:
    """Return the texts of a step that may be quoted."""
    return [text for text in (step.text, step.arguments, step.error or "") if text]


def _stands_in(text: str, quote: str) -> bool:
    """Return whether a text holds a quote sign for sign, splitting neither a number nor, where it is short, a word."""
    at = text.find(quote)
    while at >= 0:
        if _whole(text, at, at + len(quote)):
            return True
        at = text.find(quote, at + 1)
    return False


def _whole(text: str, begin: int, end: int) -> bool:
    """Return whether the range splits no number and, where it is short, no word."""
    for inside, outside in ((begin, begin - 1), (end - 1, end)):
        if not 0 <= outside < len(text):
            continue
        one, other = text[inside], text[outside]
        if _numeric(one) and _numeric(other) and (one.isdigit() or other.isdigit()):
            return False
        if end - begin < _LONG and all(each.isascii() and each.isalnum() for each in (one, other)):
            return False
    return True


def _opposed(quote: FoldedText, passage: str) -> bool:
    """Return whether both compare, and not in the same way; a quote may leave the signs away."""
    said = _comparisons(quote.passage(0, len(quote.folded)))
    return bool(said) and (_comparisons(passage) or said) != said


def _comparisons(text: str) -> list[str]:
    return [_SPELT.get(sign, sign[:2]) for sign in _COMPARISON.findall(text)]


def _fold(text: str, place: int, char: str) -> Iterator[str]:
    if char.isascii():
        yield char.lower() if char.isalnum() or _of_number(text, place, char) else " "
        return
    for piece in unicodedata.normalize("NFKC", char).casefold():
        if piece.isalnum():
            yield piece
        elif unicodedata.category(piece) not in {"Cf", "Mn"}:
            yield " "


def _of_number(text: str, place: int, char: str) -> bool:
    """Return whether a sign, point or comma belongs to a number."""
    before = text[place - 1] if place else " "
    after = text[place + 1] if place + 1 < len(text) else " "
    if char in ".,":
        return before.isdigit() and after.isdigit()
    return char == "-" and after.isdigit() and not before.isalnum()


def _numeric(char: str) -> bool:
    return char.isdigit() or char in ".,-"
