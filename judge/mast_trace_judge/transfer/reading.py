"""Reads the runs of files of any known program, one value at a time."""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from zstandard import ZstdError

from mast_trace_judge.transfer.databases import is_database, runs_of_database
from mast_trace_judge.transfer.formats import (
    FORMATS,
    format_of_messages,
    format_of_record,
    format_of_table,
    format_of_text,
    nearest_format,
)
from mast_trace_judge.transfer.formats.otlp import OTLP, request_from_protobuf
from mast_trace_judge.transfer.formats.own_export import parts_joined
from mast_trace_judge.transfer.json_values import (
    Broken,
    Value,
    csv_rows_of,
    members_of,
    rows_of,
    rows_of_columns,
    values_of,
)
from mast_trace_judge.transfer.source import (
    LARGEST,
    Source,
    UnreadableFile,
    check_kind,
    columns_of,
    is_parquet,
    is_yaml,
    is_zip,
    mistaken,
    text_of,
)

if TYPE_CHECKING:
    import io
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from mast_trace_judge.transfer.formats.kinds import Format, Read, TextLog

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


_ENVELOPES = (
    *("data", "runs", "traces", "spans", "observations", "items", "results", "simulations"),
    *("samples", "content", "events", "result", "trace", "chat"),
)
"""Keys under which APIs put their results."""
_ENVELOPED = 4
"""Lists and answers of APIs that may stand around what is read."""
_LOOKED_AT = 100
_SHOWN_KEYS = 6
_HEAD = 4096
_TOLD = 1000
"""Lines without JSON before the first value that are told one by one."""
_SUFFIXES = frozenset(
    {".json", ".jsonl", ".ndjson", ".parquet", ".pb", ".log", ".txt", ".csv", ".eval", ".traj"}
    | {".db", ".sqlite", ".sqlite3"}
)
NO_FILES = f"it holds no files of runs: their names end in {', '.join(sorted(_SUFFIXES))}"
_LOGS = ", ".join(row.title for row in FORMATS if row.text is not None)
_COMPRESSED = frozenset({".gz", ".zst"})
_UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, RecursionError)
"""Errors of a reader for a value that only looks like its format."""


@dataclass(frozen=True)
class Piece:
    """The format of one value of a file, and its content."""

    row: Format
    read: Read


@dataclass(frozen=True)
class Refused:
    """An unreadable value: its position and the reason.

    Attributes:
        line: of the file, or its row in a table; None for the file as a whole.
        is_unknown: whether the value is of no known format, or no value at all.
        is_text: whether nothing in it looks like JSON.
    """

    file: str
    line: int | None
    problem: str
    is_unknown: bool = False
    is_text: bool = False

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{place}: {self.problem}"


def read_source(source: Source, row: Format | None = None) -> Iterator[Piece | Refused]:
    """Yield the content of a file in its order, and its unreadable values.

    One line, document or row is held at a time; the messages of a run on lines of their own are
    held together.

    Args:
        source: the file.
        row: the format of the file; None recognises it by each value.
    """
    found = False
    try:
        with source.opened() as data:
            for each in _told_once(_File(source, row).read(data)):
                found = True
                yield each
    except UnreadableFile as error:
        yield Refused(source.name, None, str(error).removeprefix(f"{source.name}: "))
        return
    except (ValueError, EOFError) as error:
        yield Refused(source.name, None, str(error))
        return
    if not found:
        yield Refused(source.name, None, "it holds no runs" if source.size else "it is empty")


def values_in(
    data: io.BufferedReader, row: Format | None = None
) -> tuple[Format | None, Iterator[Value | Broken] | None]:
    """Return the format of a file, where its beginning tells it, and its values.

    The format is the given one where the beginning tells nothing. The values are None for binary data,
    which may be protobuf.
    """
    if is_parquet(data):
        return row, parts_joined(rows_of(data))
    if is_zip(data):
        return row, members_of(data)
    if is_database(data):
        return row, runs_of_database(data)
    check_kind(data.peek(_HEAD)[:_HEAD])
    text = text_of(data)
    if text is None:
        return row, None
    start = data.peek(_HEAD)[:_HEAD].decode(text.encoding, "replace")
    logged = format_of_text(COLOURS.sub("", start))
    if logged is not None and logged.text is not None and row in {None, logged}:
        return logged, entries_of_log(text, logged.text)
    columns, is_even = columns_of(start)
    known = format_of_table(columns)
    if is_even and known is None and row is None:
        told = f"it is a table with the columns {_listed(columns)}, which no trace format has"
        raise ValueError(told + nearest_format(dict.fromkeys(columns, "x")))
    return row, csv_rows_of(text) if known else values_of(text)


