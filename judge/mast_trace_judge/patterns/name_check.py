"""Checks a model's sentence on a pattern against the texts of its runs.

A sentence holds only with a quote from each of two runs, where two were read. It may not be itself a text of the
record, so that a passage that tells the reader a name does not become the name; nor may it say a number, a quoted
passage or an address that the record does not hold.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mast_trace_judge.llm.answers import ModelAnswer
from mast_trace_judge.llm.quotes import FoldedText
from mast_trace_judge.local.addressing.cleaning import clean
from mast_trace_judge.local.addressing.recognition import addresses_reader
from mast_trace_judge.patterns.name_record import LEAST_RUNS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mast_trace_judge.patterns.name_record import NameRecord

LONGEST: Final = 240
"""Most characters of a sentence, and of a quote."""
_QUOTES: Final = 4
_LEAST_QUOTE: Final = 8
"""Folded characters from which a quote is more than a coincidence."""
_COPIED: Final = 8
"""Words in a row from which a sentence repeats the record."""
_INLINE: Final = re.compile(
    r"[“”«»„\"]([^“”«»„\"]+)[“”«»„\"]|(?<!\w)[‘']([^‘’']{2,})[’'](?!\w)|`([^`]+)`"  # noqa: RUF001  # quotation marks
)
_ADDRESS: Final = re.compile(r"://|\bwww\.|\S@\w+\.\w|</?\w|\]\(")
_SEVERAL: Final = re.compile(r"[.!?]\s+[A-Z]")
_NUMBER: Final = re.compile(r"\d(?:[\d.,:]*\d)?")
_PERCENT: Final = re.compile(r"%|\bper\s?cent", re.IGNORECASE)
_SPELLED: Final = re.compile(
    r"\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|forty|fifty|sixty|seventy|eighty|"
    r"ninety|dozen|hundred|thousand|million|half|thirds?|quarters?|twice|thrice|most|majority)\b",
    re.IGNORECASE,
)


class PatternName(ModelAnswer):
    """A model's name of a pattern."""

    sentence: str
    quotes: list[str]


@dataclass(frozen=True)
class Name:
    """A sentence that holds, with the passages that show it."""

    sentence: str
    quotes: tuple[str, ...]


def checked(answer: PatternName, record: NameRecord) -> Name | str:
    """Return the name, or the reason why it does not hold."""
    sentence = " ".join(clean(answer.sentence).split())
    fault = _fault(sentence, record)
    if fault:
        return fault
    quotes: dict[str, None] = {}
    shown_by: set[str] = set()
    for quote in answer.quotes:
        for run, passage in _found(quote, record):
            quotes[passage] = None
            shown_by.add(run)
    if not quotes:
        return "no quote of it stands in the runs"
    if len(shown_by) < min(LEAST_RUNS, len(record.runs)):
        return "its quotes stand in one run alone"
    return Name(sentence, tuple(quotes)[:_QUOTES])


def _fault(sentence: str, record: NameRecord) -> str:
    """Return why a sentence cannot be a name, whatever its quotes are; empty if it can."""
    evidence = record.evidence
    known = FoldedText.of(evidence)
    own = _INLINE.sub(" ", sentence)
    faults = {
        "it is empty": not any(char.isalpha() for char in sentence),
        f"it is longer than {LONGEST} characters": len(sentence) > LONGEST,
        "it addresses the reader of the record": addresses_reader(sentence),
        "it holds an address or markup": bool(_ADDRESS.search(sentence)),
        "it says a number that is not in the runs": not _numbers(sentence) <= _numbers(evidence),
        "it quotes what is not in the runs": not _quotes_truly(sentence, known),
        "it is more than one sentence": bool(_SEVERAL.search(own)),
        "it is a text of the runs, not the model's own words": _repeats(own, known),
    }
    return next((told for told, found in faults.items() if found), "")


def _quotes_truly(sentence: str, known: FoldedText) -> bool:
    passages = (next(filter(None, found.groups())) for found in _INLINE.finditer(sentence))
    folded = (FoldedText.of(passage).folded for passage in passages)
    return all(known.find(passage) is not None for passage in folded if passage)


def _found(quote: str, record: NameRecord) -> Iterator[tuple[str, str]]:
    """Yield run and passage for each run that holds a quote."""
    cleaned = clean(quote)
    long_enough = len(FoldedText.of(cleaned).folded) >= _LEAST_QUOTE
    if not long_enough or len(cleaned) > LONGEST or addresses_reader(cleaned):
        return
    for read in record.runs:
        for passage in read.passages(cleaned):
            shown = " ".join(clean(passage).split())
            # A passage may hold any number of signs between two words of its quote.
            if 0 < len(shown) <= 2 * LONGEST and not addresses_reader(shown):
                yield read.run.trace_id, shown


def _numbers(text: str) -> set[str]:
    """Return the numbers of a text, spelled ones and the word percent included."""
    found = {number.rstrip(".,:") for number in _NUMBER.findall(text)}
    found.update(word.lower() for word in _SPELLED.findall(text))
    return found | ({"%"} if _PERCENT.search(text) else set())


def _repeats(sentence: str, known: FoldedText) -> bool:
    """Return whether the sentence, or many words of it in a row, stand in the record."""
    words = FoldedText.of(sentence).folded.split()
    length = min(_COPIED, len(words))
    if not length:
        return True
    return any(_stands(words[at : at + length], known) for at in range(len(words) - length + 1))


def _stands(words: Sequence[str], known: FoldedText) -> bool:
    return known.find(" ".join(words)) is not None
