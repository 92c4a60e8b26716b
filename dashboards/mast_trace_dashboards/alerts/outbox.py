"""The outbox of alerts: deliveries are retried with growing pauses while the receiver is down.

The changes of one evaluation are one delivery, also across restarts: it keeps its key when sent
again. A delivery that a receiver cannot read is divided, so that one alert does not block others.

Sends one POST to the alert webhook, with limits on all that the receiver can do.

The address is the operator's and may be on this machine or network. Its answer is not trusted: no
redirect is followed, the body is not read, the whole exchange has a deadline, and an address of a
cloud's metadata service is refused once connected, so that no host name can lead there.
"""

from __future__ import annotations

import asyncio
import hashlib
import ipaddress
import logging
import math
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Final, Literal

import httpx

from mast_trace.exceptions import ConfigurationError, MastTraceError
from mast_trace.urls import check_proxies, conceal
from mast_trace_dashboards.alerts.config import DEFAULT_WEB
from mast_trace_dashboards.alerts.lifecycle import PROBLEM, AlertChange
from mast_trace_dashboards.alerts.rules import RULES
from mast_trace_dashboards.alerts.runbooks import address
from mast_trace_dashboards.printable import clip

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


if TYPE_CHECKING:
    Delivery = tuple[AlertChange, ...]

    Network = ipaddress.IPv4Network | ipaddress.IPv6Network

DEADLINE: Final = 15.0
"""Seconds that one delivery may take, from the name's resolution to the answer's headers."""
METADATA: Final = tuple(
    ipaddress.ip_network(each)
    for each in ("169.254.0.0/16", "fe80::/10", "fd00:ec2::/32", "100.100.100.200/32")
)
"""Addresses of clouds' metadata services, which hold keys; no receiver of alerts is there."""
_UNREADABLE: Final = frozenset({400, 413, 415, 422})
_LONGEST_PROBLEM = 200
_LAST_PORT = 65535

logger = logging.getLogger(__name__)
FIRST_PAUSE: Final = 1.0
LONGEST_PAUSE: Final = 60.0
LARGEST: Final = 50
"""Most changes in one delivery."""
MOST: Final = 1000
"""Most deliveries that wait; beyond them the oldest are given up."""


@dataclass(frozen=True)
class DeliveryResult:
    """The result of one delivery.

    Attributes:
        problem: the reason for which it was not accepted, in words; empty if it was.
        unreadable: whether it can never be accepted, because of its content.
    """

    problem: str = ""
    unreadable: bool = False


class ForbiddenAddress(MastTraceError):
    """The connection leads to a forbidden address."""


class Webhook:
    """The receiver of alerts.

    Args:
        url: of the receiver; name and password in it become basic authentication.
        deadline: seconds that one delivery may take.
        forbidden: networks that are never written to.

    Raises:
        ConfigurationError: the address cannot be used.
    """

    def __init__(
        self, url: str, *, deadline: float = DEADLINE, forbidden: Sequence[Network] = METADATA
    ) -> None:
        check_proxies()
        self._url = _checked(url)
        self._given = url
        self._deadline = deadline
        self._forbidden = forbidden

    @property
    def label(self) -> str:
        """The address without its secrets: paths of webhooks are secret, too."""
        port = f":{self._url.port}" if self._url.port else ""
        return f"{self._url.scheme}://{self._url.host}{port}/..."

    def post(self, body: Mapping[str, Any], key: str) -> DeliveryResult:
        """Send once.

        Args:
            body: as JSON.
            key: equal for the same alerts sent again, so that the receiver can recognise them.
        """
        try:
            status = asyncio.run(asyncio.wait_for(self._post(body, key), self._deadline))
        except (TimeoutError, asyncio.TimeoutError):
            return DeliveryResult(f"no answer within {self._deadline:g} s")
        except (httpx.HTTPError, MastTraceError, OSError, ValueError) as error:
            problem = conceal(str(error), self._given) or type(error).__name__
            return DeliveryResult(clip(problem, _LONGEST_PROBLEM))
        if httpx.codes.is_success(status):
            return DeliveryResult()
        if httpx.codes.is_redirect(status):
            return DeliveryResult(
                f"HTTP {status}, a redirect, which is not followed: name its target"
            )
        return DeliveryResult(f"HTTP {status}", unreadable=status in _UNREADABLE)

    async def _post(self, body: Mapping[str, Any], key: str) -> int:
        headers = {"Idempotency-Key": key, "User-Agent": "mast-trace"}
        extensions = {"trace": self._look_at}
        async with (
            httpx.AsyncClient(timeout=self._deadline, follow_redirects=False) as client,
            client.stream(
                "POST", self._url, json=body, headers=headers, extensions=extensions
            ) as answer,
        ):
            return answer.status_code

    async def _look_at(self, event: str, info: Mapping[str, Any]) -> None:
        """Check the address that the connection has reached, before anything is written to it.

        Raises:
            ForbiddenAddress: alerts are never sent to it.
        """
        if not event.endswith("connect_tcp.complete"):
            return
        host, *_ = info["return_value"].get_extra_info("server_addr")
        reached = ipaddress.ip_address(host.partition("%")[0])
        reached = getattr(reached, "ipv4_mapped", None) or reached
        if any(reached in network for network in self._forbidden):
            raise ForbiddenAddress(f"{self._url.host} is {reached} now, to which no alert is sent")