class _File:
    """Reads one file."""

    def __init__(self, source: Source, row: Format | None) -> None:
        self._name = source.name
        self._stem = source.stem
        self._row = row
        self._held: list[tuple[Value, Any]] = []
        self._held_size = 0
        self._told: set[str] = set()
        self._waiting: list[tuple[Format, Any, Value, str]] = []
        self._waiting_size = 0

    def read(self, data: io.BufferedReader) -> Iterator[Piece | Refused]:
        self._row, values = values_in(data, self._row)
        if values is None:
            yield Piece(OTLP, request_from_protobuf(_all_of(data)))
            return
        first, several, broken = None, False, None
        try:
            for each in values:
                if first is None:
                    first = each
                    continue
                if not several:
                    several = True
                    yield from self._value(first, f"{self._stem}/{first.line}")
                yield from self._value(each, f"{self._stem}/{each.line}")
        except (ValueError, EOFError, OSError, zlib.error, ZstdError) as error:
            broken = error  # raised once the beginning of the file is read
        if first is not None and not several:
            yield from self._value(first, self._stem)
        yield from self._held_messages()
        yield from self._unsettled()
        if broken is not None:
            raise broken

    def _value(self, each: Value | Broken, name: str) -> Iterator[Piece | Refused]:
        if isinstance(each, Broken):
            yield Refused(self._name, each.line, each.problem, each.is_text, each.is_text)
            return
        yield from self._pieces(each.value, each, name)

    def _pieces(self, value: Any, at: Value, name: str) -> Iterator[Piece | Refused]:
        row = self._row
        if row is not None and _belongs(row, value):
            yield from self._read(row, value, at, name)
            return
        record = None if row is not None else format_of_record(value)
        if record is not None:
            yield from self._read(record, value, at, name)
            return
        listed = _records_in(value, row)
        if listed is not None:
            for number, item in enumerate(listed):
                yield from self._pieces(item, at, f"{name}/{number}")
            return
        if isinstance(value, list):
            yield from self._messages(value, at, name)
        elif (row or format_of_messages([value])) and (row is None or row.message(value)):
            yield from self._hold(value, at)
        elif row is not None:
            yield from self._read(row, value, at, name)
        elif messages := next(filter(format_of_messages, _under(value)), None):
            yield from self._messages(messages, at, name)
        else:
            yield Refused(self._name, at.line, _unknown(value), is_unknown=True)

    def _messages(self, value: list[Any], at: Value, name: str) -> Iterator[Piece | Refused]:
        row = self._row or format_of_messages(value)
        if row is None:
            problem = "it holds no messages" if not value else _unknown(value)
            yield Refused(self._name, at.line, problem)
        else:
            yield from self._read(row, value, at, name)

    def _read(self, row: Format, value: Any, at: Value, name: str) -> Iterator[Piece | Refused]:
        """Read a value, unless it waits for what others tell."""
        if (known := row.settled(value, self._told, is_last=False)) is not None:
            yield from self._settled(row, known, at, name)
            return
        if not self._waiting or self._waiting[-1][2] is not at:
            self._waiting_size += at.size
        self._waiting.append((row, value, at, name))
        if self._waiting_size > LARGEST:
            yield from self._unsettled()

    def _unsettled(self) -> Iterator[Piece | Refused]:
        """Read the values that waited, with what was told until now."""
        for row, value, at, name in self._waiting:
            yield from self._settled(row, row.settled(value, self._told, is_last=True), at, name)
        self._waiting, self._waiting_size = [], 0

    def _settled(self, row: Format, value: Any, at: Value, name: str) -> Iterator[Piece | Refused]:
        """Read a value completely: a value that fails half-way yields nothing."""
        try:
            pieces = [Piece(row, each) for each in row.read(value, name)]
        except _UNREADABLE as error:
            problem = _problem_of(error)
            yield Refused(self._name, at.line, f"no {row.title} that can be read: {problem}")
            return
        yield from pieces

    def _hold(self, message: Any, at: Value) -> Iterator[Refused]:
        self._held_size += at.size
        if self._held_size > LARGEST:
            self._held_size -= at.size
            problem = f"its run is longer than {LARGEST >> 20} MiB: the message is left out"
            yield Refused(self._name, at.line, problem)
            return
        self._held.append((at, message))

    def _held_messages(self) -> Iterator[Piece | Refused]:
        """Read the messages on lines of their own: they are one run."""
        if not self._held:
            return
        row = self._row or format_of_messages([message for _, message in self._held])
        assert row is not None  # each was held because a row recognises it
        readable = []
        for at, message in self._held:
            try:
                row.entry(message)
            except _UNREADABLE as error:
                problem = f"no message of {row.title} that can be read: {_problem_of(error)}"
                yield Refused(self._name, at.line, problem)
            else:
                readable.append(message)
        yield from self._read(row, readable, self._held[0][0], self._stem)


