"""A log filter that counts repeated entries instead of writing each."""

from __future__ import annotations

import atexit
import logging
import threading
import time
from dataclasses import dataclass

_MOST = 10
_SECONDS = 10.0


@dataclass
class _Kind:
    """The counts of the entries of one line of code.

    Attributes:
        allowed: number of entries that may be written in the present period.
        passed: number of entries that were written.
        counted: number of further entries, not reported yet.
        last: the last one that was counted.
    """

    allowed: int = _MOST
    passed: int = 0
    counted: int = 0
    last: logging.LogRecord | None = None


class Repeats(logging.Filter):
    """A handler's filter that passes some entries of a kind in a period, and then reports their number.

    Entries are of one kind if the same line of code makes them, whatever their arguments.

    Args:
        handler: writes the reports about counted entries.
        most: entries of a kind in the first period.
        seconds: length of a period.
    """

    def __init__(
        self, handler: logging.Handler, *, most: int = _MOST, seconds: float = _SECONDS
    ) -> None:
        super().__init__()
        self._handler = handler
        self._most = most
        self._seconds = seconds
        self._lock = threading.Lock()
        self._kinds: dict[tuple[str, int], _Kind] = {}
        self._began = 0.0
        self._timer: threading.Timer | None = None
        atexit.register(self.tell)

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether an entry is written; otherwise it is counted."""
        if record.levelno < logging.INFO or hasattr(record, "repeated"):
            return True
        with self._lock:
            if self._timer is None and time.monotonic() - self._began >= self._seconds:
                self._kinds.clear()
                self._began = time.monotonic()
            key = (record.pathname, record.lineno)
            kind = self._kinds.setdefault(key, _Kind(self._most))
            if kind.passed < kind.allowed:
                kind.passed += 1
                return True
            kind.counted += 1
            kind.last = record
            if self._timer is None:
                self._timer = threading.Timer(self._seconds, self.tell)
                self._timer.daemon = True
                self._timer.start()
        return False

    def tell(self) -> None:
        """Write how many entries were counted, one entry for each kind, and begin a new period."""
        with self._lock:
            seconds = time.monotonic() - self._began
            counted = [kind for kind in self._kinds.values() if kind.counted]
            # One entry a period is enough for entries that never stop.
            self._kinds = {
                key: _Kind(allowed=1) for key, kind in self._kinds.items() if kind.counted
            }
            self._began = time.monotonic()
            self._timer = None
        if getattr(getattr(self._handler, "stream", None), "closed", False):
            # The timer outlived the stream that it writes to.
            return
        for kind in counted:
            if kind.last is not None:
                self._handler.handle(_summary(kind.last, kind.counted, seconds))


def _summary(last: logging.LogRecord, count: int, seconds: float) -> logging.LogRecord:
    fields = {
        "name": last.name,
        "levelno": last.levelno,
        "levelname": last.levelname,
        "msg": "repeated %d times in %.0f s, the last time: %s",
        "args": (count, seconds, last.getMessage()),
        "repeated": count,
    }
    return logging.makeLogRecord(fields)
