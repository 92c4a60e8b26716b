"""The pages on patterns show what the queries count, and take states from those who may give them."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from pattern_runs import NOW, add_run
from starlette.testclient import TestClient
from stores import new_store

from mast_trace_dashboards.queries import QUERIES
from mast_trace_dashboards.web.app import web_app
from mast_trace_judge.patterns.indexing import PatternIndexer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mast_trace_collector.storage import Store

HOSTILE = "timed out <script>alert(1)</script> after 3 s"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Four runs with a failing tool, whose error holds markup, and six without findings."""
    with new_store(tmp_path_factory.mktemp("web-patterns")) as opened:
        for n in range(10):
            at = NOW - timedelta(hours=n + 1)
            if n < 4:
                add_run(
                    opened, n + 1, code="2.6", tool="search", text=HOSTILE, outcome="failure", at=at
                )
            else:
                add_run(opened, n + 1, outcome="success", at=at)
        PatternIndexer(opened).index()
        yield opened


@pytest.fixture(scope="module")
def view(store: Store) -> Iterator[TestClient]:
    with TestClient(web_app(store), base_url="http://127.0.0.1") as client:
        yield client


def test_the_list_shows_patterns_and_escapes_their_texts(view: TestClient) -> None:
    page = view.get("/patterns")
    assert page.status_code == 200
    assert "4 of 10 runs" in page.text
    assert "<script>alert" not in page.text
    assert "&lt;script&gt;" in page.text
    assert "failing tool search" in page.text
    assert view.get("/patterns", params={"state": "resolved"}).text.count("4 of 10 runs") == 0
    assert view.get("/patterns", params={"since": "3d"}).status_code == 400


def test_a_pattern_shows_its_runs_and_takes_a_state(view: TestClient, store: Store) -> None:
    name = QUERIES["patterns"].run(store)[0]["PatternId"]
    page = view.get(f"/patterns/{name}")
    assert f"/runs/{1:032x}" in page.text
    assert "mast-trace confirm" in page.text
    assert "mast-trace inject" in page.text
    sent = {"state": "acknowledged", "author": "ada", "note": "ticket 17"}
    same_site = {"origin": "http://127.0.0.1", "sec-fetch-site": "same-origin"}
    answer = view.post(f"/patterns/{name}/state", data=sent, headers=same_site)
    assert answer.status_code == 200
    assert "acknowledged, by ada" in answer.text
    elsewhere = {"origin": "http://evil.example", "sec-fetch-site": "cross-site"}
    refused = view.post(
        f"/patterns/{name}/state", data={**sent, "state": "open"}, headers=elsewhere
    )
    assert refused.status_code == 403
    wrong = view.post(f"/patterns/{name}/state", data={**sent, "state": "done"}, headers=same_site)
    assert wrong.status_code == 400
    assert view.get("/patterns/ffffffffffffffff").status_code == 404
