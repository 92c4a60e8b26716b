"""The JSON values of a text, one after the other: a value on each line, or values over many lines.

The first line with JSON decides which. Where each line is a value, a broken one is reported and the
next is read. Where values are spread over lines, a value ends where its brackets are closed; an
incomplete one is reported, and the next that begins at a line's start is read.
"""

from __future__ import annotations

import ast
import csv
import json
import os
import re
import zipfile
import zlib
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

from mast_trace.exceptions import ConfigurationError
from mast_trace.untrusted_json import well_formed_values
from mast_trace_judge.transfer.source import LARGEST, check_ratio

if TYPE_CHECKING:
    import io
    from collections.abc import Iterator

_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"')
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_HALF = re.compile(r"[\ud800-\udfff]")
_DEEP = 100
_SHOWN = 40
_SPACE = " \t\r\n\f\ufeff"
_OPENS = re.compile(r'[{]\s*(?:"|$)|\[\s*(?:["{\[]|$)')
"""Beginning of a value that goes on over lines: a log's line (``[INFO] {``) has another."""

_BEGINS = re.compile(
    r'[{]\s*(?:["}]|$)|\[\s*(?:["{\[\]]|$|(?:-?[0-9][0-9.eE+-]*|true|false|null)\s*(?:[,\]]|$))'
)
"""Beginning of an object or a list: a time in brackets is none, and no more is Python's notation."""

_SAMPLE = re.compile(r"samples/[^/]+\.json")
_LONGEST_LITERAL = 1 << 20
_ROWS = 64
"""Number of rows that are decoded at a time."""


@dataclass(frozen=True)
class Value:
    """A value and its position.

    Attributes:
        line: its number, or that of a table's row, from 1.
        size: characters that spell it.
    """

    line: int
    value: Any
    size: int


@dataclass(frozen=True)
class Broken:
    """An unreadable passage and its position; ``is_text`` if nothing in it looks like JSON."""

    line: int
    problem: str
    is_text: bool = False


class _LineTooLong(ValueError):
    """A line is longer than may be held."""


def values_of(text: io.TextIOBase) -> Iterator[Value | Broken]:
    """Yield the values of a text and its broken passages, in their order."""
    lines = _Lines(text)
    for number, line in lines:
        if isinstance(line, _LineTooLong):
            yield Broken(number, str(line))
        elif not _BEGINS.match(line.lstrip(_SPACE)):
            kind = "neither an object nor a list" if _is_scalar(line) else "no JSON"
            problem = f"it is {kind}: {_start_of(line)!r}"
            yield Broken(number, problem, is_text=kind == "no JSON")
        elif lines.are_values or _is_whole(line) or lines.next_is_a_value(line):
            for found in _decoded([number], line):
                if isinstance(found, Value) and not lines.are_spread:
                    lines.are_values = True
                yield found
        else:
            lines.are_spread = True
            yield from _spread(number, line, lines)


class _Lines:
    """The lines of a text that are not empty, with their numbers; one can be peeked or put back."""

    def __init__(self, text: io.TextIOBase) -> None:
        self._text = text
        self._number = 0
        self._ahead: list[tuple[int, str | _LineTooLong]] = []
        self.are_values = False
        self.are_spread = False

    def __iter__(self) -> Iterator[tuple[int, str | _LineTooLong]]:
        while (found := self.next()) is not None:
            yield found

    def next(self) -> tuple[int, str | _LineTooLong] | None:
        if self._ahead:
            return self._ahead.pop()
        while line := self._text.readline(LARGEST + 1):
            self._number += 1
            if line == "\n":  # a file may hold very many
                continue
            if len(line) > LARGEST:
                number = self._number
                while line and not line.endswith("\n"):
                    line = self._text.readline(LARGEST)
                problem = f"it is longer than {LARGEST >> 20} MiB: write each run on a line"
                return number, _LineTooLong(problem)
            if line.strip(_SPACE):
                return self._number, line
        return None

    def put_back(self, number: int, line: str | _LineTooLong) -> None:
        self._ahead.append((number, line))

    def next_is_a_value(self, line: str) -> bool:
        """Return whether an unbalanced line is broken, judging by the whole value after it."""
        if self.are_spread or line.strip(_SPACE) in {"[", "{"}:
            return False
        following = self.next()
        if following is None:
            return False
        self.put_back(*following)
        after = following[1]
        return isinstance(after, str) and after.startswith("{") and _is_balanced(after)


