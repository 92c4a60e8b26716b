"""Access control: the operator's token, projects' keys, sessions, users of trusted proxies."""

from __future__ import annotations

import hmac
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from starlette.exceptions import HTTPException

from mast_trace.exceptions import ConfigurationError
from mast_trace_collector.rights import Right
from mast_trace_collector.security import ProjectKeys, is_loopback
from mast_trace_dashboards.web.config import WebConfig
from mast_trace_dashboards.web.proxies import TrustedProxies
from mast_trace_dashboards.web.sessions import FailedSignIns, Sessions
from mast_trace_dashboards.web.visitor import OPERATOR, Visitor

if TYPE_CHECKING:
    from pathlib import Path

    from starlette.requests import HTTPConnection

COOKIE: Final = "mast-trace-session"
_OPERATOR: Final = "operator"
_LOCAL_NAMES: Final = frozenset({"127.0.0.1", "localhost", "[::1]"})
UNKNOWN: Final = "This key is not known here."


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
