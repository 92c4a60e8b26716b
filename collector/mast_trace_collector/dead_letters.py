"""Requests that cannot be stored, set aside with the reason.

One file each: a line of JSON that says what happened, then the request's own bytes. Renaming the
file asks the running collector (or the next one) to store it again, so that commands need neither
the spool nor a connection.
"""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import orjson

from mast_trace.exceptions import CollectorError
from mast_trace_collector.spool.segment import sync_directory

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

_SET_ASIDE = ".dead"
_TO_RETRY = ".retry"
_SUFFIXES = frozenset({_SET_ASIDE, _TO_RETRY})
_MAX_REASON = 2000


@dataclass(frozen=True)
class DeadLetter:
    """A request that was set aside.

    Attributes:
        id: names it in commands.
        reason: why it cannot be stored.
        items: spans in it; 0 when it could not even be read.
        size: bytes of the request.
        set_aside: when, in seconds since the epoch.
        attempts: how often storing it was tried.
        retrying: somebody asked to store it again, and that has not been tried yet.
    """

    id: str
    reason: str
    items: int
    size: int
    set_aside: float
    attempts: int = 1
    retrying: bool = False


class DeadLetters:
    """The folder of dead letters; usable while a collector runs."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def add(self, identity: str, payload: bytes, items: int, reason: str) -> None:
        """Set a request aside; the same one a second time replaces the first.

        Raises:
            OSError: it could not be made durable.
        """
        letter = DeadLetter(identity, reason[:_MAX_REASON], items, len(payload), time.time())
        self._write(letter, payload)

    def letters(self) -> list[DeadLetter]:
        """All that is set aside or waits to be retried, oldest first."""
        letters = []
        for path in self._files():
            # The collector may settle a letter while a command looks at them.
            with contextlib.suppress(FileNotFoundError):
                letters.append(_read_head(path))
        return sorted(letters, key=lambda letter: letter.set_aside)

    def __len__(self) -> int:
        return len(self._files())

    def payload(self, identity: str) -> bytes:
        """The request itself.

        Raises:
            CollectorError: there is no such letter.
        """
        return _read(self._find(identity))[1]

    def retry(self, identities: Iterable[str]) -> None:
        """Ask for letters to be stored once more.

        Raises:
            CollectorError: one of them does not exist.
        """
        for path in [self._find(identity) for identity in identities]:
            path.rename(path.with_suffix(_TO_RETRY))

    def drop(self, identities: Iterable[str]) -> None:
        """Delete letters for good.

        Raises:
            CollectorError: one of them does not exist.
        """
        for path in [self._find(identity) for identity in identities]:
            path.unlink(missing_ok=True)

    def due(self) -> Iterator[tuple[DeadLetter, bytes]]:
        """The letters that somebody asked to retry."""
        for path in self._files():
            if path.suffix == _TO_RETRY:
                yield _read(path)

    def failed_again(self, letter: DeadLetter, payload: bytes, reason: str) -> None:
        """Set a retried letter aside again."""
        attempts = letter.attempts + 1
        fields = asdict(letter) | {"reason": reason[:_MAX_REASON], "attempts": attempts}
        self._write(DeadLetter(**fields), payload, _TO_RETRY)
        self._path(letter.id, _TO_RETRY).rename(self._path(letter.id, _SET_ASIDE))

    def _write(self, letter: DeadLetter, payload: bytes, suffix: str = _SET_ASIDE) -> None:
        self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        temporary = self._path(letter.id, ".tmp")
        try:
            with temporary.open("wb") as file:
                file.write(orjson.dumps(letter) + b"\n")
                file.write(payload)
                file.flush()
                os.fsync(file.fileno())
            temporary.rename(self._path(letter.id, suffix))
        except OSError:
            temporary.unlink(missing_ok=True)
            raise
        sync_directory(self._directory)

    def _path(self, identity: str, suffix: str) -> Path:
        return self._directory / f"{identity}{suffix}"

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
    with path.open("rb") as file:
        return _parse(path, file.readline())


def _parse(path: Path, head: bytes) -> DeadLetter:
    retrying = path.suffix == _TO_RETRY
    try:
        return DeadLetter(**orjson.loads(head) | {"retrying": retrying})
    except (ValueError, TypeError):
        # Somebody has had the file in an editor; the others must stay usable.
        status = path.stat()
        return DeadLetter(
            path.stem,
            "its description is damaged",
            0,
            status.st_size,
            status.st_mtime,
            retrying=retrying,
        )


def _read(path: Path) -> tuple[DeadLetter, bytes]:
    head, _, payload = path.read_bytes().partition(b"\n")
    return _parse(path, head), payload
