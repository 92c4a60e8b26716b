"""The pages of costs and of settings."""

from __future__ import annotations

import time
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pytest
from filled_store import fill
from starlette.testclient import TestClient
from stores import new_store

from mast_trace_collector.config import CollectorConfig
from mast_trace_dashboards.queries import QUERIES
from mast_trace_dashboards.web.app import web_app
from mast_trace_dashboards.web.finding import pages
from mast_trace_dashboards.web.finding.pages import PARTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mast_trace_collector.storage import Store
    from mast_trace_dashboards.web.filters import Filters


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with new_store(tmp_path_factory.mktemp("totals")) as opened:
        fill(opened)
        yield opened


@pytest.fixture(scope="module")
def client(store: Store) -> Iterator[TestClient]:
    settings = (CollectorConfig.load(database_url="http://ann:hidden@db:8123/traces"),)
    with TestClient(web_app(store, settings=settings), base_url="http://localhost") as opened:
        yield opened


@pytest.mark.parametrize("age", ["", "24h", "9999d"])
def test_costs_are_shown_by_each_part(store: Store, client: TestClient, age: str) -> None:
    page = client.get(f"/cost?since={age}").text
    shown = [part for part in PARTS if f"Cost by {part}" in page]
    assert shown == ([] if age == "24h" else list(PARTS))
    if shown:
        total = QUERIES["costs"].one(store, parts=["total"])
        assert total is not None
        assert f"<dd>{total['Calls']:,}</dd>" in page
    assert 'href="/patterns?since=24h"' in client.get("/cost?since=24h").text


def test_settings_say_their_origin_and_no_secret(client: TestClient) -> None:
    page = client.get("/settings").text
    row = page.partition(">database_<wbr>url<")[2].partition("</tr>")[0]
    assert "argument" in row
    assert "MAST_TRACE_DATABASE_URL" in row
    assert "hidden" not in page


def test_a_run_of_a_clock_that_is_ahead_leaves_the_tiles_of_today(
    store: Store, client: TestClient
) -> None:
    def fail(trace: str, at: datetime) -> None:
        failed = {"gen_ai.operation.name": "invoke_workflow", "mast.run.outcome": "failure"}
        row = {"TraceId": trace, "SpanId": "1" * 16, "SpanName": "run", "Timestamp": at}
        store.insert("otel_traces", [{**row, "SpanAttributes": failed}])

    now = datetime.now(timezone.utc)
    fail("1" * 32, now)
    today = client.get("/week").text
    assert "in 7 days" in today
    fail("2" * 32, now + timedelta(days=2))
    assert client.get("/week").text == today


def test_totals_of_many_runs_are_kept_until_rows_are_erased(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page shows its last count at once with its time; what was erased is in none that is shown."""
    monkeypatch.setattr("mast_trace_dashboards.web.counts.LARGE", 0)
    counted: list[str] = []
    count = pages.cost_of_runs

    def cost_of_runs(store: Store, filters: Filters) -> dict[str, Any]:
        counted.append(filters.since)
        return count(store, filters)

    monkeypatch.setattr(pages, "cost_of_runs", cost_of_runs)
    with TestClient(web_app(store), base_url="http://localhost") as client:
        fresh = client.get("/cost").text
        assert "Counted at" not in fresh
        assert client.get("/cost").text == fresh
        assert counted == [""]
        store.command(
            "INSERT INTO mast_prices (Project, Model, PricedAt) VALUES ('', 'new', now())"
        )
        assert "Counted at" in client.get("/cost").text
        store.command("DELETE FROM mast_prices WHERE Model = 'new'")
        assert client.get("/cost").text == fresh
        row = {"TraceId": "e" * 32, "SpanId": "1" * 16, "Timestamp": datetime.now(timezone.utc)}
        operation = {"gen_ai.operation.name": "invoke_workflow"}
        store.insert("otel_traces", [{**row, "SpanAttributes": operation}])
        assert "Counted at" in client.get("/cost").text
        for _ in range(600):
            if "Counted at" not in client.get("/cost").text:  # that run is in the count now
                break
            time.sleep(0.05)
        store.command("DELETE FROM mast_run_states WHERE TraceId = repeat('e', 32)")
        assert client.get("/cost").text == fresh
