"""The state of things in a run: results that tools gave last, the lists in them, and calls that failed."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Final

from mast_trace_judge.local.stated import arguments, leaves, owner

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from mast_trace.trajectory import Step

_MOST: Final = 120
"""Characters of a result that says how a thing stands; a longer one is a document."""
_MOST_LISTS: Final = 20
"""Lists that are remembered, the newest ones, and entries of one; nobody tells all of a longer one."""
_SHORTEST: Final = 5
"""Letters below which a value stands in a text by chance."""
_NAMES: Final = re.compile(r"\S*[\d/_@][\w/.:-]*|\b[A-Z][a-z]+\b")
_BLANKS: Final = re.compile(r"\s+")
_LEFT_OUT: Final = "\N{HORIZONTAL ELLIPSIS}"


class States:
    """The states, lists and failed calls of a run, up to a step.

    Attributes:
        seen: all that each place has said, in short.
    """

    def __init__(self) -> None:
        self.seen: defaultdict[str, set[str]] = defaultdict(set)
        self._newest: dict[str, str] = {}
        self._lists: dict[tuple[str, str], tuple[str, ...]] = {}
        self._failed: dict[tuple[str, str], int] = {}

    def fail(self, step: Step) -> None:
        """Remember a call that failed, until the same agent has called the tool with success."""
        self._failed[owner(step), step.tool] = 0

    def go_on(self, agent: str, at: int) -> None:
        """Remember the first step by which an agent goes on after each of its calls that failed."""
        for each, begun in self._failed.items():
            if each[0] == agent and not begun:
                self._failed[each] = at

    def unrepaired(self) -> Iterator[tuple[str, int]]:
        """Yield in words which calls failed for good, each with the step by which its agent went on."""
        for (agent, tool), at in self._failed.items():
            if at:
                yield f"{agent} goes on after {tool} failed", at

    def note(self, step: Step, parts: Sequence[tuple[str, str]]) -> None:
        """Remember the result of a call.

        Args:
            step: the call.
            parts: names and texts of the result's fields; one without a name if it has none.
        """
        self._failed.pop((owner(step), step.tool), None)
        given = [str(value) for _, value in leaves(arguments(step))]
        lists: defaultdict[str, list[str]] = defaultdict(list)
        for name, value in parts:
            lists[f"{name} of {step.tool}" if name else step.tool].append(value)
        for place, entries in lists.items():
            listed = 1 < len(entries) <= _MOST_LISTS
            if listed and all(len(each) >= _SHORTEST for each in entries):
                self._lists[place, step.arguments] = tuple(each.lower() for each in entries)
                if len(self._lists) > _MOST_LISTS:
                    del self._lists[next(iter(self._lists))]
            elif len(entries) == 1 and (short := _in_short(entries[0], given)):
                self._newest[place] = short
                self.seen[place].add(short)

    def before(self, tool: str) -> Iterator[tuple[str, str]]:
        """Yield the places of all other tools with what they said last."""
        for place, short in self._newest.items():
            if place.rpartition(" of ")[2] != tool:
                yield place, short

    def told(self, text: str) -> Iterator[tuple[str, str]]:
        """Yield the lists of which a text has entries, with ``all`` or ``some``."""
        low = text.lower()
        for (place, _), entries in self._lists.items():
            there = sum(each in low for each in entries)
            if there:
                yield place, "all" if there == len(entries) else "some"


def _in_short(text: str, given: Iterable[str]) -> str:
    """Return a short text without numbers, names and what its call was given; empty for another one."""
    if len(text) > _MOST:
        return ""
    for each in given:
        # A shorter one stands inside of words.
        if len(each) >= _SHORTEST:
            text = text.replace(each, _LEFT_OUT)
    text = _BLANKS.sub(" ", _NAMES.sub(_LEFT_OUT, text)).strip()
    return text if any(map(str.isalpha, text)) else ""
