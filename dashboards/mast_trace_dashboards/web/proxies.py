"""Proxies that are trusted to name their user."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException

from mast_trace_dashboards.web.visitor import Visitor

if TYPE_CHECKING:
    from starlette.requests import HTTPConnection
    from starlette.types import Scope

    from mast_trace_collector.rights import Right
    from mast_trace_dashboards.web.config import Network, WebConfig

_PROJECT = re.compile(r"[\w.-]{1,64}")
_LONGEST_NAME = 256


@dataclass(frozen=True)
class TrustedProxies:
    """Names the user of a request that comes from one of the proxies' addresses.

    Only the address of the connection's peer counts, never a header, and only requests to a public
    name: another program on the proxy's machine reaches the view under a local one.

    Attributes:
        networks: their addresses.
        names: the public names of the view, in lower case.
        user_header: header with the user's name, in lower case.
        project_header: header with the user's project; empty: their users see all.
        rights: of their users.
    """

    networks: tuple[Network, ...] = ()
    names: frozenset[str] = frozenset()
    user_header: str = ""
    project_header: str = ""
    rights: frozenset[Right] = frozenset()

    @classmethod
    def of(cls, config: WebConfig) -> TrustedProxies:
        """Return the configured proxies."""
        return cls(
            config.trusted_proxies,
            config.public_names,
            config.web_user_header.lower(),
            config.web_project_header.lower(),
            config.proxied_rights,
        )

    def visitor(self, connection: HTTPConnection) -> Visitor | None:
        """Return the user that a trusted proxy names; None if none does.

        Raises:
            HTTPException: the proxy names two users, or no project where it should name one, or it
                asks under a name that is not public.
        """
        if not self._trusts(connection):
            return None
        user = _only(connection, self.user_header)
        if not user:
            return None
        asked = host_name(connection.headers["host"])
        if asked not in self.names:
            raise HTTPException(
                403,
                f"The proxy names its user under {asked}, which is none of web_public_names: let it "
                "hand on the Host header.",
            )
        if not self.project_header:
            return Visitor(None, self.rights, user)
        project = _only(connection, self.project_header)
        if not _PROJECT.fullmatch(project):
            raise HTTPException(403, f"The proxy names no single project of {user}.")
        return Visitor(project, self.rights, user)

    def without_headers(self, scope: Scope) -> Scope:
        """Return a request without the headers, so that no later code can trust them."""
        ours = {name.encode("latin-1") for name in (self.user_header, self.project_header) if name}
        if not ours:
            return scope
        kept = [(name, value) for name, value in scope["headers"] if name.lower() not in ours]
        return {**scope, "headers": kept}

    def _trusts(self, connection: HTTPConnection) -> bool:
        if not self.networks or connection.client is None:
            return False
        try:
            peer = ip_address(connection.client.host)
        except ValueError:
            return False
        if isinstance(peer, IPv6Address) and peer.ipv4_mapped is not None:
            peer = peer.ipv4_mapped
        return any(peer in network for network in self.networks)


def host_name(host: str) -> str:
    """Return the name in a Host header, without port, in lower case."""
    name = host.partition("]")[0] + "]" if host.startswith("[") else host.partition(":")[0]
    return name.lower().rstrip(".")


def _only(connection: HTTPConnection, header: str) -> str:
    """Return the header's value; empty if it is absent."""
    values = connection.headers.getlist(header)
    if len(values) > 1:
        raise HTTPException(400, f"The header {header} stands there {len(values)} times.")
    try:
        text = "".join(values).encode("latin-1").decode("utf-8").strip()
    except ValueError:
        raise HTTPException(400, f"The header {header} is no UTF-8.") from None
    if len(text) > _LONGEST_NAME or not text.isprintable():
        raise HTTPException(400, f"The header {header} holds no name.")
    return text
