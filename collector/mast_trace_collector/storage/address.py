"""Reads the address of a span store."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

from mast_trace.exceptions import ConfigurationError

DEFAULT_DATABASE = "mast_trace"
_SCHEMES = {"http": "http", "https": "https", "clickhouse": "http", "clickhouses": "https"}
_NATIVE_PORTS = {9000, 9440}
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Address:
    """Where the spans are stored.

    Attributes:
        path: folder of the embedded engine; empty for a server.
        dsn: address of the server; empty for the embedded engine.
        database: where the tables are.
        label: the address as it may be shown: without its password.
    """

    path: str
    dsn: str
    database: str
    label: str


def parse_address(url: str, database: str | None = None) -> Address:
    """Read ``chdb:///folder``, ``http(s)://user:password@host:8123/database`` or ``clickhouse://``.

    Raises:
        ConfigurationError: the address cannot be used; the text says which form is expected.
    """
    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query))
    named = database or options.pop("database", "")
    if parts.scheme == "chdb":
        if parts.netloc or len(parts.path) < 2:
            raise ConfigurationError(
                f"{url!r} names no folder: write chdb:///absolute/path (three slashes)"
            )
        path = unquote(parts.path)
        return Address(path, "", identifier(named or DEFAULT_DATABASE), f"chdb://{path}")
    if parts.scheme not in _SCHEMES or not parts.hostname:
        raise ConfigurationError(
            f"cannot read the store's address {_hidden(url)!r}: expected chdb:///absolute/path or "
            "http(s)://user:password@host:8123/database"
        )
    if parts.port in _NATIVE_PORTS:
        raise ConfigurationError(
            f"port {parts.port} is ClickHouse's native protocol; mast-trace speaks its HTTP "
            "interface: use 8123, or 8443 with https"
        )
    named = named or parts.path.strip("/")
    # The database is not in the DSN: a client may connect before a migration creates it.
    dsn = urlunsplit((_SCHEMES[parts.scheme], parts.netloc, "", urlencode(options), ""))
    return Address("", dsn, identifier(named or DEFAULT_DATABASE), _hidden(url))


def identifier(name: str) -> str:
    """Return ``name`` if it can stand in SQL unquoted.

    Raises:
        ConfigurationError: it cannot.
    """
    if not _IDENTIFIER.fullmatch(name):
        raise ConfigurationError(f"{name!r} is no name for a database, table or cluster")
    return name


def _hidden(url: str) -> str:
    return re.sub(r"(?<=//)([^/@:]*):[^/@]*@", r"\1:***@", url)
