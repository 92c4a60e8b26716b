"""What a receiver is sent."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from mast_trace_dashboards.alerts.delivery import payload, sentence
from mast_trace_dashboards.alerts.rules import RULES
from mast_trace_dashboards.alerts.state import Alert, Change
from mast_trace_dashboards.alerts.webhook import Webhook

if TYPE_CHECKING:
    from webhook_receiver import Receiver


def change(kind: str = "firing", service: str = "shop") -> Change:
    labels = (("service", service), ("framework", "ag2"))
    return Change(Alert("mast-specification-page", labels, 5.1, "firing", 0.0), kind, 0.0)  # type: ignore[arg-type]


def test_a_delivery_has_alertmanagers_shape() -> None:
    body = payload([change(), change("resolved", "b")], "alertmanager")
    assert (body["version"], body["status"]) == ("4", "firing")
    first, second = body["alerts"]
    assert first["labels"]["service"] == "shop"
    assert "shop (ag2)" in first["annotations"]["summary"]
    assert first["fingerprint"] != second["fingerprint"]
    assert second["status"] == "resolved"


def test_a_message_for_slack_is_text_without_markup_of_the_run() -> None:
    text = payload([change(service="<!channel> & co")], "slack", "http://view")["text"]
    assert "&lt;!channel&gt; &amp; co" in text
    assert text.endswith("http://view")
    assert "<http://127.0.0.1:8680/runbooks/specification|Runbook>" in text


def test_a_delivery_links_to_its_runbook_and_to_where_to_look() -> None:
    (told,) = payload([change()], "alertmanager", web="https://traces.example.org/")["alerts"]
    assert told["annotations"]["runbook_url"] == (
        "https://traces.example.org/runbooks/specification"
    )
    assert told["generatorURL"] == "https://traces.example.org/"
    (told,) = payload([change()], "alertmanager", "http://grafana")["alerts"]
    assert told["generatorURL"] == "http://grafana"


def test_a_number_that_cannot_be_told_is_told_so(receiver: Receiver) -> None:
    """The query of such a rule has failed; infinity is nothing that JSON knows."""
    labels = (("problem", "its query fails"),)
    alert = Alert("mast-judge-behind", labels, float("inf"), "firing", 60.0)
    assert (
        not Webhook(receiver.url)
        .post(payload([Change(alert, "firing", 60.0)], "alertmanager"), "")
        .problem
    )
    (told,) = receiver.bodies[0]["alerts"]
    assert "its query fails" in told["annotations"]["summary"]
    assert "inf" not in json.dumps(told).replace("info", "")
    assert told["startsAt"] == "1970-01-01T00:01:00+00:00"


def test_what_is_resolved_says_whose_it_was_and_since_when() -> None:
    alert = Alert("mast-specification-page", (("service", "shop"),), 0.0, "inactive", 120.0)
    (told,) = payload([Change(alert, "resolved", 60.0)], "alertmanager")["alerts"]
    assert "(shop)" in told["annotations"]["summary"]
    assert (told["startsAt"], told["endsAt"]) == (
        "1970-01-01T00:01:00+00:00",
        "1970-01-01T00:02:00+00:00",
    )


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.uid)
@pytest.mark.parametrize("kind", ["firing", "resolved"])
def test_every_rule_has_a_sentence_without_holes(rule: Any, kind: str) -> None:
    labels = tuple((name, "x") for name in rule.labels)
    told = sentence(Change(Alert(rule.uid, labels, 1.5, "firing", 0.0), kind, 0.0))  # type: ignore[arg-type]
    assert "{" not in told
    assert told.endswith(".")
