"""The judge page says what labels are worth: how many are missing, then what was measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from starlette.testclient import TestClient
from web_runs import message, root

from mast_trace_collector.storage import Store, migrate
from mast_trace_dashboards.web.app import web_app
from mast_trace_judge.store.labels import HumanLabel, save_labels
from mast_trace_lab.fit import fit_gain

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RUNS = [f"{number:032x}" for number in range(12)]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Twelve runs in which whoever says sorry is at fault, nine of them labelled."""
    with Store.open(f"chdb://{tmp_path}") as opened:
        migrate(opened)
        rows = [row for number, run in enumerate(RUNS) for row in _run(run, number)]
        opened.insert("otel_traces", rows)
        save_labels(opened, [_label(number) for number in range(9)])
        yield opened


def _run(run: str, number: int) -> list[dict[str, object]]:
    said = [
        message(
            run,
            place,
            f"agent {place}",
            "Sorry, an error." if place == _guilty(number) else "Done.",
        )
        for place in range(5)
    ]
    for place, row in enumerate(said):
        row["SpanAttributes"]["mast.message.id"] = f"{run}{place}"
    return [root(run, f"run {number}"), *said]


def _guilty(number: int) -> int:
    return 1 + number % 3


def _label(number: int, note: str = "") -> HumanLabel:
    guilty = _guilty(number)
    return HumanLabel(RUNS[number], "ada", "failure", (), guilty, f"agent {guilty}", note)


def _text(client: TestClient) -> str:
    return " ".join(client.get("/judge").text.replace("\xa0", " ").split())


def _offer(page: str) -> str:
    """The part of the page on labels: its other parts tell ages, which grow between two visits."""
    return page.partition("Learning from your labels")[2].partition("<h2")[0]


def test_the_page_counts_and_then_measures(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nine labels are one too few; twelve are measured, once as long as they stay the same."""
    measured = []
    of = fit_gain.fit_offer

    def counted(*given: object) -> object:
        measured.append(given)
        return of(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(fit_gain, "fit_offer", counted)
    client = TestClient(web_app(store), base_url="http://127.0.0.1")
    page = _text(client)
    assert "9 runs have a label with a decisive step; with 1 more" in page
    assert "mast-trace label RUN --step N" in page
    save_labels(store, [_label(number) for number in range(9, 12)])
    page = _text(client)
    assert "Measured on 12 of these runs" in page
    assert "as the judge ships (+" in page
    assert "<code>mast-trace judge fit --name own</code>" in page
    assert _offer(_text(client)) == _offer(page)
    assert len(measured) == 2
    save_labels(store, [_label(0, note="sure")])
    _text(client)
    assert len(measured) == 3


def test_a_store_without_labels_says_what_they_would_be_good_for(tmp_path: Path) -> None:
    with Store.open(f"chdb://{tmp_path}") as opened:
        migrate(opened)
        page = _text(TestClient(web_app(opened), base_url="http://127.0.0.1"))
    assert "0 runs have a label with a decisive step; with 10 more" in page
    assert "whether" not in page.partition("Learning from your labels")[2]
