"""Dead letters: requests that cannot be stored, set aside with the reason.

Each is a file: a line of JSON with the reason, then the request's own bytes, then their digest, as
a Protobuf field that OTLP does not have: so an earlier version, which takes everything after the
line for the request, stores the same. Renaming the file asks the running collector (or the next
one) to store it again, so that commands need neither the spool nor a connection.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TypeVar

import orjson
import xxhash

from mast_trace.exceptions import CollectorError
from mast_trace_collector.spool.damaged import DamagedFiles, Loss
from mast_trace_collector.spool.reading import beyond_reading
from mast_trace_collector.spool.segment import make_folder, sync_directory

T = TypeVar("T")
_SET_ASIDE = ".dead"
_TO_RETRY = ".retry"
_SUFFIXES = frozenset({_SET_ASIDE, _TO_RETRY})
_MAX_REASON = 2000
_DAMAGED = "the file is damaged"
_UNDESCRIBED = "its description is damaged"
_SEAL = b"\xca\x3e\x18letter\0\0"
"""Field 1001, length-delimited, 24 bytes: these eight, and a digest."""
_DIGEST_BYTES = 16
_SEAL_BYTES = len(_SEAL) + _DIGEST_BYTES


@dataclass(frozen=True)
class DeadLetter:
    """A request that was set aside.

    Attributes:
        id: its name in commands.
        reason: the cause for which it cannot be stored.
        items: spans in it; 0 when it could not be decoded.
        size: bytes of the request.
        set_aside: time, in seconds since the epoch.
        attempts: number of attempts to store it.
        retrying: a retry was requested and has not been tried yet.
    """

    id: str
    reason: str
    items: int
    size: int
    set_aside: float
    attempts: int = 1
    retrying: bool = False


class DeadLetters:
    """The folder of dead letters; usable while a collector runs.

    Args:
        directory: the folder.
        items: noun for the items of requests.
    """

    def __init__(self, directory: Path, items: str = "spans") -> None:
        self._directory = directory
        self._damaged = DamagedFiles(directory, items)

    def add(self, identity: str, payload: bytes, items: int, reason: str) -> None:
        """Set a request aside; the same request a second time replaces the first.

        Raises:
            OSError: the file could not be made durable.
        """
        letter = DeadLetter(identity, reason[:_MAX_REASON], items, len(payload), time.time())
        self._write(letter, payload)

    def letters(self) -> list[DeadLetter]:
        """All letters, set aside or waiting to be retried, oldest first."""
        letters = {}
        for path in self._files():
            # A collector may store a letter meanwhile, or rename its file.
            for suffix in (path.suffix, *_SUFFIXES - {path.suffix}):
                with contextlib.suppress(FileNotFoundError):
                    letters[path.stem] = _read_head(path.with_suffix(suffix))
                    break
        return sorted(letters.values(), key=lambda letter: letter.set_aside)

    def __len__(self) -> int:
        return len(self._files())

    @property
    def damaged_files(self) -> int:
        """Number of damaged letters that are set aside now."""
        return len(self._damaged)

    def payload(self, identity: str) -> bytes:
        """The request itself.

        Raises:
            CollectorError: there is no such letter, or it is damaged.
        """
        _, payload = self._on_file(identity, _read)
        if payload is None:
            raise CollectorError(f"the file of dead letter {identity} is damaged")
        return payload

    def retry(self, identities: Iterable[str]) -> None:
        """Ask for letters to be stored once more.

        Raises:
            CollectorError: one of them does not exist.
        """
        for identity in self._known(identities):
            self._on_file(identity, lambda path: path.rename(path.with_suffix(_TO_RETRY)))

    def drop(self, identities: Iterable[str]) -> None:
        """Delete letters for good.

        Raises:
            CollectorError: one of them does not exist.
        """
        for identity in self._known(identities):
            self._on_file(identity, Path.unlink)

    def settle(self, letter: DeadLetter) -> None:
        """Delete a letter that has been stored; it may have been dropped meanwhile."""
        for suffix in _SUFFIXES:
            self._path(letter.id, suffix).unlink(missing_ok=True)

    def due(self) -> Iterator[tuple[DeadLetter, bytes]]:
        """The letters whose retry was requested; a damaged one is moved out of the way."""
        for path in self._files():
            if path.suffix == _TO_RETRY:
                try:
                    letter, payload = _read(path)
                except FileNotFoundError:
                    continue  # it was dropped meanwhile
                except OSError as error:
                    if not beyond_reading(error):
                        raise
                    letter, payload = DeadLetter(path.stem, _DAMAGED, 0, 0, 0.0), None
                if payload is None:
                    loss = Loss(letter.id, "a dead letter whose request has changed", letter.items)
                    self._damaged.report(loss)
                    self._damaged.set_aside(loss, [path])
                else:
                    yield letter, payload

    def failed_again(self, letter: DeadLetter, payload: bytes, reason: str) -> None:
        """Set a retried letter aside again."""
        attempts = letter.attempts + 1
        fields = asdict(letter) | {
            "reason": reason[:_MAX_REASON],
            "attempts": attempts,
            "size": len(payload),
        }
        self._write(DeadLetter(**fields), payload, _TO_RETRY)
        self._path(letter.id, _TO_RETRY).rename(self._path(letter.id, _SET_ASIDE))

    def _write(self, letter: DeadLetter, payload: bytes, suffix: str = _SET_ASIDE) -> None:
        make_folder(self._directory)
        temporary = self._path(letter.id, ".tmp")
        try:
            with temporary.open("wb") as file:
                file.write(orjson.dumps(letter) + b"\n")
                file.write(payload)
                file.write(_seal(payload))
                file.flush()
                os.fsync(file.fileno())
            temporary.rename(self._path(letter.id, suffix))
        except OSError:
            temporary.unlink(missing_ok=True)
            raise
        sync_directory(self._directory)

    def _path(self, identity: str, suffix: str) -> Path:
        return self._directory / f"{identity}{suffix}"

    def _known(self, identities: Iterable[str]) -> list[str]:
        """Return the names of letters, all of which exist: a command handles all its letters, or none."""
        identities = list(identities)
        for identity in identities:
            self._find(identity)
        return identities

    def _on_file(self, identity: str, act: Callable[[Path], T]) -> T:
        """Apply a function to a letter's file, even if a collector renames the file meanwhile."""
        try:
            return act(self._find(identity))
        except FileNotFoundError:
            return act(self._find(identity))

    def _find(self, identity: str) -> Path:
        for path in self._files():
            if path.stem == identity:
                return path
        raise CollectorError(f"there is no dead letter {identity}")

    def _files(self) -> list[Path]:
        if not self._directory.is_dir():
            return []
        paths = (path for path in self._directory.iterdir() if path.suffix in _SUFFIXES)
        return sorted(paths)


