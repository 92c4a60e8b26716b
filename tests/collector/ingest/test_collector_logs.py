"""Log entries can be read by machines as well as by people."""

from __future__ import annotations

import json
import logging
from typing import Literal

import pytest

from mast_trace_collector.config import CollectorConfig
from mast_trace_collector.logs import JSONFormatter, configure_logging


def entry_of(**fields: object) -> dict[str, object]:
    record = logging.makeLogRecord(
        {"name": "mast_trace_collector.spool", "levelno": 30, "levelname": "WARNING", **fields}
    )
    text = JSONFormatter().format(record)
    assert "\n" not in text
    entry: dict[str, object] = json.loads(text)
    return entry


def test_an_entry_is_one_line_of_json() -> None:
    entry = entry_of(msg="segment %s\nwaits", args=("7",), created=0.5, msecs=500.0)
    assert entry == {
        "time": "1970-01-01T00:00:00.500Z",
        "level": "warning",
        "logger": "mast_trace_collector.spool",
        "message": "segment 7\nwaits",
    }


def test_what_a_caller_adds_becomes_a_field() -> None:
    assert entry_of(msg="x", segment="7", spans=3)["spans"] == 3


def test_an_error_is_in_the_entry() -> None:
    entry = entry_of(msg="x", exc_info=(KeyError, KeyError("lost"), None))
    assert "KeyError: 'lost'" in str(entry["error"])


def test_what_json_cannot_hold_is_written_as_text() -> None:
    assert entry_of(msg="x", path=object)["path"] == str(object)


@pytest.mark.parametrize("level", ["debug", "info", "error"])
def test_libraries_do_not_repeat_what_we_tell(level: Literal["debug", "info", "error"]) -> None:
    """A database that is away is one warning of ours, not three of its client's and one of ours."""
    ours, root = logging.getLogger("mast_trace_collector"), logging.getLogger()
    before = root.handlers[:], root.level
    try:
        configure_logging(CollectorConfig(log_level=level))
        for name in ("urllib3.connectionpool", "clickhouse_connect.driver.httpclient"):
            assert not logging.getLogger(name).isEnabledFor(logging.WARNING)
            assert logging.getLogger(name).isEnabledFor(logging.ERROR)
        assert ours.isEnabledFor(logging.WARNING) is (level != "error")
    finally:
        root.handlers, root.level = before
        for name in ("uvicorn", "urllib3.connectionpool", "clickhouse_connect", "httpx"):
            logging.getLogger(name).setLevel(logging.NOTSET)
