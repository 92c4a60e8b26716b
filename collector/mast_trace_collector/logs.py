"""Log entries for people (text) or for machines (one JSON object a line)."""

from __future__ import annotations

import logging
import sys
import time
from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from mast_trace_collector.config import CollectorConfig

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


_QUIETER = {
    # Its news (server process started) say nothing that the ready line does not.
    "uvicorn": logging.WARNING,
    # Each attempt at a database that is away would be told three times; the pipeline tells it once.
    # (The client sets its own level for "urllib3" when it is imported.)
    "urllib3.connectionpool": logging.ERROR,
    "clickhouse_connect": logging.ERROR,
    # An entry for each request to a judge's model.
    "httpx": logging.WARNING,
}


class JSONFormatter(logging.Formatter):
    """One JSON object per entry: time, level, logger, message, what `extra` says, and the error."""

    def format(self, record: logging.LogRecord) -> str:
        """Render an entry."""
        entry: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
            + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        entry |= {key: value for key, value in vars(record).items() if key not in _STANDARD}
        if record.exc_info:
            entry["error"] = self.formatException(record.exc_info)
        return orjson.dumps(entry, default=str).decode()


def configure_logging(config: CollectorConfig) -> None:
    """Send the entries of mast-trace and its servers to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        JSONFormatter()
        if config.log_format == "json"
        else logging.Formatter("%(asctime)s %(levelname)-7s %(name)s: %(message)s")
    )
    level = config.log_level.upper()
    logging.basicConfig(handlers=[handler], level=level, force=True)
    for name, least in _QUIETER.items():
        logging.getLogger(name).setLevel(max(least, logging.getLevelName(level)))