def _problem_of(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"it lacks {error}"
    return str(error) if isinstance(error, ValueError) else "a part of it is of another type"


def _belongs(row: Format, value: Any) -> bool:
    """Return whether a value, of a file whose format is named, holds whole runs of that format."""
    if row.record(value):
        return True
    return isinstance(value, list) and bool(value) and any(map(row.message, value))


def _records_in(value: Any, row: Format | None, depth: int = _ENVELOPED) -> list[Any] | None:
    """Return the items of a list, or of an answer of an API, that are read one by one."""
    if not depth:
        return None
    known = row.record if row is not None else format_of_record
    for listed in [value] if isinstance(value, list) else _under(value):
        if any(
            (isinstance(each, list) and each) or known(each) or _records_in(each, row, depth - 1)
            for each in listed[:_LOOKED_AT]
        ):
            return listed
    return None


def _under(value: Any) -> list[list[Any]]:
    """Return what the answer of an API, or a data frame, lists."""
    if not isinstance(value, dict):
        return []
    if rows := rows_of_columns(value):
        return [rows]
    found = (value.get(key) for key in _ENVELOPES)
    return [
        [each] if isinstance(each, dict) else each
        for each in found
        if isinstance(each, dict | list)
    ]


_NOT_SPANS = {"resourceLogs": "logs", "resourceMetrics": "metrics"}


def _unknown(value: Any) -> str:
    for key in _NOT_SPANS.keys() & value.keys() if isinstance(value, dict) else ():
        return f"it holds {_NOT_SPANS[key]} of OTLP: spans are read from files, and a collector takes the rest"
    listed = value if isinstance(value, list) else next(filter(None, _under(value)), [])
    wraps = isinstance(value, dict) and any(each is listed[0] for each in value.values() if listed)
    inner = listed[0] if listed and isinstance(listed[0], dict) and not wraps else value
    if not isinstance(inner, dict):
        what = "a list that holds neither messages nor runs"
    elif not inner:
        what = "an empty object"
    else:
        holder = "an object" if inner is value else "a list of objects"
        what = f"{holder} with the {'key' if len(inner) == 1 else 'keys'} {_listed(inner)}"
    return f"{what} is of no known format{nearest_format(inner)}; `mast-trace import --formats` lists what is read"


def _listed(names: Iterable[Any]) -> str:
    shown = [str(name)[:40] for name in islice(names, _SHOWN_KEYS + 1)]
    return ", ".join([*shown[:_SHOWN_KEYS], "..."] if len(shown) > _SHOWN_KEYS else shown)


def _told_once(found: Iterable[Piece | Refused]) -> Iterator[Piece | Refused]:
    """Yield the content of a file; where nothing of it is known, what it is instead is said once."""
    held: list[Refused] = []
    unknown = lines = 0
    rest = iter(found)
    for each in rest:
        if not isinstance(each, Refused) or not each.is_unknown:
            yield from held
            if unknown > _TOLD:
                yield Refused(
                    held[0].file,
                    None,
                    f"{unknown - _TOLD:,} more of its values are of no known format",
                )
            yield each
            yield from rest
            return
        unknown, lines = unknown + 1, lines + each.is_text
        held += [each] if unknown <= _TOLD else []
    if unknown < 2:
        yield from held
    elif lines == unknown and is_yaml(held[0].problem.partition(": '")[2][:-1]):
        yield Refused(held[0].file, None, mistaken(f"YAML ({lines:,} lines)"))
    elif lines == unknown:
        problem = (
            f"it is text without any JSON ({lines:,} lines), and no trace format reads it"
            f"{nearest_format({})}; spans (OTLP in JSON) and text of {_LOGS} are read as well"
        )
        yield Refused(held[0].file, held[0].line, problem)
    else:
        first = next(each for each in held if not each.is_text)
        yield Refused(first.file, first.line, f"{first.problem} ({unknown - 1:,} more likewise)")


def _all_of(data: io.BufferedReader) -> bytes:
    whole = data.read(LARGEST + 1)
    if len(whole) > LARGEST:
        raise ValueError(
            f"it is longer than {LARGEST >> 20} MiB: split it, or send it to a collector"
        )
    return whole


# -- folders --------------------------------------------------------------------------------------


def files_in(folder: Path) -> list[Path]:
    """Return the files below a folder whose names are those of recorded runs, in their order."""
    return sorted(
        path
        for path in folder.rglob("*")
        if path.is_file() and not path.name.startswith(".") and _may_hold_runs(path)
    )


def _may_hold_runs(path: Path) -> bool:
    suffixes = path.suffixes[::-1]
    if suffixes and suffixes[0] in _COMPRESSED:
        suffixes = suffixes[1:]
    return bool(suffixes) and suffixes[0] in _SUFFIXES