def _is_balanced(line: str) -> bool:
    depth, in_string = _depth_after(line)
    return depth <= 0 and not in_string


def _is_whole(line: str) -> bool:
    """Return whether a line is not the first of a value over several lines."""
    return _OPENS.match(line.strip(_SPACE)) is None or _is_balanced(line)


def _depth_after(line: str) -> tuple[int, bool]:
    """Return the number of open brackets after a line, and whether it ends within a string."""
    bare = _STRING.sub("", line)
    opened = bare.count("{") + bare.count("[")
    return opened - bare.count("}") - bare.count("]"), '"' in bare


def _spread(number: int, first: str, lines: _Lines) -> Iterator[Value | Broken]:
    """Yield the value that begins on a line and ends on a later one."""
    held, numbers, size = [first], [number], len(first)
    depth, in_string = _depth_after(first)
    alone = first.rstrip() == "{"
    while depth > 0 and not in_string:
        following = lines.next()
        if following is None:
            yield Broken(number, "the file ends within the value that begins here")
            return
        at, line = following
        cut = alone and isinstance(line, str) and line.startswith("{")
        if cut or isinstance(line, _LineTooLong):
            lines.put_back(at, line)
            yield Broken(number, "the value that begins here has no end")
            return
        held.append(line)
        numbers.append(at)
        size += len(line)
        if size > LARGEST:
            yield Broken(number, f"it is longer than {LARGEST >> 20} MiB: write each run on a line")
            return
        more, in_string = _depth_after(line)
        depth += more
    if in_string:
        problem = f"a text in the value that begins here has no end: {_start_of(held[-1])!r}"
        yield Broken(number, problem)
        return
    yield from _decoded(numbers, "".join(held))


def _decoded(numbers: list[int], text: str) -> Iterator[Value | Broken]:
    """Yield the values in a text, whose lines have these numbers, or its fault."""
    number = numbers[0]
    try:
        found = list(_each(text))
    except RecursionError:
        yield Broken(number, "it nests too deeply")
    except json.JSONDecodeError as error:
        # A value that is cut off is missing where the text ends, not on the empty line after it.
        at = min(error.pos, len(text.rstrip(_SPACE)))
        column = at - text.rfind("\n", 0, at)
        found_on = numbers[text.count("\n", 0, at)]
        there = f"{_start_of(text[at:])!r}" if text[at:].strip(_SPACE) else "it ends there"
        yield Broken(found_on, f"it is no JSON at column {column}: {there}")
    except ValueError as error:
        is_number = "set_int_max_str_digits" in str(error)  # Python's own words
        yield Broken(number, "a number in it has thousands of digits" if is_number else str(error))
    else:
        for value in found:
            yield Value(number, value, len(text) // len(found))


def _each(text: str) -> Iterator[Any]:
    if _HALF.search(text):
        raise ValueError("it is no UTF-8")
    checked = _SURROGATE.search(text) or text.count("[") + text.count("{") > _DEEP
    begin = _after_space(text, 0)
    while begin < len(text):
        value, end = _DECODER.raw_decode(text, begin)
        yield well_formed_values(value) if checked else value
        begin = _after_space(text, end)


def _after_space(text: str, begin: int) -> int:
    while begin < len(text) and text[begin] in _SPACE:
        begin += 1
    return begin


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {twice[:_SHOWN]!r} stands twice in one object")
    return made


def _constant(name: str) -> str:
    """Return ``NaN`` and ``Infinity``, which JSON does not have, as texts."""
    return name


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant)


