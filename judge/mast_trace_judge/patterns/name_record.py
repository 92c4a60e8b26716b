"""The record that a model reads to name a pattern: the steps of a few runs that show it.

Checks a model's sentence on a pattern against the texts of its runs.

A sentence holds only with a quote from each of two runs, where two were read. It may not be itself a text of the
record, so that a passage that tells the reader a name does not become the name; nor may it say a number, a quoted
passage or an address that the record does not hold.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from mast_trace_judge.llm.answers import ModelAnswer
from mast_trace_judge.llm.quotes import FoldedText, QuoteCheck, sources
from mast_trace_judge.llm.transcript import LEFT_OUT, MARK, Renderer, estimate_tokens, nonce
from mast_trace_judge.local.addressing.recognition import addresses_reader, clean

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mast_trace.trajectory import Step, Trajectory
    from mast_trace_judge.patterns.places import ShowingRun, Unnamed

RUNS: Final = 3
"""Most runs whose texts are read for one name."""
LEAST_RUNS: Final = 2
"""Runs that a name rests on, where so many have texts."""
_BEFORE: Final = 2
_AFTER: Final = 1
_CLIP: Final = 400
_FULL: Final = 1200
_LEAST_CLIP: Final = 40

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


@dataclass(frozen=True)
class ReadRun:
    """A run of which some steps are shown.

    Attributes:
        run: shows the pattern.
        texts: looks quotes up in it.
        steps: indices of the steps that are shown.
    """

    run: ShowingRun
    texts: QuoteCheck
    steps: tuple[int, ...]

    def passages(self, quote: str) -> list[str]:
        """Return the original passages of a quote in the shown steps; empty where it is not in them."""
        found = self.texts.verify([quote], self.steps)
        return [passage for step, passage in found if step in self.steps]


@dataclass(frozen=True)
class NameRecord:
    """The texts of some runs that show a pattern.

    Attributes:
        text: between fences, sanitised.
        place: the pattern's agent, recipient and tool, likewise.
        runs: those whose texts it holds.
    """

    text: str
    place: str
    runs: tuple[ReadRun, ...]

    @property
    def evidence(self) -> str:
        """The words of the runs alone, as they are shown: no headings, no numbers of steps."""
        lines = f"{self.place}\n{self.text}".split("\n")
        told = "\n".join(line[len(MARK) :] for line in lines if line.startswith(MARK))
        return LEFT_OUT.sub(" ", told)


def readable(run: ShowingRun, trajectory: Trajectory) -> ReadRun | None:
    """Return a run with the steps to show, around the one that shows the pattern; None if they have no text."""
    count = len(trajectory.steps)
    place = min(run.step, count - 1)
    shown = range(max(0, place - _BEFORE), min(count, place + _AFTER + 1))
    steps = tuple(index for index in shown if sources(trajectory.steps[index]))
    return ReadRun(run, QuoteCheck(trajectory), steps) if steps else None


def name_record(pattern: Unnamed, runs: Sequence[ReadRun], version: str, tokens: int) -> NameRecord:
    """Write down the shown steps of runs, clipped until they take at most so many tokens, else of fewer runs.

    Args:
        pattern: to be named.
        runs: at least one; beyond `LEAST_RUNS` the last one is left out first.
        version: of the judge; the marks of the fences depend on it.
        tokens: most tokens of the record, where texts of `_LEAST_CLIP` characters allow it.
    """
    mark = nonce(pattern.pattern, *(run.run.trace_id for run in runs), version)
    writers = [
        Renderer(run.texts.trajectory, mark, in_full=frozenset({run.run.step})) for run in runs
    ]
    facts = {"agent": pattern.agent, "recipient": pattern.peer, "tool": pattern.tool}
    told = [f"{name}: {value}" for name, value in facts.items() if value]
    lines = [line for fact in told for line in writers[0].quoted(fact, _CLIP)]
    place = writers[0].fenced("place", "\n".join(lines))
    clip, count = _CLIP, len(runs)
    while True:
        text = "\n\n".join(
            f"Run {number} of {count}:\n{_shown(writer, run, clip)}"
            for number, (writer, run) in enumerate(
                zip(writers[:count], runs, strict=False), start=1
            )
        )
        if estimate_tokens(place + text) <= tokens or (clip <= _LEAST_CLIP and count <= LEAST_RUNS):
            return NameRecord(text, place, tuple(runs[:count]))
        if clip > _LEAST_CLIP:
            clip //= 2
        else:
            count -= 1


def _shown(writer: Renderer, run: ReadRun, clip: int) -> str:
    steps: list[Step] = [run.texts.trajectory.steps[index] for index in run.steps]
    return replace(writer, clip=clip, full=min(_FULL, 3 * clip)).record(steps)


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
    folded = (FoldedText.of(passage) for passage in passages)
    return all(known.find(passage) is not None for passage in folded if passage.folded)


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
    found = set(_NUMBER.findall(text))
    found.update(word.lower() for word in _SPELLED.findall(text))
    return found | ({"%"} if _PERCENT.search(text) else set())


def _repeats(sentence: str, known: FoldedText) -> bool:
    """Return whether the sentence, or many words of it in a row, stand in the record."""
    words = FoldedText.of(sentence).folded.split()
    length = min(_COPIED, len(words))
    if not length:
        return True
    return any(
        known.find(FoldedText.of(" ".join(words[at : at + length]))) is not None
        for at in range(len(words) - length + 1)
    )
