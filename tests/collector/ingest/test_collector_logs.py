"""Log entries can be read by machines as well as by people."""

from __future__ import annotations

import json
import logging
import time
from typing import Literal

import pytest

from mast_trace_collector.config import CollectorConfig
from mast_trace_collector.logs import JSONFormatter, Repeats, TextFormatter, configure_logging


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
        # It logs the end of every request.
        assert not logging.getLogger("mcp.server.streamable_http").isEnabledFor(logging.INFO)
    finally:
        root.handlers, root.level = before
        for name in (
            "uvicorn",
            "urllib3.connectionpool",
            "clickhouse_connect",
            "httpx",
            "mcp.server.streamable_http",
        ):
            logging.getLogger(name).setLevel(logging.NOTSET)


class TestPeers:
    """Data from a peer cannot hide, end a line, or look like an entry of ours."""

    HOSTILE = "a\x00b\x1b[2Kc\r\n2030-01-01 00:00:00,000 ERROR root: forged\u202e\x85\ud800"

    def text(self, **fields: object) -> str:
        record = logging.makeLogRecord({"name": "x", "levelname": "WARNING", **fields})
        return TextFormatter().format(record)

    def test_in_a_message(self) -> None:
        text = self.text(msg="refused: %s", args=(self.HOSTILE,))
        assert text.isprintable()
        assert r"a\x00b\x1b[2Kc\r\n2030" in text
        assert text.endswith(r"forged\u202e\x85\ud800")

    def test_in_an_error(self) -> None:
        text = self.text(msg="x", exc_info=(ValueError, ValueError(self.HOSTILE), None))
        lines = text.split("\n")
        assert all(line.isprintable() for line in lines)
        assert all(line.startswith("    ") for line in lines[1:])

    def test_in_json(self) -> None:
        entry = entry_of(msg=self.HOSTILE, extra_field=self.HOSTILE, args=())
        for text in (entry["message"], entry["extra_field"]):
            assert str(text).replace("\n", "").isprintable()
        error = entry_of(msg="x", exc_info=(ValueError, ValueError(self.HOSTILE), None))["error"]
        assert str(error).replace("\n", "").isprintable()

    def test_texts_of_all_scripts_stay(self) -> None:
        text = "naïve Zoë, 中文, emoji 🙂, a\ttab"
        assert text in self.text(msg=text)
        assert entry_of(msg=text)["message"] == text


class Written(logging.Handler):
    """Keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.entries: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.entries.append(record.getMessage())


def logger_of(name: str) -> logging.Logger:
    logger = logging.getLogger(name)
    logger.propagate = False
    logger.setLevel(logging.DEBUG)
    return logger


class TestRepeats:
    """A flood of one entry is reported as a number."""

    @pytest.fixture
    def log(self, request: pytest.FixtureRequest) -> tuple[logging.Logger, Written, Repeats]:
        logger, handler = logger_of(request.node.name), Written()
        repeats = Repeats(handler, most=3, seconds=1000.0)
        handler.addFilter(repeats)
        logger.addHandler(handler)
        return logger, handler, repeats

    def test_whatever_a_peer_adds(self, log: tuple[logging.Logger, Written, Repeats]) -> None:
        logger, handler, repeats = log
        for number in range(2_839):
            logger.warning("cannot accept %d" % number)  # noqa: G002, UP031
            logger.debug("seen %d", number)
        logger.warning("another matter")
        warnings = [entry for entry in handler.entries if not entry.startswith("seen")]
        assert warnings == [*(f"cannot accept {number}" for number in range(3)), "another matter"]
        assert len(handler.entries) == 2_843
        repeats.tell()
        assert handler.entries[-1].startswith("repeated 2836 times in ")
        assert handler.entries[-1].endswith("the last time: cannot accept 2838")

    def test_one_in_a_period_is_enough(self, log: tuple[logging.Logger, Written, Repeats]) -> None:
        logger, handler, repeats = log
        for _ in range(3):
            for _ in range(10):
                logger.error("again")
            repeats.tell()
        assert handler.entries.count("again") == 5
        told = [each.split()[1] for each in handler.entries if each.startswith("repeated")]
        assert told == ["7", "9", "9"]
        repeats.tell()
        for _ in range(10):
            logger.error("again")
        assert handler.entries.count("again") == 8

    def test_the_number_comes_by_itself(self) -> None:
        logger, handler = logger_of("alone"), Written()
        handler.addFilter(Repeats(handler, most=1, seconds=0.05))
        logger.addHandler(handler)
        for _ in range(5):
            logger.warning("once")
        deadline = time.monotonic() + 20
        while len(handler.entries) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert handler.entries[1].startswith("repeated 4 times")
