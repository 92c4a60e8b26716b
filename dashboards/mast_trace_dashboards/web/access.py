"""Access control: the operator's token, projects' keys, sessions, users of trusted proxies."""

from __future__ import annotations

import hmac
import ipaddress
import math
import re
import secrets
import time
from collections import OrderedDict
from dataclasses import dataclass, replace
from ipaddress import IPv6Address, ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Final

from starlette.exceptions import HTTPException

from mast_trace.exceptions import ConfigurationError
from mast_trace_collector.security import ProjectKeys, Right, hash_of, is_loopback
from mast_trace_dashboards.web.config import WebConfig
from mast_trace_dashboards.web.visitor import OPERATOR, Visitor

if TYPE_CHECKING:
    from starlette.requests import HTTPConnection
    from starlette.types import Scope

    from mast_trace_dashboards.web.config import Network


_MOST_SESSIONS = 10_000
_MOST_OF_ONE = 64
_MOST_ADDRESSES = 4096
_BURST = 20
_SECONDS_PER_ATTEMPT = 3.0
_IPV6_NETWORK = 64

_PROJECT = re.compile(r"[\w.-]{1,64}")
_LONGEST_NAME = 256
COOKIE: Final = "mast-trace-session"
_OPERATOR: Final = "operator"
_LOCAL_NAMES: Final = frozenset({"127.0.0.1", "localhost", "[::1]"})
UNKNOWN: Final = "This key is not known here."


@dataclass(frozen=True)
class _Session:
    identity: str
    ends: float


