"""Runs of which only the beginning is known, on their pages."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from starlette.testclient import TestClient
from web_runs import LIVE, T0, message

from mast_trace_collector.storage import Store, migrate
from mast_trace_dashboards.web.app import web_app

if TYPE_CHECKING:
    from collections.abc import Iterator

ONLY = "1" * 32
TASK = [{"role": "user", "id": "t", "parts": [{"type": "text", "content": "Book <b>Rome</b>."}]}]


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A run that has begun and has a message, and one that has only begun."""
    with Store.open(f"chdb://{tmp_path_factory.mktemp('web')}") as store:
        migrate(store)
        attributes = {
            "gen_ai.operation.name": "invoke_workflow",
            "gen_ai.workflow.name": "trip",
            "mast.framework": "ag2",
            "mast.input.message_ids": '["t"]',
            "gen_ai.input.messages": json.dumps(TASK),
        }
        store.insert(
            "otel_logs",
            [
                {
                    "Timestamp": T0 - timedelta(seconds=1),
                    "TraceId": run,
                    "SpanId": "f" * 16,
                    "ServiceName": "shop",
                    "Body": "invoke_workflow trip",
                    "ScopeName": "mast_trace.ag2",
                    "EventName": "mast.run.start",
                    "LogAttributes": attributes,
                }
                for run in (LIVE, ONLY)
            ],
        )
        store.insert("otel_traces", [message(LIVE, 0, "researcher", "I begin.")])
        yield store


def visited(store: Store, *, idle: float) -> TestClient:
    return TestClient(web_app(store, idle=idle), base_url="http://127.0.0.1")


@pytest.mark.parametrize("run", [LIVE, ONLY])
def test_a_run_that_began_is_shown_with_name_task_and_service(opened: Store, run: str) -> None:
    page = visited(opened, idle=3600).get(f"/runs/{run}").text
    assert 'data-state="running"' in page
    assert "<h1>trip " in page
    assert re.search(r"<dd>(<a [^>]*>)?shop(</a>)?</dd>", page)
    assert "Book &lt;b&gt;Rome&lt;/b&gt;." in page
    assert "no end seen" not in page


@pytest.mark.parametrize("run", [LIVE, ONLY])
def test_no_end_is_seen_of_it_once_nothing_has_come_for_long(opened: Store, run: str) -> None:
    """The page says what that may mean, and goes on asking."""
    client = visited(opened, idle=0)
    page = client.get(f"/runs/{run}").text
    assert 'data-state="no end seen"' in page
    assert "may have been killed, or may wait for a person" in page
    assert client.get("/").text.count("no end seen") == 2
    assert "no end seen" in client.get(f"/compare?run={LIVE}&run={ONLY}").text


def test_what_has_not_ended_is_no_span_of_a_download(opened: Store) -> None:
    client = visited(opened, idle=0)
    spans = json.loads(client.get(f"/runs/{LIVE}/download.otlp").text)["resourceSpans"]
    assert [s["name"] for r in spans for s in r["scopeSpans"][0]["spans"]] == [
        "send_message researcher"
    ]
    assert json.loads(client.get(f"/runs/{ONLY}/download.otlp").text) == {"resourceSpans": []}
    run = json.loads(client.get(f"/runs/{ONLY}/download.json").text)
    trajectory = run.get("trajectory", run)
    assert (trajectory["name"], trajectory["task"]) == ("trip", "Book <b>Rome</b>.")
    assert trajectory["finished"] is False
