"""The pages on patterns show what the queries count, and take states from those who may give them."""

from __future__ import annotations

import dataclasses
import time
from datetime import timedelta
from decimal import Decimal
from io import StringIO
from typing import TYPE_CHECKING

import pytest
from pattern_runs import NOW, Run, add_run, add_runs
from rich.console import Console
from starlette.testclient import TestClient
from stores import new_store

from mast_trace_dashboards import found_pattern
from mast_trace_dashboards.cli.commands.patterns import listing
from mast_trace_dashboards.cli.output import printed
from mast_trace_dashboards.found_pattern import cost_of, find_pattern
from mast_trace_dashboards.mcp_server.reading import acknowledge, pattern_of, patterns_of
from mast_trace_dashboards.queries import QUERIES
from mast_trace_dashboards.web.app import web_app
from mast_trace_judge.patterns.indexing import PatternIndexer
from mast_trace_judge.patterns.places import STAGE
from mast_trace_judge.pricing import OwnPrice, store_prices

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mast_trace_collector.storage import Store

COLUMNS = {
    "PatternId": "pattern",
    "FirstSeen": "first_seen",
    "LastSeen": "last_seen",
    **{n: n.lower() for n in ("Project", "Sentence", "Text", "Note", "Services", "Versions")},
}
WORDS = ("title", "state", "share", "trend", "contrast", "confirmed")
"""Answers on a pattern beside its columns."""
HOSTILE = "timed out <script>alert(1)</script> after 3 s"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Four runs with a failing tool, whose error holds markup, and six without findings."""
    with new_store(tmp_path_factory.mktemp("web-patterns")) as opened:
        failed = {"code": "2.6", "tool": "search", "text": HOSTILE, "outcome": "failure"}
        at = [NOW - timedelta(hours=n) for n in range(11)]
        runs = [Run(n, **failed, at=at[n]) for n in range(1, 5)]
        runs += [Run(n, outcome="success", at=at[n]) for n in range(5, 11)]
        add_runs(opened, runs)
        PatternIndexer(opened).index()
        yield opened


@pytest.fixture(scope="module")
def view(store: Store) -> Iterator[TestClient]:
    with TestClient(web_app(store), base_url="http://127.0.0.1") as client:
        yield client


def test_a_long_list_has_a_time_of_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page does not wait for a count of what was stored after the last one, and gets it the next time."""
    monkeypatch.setattr("mast_trace_dashboards.web.counts.LARGE", 0)
    with new_store(tmp_path) as store:
        hours = ((n, NOW - timedelta(hours=n)) for n in (1, 2, 3))
        add_runs(store, (Run(n, code="2.6", tool="search", at=at) for n, at in hours))
        PatternIndexer(store).index()
        with TestClient(web_app(store), base_url="http://127.0.0.1") as client:
            assert "3 of 3 runs" in client.get("/patterns").text
            again = client.get("/patterns").text
            assert "3 of 3 runs" in again
            assert "Counted at" not in again
            add_run(store, 4, code="2.6", tool="search", at=NOW)
            PatternIndexer(store).index()
            stale = client.get("/patterns").text
            assert "3 of 3 runs" in stale
            assert "Counted at" in stale
            for _ in range(600):
                newer = client.get("/patterns").text
                if "4 of 4 runs" in newer:
                    break
                time.sleep(0.05)
            assert "4 of 4 runs" in newer
            assert "Counted at" not in newer


def test_the_list_shows_patterns_and_escapes_their_texts(view: TestClient) -> None:
    page = view.get("/patterns")
    assert page.status_code == 200
    assert "4 of 10 runs" in page.text
    assert "<script>alert" not in page.text
    assert "&lt;script&gt;" in page.text
    assert "failing tool search" in page.text
    assert view.get("/patterns", params={"state": "resolved"}).text.count("4 of 10 runs") == 0
    assert view.get("/patterns", params={"since": "soon"}).status_code == 400


def test_a_pattern_shows_its_runs_and_takes_a_state(view: TestClient, store: Store) -> None:
    name = QUERIES["patterns"].run(store)[0]["PatternId"]
    page = view.get(f"/patterns/{name}")
    for part in (f"/runs/{1:032x}", "mast-trace confirm", "mast-trace inject"):
        assert part in page.text
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


