"""The shape of an operator."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from mast_trace_judge.planted import PLANTED, Level
from mast_trace_lab.inject.sites import Change, RecordedAnswer, RecordedResult

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random


NUMBER = re.compile(
    r"(?<![\w.,#-])\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![\w-])|(?<![\w.,#-])\d+(?:\.\d+)?(?![\w-])"
)
SENTENCE = re.compile(r"[^.!?\n]*(?:[.!?](?!\d)|\n|$)")

Site = TypeVar("Site", RecordedAnswer, RecordedResult)


def other_number(text: str, rng: Random) -> str:
    """Return a number that differs from the given one and is written alike.

    The difference is a digit's exchange, a factor, or a small step, as people misread numbers.
    """
    digits = text.replace(",", "")
    value = float(digits)
    places = len(digits.partition(".")[2])
    ways = [
        value * 10,
        value + rng.choice((1, 2, 10)) * 10.0**-places,
        value * rng.choice((0.5, 2, 3)),
    ]
    if len(digits.partition(".")[0]) > 1 and (swapped := _swapped(digits)) != digits:
        ways.append(float(swapped))
    written = [f"{way:,.{places}f}" if "," in text else f"{way:.{places}f}" for way in ways]
    return rng.choice([way for way in written if way != text])


def _swapped(digits: str) -> str:
    whole, dot, rest = digits.partition(".")
    return whole[1] + whole[0] + whole[2:] + dot + rest


def with_number_changed(text: str, rng: Random, among: str = "") -> str | None:
    """Return a text with one of its numbers changed wherever it stands; None if it has none.

    Args:
        text: the text.
        rng: chooses the number and its change.
        among: a text; if given, only numbers that stand in it are changed.
    """
    known = set(NUMBER.findall(among)) if among else None
    found = [each for each in NUMBER.findall(text) if known is None or each in known]
    if not found:
        return None
    chosen = rng.choice(sorted(set(found)))
    wrong = other_number(chosen, rng)
    return NUMBER.sub(lambda match: wrong if match[0] == chosen else match[0], text)


def without_a_fact(text: str, rng: Random, needed: Sequence[str] = ()) -> str | None:
    """Return a text without one of its sentences that hold a number; None if it is all of the text.

    Args:
        text: the text.
        rng: chooses the sentence.
        needed: numbers that the sentence must hold one of; any number if empty.
    """
    sentences = [each for each in SENTENCE.findall(text) if each.strip()]
    told = [
        each
        for each in sentences
        if (set(NUMBER.findall(each)) & set(needed) if needed else NUMBER.search(each))
    ]
    if not told or len(sentences) < 2:
        return None
    left = text.replace(rng.choice(told), "", 1).strip()
    return left or None


@dataclass(frozen=True)
class Operator(Generic[Site]):
    """One way to plant a fault.

    Attributes:
        name: its name in `PLANTED`: the failure mode and a word, such as ``2.6-number``.
        fault: description of the fault.
        certain: the reason for which the label is certain.
        plant: returns the change at a site, or None where the operator does not apply.
        applies: the sites at which it applies, in words.
    """

    name: str
    fault: str
    certain: str
    plant: Callable[[Site, Random], Change | None]
    applies: str

    @property
    def mode(self) -> str:
        """Code of the failure mode; empty for a fault of the environment."""
        return PLANTED[self.name].mode

    @property
    def level(self) -> Level:
        """The level of the change."""
        return PLANTED[self.name].level

    @property
    def uncertain(self) -> str:
        """The reason for which its labels are often wrong; empty if they are not."""
        return PLANTED[self.name].uncertain

    @property
    def blames(self) -> bool:
        """True if the agent of the step is to blame; nobody is for a fault of the environment."""
        return bool(self.mode)

    @property
    def to_blame(self) -> str:
        """The one who is to blame, in words."""
        return "the agent of the step" if self.blames else "nobody"
