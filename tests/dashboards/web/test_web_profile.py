"""The page of a service's profile shows values with intervals, chance and reasons for silence."""

from __future__ import annotations

import random
import shutil
from typing import TYPE_CHECKING

import pytest
import scripted_teams as teams
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from starlette.testclient import TestClient

import mast_trace
from mast_trace.testing import capture_spans
from mast_trace_collector.storage import Store, migrate
from mast_trace_collector.storage.span_writer import SpanWriter
from mast_trace_dashboards.web import profile_page
from mast_trace_dashboards.web.app import web_app

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CHROMIUM = shutil.which("chromium")
EVIL = "<b>shop</b>"


def stored(store: Store, service: str, team: Callable[[random.Random], bool], runs: int) -> None:
    draw = random.Random(runs)
    with capture_spans(frameworks=[], service_name=service) as captured:
        for _ in range(runs):
            with mast_trace.run("team", input="Find the code."):
                mast_trace.record_outcome(team(draw))
        request = encode_spans(captured.spans).SerializeToString()
    SpanWriter(store).write([request], token=f"{service} {runs}")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with Store.open(f"chdb://{tmp_path_factory.mktemp('web')}") as opened:
        migrate(opened)
        yield opened


@pytest.fixture(scope="module")
def client(store: Store) -> Iterator[TestClient]:
    with TestClient(web_app(store), base_url="http://localhost") as made:
        yield made


def text_of(client: TestClient, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200
    return " ".join(answer.text.replace("\xa0", " ").split())


def test_an_empty_store_says_so(client: TestClient) -> None:
    assert "There are no runs yet." in text_of(client, "/profile")


def test_values_follow_new_runs_after_a_while(
    store: Store, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored(store, EVIL, teams.hidden_profile, 19)
    before = text_of(client, "/profile")
    assert "19 runs read" in before
    assert "19 of at least 20 runs" in before
    stored(store, EVIL, teams.hidden_profile, 5)
    assert text_of(client, "/profile") == before
    monkeypatch.setattr(profile_page, "FRESH_SECONDS", 0.0)
    after = text_of(client, "/profile?service=%3Cb%3Eshop%3C/b%3E")
    assert "24 runs read, 24 of them of several agents." in after
    assert "Uptake of what is new: 100 %" in after
    assert EVIL not in after


def test_a_service_or_version_without_runs(client: TestClient) -> None:
    assert "There are no such finished runs." in text_of(client, "/profile?service=nobody")
    assert "There are no such finished runs." in text_of(client, "/profile?version=9")


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's chromium")
@pytest.mark.parametrize("width", [1280, 375])
def test_the_page_is_accessible_and_fits(served: str, width: int) -> None:
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    from test_web_browser import FLAGS, violations

    with sync_api.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        page = browser.new_page(viewport={"width": width, "height": 800}, base_url=served)
        page.goto("/profile")
        page.wait_for_load_state("networkidle")
        assert page.locator("h2").first.inner_text().startswith("Uptake")
        assert violations(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        browser.close()