def test_a_pattern_shows_the_cost_of_its_newest_runs(view: TestClient, store: Store) -> None:
    """The page says what `mast-trace patterns show` says; a price that is unknown is no price of 0."""
    found = find_pattern(store, QUERIES["patterns"].run(store)[0]["PatternId"])

    def cost() -> str:
        return found_pattern.cost(found.row, cost_of(store, found), 4)

    assert cost() == "unknown: its newest runs record no tokens of model calls"
    _add_call(store, 1, "nobody-knows")
    assert cost() == "unknown in its runs"
    _add_call(store, 2, "own")
    _add_call(store, 9, "own")  # It does not show the pattern.
    store_prices(store, {"own": OwnPrice(input=Decimal("1.5"), output=Decimal(6))})
    told = "$1.50 and 1 call of unknown price in its runs"
    page = view.get(f"/patterns/{found.row['PatternId']}").text
    assert f'<span class="muted">Cost: </span>{told}</p>' in page
    assert "has the cost" not in page
    table = Console(width=200, record=True, file=StringIO())
    for part in printed(found_pattern.said_of(found, cost_of(store, found))):
        table.print(part)
    assert told in table.export_text()
    assert found_pattern.cost(found.row, cost_of(store, found), 3).endswith(
        "in the newest 3 of its runs"
    )
    none = dataclasses.replace(found, runs=())
    assert cost_of(store, none) == {}


def _add_call(store: Store, run: int, model: str) -> None:
    """Write a model call that reads a million tokens into a run."""
    called = {"gen_ai.operation.name": "chat", "gen_ai.request.model": model}
    call = {
        "TraceId": f"{run:032x}",
        "SpanId": f"{run:08x}{9:08x}",
        "ParentSpanId": f"{run:08x}{0:08x}",
        "SpanName": "chat",
        "Timestamp": NOW - timedelta(hours=run) + timedelta(milliseconds=5),
        "Duration": 1000,
        "ServiceName": "shop",
        "SpanAttributes": {**called, "gen_ai.usage.input_tokens": "1000000"},
    }
    store.insert("otel_traces", [call])


def test_an_assistant_is_told_all_of_a_pattern(store: Store) -> None:
    found = find_pattern(store, QUERIES["patterns"].run(store)[0]["PatternId"])
    told = {name: found.row[column] for column, name in COLUMNS.items()}
    told |= {name: getattr(found_pattern, name)(found.row) for name in WORDS}
    told |= {"named_by": "", "place": found_pattern.decisive(found.row)}
    assert patterns_of(store, "", "", "", 0) == {"patterns": [told], "next": None}
    name = told["pattern"]
    whole = pattern_of(store, name[:6])
    assert {**whole, **told} == whole
    assert whole["runs"] == [f"{n:032x}" for n in range(1, 5)]
    for _, line in found.commands:
        assert line in whole["said"]
    known = {"recorded": "acknowledged", "pattern": name, "by": "ada"}
    assert acknowledge(store, name[:6], "ada", "ticket 18") == known
    for given, shown in (
        (("", "acknowledged", "shop", 0), 1),
        (("", "open", "", 0), 0),
        (("", "", "no", 0), 0),
        (("1m", "", "", 0), 0),
        (("", "", "", 1), 0),
    ):
        assert len(patterns_of(store, *given)["patterns"]) == shown, given


def test_a_name_stands_beside_the_title_with_its_model(view: TestClient, store: Store) -> None:
    """Quotes are escaped; a sentence that did not hold is not there, and the reason is; so is that of a call that failed."""
    (row,) = QUERIES["patterns"].run(store)
    name = row["PatternId"]
    assert row["NamedAt"] is None
    called = {"CallId": "c", "Stage": STAGE, "Model": "m-1", "Status": "error", "StartedAt": NOW}
    store.insert("mast_judge_calls", [{**called, "Error": "no connection: <refused>"}])
    page = view.get("/patterns").text
    assert "Patterns without a sentence wait for m-1: no connection: &lt;refused&gt;" in page
    stored = {"PatternId": name, "Model": "m-1", "TraceIds": [f"{1:032x}"], "RunEnd": NOW}
    dropped = {**stored, "NamedAt": NOW, "Sentence": ""}
    store.insert("mast_pattern_names", [dropped])
    page = view.get(f"/patterns/{name}").text
    assert "No name: m-1 gave no sentence that holds; its answer could not be read, rested" in page
    said = {"Sentence": "The search <b>gives up</b>.", "Quotes": ["timed out <script>"]}
    later = NOW + timedelta(seconds=1)
    store.insert("mast_pattern_names", [{**stored, **said, "NamedAt": later}])
    for address in ("/patterns", f"/patterns/{name}"):
        page = view.get(address).text
        assert "The search &lt;b&gt;gives up&lt;/b&gt;." in page
        assert "named by m-1" in page
        assert "wait for m-1" not in page
        assert "2.6" in page
    assert "timed out &lt;script&gt;" in page
    (told,) = patterns_of(store, "", "", "", 0)["patterns"]
    assert (told["sentence"], told["named_by"]) == (said["Sentence"], "m-1")
    assert told["title"].startswith("2.6")
    table = Console(width=200, record=True, file=StringIO())
    table.print(listing(QUERIES["patterns"].run(store)))
    for part in printed(found_pattern.said_of(find_pattern(store, name), {})):
        table.print(part)
    shown = table.export_text()
    assert shown.count("The search <b>gives up</b>. (named by m-1)") == 2
    assert "“timed out <script>”" in shown
    assert "2.6" in shown
