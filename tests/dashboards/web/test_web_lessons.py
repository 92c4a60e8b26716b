"""`GET /lessons` asks for a key with the right to read, as every page does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from guarded_view import TOKEN, View

from mast_trace_collector.storage import Store, migrate

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> Iterator[View]:
    folder: Path = tmp_path_factory.mktemp("lessons")
    with Store.open(f"chdb://{folder / 'store'}") as store:
        migrate(store)
        yield View(store, folder)


@pytest.mark.parametrize("accept", ["application/json", "text/html", "*/*"])
def test_strangers_and_senders_get_no_lessons(view: View, accept: str) -> None:
    """Neither without a key, with a wrong one, nor with one that may only write."""
    shown = [{}, {"authorization": "Bearer wrong"}, {"authorization": f"Bearer {view.sender}"}]
    for headers in shown:
        answer = view.client(accept=accept, **headers).get("/lessons?workflow=x")
        assert answer.status_code in {303, 401, 403}
        assert "placebo" not in answer.text


def test_readers_and_the_operator_do(view: View) -> None:
    for key in (view.key, TOKEN):
        answer = view.client(authorization=f"Bearer {key}").get("/lessons")
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "application/json"
        assert answer.json()["reason"] == "No run has a confirmed, labelled or exact finding."


def test_lessons_are_only_read(view: View) -> None:
    client = view.client(authorization=f"Bearer {view.key}")
    assert [
        client.request(method, "/lessons").status_code for method in ("POST", "PUT", "DELETE")
    ] == [405] * 3
