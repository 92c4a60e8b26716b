"""The body that a receiver gets."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import pytest

from mast_trace_dashboards.alerts.lifecycle import Alert, AlertChange
from mast_trace_dashboards.alerts.outbox import Webhook, payload, sentence
from mast_trace_dashboards.alerts.rules import RULES

if TYPE_CHECKING:
    from webhook_receiver import Receiver


def change(kind: str = "firing", service: str = "shop") -> AlertChange:
    labels = (("service", service), ("framework", "ag2"))
    return AlertChange(Alert("mast-specification-page", labels, 5.1, "firing", 0.0), kind, 0.0)  # type: ignore[arg-type]


ADVICE = (
    "Open the failure modes of this service, compare with its last deployment, and read one of the "
    "newest runs that shows the mode."
)
SUMMARY = (
    "Specification violations of shop (ag2): well above the last week, at whose rate so many would "
    f"have a probability of 10^-5.1. {ADVICE}"
)


def test_a_delivery_as_a_whole() -> None:
    firing = payload([change()], "alertmanager", "http://view", web="http://web")
    told = {
        "status": "firing",
        "labels": {
            "alertname": "mast-specification-page",
            "severity": "page",
            "app": "mast-trace",
            "service": "shop",
            "framework": "ag2",
        },
        "annotations": {
            "summary": SUMMARY,
            "description": ADVICE,
            "runbook_url": "http://web/runbooks/specification",
        },
        "startsAt": "1970-01-01T00:00:00+00:00",
        "endsAt": None,
        "generatorURL": "http://view",
        "fingerprint": "mast-specification-page;service=shop;framework=ag2",
        "values": {"value": 5.1},
    }
    head = {"version": "4", "receiver": "mast-trace"}
    assert firing == {**head, "status": "firing", "alerts": [told]}
    assert payload([change("resolved")] * 2, "alertmanager")["status"] == "resolved"
    both = payload([change(), change("resolved", "b")], "alertmanager")
    assert (both["status"], both["alerts"][1]["status"]) == ("firing", "resolved")


def test_a_message_as_a_whole() -> None:
    text = payload([change(), change("resolved")], "slack", "http://view", web="http://web")
    resolved = "Resolved: Specification violations: far above the last week (shop, ag2)."
    link = "<http://web/runbooks/specification|Runbook>"
    assert text == {
        "text": f":rotating_light: {SUMMARY} {link}\n"
        f":white_check_mark: {resolved} {link}\n"
        "http://view"
    }


@pytest.mark.parametrize(
    ("uid", "labels", "value", "kind", "told"),
    [
        # Numbers have four digits; a label without a value is named as such.
        (
            "mast-judge-budget",
            {},
            23.45678,
            "firing",
            (
                "23.46 US dollars were spent on judging in the last 24 hours. Lower the daily cap or the "
                "share of runs that a model judges."
            ),
        ),
        (
            "mast-judge-errors",
            {"model": ""},
            0.5,
            "firing",
            (
                "0.5 of the calls of (none) failed in the last hour. Look at the errors in "
                "mast_judge_calls: key, quota, or model name."
            ),
        ),
        (
            "mast-judge-behind",
            {"problem": "its query fails"},
            math.inf,
            "firing",
            (
                "The judge is behind? That is unknown: its query fails. Is a worker running "
                "(`mast-trace judge work`)? Add shards, or look at model calls."
            ),
        ),
        ("mast-judge-errors", {"model": ""}, 0.0, "resolved", "The judge's model calls fail."),
        ("mast-judge-behind", {}, 0.0, "resolved", "The judge is behind."),
        (
            "mast-mode-page",
            {"service": "shop", "framework": "", "mode": "1.3"},
            0.0,
            "resolved",
            "Failure mode 1.3: far above the last week (shop, 1.3).",
        ),
    ],
)
def test_the_sentence(uid: str, labels: dict[str, str], value: float, kind: str, told: str) -> None:
    alert = Alert(uid, tuple(labels.items()), value, "firing", 0.0)
    written = sentence(AlertChange(alert, kind, 0.0))  # type: ignore[arg-type]
    assert written == (told if kind == "firing" else f"Resolved: {told}")


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
        .post(payload([AlertChange(alert, "firing", 60.0)], "alertmanager"), "")
        .problem
    )
    (told,) = receiver.bodies[0]["alerts"]
    assert "its query fails" in told["annotations"]["summary"]
    assert "inf" not in json.dumps(told).replace("info", "")
    assert told["startsAt"] == "1970-01-01T00:01:00+00:00"


def test_what_is_resolved_says_whose_it_was_and_since_when() -> None:
    alert = Alert("mast-specification-page", (("service", "shop"),), 0.0, "inactive", 120.0)
    (told,) = payload([AlertChange(alert, "resolved", 60.0)], "alertmanager")["alerts"]
    assert "(shop)" in told["annotations"]["summary"]
    assert (told["startsAt"], told["endsAt"]) == (
        "1970-01-01T00:01:00+00:00",
        "1970-01-01T00:02:00+00:00",
    )


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.uid)
@pytest.mark.parametrize("kind", ["firing", "resolved"])
def test_every_rule_has_a_sentence_without_holes(rule: Any, kind: str) -> None:
    labels = tuple((name, "x") for name in rule.labels)
    told = sentence(AlertChange(Alert(rule.uid, labels, 1.5, "firing", 0.0), kind, 0.0))  # type: ignore[arg-type]
    assert "{" not in told
    assert told.endswith(".")
