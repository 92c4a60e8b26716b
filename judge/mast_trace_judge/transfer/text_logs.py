"""The entries of a log in plain text, each of which begins with a head of its own and may go on over lines."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from mast_trace_judge.transfer.json_values import Broken, Value
from mast_trace_judge.transfer.source import LARGEST

if TYPE_CHECKING:
    import io
    from collections.abc import Iterator

    from mast_trace_judge.transfer.formats.kinds import TextLog

COLOURS = re.compile(r"\x1b\[[0-9;]*m")
"""Marks of colours, which terminals are sent."""


def entries_of_log(text: io.TextIOBase, log: TextLog) -> Iterator[Value | Broken]:
    """Yield what each entry of a log says, without colours; what comes before the first is one broken passage."""
    entry = _Entry(None, 1)
    for number, raw in enumerate(iter(lambda: text.readline(LARGEST), ""), 1):
        line = COLOURS.sub("", _readable(raw))
        if (entry.ended or log.end is None) and (head := log.head.match(line)):
            yield from entry.finished(log)
            entry = _Entry(head, number)
            line = line[head.end() :]
        elif log.end is not None and log.end.match(line):
            entry.ended = True
        entry.add(line)
    yield from entry.finished(log)


def _readable(line: str) -> str:
    """Return a line in which a byte that is no UTF-8 is shown as such: a log has texts in any encoding."""
    return (
        line
        if line.isascii()
        else line.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    )


class _Entry:
    """The head of an entry, None before the first, and the lines after it."""

    def __init__(self, head: re.Match[str] | None, number: int) -> None:
        self._head = head
        self._number = number
        self._size = 0
        self._held: list[str] = []
        self.ended = head is None

    def add(self, line: str) -> None:
        """Hold a line, unless the entry is at its end or too long."""
        self._size += len(line)
        if self._size <= LARGEST and not (self.ended and self._head):
            self._held.append(line)

    def finished(self, log: TextLog) -> Iterator[Value | Broken]:
        """Yield what the entry says."""
        told = "".join(self._held).strip()
        if self._size > LARGEST:
            yield Broken(self._number, f"its entry is longer than {LARGEST >> 20} MiB")
        elif self._head is None and told:
            problem = f"it comes before the first entry of the log: {told[:40]!r}"
            yield Broken(self._number, problem)
        elif self._head is not None:
            try:
                value = log.value(self._head, told)
            except ValueError as error:
                yield Broken(self._number, f"its entry cannot be read: {error}")
            else:
                if value is not None:
                    yield Value(self._number, value, self._size)