class Sessions:
    """Opaque session ids in memory; a restart signs everybody out.

    Args:
        seconds: duration of a session.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        # By the id's hash, oldest first. All have the same duration, so they also end in this
        # order.
        self._sessions: OrderedDict[str, _Session] = OrderedDict()

    def begin(self, identity: str) -> str:
        """Return the id of a new session; where there are too many, the oldest ends."""
        self._drop_ended()
        theirs = [key for key, each in self._sessions.items() if each.identity == identity]
        for key in theirs[: max(0, len(theirs) - _MOST_OF_ONE + 1)]:
            del self._sessions[key]
        while len(self._sessions) >= _MOST_SESSIONS:
            self._sessions.popitem(last=False)
        made = secrets.token_urlsafe(32)
        self._sessions[hash_of(made)] = _Session(identity, time.monotonic() + self._seconds)
        return made

    def find(self, shown: str) -> str | None:
        """Return the identity of a session; None if there is none, or it has ended."""
        # By its hash, so that the time taken reveals nothing about other ids.
        session = self._sessions.get(hash_of(shown)) if shown else None
        return session.identity if session and session.ends > time.monotonic() else None

    def end(self, shown: str) -> None:
        """End a session, if it exists."""
        self._sessions.pop(hash_of(shown), None)

    def __len__(self) -> int:
        return len(self._sessions)

    def _drop_ended(self) -> None:
        now = time.monotonic()
        while self._sessions and next(iter(self._sessions.values())).ends <= now:
            self._sessions.popitem(last=False)


class FailedSignIns:
    """Limits failed attempts of each address: twenty at once, then one every three seconds.

    An IPv6 address counts as its network, which belongs to one owner; an IPv4 address in IPv6's form, as a server
    on ``::`` sees it, counts as itself. Addresses that are dropped because there are too many start again.
    """

    def __init__(self) -> None:
        self._full_again: OrderedDict[str, float] = OrderedDict()

    def wait(self, address: str) -> int:
        """Return the seconds until another attempt is permitted; 0 if it is now."""
        due = self._full_again.get(_network(address), 0.0) - time.monotonic()
        over = due - (_BURST - 1) * _SECONDS_PER_ATTEMPT
        return max(0, math.ceil(over))

    def failed(self, address: str) -> None:
        """Count a failed attempt."""
        network, now = _network(address), time.monotonic()
        begin = max(self._full_again.pop(network, now), now)
        self._full_again[network] = begin + _SECONDS_PER_ATTEMPT
        while len(self._full_again) > _MOST_ADDRESSES:
            self._full_again.popitem(last=False)

    def __len__(self) -> int:
        return len(self._full_again)


def _network(address: str) -> str:
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if parsed.version == 4:
        return address
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((int(parsed), _IPV6_NETWORK), strict=False))


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


class Access:
    """Identifies the sender of a request.

    Args:
        config: settings of the web view.
        keys: keys of projects; None if there are none.
        is_open: whether everybody who reaches the view may see everything; then only names of this
            machine are served, so that a page elsewhere cannot reach it through a name that points
            here.
    """

    def __init__(
        self,
        config: WebConfig | None = None,
        keys: ProjectKeys | None = None,
        *,
        is_open: bool = True,
    ) -> None:
        config = config or WebConfig.load()
        self._token = config.web_token.get_secret_value()
        self._keys = keys
        self._names = config.public_names
        self.is_open = is_open and not self._token
        self.proxies = TrustedProxies.of(config)
        self.lifetime = round(config.web_session_hours * 3600)
        self.sessions = Sessions(self.lifetime)
        self.attempts = FailedSignIns()

    @classmethod
    def of(cls, config: WebConfig, keys_file: Path | None, *, open_beside_keys: bool) -> Access:
        """Return the access control that the settings describe.

        Args:
            config: settings of the web view.
            keys_file: keys of projects.
            open_beside_keys: whether keys alone let the view on loopback stay open.

        Raises:
            ConfigurationError: strangers could read, or nobody could, or the keys are unreadable.
        """
        token = bool(config.web_token.get_secret_value())
        known = token or keys_file is not None or bool(config.trusted_proxies)
        local = is_loopback(config.web_host) and not config.public_names
        if not local and not known:
            raise ConfigurationError(
                f"the web view on {config.web_host} could be read by anyone: set "
                "MAST_TRACE_WEB_TOKEN, MAST_TRACE_KEYS_FILE or MAST_TRACE_WEB_TRUSTED_PROXIES, or "
                "serve it on 127.0.0.1 without web_public_names"
            )
        asks = token or bool(config.trusted_proxies) or not local
        is_open = not asks and (keys_file is None or open_beside_keys)
        return cls(config, ProjectKeys(keys_file) if keys_file else None, is_open=is_open)

    def serves(self, name: str) -> bool:
        """Return whether the view is served under this host name (see `host_name`)."""
        return name in self._names or name in _LOCAL_NAMES or not (self._names or self.is_open)

    def is_public_name(self, name: str) -> bool:
        """Return whether the name is a configured one."""
        return name in self._names

    def identify(self, connection: HTTPConnection) -> Visitor | None:
        """Return the visitor; None for a visitor who has to sign in.

        Raises:
            HTTPException: the key or token is wrong (401), lacks the right to read (403), or there
                were too many attempts (429).
        """
        if proxied := self.proxies.visitor(connection):
            return proxied
        scheme, _, shown = connection.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and (self._token or self._keys):
            return self._visitor(self.prove(connection, shown.strip()))
        identity = self.sessions.find(connection.cookies.get(cookie_name(connection), ""))
        if identity is not None and (visitor := self._visitor(identity)):
            return replace(visitor, has_session=True)
        return OPERATOR if self.is_open else None

    def prove(self, connection: HTTPConnection, shown: str, *, token_only: bool = False) -> str:
        """Return the identity of a token or key.

        Args:
            connection: the connection that presents it.
            shown: the token or key.
            token_only: whether keys do not count.

        Raises:
            HTTPException: it is unknown (401), lacks the right to read (403), or too many wrong
                ones came from this address (429).
        """
        # Keys are checked first, because they cannot be guessed: guesses at the token must not lock
        # out their holders.
        grant = self._keys.grant_of_key(shown) if self._keys and not token_only else None
        if grant is not None:
            Visitor.of_grant(grant).demand(Right.READ)
            return grant.hash
        address = connection.client.host if connection.client else ""
        if seconds := self.attempts.wait(address):
            raise HTTPException(
                429,
                f"Too many wrong keys came from here. Try again in {seconds} s.",
                {"retry-after": str(seconds)},
            )
        if not self.is_token(shown):
            self.attempts.failed(address)
            raise HTTPException(401, UNKNOWN)
        return _OPERATOR

    def is_token(self, shown: str) -> bool:
        """Return whether this is the operator's token."""
        known = self._token.encode()
        return bool(known) and hmac.compare_digest(shown.encode("utf-8", "replace"), known)

    def _visitor(self, identity: str) -> Visitor | None:
        """Return the visitor for an identity; None if its key was removed meanwhile."""
        if identity == _OPERATOR:
            return OPERATOR
        grant = self._keys.grant_of_hash(identity) if self._keys else None
        return None if grant is None else Visitor.of_grant(grant)


def cookie_name(connection: HTTPConnection) -> str:
    """Return the name of the session's cookie; under TLS a name that no other host can set."""
    return f"__Host-{COOKIE}" if is_secure(connection) else COOKIE


def is_secure(connection: HTTPConnection) -> bool:
    """Return whether the visitor's browser uses TLS, to this server or to a proxy before it.

    A forged header would only make the forger's own browser keep its cookie to itself.
    """
    forwarded = connection.headers.get("x-forwarded-proto", "").strip().lower()
    return "https" in {connection.scope["scheme"], forwarded}
