"""Delivers alerts to a webhook, in Alertmanager's shape or as a message for Slack."""

from __future__ import annotations

import logging
import math
import random
import time
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Literal

import httpx

from mast_trace.urls import conceal
from mast_trace_dashboards.alerts.rules import RULES
from mast_trace_dashboards.alerts.state import PROBLEM

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mast_trace_dashboards.alerts.state import Change

logger = logging.getLogger(__name__)

Shape = Literal["alertmanager", "slack"]

_ATTEMPTS = 6
_FIRST_WAIT = 1.0
_LONGEST_WAIT = 60.0
_TIMEOUT = 15.0
_BY_UID = {rule.uid: rule for rule in RULES}


def sentence(change: Change) -> str:
    """Return what happened, for people."""
    rule = _BY_UID[change.alert.rule]
    labels = dict(change.alert.labels)
    if change.kind == "resolved":
        title = _filled(rule.title, labels)
        whose = ", ".join(content for content in labels.values() if content)
        return f"Resolved: {title}{f' ({whose})' if whose else ''}."
    if PROBLEM in labels:
        return f"{rule.title}? That cannot be told: {labels[PROBLEM]}. {rule.advice}"
    told = _filled(rule.summary, {**labels, "value": f"{change.alert.value:.4g}"})
    return f"{told} {rule.advice}"


def _filled(text: str, values: Mapping[str, str]) -> str:
    for name, content in values.items():
        text = text.replace(f"{{{name}}}", content or "(none)")
    return text


def payload(changes: Sequence[Change], shape: Shape, view: str = "") -> dict[str, Any]:
    """Return the body of a delivery.

    Args:
        changes: what happened.
        shape: Alertmanager's webhook body (version 4), or Slack's message.
        view: address of the web view or of Grafana, for links.
    """
    if shape == "slack":
        marks = {"firing": ":rotating_light:", "resolved": ":white_check_mark:"}
        lines = [f"{marks[change.kind]} {_escaped(sentence(change))}" for change in changes]
        return {"text": "\n".join([*lines, *([view] if view else [])])}
    firing = any(change.kind == "firing" for change in changes)
    return {
        "version": "4",
        "receiver": "mast-trace",
        "status": "firing" if firing else "resolved",
        "alerts": [_alert(change, view) for change in changes],
    }


def _alert(change: Change, view: str) -> dict[str, Any]:
    rule = _BY_UID[change.alert.rule]
    labels = {"alertname": rule.uid, "severity": rule.severity, "app": "mast-trace"}
    return {
        "status": change.kind,
        "labels": {**labels, **dict(change.alert.labels)},
        "annotations": {"summary": sentence(change), "description": rule.advice},
        "startsAt": _moment(change.began),
        "endsAt": _moment(change.alert.since) if change.kind == "resolved" else None,
        "generatorURL": view,
        "fingerprint": change.alert.key,
        "values": {"value": finite(change.alert.value)},
    }


def finite(value: float) -> float | None:
    """Return a number as JSON knows it; None for what stands for "no number"."""
    return value if math.isfinite(value) else None


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat()


def _escaped(text: str) -> str:
    """Slack reads & < > as markup."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def deliver(url: str, body: dict[str, Any], *, sleep: Callable[[float], None] = time.sleep) -> bool:
    """Send a body, again and again with growing waits while the receiver is away.

    Returns:
        Whether the receiver took it. A refusal (4xx other than 429) is not tried again.
    """
    wait = _FIRST_WAIT
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            answer = httpx.post(url, json=body, timeout=_TIMEOUT)
        except httpx.HTTPError as error:
            problem = conceal(str(error), url) or type(error).__name__
        else:
            if answer.is_success:
                return True
            problem = f"HTTP {answer.status_code}"
            if answer.is_client_error and answer.status_code != httpx.codes.TOO_MANY_REQUESTS:
                logger.error("the alert receiver refuses: %s", problem)
                return False
        if attempt < _ATTEMPTS:
            logger.warning("alert not delivered (%s); trying again in %.0f s", problem, wait)
            sleep(wait * random.uniform(0.8, 1.2))  # noqa: S311  # spreads load, no secret
            wait = min(wait * 2, _LONGEST_WAIT)
    logger.error("alert not delivered after %d attempts: %s", _ATTEMPTS, problem)
    return False