def _read_head(path: Path) -> DeadLetter:
    try:
        with path.open("rb") as file:
            letter = _parse(path, file.readline())
            whole = file.tell() + letter.size
    except FileNotFoundError:
        raise
    except OSError as error:
        return DeadLetter(path.stem, f"{_DAMAGED}: {error.strerror}", 0, 0, 0.0)
    if path.stat().st_size in {whole, whole + _SEAL_BYTES} or letter.reason == _UNDESCRIBED:
        return letter
    return replace(letter, reason=f"{_DAMAGED}; before: {letter.reason}")


def _parse(path: Path, head: bytes) -> DeadLetter:
    retrying = path.suffix == _TO_RETRY
    try:
        return DeadLetter(**orjson.loads(head) | {"retrying": retrying})
    except (ValueError, TypeError):
        # An edited file may be unreadable; the others must stay usable.
        status = path.stat()
        size, moment = status.st_size, status.st_mtime
        return DeadLetter(path.stem, _UNDESCRIBED, 0, size, moment, retrying=retrying)


def _read(path: Path) -> tuple[DeadLetter, bytes | None]:
    """Return a letter and its request; None where the file is not the one that was written."""
    head, _, rest = path.read_bytes().partition(b"\n")
    letter = _parse(path, head)
    payload, seal = rest[:-_SEAL_BYTES], rest[-_SEAL_BYTES:]
    if seal == _seal(payload):
        return letter, payload
    # An earlier version set it aside without a digest.
    described = letter.reason != _UNDESCRIBED
    whole = described and not seal.startswith(_SEAL) and len(rest) == letter.size
    return letter, rest if whole else None


def _seal(payload: bytes) -> bytes:
    return _SEAL + xxhash.xxh3_128_digest(payload)
