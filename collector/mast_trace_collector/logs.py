"""Log entries for people (text) or for machines (one JSON object a line)."""

from __future__ import annotations

import logging
import re
import sys
import time
from typing import TYPE_CHECKING, Any

import orjson

from mast_trace_collector.log_repeats import Repeats

if TYPE_CHECKING:
    from mast_trace_collector.config import CollectorConfig

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
}


# Characters that end a line, move or hide the text around them, or cannot be written: control
# characters, separators of lines, marks of direction, halves of surrogate pairs.
_HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


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
