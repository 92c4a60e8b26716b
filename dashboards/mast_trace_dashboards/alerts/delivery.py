"""The body of a webhook request: alerts in Alertmanager's format, or as a message for Slack."""

from __future__ import annotations

import math
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Literal

from mast_trace_dashboards.alerts.config import DEFAULT_WEB
from mast_trace_dashboards.alerts.lifecycle import PROBLEM
from mast_trace_dashboards.alerts.rules import RULES
from mast_trace_dashboards.alerts.runbooks import address

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mast_trace_dashboards.alerts.lifecycle import AlertChange

Shape = Literal["alertmanager", "slack"]

_BY_UID = {rule.uid: rule for rule in RULES}


def sentence(change: AlertChange) -> str:
    """Return a sentence about a change, for people."""
    rule = _BY_UID[change.alert.rule]
    labels = dict(change.alert.labels)
    if change.kind == "resolved":
        title = _filled(rule.title, labels)
        whose = ", ".join(content for content in labels.values() if content)
        return f"Resolved: {title}{f' ({whose})' if whose else ''}."
    if PROBLEM in labels:
        return f"{rule.title}? That is unknown: {labels[PROBLEM]}. {rule.advice}"
    text = _filled(rule.summary, {**labels, "value": f"{change.alert.value:.4g}"})
    return f"{text} {rule.advice}"


def _filled(text: str, values: Mapping[str, str]) -> str:
    for name, content in values.items():
        text = text.replace(f"{{{name}}}", content or "(none)")
    return text


def payload(
    changes: Sequence[AlertChange], shape: Shape, view: str = "", web: str = DEFAULT_WEB
) -> dict[str, Any]:
    """Return the body of a delivery.

    Args:
        changes: alerts that fire or are resolved.
        shape: Alertmanager's webhook body (version 4), or Slack's message.
        view: address to link to, of the web view or of Grafana; empty: ``web``.
        web: address of the web view, which serves the runbooks.
    """
    view = view or web
    if shape == "slack":
        marks = {"firing": ":rotating_light:", "resolved": ":white_check_mark:"}
        lines = [
            f"{marks[change.kind]} {_escaped(sentence(change))} <{_runbook(change, web)}|Runbook>"
            for change in changes
        ]
        return {"text": "\n".join([*lines, view])}
    firing = any(change.kind == "firing" for change in changes)
    return {
        "version": "4",
        "receiver": "mast-trace",
        "status": "firing" if firing else "resolved",
        "alerts": [_alert(change, view, web) for change in changes],
    }


def _runbook(change: AlertChange, web: str) -> str:
    return address(web, _BY_UID[change.alert.rule].runbook)


def _alert(change: AlertChange, view: str, web: str) -> dict[str, Any]:
    rule = _BY_UID[change.alert.rule]
    labels = {"alertname": rule.uid, "severity": rule.severity, "app": "mast-trace"}
    return {
        "status": change.kind,
        "labels": {**labels, **dict(change.alert.labels)},
        "annotations": {
            "summary": sentence(change),
            "description": rule.advice,
            "runbook_url": _runbook(change, web),
        },
        "startsAt": _moment(change.began),
        "endsAt": _moment(change.alert.since) if change.kind == "resolved" else None,
        "generatorURL": view,
        "fingerprint": change.alert.key,
        "values": {"value": finite(change.alert.value)},
    }


def finite(value: float) -> float | None:
    """Return a number as JSON has it; None for infinity and NaN."""
    return value if math.isfinite(value) else None


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat()


def _escaped(text: str) -> str:
    """Slack reads & < > as markup."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
