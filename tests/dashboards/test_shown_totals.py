"""An inexact total of a run is marked with its quality in every view."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import TYPE_CHECKING

import pytest
from starlette.testclient import TestClient
from stores import SERVER

from mast_trace import semconv
from mast_trace_collector.storage import Store, migrate
from mast_trace_dashboards.cli.app import run
from mast_trace_dashboards.queries import QUERIES
from mast_trace_dashboards.run_outcome import tokens_of
from mast_trace_dashboards.web.app import web_app

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.skipif(bool(SERVER), reason="reads a folder")

EXACT, CUT, GONE, OLD, LOST, UNTOLD = (letter * 32 for letter in "abcdef")
SHOWN = {
    EXACT: "107",
    CUT: "at least 268,435,462",
    GONE: "about 3,072",
    OLD: "3,072 (being counted)",
    LOST: "at least 107",
    UNTOLD: "not reported",
}


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A folder with a run of each kind; of the last two, an earlier version stored only a state."""
    url = f"chdb://{tmp_path / 'data'}"
    with Store.open(url) as store:
        migrate(store)
        at = datetime(2026, 3, 1, tzinfo=timezone.utc)
        store.insert(
            "otel_traces",
            [
                {
                    "Timestamp": at,
                    "TraceId": trace,
                    "SpanId": "1" * 16,
                    "SpanAttributes": {
                        "gen_ai.operation.name": "chat",
                        "gen_ai.usage.input_tokens": tokens,
                        "gen_ai.usage.output_tokens": "0" if trace == UNTOLD else "7",
                        semconv.CALLS_MISSING: str(trace == LOST).lower(),
                    },
                }
                for trace, tokens in (
                    (EXACT, "100"),
                    (CUT, str(2**31)),
                    (LOST, "100"),
                    (UNTOLD, "0"),
                )
            ],
        )
        old = {"Start": at, "End": at, "Spans": [2**33], "OldInputTokens": 3072}
        states = [{"TraceId": GONE, "Old": 3, **old}, {"TraceId": OLD, "Old": 1, **old}]
        store.insert("mast_run_states", states)
    return url


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with Store.open(url) as opened:
        yield opened


def test_queries_say_what_the_totals_are(store: Store) -> None:
    rows = {row["TraceId"]: row for row in QUERIES["runs"].run(store)}
    assert {trace: tokens_of(row) for trace, row in rows.items()} == SHOWN
    qualities = ["exact", "at least", "about", "being counted", "at least", "exact"]
    assert [rows[trace]["Totals"] for trace in SHOWN] == qualities
    for trace, shown in SHOWN.items():
        row = QUERIES["run"].one(store, run=trace)
        assert row is not None
        assert tokens_of(row) == shown


def test_the_command_line_shows_it(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    for trace in (EXACT, CUT, OLD, LOST):
        assert run(["show", trace, "--url", url]) == 0
        assert f", {SHOWN[trace]} tokens" in capsys.readouterr().out
    assert run(["runs", "--json", "--url", url]) == 0
    rows = {row["TraceId"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows[CUT]["Totals"] == "at least"
    assert [rows[trace]["InputTokens"] for trace in (EXACT, UNTOLD)] == [100, None]


def test_the_web_view_shows_it(store: Store) -> None:
    client = TestClient(web_app(store), base_url="http://127.0.0.1")
    listed = client.get("/").text
    for text in SHOWN.values():
        assert f">{text}<" in listed
    assert f">{SHOWN[CUT]}<" in client.get(f"/runs/{CUT}").text
    compared = client.get(f"/compare?run={EXACT}&run={CUT}").text
    assert f"tokens: {SHOWN[CUT]}" in compared
