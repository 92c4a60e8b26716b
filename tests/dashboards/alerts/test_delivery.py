"""Alerts reach a real receiver, also one that is away for a while."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from mast_trace_dashboards.alerts.delivery import deliver, payload, sentence
from mast_trace_dashboards.alerts.rules import RULES
from mast_trace_dashboards.alerts.state import Alert, Change
from mast_trace_dashboards.queries import QUERIES

if TYPE_CHECKING:
    from collections.abc import Iterator


class Receiver:
    """A webhook that answers with the given statuses, the last one for ever."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.statuses = [200]
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                owner.bodies.append(json.loads(body))
                statuses = owner.statuses
                self.send_response(statuses.pop(0) if len(statuses) > 1 else statuses[0])
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/hook"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    threading.Thread(target=made.server.serve_forever, daemon=True).start()
    yield made
    made.server.shutdown()
    made.server.server_close()


def change(kind: str = "firing", service: str = "shop") -> Change:
    labels = (("service", service), ("framework", "ag2"))
    return Change(Alert("mast-specification-page", labels, 5.1, "firing", 0.0), kind)  # type: ignore[arg-type]


def test_a_delivery_has_alertmanagers_shape(receiver: Receiver) -> None:
    assert deliver(receiver.url, payload([change(), change("resolved", "b")], "alertmanager"))
    (body,) = receiver.bodies
    assert (body["version"], body["status"]) == ("4", "firing")
    first, second = body["alerts"]
    assert first["labels"]["service"] == "shop"
    assert "shop (ag2)" in first["annotations"]["summary"]
    assert first["fingerprint"] != second["fingerprint"]
    assert second["status"] == "resolved"


def test_a_message_for_slack_is_text_without_markup_of_the_run(receiver: Receiver) -> None:
    deliver(receiver.url, payload([change(service="<!channel> & co")], "slack", "http://view"))
    text = receiver.bodies[0]["text"]
    assert "&lt;!channel&gt; &amp; co" in text
    assert text.endswith("http://view")


def test_a_receiver_that_is_away_gets_it_later(receiver: Receiver) -> None:
    receiver.statuses = [500, 429, 200]
    waits: list[float] = []
    assert deliver(receiver.url, {"n": 1}, sleep=waits.append)
    assert len(receiver.bodies) == 3
    assert waits[1] > waits[0] > 0


def test_a_refusal_is_not_repeated(receiver: Receiver) -> None:
    receiver.statuses = [404]
    assert not deliver(receiver.url, {"n": 1}, sleep=lambda _: None)
    assert len(receiver.bodies) == 1


def test_nobody_there_is_no_exception() -> None:
    assert not deliver("http://127.0.0.1:9/", {"n": 1}, sleep=lambda _: None)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.uid)
@pytest.mark.parametrize("kind", ["firing", "resolved"])
def test_every_rule_has_a_sentence_without_holes(rule: Any, kind: str) -> None:
    labels = tuple((name, "x") for name in list(QUERIES[rule.query].columns)[:-1])
    told = sentence(Change(Alert(rule.uid, labels, 1.5, "firing", 0.0), kind))  # type: ignore[arg-type]
    assert "{" not in told
    assert told.endswith(".")
