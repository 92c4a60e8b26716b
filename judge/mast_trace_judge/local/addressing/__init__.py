"""Finds text in a run that addresses its judge.

Every text of every run is searched, so most of them have to cost little: some are looked at together, and
where they hold no key of a phrase, nothing else is tried.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from mast_trace_judge.local.addressing.recognition import (
    addresses_reader,
    clean,
    may_address_reader,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from mast_trace.trajectory import Step, Trajectory

_EDGE = 300
"""Characters at the end of one message and at the beginning of another that are searched as one text."""
_APART = 2
"""Distance of messages over which a passage may be split: neighbours, or one message between them."""
_KEY = 40
"""Characters on either side of a message boundary that are searched for a key that was split there."""


_TOGETHER = 8192
"""Characters of texts that are looked at together."""


@dataclass(frozen=True)
class Addressed:
    """The places where a run addresses its judge.

    Attributes:
        steps: indexes of steps whose texts, arguments, errors or names address it.
        split: indexes of steps whose texts address it only when they are joined.
        task: whether the task does, or the recorded reasons and errors of the run's end.
    """

    steps: tuple[int, ...] = ()
    split: tuple[int, ...] = ()
    task: bool = False

    def __bool__(self) -> bool:
        """Return whether there is any such place."""
        return bool(self.steps or self.split or self.task)


def addressed_in(trajectory: Trajectory) -> Addressed:
    """Search all texts of a run that were read; the time is linear in their length."""
    steps = trajectory.read_steps
    told = _Search(text for step in steps for text in _texts_of(step))
    return Addressed(
        steps=tuple(step.index for step in steps if any(map(told.speaks, _texts_of(step)))),
        split=told.split_over(steps),
        task=any(map(told.speaks, _told(trajectory))),
    )


def _texts_of(step: Step) -> tuple[str, ...]:
    texts = (step.text, step.arguments, step.error or "", step.agent, step.tool)
    return (*texts, *step.recipients, step.handoff_to)


def _told(run: Trajectory) -> tuple[str, ...]:
    """Return the task, and the recorded reasons, errors and open items of the run's end."""
    ends = (run.outcome_reason, run.expected, run.termination_reason, run.error or "")
    return (run.task, *ends, *run.open_items)


class _Search:
    """Searches each text of a run once, however often it occurs."""

    def __init__(self, texts: Iterable[str]) -> None:
        texts = dict.fromkeys(texts)
        suspect = set(_that_may_speak(texts))
        nothing = _Told(False, False)
        self._known = {text: nothing for text in texts if text not in suspect}

    def speaks(self, text: str) -> bool:
        """Return whether a text addresses the judge."""
        return self._of(text).speaks

    def split_over(self, steps: Sequence[Step]) -> tuple[int, ...]:
        """Return the steps that do together with a neighbour, and not by themselves."""
        pairs = [
            (step, other)
            for place, step in enumerate(steps)
            for other in steps[place + 1 : place + 1 + _APART]
            if step.text and other.text
        ]
        # A key of the phrase is in either text, or it is what was split.
        borders = [f"{one.text[-_KEY:]} {other.text[:_KEY]}" for one, other in pairs]
        suspect = set(_that_may_speak(dict.fromkeys(borders)))
        found: set[int] = set()
        for (one, other), border in zip(pairs, borders, strict=True):
            may = self._of(one.text).may_speak or self._of(other.text).may_speak
            if (may or border in suspect) and _speak_together(one.text, other.text):
                found |= {one.index, other.index}
        return tuple(sorted(found))

    def _of(self, text: str) -> _Told:
        known = self._known.get(text)
        if known is None:
            cleaned = clean(text)
            may = may_address_reader(cleaned)
            known = self._known[text] = _Told(may, may and addresses_reader(cleaned))
        return known


class _Told(NamedTuple):
    """True if a text holds a key of a phrase, and whether it addresses the judge."""

    may_speak: bool
    speaks: bool


def _that_may_speak(texts: Iterable[str]) -> Iterator[str]:
    """Yield the texts that stand among those of which one may speak to the judge."""
    batch: list[str] = []
    length = 0
    for text in texts:
        batch.append(text)
        length += len(text)
        if length >= _TOGETHER:
            yield from _ruled_in(batch)
            batch, length = [], 0
    yield from _ruled_in(batch)


def _ruled_in(batch: list[str]) -> list[str]:
    return batch if may_address_reader(clean("\n".join(batch))) else []


def _speak_together(one: str, other: str) -> bool:
    """Return whether two texts speak to the judge where they are read one after the other, and only then."""
    end, beginning = one[-_EDGE:], other[:_EDGE]
    return _speaks(f"{end} {beginning}") and not (_speaks(end) or _speaks(beginning))


def _speaks(text: str) -> bool:
    return addresses_reader(clean(text))