def _is_scalar(line: str) -> bool:
    """Return whether a line is a number, a text, a truth value or null of JSON."""
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def _start_of(line: str) -> str:
    text = line.strip(_SPACE)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def members_of(file: IO[bytes]) -> Iterator[Value | Broken]:
    """Yield the samples in the archive that inspect_ai writes (``.eval``), one at a time.

    Raises:
        ValueError: the file is no archive that can be read, or holds no samples.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            members = [each for each in archive.infolist() if _SAMPLE.fullmatch(each.filename)]
            if not members:
                raise ValueError(
                    "it is a zip archive without samples: unpack it, and import its files"
                )
            for number, member in enumerate(members, 1):
                if member.file_size > LARGEST:
                    yield Broken(number, f"{member.filename} is longer than {LARGEST >> 20} MiB")
                    continue
                check_ratio(member.file_size, member.compress_size)
                text = archive.read(member).decode("utf-8", "surrogateescape")
                yield from _decoded([number] * (text.count("\n") + 1), text)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise ValueError(f"the archive cannot be read: {error}") from None


def rows_of_columns(value: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of a data frame that pandas wrote as an object of columns; none for another object."""
    first, *others = value.values() or [None]
    if not isinstance(first, dict) or not first or not others:
        return []
    if not all(isinstance(each, dict) and each.keys() == first.keys() for each in others):
        return []
    return [
        {name: column[row] for name, column in value.items() if column[row] is not None}
        for row in first
    ]


def csv_rows_of(text: io.TextIOBase) -> Iterator[Value | Broken]:
    """Yield the rows of a table in CSV as objects of their columns, without empty ones.

    Lists and objects stand in such a table as Python writes them.
    """
    csv.field_size_limit(LARGEST)
    try:
        for number, row in enumerate(csv.DictReader(text), 2):
            given = {key: _python(value) for key, value in row.items() if key and value}
            yield Value(number, well_formed_values(given), _size_of(given))
    except csv.Error as error:
        raise ValueError(f"the table cannot be read: {error}") from None


def _python(value: Any) -> Any:
    """Return the list or object that a text spells in Python's words; JSON, and other texts, unchanged."""
    if not isinstance(value, str) or value[:1] not in {"[", "{"} or len(value) > _LONGEST_LITERAL:
        return value
    try:
        json.loads(value)
    except ValueError:
        try:
            return ast.literal_eval(value)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return value
    return value


def rows_of(file: IO[bytes]) -> Iterator[Value | Broken]:
    """Yield the rows of a Parquet file as objects of their columns, without null values.

    Texts stay in the file's dictionaries until their row is read, so that a small file that spells
    one long text in very many rows takes the memory of one.

    Raises:
        ConfigurationError: pyarrow is missing.
        ValueError: the file is no Parquet that can be read.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise ConfigurationError("Parquet needs pyarrow: pip install pyarrow") from error
    try:
        schema = pq.read_schema(file)
        texts = [
            field.name
            for field in schema
            if pa.types.is_string(field.type) or pa.types.is_large_string(field.type)
        ]
        file.seek(0)
        table = pq.ParquetFile(file, read_dictionary=texts)
        _check_size(table.metadata, file.seek(0, os.SEEK_END))
        number = 0
        for batch in table.iter_batches(batch_size=_ROWS):
            for place in range(batch.num_rows):
                number += 1
                yield _row(number, batch.slice(place, 1))
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise ValueError(f"the Parquet file cannot be read: {error}") from None


def _check_size(metadata: Any, packed: int) -> None:
    groups = range(metadata.num_row_groups)
    check_ratio(sum(metadata.row_group(number).total_byte_size for number in groups), packed)
    for number in groups:
        size = metadata.row_group(number).total_byte_size
        if size > 8 * LARGEST:
            raise ValueError(
                f"row group {number} takes {size >> 20} MiB: write it in groups of fewer rows"
            )


def _row(number: int, row: Any) -> Value | Broken:
    try:
        (values,) = row.to_pylist()
        given = {key: value for key, value in values.items() if value is not None}
        return Value(number, well_formed_values(given), _size_of(given))
    except (ValueError, OverflowError) as error:
        return Broken(number, str(error))


def _size_of(value: Any) -> int:
    """Return the approximate number of characters that spell a value."""
    if isinstance(value, dict):
        return sum(len(key) + _size_of(each) for key, each in value.items())
    if isinstance(value, list):
        return sum(map(_size_of, value))
    return len(value) if isinstance(value, str) else 8
