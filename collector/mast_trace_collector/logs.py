"""Log entries for people (text) or for machines (one JSON object a line); repeated ones are counted."""

from __future__ import annotations

import atexit
import logging
import re
import sys
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from mast_trace_collector.config import CollectorConfig

_MOST = 10
_SECONDS = 10.0

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_QUIETER = {
    # Its entries (server process started) add nothing to the ready line.
    "uvicorn": logging.WARNING,
    # Each attempt at a database that is down would be logged three times; the pipeline logs it
    # once. (The client sets its own level for "urllib3" when it is imported.)
    "urllib3.connectionpool": logging.ERROR,
    "clickhouse_connect": logging.ERROR,
    # It logs an entry for each request to a judge's model.
    "httpx": logging.WARNING,
    # It logs the end of each request as that of a session.
    "mcp.server.streamable_http": logging.WARNING,
}
# Characters that end a line, move or hide the text around them, or cannot be written: control
# characters, separators of lines, marks of direction, halves of surrogate pairs.
_HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


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


def visible(text: str) -> str:
    """Return a text without hidden or moving characters; lines and tabs are kept."""
    return _HIDDEN.sub(lambda found: ascii(found[0])[1:-1], text)


class TextFormatter(logging.Formatter):
    """One line per entry, whatever peers have put into it; lines of an error are indented below it."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(name)s: %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  # the library's name
        """Render the line."""
        return visible(super().formatMessage(record)).replace("\n", "\\n")

    def formatException(self, ei: Any) -> str:  # noqa: N802  # the library's name
        """Render an error, so that no line of it looks like an entry."""
        return "\n".join(f"    {visible(line)}" for line in super().formatException(ei).split("\n"))


class JSONFormatter(logging.Formatter):
    """One JSON object per entry: time, level, logger, message, the fields of `extra`, and the error."""

    def format(self, record: logging.LogRecord) -> str:
        """Render an entry."""
        entry: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
            + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": visible(record.getMessage()),
        }
        entry |= {
            key: visible(value) if isinstance(value, str) else value
            for key, value in vars(record).items()
            if key not in _STANDARD
        }
        if record.exc_info:
            entry["error"] = visible(self.formatException(record.exc_info))
        return orjson.dumps(entry, default=str).decode()


def configure_logging(config: CollectorConfig) -> None:
    """Write the entries of mast-trace and its servers to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JSONFormatter() if config.log_format == "json" else TextFormatter())
    handler.addFilter(Repeats(handler))
    level = config.log_level.upper()
    logging.basicConfig(handlers=[handler], level=level, force=True)
    for name, least in _QUIETER.items():
        logging.getLogger(name).setLevel(max(least, logging.getLevelName(level)))
