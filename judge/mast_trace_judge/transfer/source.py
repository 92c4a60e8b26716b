"""Opens files of any kind: plain or compressed, in any Unicode encoding, from a disk or a pipe."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import shutil
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, Any, cast

import zstandard

from mast_trace.exceptions import MastTraceError

STDIN = Path("-")
LARGEST = 128 * 1024 * 1024
"""Characters of the longest line, document or run that is held at a time."""
_UNPACKED, _RATIO = 16 * 1024 * 1024, 200
"""Unpacked bytes from which on a file may not be so many times smaller than its content. Recorded runs
are 5 to 50 times smaller; a file that is made to unpack to gigabytes is a thousand times and more."""
_SNIFFED = 4096
_GZIP, _ZSTANDARD, _PARQUET = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PAR1"
_ZIP = b"PK\x03\x04"
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_MISTAKEN = (
    (b"%PDF", "a PDF"),
    (b"\x89PNG", "an image"),
    (b"\xff\xd8", "an image"),
    (b"\x7fELF", "a program"),
    (b"\x80\x04", "a Python pickle, which could run code"),
    (b"\x80\x05", "a Python pickle, which could run code"),
    (b"<!doctype html", "a page in HTML"),
    (b"<html", "a page in HTML"),
    (b"<", "XML"),
)
"""Beginnings of kinds of files that are given by mistake, in lower case."""
_YAML = re.compile(r"---\s|(?!(?:data|event): )[a-z_][\w.-]*:(?:\s|$)|- [\w\"{]")
_COLUMN = re.compile(r"[A-Za-z_][\w ./#()-]{0,60}")
_CONTROLS = frozenset(range(32)) - frozenset(b"\t\n\r\f\x1b")


class UnreadableFile(MastTraceError):
    """A file without readable runs; the text names the file and the reason."""


class Source:
    """A file that can be read from its beginning any number of times.

    Attributes:
        name: of the file, for people.
        stem: of the file, for the names of runs.
        size: bytes on the disk.
    """

    def __init__(self, path: Path, name: str) -> None:
        self._path = path
        self.name = name
        self.stem = "stdin" if name == str(STDIN) else Path(name).name.split(".")[0] or "run"
        self.size = path.stat().st_size
        self._raw: IO[bytes] | None = None

    def position(self) -> int:
        """Return the approximate number of bytes read from the disk."""
        raw = self._raw
        return self.size if raw is None or raw.closed else raw.tell()

    @contextmanager
    def opened(self) -> Iterator[io.BufferedReader]:
        """Open the file, decompressed.

        Raises:
            UnreadableFile: it cannot be opened, or its compression is broken.
        """
        try:
            with self._path.open("rb") as raw:
                self._raw = raw
                yield _decompressed(raw)
        except (EOFError, zlib.error, zstandard.ZstdError, gzip.BadGzipFile) as error:
            raise UnreadableFile(f"{self.name}: its compression is broken: {error}") from error
        except OSError as error:
            raise UnreadableFile(f"{self.name}: {error.strerror or error}") from error


@contextmanager
def source_of(path: Path) -> Iterator[Source]:
    """Return a file as a `Source`; standard input (``-``) and pipes are copied to the disk first.

    Raises:
        UnreadableFile: it cannot be opened.
    """
    try:
        if path != STDIN and path.is_file():
            yield Source(path, str(path))
            return
        with tempfile.TemporaryDirectory(prefix="mast-trace-") as folder:
            copy = Path(folder) / "input"
            with copy.open("wb") as to:
                if path == STDIN:
                    shutil.copyfileobj(sys.stdin.buffer, to)
                else:
                    with path.open("rb") as given:
                        shutil.copyfileobj(given, to)
            yield Source(copy, str(path))
    except OSError as error:
        raise UnreadableFile(f"{path}: {error.strerror or error}") from error


def check_ratio(unpacked: int, packed: int) -> None:
    """Refuse content that is far larger than the file that it was unpacked from.

    Raises:
        ValueError: it is.
    """
    if unpacked > max(_UNPACKED, _RATIO * packed):
        raise ValueError(
            f"it unpacks to more than {_RATIO} times its size: if that is meant, unpack it yourself "
            "and import the result"
        )


def is_parquet(data: io.BufferedReader) -> bool:
    """Return whether a file is Parquet."""
    return data.peek(len(_PARQUET))[: len(_PARQUET)] == _PARQUET


def is_zip(data: io.BufferedReader) -> bool:
    """Return whether a file is a zip archive."""
    return data.peek(len(_ZIP))[: len(_ZIP)] == _ZIP


def check_kind(start: bytes) -> None:
    """Refuse a file that begins as no trace does.

    Raises:
        ValueError: it is such a file; the text names its kind.
    """
    begin = start.removeprefix(codecs.BOM_UTF8).lstrip()[:20].lower()
    for mark, kind in _MISTAKEN:
        if begin.startswith(mark.lower()):
            raise ValueError(mistaken(kind))


def mistaken(kind: str) -> str:
    """Return what to do with a file of a kind that no trace has."""
    return f"it is {kind}, which no trace format reads: export the runs as JSON, and import that"


def columns_of(start: str) -> tuple[list[str], bool]:
    """Return the columns that the first line of a table in CSV names, and whether its next row has as many.

    There are no columns where a text begins no table.
    """
    for mark in (",", "\t", ";"):
        try:
            head, *rows = [*islice(csv.reader(io.StringIO(start), delimiter=mark), 2)] or [[]]
        except csv.Error:
            continue
        names = [name.strip("\ufeff ") for name in head]
        if len(names) > 1 and all(map(_COLUMN.fullmatch, names)):
            return names, bool(rows) and len(rows[0]) == len(names)
    return [], False


def is_yaml(line: str) -> bool:
    """Return whether a text, whose first line is given, is written like YAML."""
    return _YAML.match(line) is not None


def text_of(data: io.BufferedReader) -> io.TextIOWrapper | None:
    """Return a file as text in its encoding; None if it is no text.

    A byte that is no UTF-8 becomes a lone surrogate, which marks its line.
    """
    start = data.peek(_SNIFFED)[:_SNIFFED]
    for mark, encoding in _MARKS:
        if start.startswith(mark):
            return io.TextIOWrapper(data, encoding, errors="replace")
    for encoding, zeros in (("utf-16-le", start[1:40:2]), ("utf-16-be", start[:40:2])):
        if len(start) > 1 and not zeros.strip(b"\0") and start[:2].strip(b"\0"):
            return io.TextIOWrapper(data, encoding, errors="replace")
    if _CONTROLS.intersection(start):
        return None
    return io.TextIOWrapper(data, "utf-8", errors="surrogateescape")


def _decompressed(raw: io.BufferedReader) -> io.BufferedReader:
    start = raw.peek(4)[:4]
    if start.startswith(_GZIP):
        unpacked = cast("io.RawIOBase", gzip.GzipFile(fileobj=raw))
    elif start == _ZSTANDARD:
        unpacked = _Zstandard(raw)
    else:
        return raw
    return io.BufferedReader(_Unpacked(unpacked, raw))


class _Unpacked(io.RawIOBase):
    """Reads what a file unpacks to, as long as its size is in proportion."""

    def __init__(self, content: io.RawIOBase, raw: io.BufferedReader) -> None:
        self._content = content
        self._raw = raw
        self._count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = self._content.readinto(buffer) or 0
        self._count += count
        check_ratio(self._count, self._raw.tell())
        return count


class _Zstandard(io.RawIOBase):
    """Reads Zstandard frames; unlike the library's own reader it detects truncation."""

    _CHUNK = 1024
    """Compressed bytes that are read at a time: they expand to some megabytes at most."""

    def __init__(self, raw: io.BufferedReader) -> None:
        self._raw = raw
        self._frame = zstandard.ZstdDecompressor().decompressobj()
        self._begun = False
        self._rest = b""
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready:
            data = self._rest or self._raw.read(self._CHUNK)
            self._rest = b""
            if not data:
                if self._begun:
                    raise EOFError("the file ends within a frame")
                return 0
            self._begun = True
            self._ready = memoryview(self._frame.decompress(data))
            if self._frame.eof:
                self._rest = self._frame.unused_data
                self._frame = zstandard.ZstdDecompressor().decompressobj()
                self._begun = False
        count = min(len(buffer), len(self._ready))
        buffer[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count
