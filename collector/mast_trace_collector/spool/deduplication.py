"""The identities of recently accepted requests.

A sender whose answer was lost sends the same bytes again. The request is recognised here as long as
it is among the latest, also after a restart: a waiting request is found in its segment, a stored
one in the mark that the segment leaves behind.
"""

from __future__ import annotations

import logging
from collections import OrderedDict, deque
from collections.abc import Sequence
from pathlib import Path
from typing import Generic, TypeVar

from mast_trace_collector.spool.record import DIGEST_BYTES

logger = logging.getLogger(__name__)

MARK = ".stored"
_MAX_MARKS = 1024
_T = TypeVar("_T")


class RecentRequests(Generic[_T]):
    """A bounded map from a request's digest to its outcome; the oldest are forgotten."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._known: OrderedDict[bytes, _T] = OrderedDict()

    def get(self, digest: bytes) -> _T | None:
        """The outcome of the request, None when it is not known."""
        return self._known.get(digest)

    def remember(self, digest: bytes, fate: _T) -> None:
        """Keep a request's outcome."""
        self._known[digest] = fate
        while len(self._known) > self._limit:
            self._known.popitem(last=False)

    def forget(self, digest: bytes) -> None:
        """Drop a request that was not kept, so that it is accepted when sent again."""
        self._known.pop(digest, None)


class StoredMarks:
    """Marks of stored segments on disk, as many as the window of recent requests needs.

    A mark is written after a segment's rows are durable and before the segment is removed, so a
    restart finds either the segment or its mark.
    """

    def __init__(self, directory: Path, limit: int) -> None:
        self._directory = directory
        self._limit = limit
        self._marks: deque[tuple[Path, int]] = deque()
        self._total = 0

    def load(self) -> list[bytes]:
        """The digests of all marks on disk, oldest first."""
        digests: list[bytes] = []
        for path in sorted(self._directory.glob(f"*{MARK}")):
            try:
                data = path.read_bytes()
            except OSError as error:
                # Only the recognition of repeated requests depends on it.
                logger.warning("cannot read which requests have been stored: %s", error)
                continue
            whole = len(data) - len(data) % DIGEST_BYTES
            found = [data[at : at + DIGEST_BYTES] for at in range(0, whole, DIGEST_BYTES)]
            digests += found
            self._note(path, len(found))
        return digests

    def __contains__(self, segment: str) -> bool:
        return (self._directory / f"{segment}{MARK}").exists()

    def may_have_stored(self, segment: str, left: Path) -> bool:
        """Return whether a segment has been stored, or its mark would be forgotten by now.

        Args:
            segment: its name.
            left: a remaining file of it, written before it was stored.
        """
        if segment in self:
            return True
        full = len(self._marks) >= _MAX_MARKS or self._total >= self._limit
        return full and left.stat().st_mtime < min(
            path.stat().st_mtime for path, _ in self._marks if path.exists()
        )

    def write(self, segment: str, digests: Sequence[bytes]) -> None:
        """Mark a segment as stored.

        A full disk must not keep a stored segment from being removed: without its mark only the
        recognition of its requests would be lost with this process.
        """
        path = self._directory / f"{segment}{MARK}"
        try:
            # Not synced: after a power failure the database's deduplication by segment remains.
            path.write_bytes(b"".join(digests))
        except OSError as error:
            logger.warning("cannot mark segment %s as stored: %s", segment, error)
            path.unlink(missing_ok=True)
            return
        self._note(path, len(digests))

    def _note(self, path: Path, count: int) -> None:
        self._marks.append((path, count))
        self._total += count
        while len(self._marks) > _MAX_MARKS or self._total - self._marks[0][1] >= self._limit:
            oldest, forgotten = self._marks.popleft()
            self._total -= forgotten
            oldest.unlink(missing_ok=True)
