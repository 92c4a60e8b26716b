"""Sends one POST to the alert webhook, with limits on all that the receiver can do.

The address is the operator's and may be on this machine or network. Its answer is not trusted: no
redirect is followed, the body is not read, the whole exchange has a deadline, and an address of a
cloud's metadata service is refused once connected, so that no host name can lead there.
"""

from __future__ import annotations

import asyncio
import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import httpx

from mast_trace.exceptions import ConfigurationError, MastTraceError
from mast_trace.urls import check_proxies, conceal
from mast_trace_dashboards.printable import clip

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