def _checked(url: str) -> httpx.URL:
    advice = "alert_webhook is an address such as https://alerts.example.org/hook"
    try:
        read = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise ConfigurationError(f"{advice}: {conceal(str(error), url)}") from None
    if read.scheme not in {"http", "https"} or not read.host or (read.port or 0) > _LAST_PORT:
        raise ConfigurationError(f"{advice}, with http or https, a host and a port that exists")
    return read


class Outbox:
    """Deliveries in their order.

    Args:
        post: sends a delivery with its key.
        label: the receiver's name in the log.
        waiting: deliveries that an earlier process could not send.

    Attributes:
        waiting: deliveries that no receiver has accepted.
        next_try: `time.monotonic` before which nothing is sent.
    """

    def __init__(
        self,
        post: Callable[[Delivery, str], DeliveryResult],
        label: str,
        waiting: Sequence[Delivery] = (),
    ) -> None:
        self.waiting = list(waiting)
        self.next_try = 0.0
        self._post, self._label = post, label
        self._pause = FIRST_PAUSE
        self._problem = ""

    def add(self, changes: Sequence[AlertChange]) -> None:
        """Add the changes of one evaluation."""
        self.waiting += [
            tuple(changes[at : at + LARGEST]) for at in range(0, len(changes), LARGEST)
        ]
        if (excess := len(self.waiting) - MOST) and excess > 0:
            del self.waiting[:excess]
            logger.error("%d old deliveries to %s are given up", excess, self._label)

    def flush(self) -> bool:
        """Send what waits, up to the first delivery that is not accepted; return whether anything changed."""
        if not self.waiting or time.monotonic() < self.next_try:
            return False
        delivery = self.waiting[0]
        answer = self._post(delivery, key_of(delivery))
        if not answer.problem:
            self.waiting.pop(0)
            self._taken()
        elif answer.unreadable:
            self._divide(answer.problem)
        else:
            self._failed(answer.problem)
        return not answer.problem or answer.unreadable

    def _taken(self) -> None:
        if self._problem:
            logger.warning("%s takes alerts again", self._label)
        self._pause, self._problem, self.next_try = FIRST_PAUSE, "", 0.0

    def _divide(self, problem: str) -> None:
        first = self.waiting.pop(0)
        if len(first) > 1:
            self.waiting[:0] = [(change,) for change in first]
            return
        logger.error("%s cannot read an alert (%s): %s", self._label, problem, first[0].alert.key)

    def _failed(self, problem: str) -> None:
        """Wait, longer each time; a failure is logged when it begins, not at each try."""
        self.next_try = time.monotonic() + self._pause * random.uniform(0.8, 1.2)  # noqa: S311
        self._pause = min(self._pause * 2, LONGEST_PAUSE)
        if problem != self._problem:
            logger.warning(
                "%s does not take alerts (%s); they wait on disk, and are tried again every %g s",
                *(self._label, problem, LONGEST_PAUSE),
            )
        self._problem = problem


def key_of(delivery: Delivery) -> str:
    """Return the key by which a receiver recognises a repeated delivery."""
    changes = "\n".join(f"{each.alert.key} {each.kind} {each.began}" for each in delivery)
    return hashlib.sha256(changes.encode()).hexdigest()[:32]
