"""Reads the address of a span store."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final
from urllib.parse import unquote, urlencode

from mast_trace.exceptions import ConfigurationError
from mast_trace.urls import URL, masked, parse_url

DEFAULT_DATABASE = "mast_trace"
_SERVERS = {"http": "http", "https": "https", "clickhouse": "http", "clickhouses": "https"}
_NATIVE_PORTS = {9000, 9440}
_USERS = ("user", "username", "user_name")
_TEXT = (re.compile(r"[^\x00-\x1f\x7f]+"), "a text without line breaks")
_SWITCH = (re.compile(r"(?i)true|false|[01]|y|n|yes|no"), "true or false")
_SECONDS = (re.compile(r"[1-9][0-9]{0,5}"), "whole seconds, at least 1")
_COUNT = (re.compile(r"[0-9]{1,9}"), "a number of at most nine digits")
_OPTIONS = {
    "verify": (re.compile(rf"{_SWITCH[0].pattern}|proxy"), "true, false or proxy"),
    "tls_mode": (re.compile("strict|mutual|proxy"), "strict, mutual or proxy"),
    **dict.fromkeys(("ca_cert", "client_cert", "client_cert_key", "server_host_name"), _TEXT),
    **dict.fromkeys(("http_proxy", "https_proxy", "proxy_path", "access_token"), _TEXT),
    **dict.fromkeys(("compress", "session_id", "show_clickhouse_errors"), _TEXT),
    **dict.fromkeys(("connect_timeout", "send_receive_timeout"), _SECONDS),
    **dict.fromkeys(("query_limit", "query_retries"), _COUNT),
    "form_encode_query_params": _SWITCH,
}
"""Parameters of a server's URL beside user, password and database, which the client parses itself:
accepted values and their description. An unknown value could turn a check off.
"""
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_EXPECTED = "expected chdb:///absolute/path or http(s)://user:password@host:8123/database"


@dataclass(frozen=True)
class Address:
    """The address of a span store.

    Attributes:
        path: folder of the embedded engine; empty for a server.
        dsn: address of the server; empty for the embedded engine.
        database: the one with the tables.
        label: the address without its password, for messages.
        url: the address as it was given.
        socket: path of the Unix socket by which the server is reached; empty for TCP.
    """

    path: str
    dsn: str = field(repr=False)
    database: str
    label: str
    url: str = field(repr=False)
    socket: str = ""


def parse_address(url: str, database: str | None = None) -> Address:
    """Read ``chdb:///folder``, ``http(s)://user:password@host:8123/database`` or ``clickhouse://``.

    Raises:
        ConfigurationError: the address cannot be used; the text names the expected form.
    """
    shown = masked(url, always=True)
    if url.partition("://")[0].lower() not in _READERS:
        raise ConfigurationError(f"cannot read the store's address {shown!r}: {_EXPECTED}")
    try:
        parts = parse_url(url)
    except ConfigurationError as error:
        raise ConfigurationError(f"the store's address {shown!r}: {error}") from None
    named = database or parts.options.pop("database", "")
    return _READERS[parts.scheme](parts, named, url)


def _embedded(parts: URL, named: str, url: str) -> Address:
    if parts.host or len(parts.path) < 2:
        raise ConfigurationError(
            f"{masked(url)!r} names no folder: write chdb:///absolute/path (three slashes)"
        )
    path = unquote(parts.path)
    return Address(path, "", _database(named, masked(url)), f"chdb://{path}", "")


def _server(parts: URL, named: str, url: str) -> Address:
    shown = masked(url)
    if not parts.host:
        raise ConfigurationError(f"cannot read the store's address {shown!r}: {_EXPECTED}")
    if parts.port in _NATIVE_PORTS:
        raise ConfigurationError(
            f"port {parts.port} is ClickHouse's native protocol; mast-trace speaks its HTTP "
            "interface: use 8123, or 8443 with https"
        )
    options = dict(parts.options)
    user = next((options.pop(name) for name in _USERS if name in options), "")
    password = options.pop("password", "")
    options.pop("database", "")
    parts = replace(parts, user=parts.user or user, password=parts.password or password)
    _check(options, shown)
    # The database is not in the DSN: a client may connect before a migration creates it.
    query = f"?{urlencode(options)}" if options else ""
    dsn = f"{_SERVERS[parts.scheme]}://{parts.authority}{query}"
    return Address("", dsn, _database(named or parts.path.strip("/"), shown), shown, url)


def _check(options: Mapping[str, str], shown: str) -> None:
    if set(options) - set(_OPTIONS):
        raise ConfigurationError(
            f"{shown!r} has a parameter that is none of a store: user, password, database, "
            f"{', '.join(_OPTIONS)}"
        )
    for name, value in options.items():
        values, described = _OPTIONS[name]
        if not values.fullmatch(value):
            raise ConfigurationError(f"{name} in {shown!r} must be {described}")


def _behind_socket(parts: URL, named: str, url: str) -> Address:
    if parts.host or len(parts.path) < 2:
        raise ConfigurationError(
            f"{url!r} names no socket: write http+unix:///absolute/path (three slashes)"
        )
    path = unquote(parts.path)
    name = _database(named, masked(url))
    return Address("", "http://owner@localhost:80", name, f"http+unix://{path}", url, path)


_READERS: dict[str, Callable[[URL, str, str], Address]] = {
    "chdb": _embedded,
    "http+unix": _behind_socket,
    **dict.fromkeys(_SERVERS, _server),
}
"""The parser of a scheme's addresses."""


def _database(name: str, shown: str) -> str:
    """Return the name of a URL's database, if it is certain that it is no part of a password."""
    if name and not _IDENTIFIER.fullmatch(name):
        raise ConfigurationError(f"{shown!r} names no usable database")
    return name or DEFAULT_DATABASE


def identifier(name: str) -> str:
    """Return ``name`` if it can stand in SQL unquoted.

    Raises:
        ConfigurationError: it would need quotes.
    """
    if not _IDENTIFIER.fullmatch(name):
        raise ConfigurationError(f"{name!r} is no name for a database, table or cluster")
    return name


_ADVICE: Final = {
    "CERTIFICATE_VERIFY_FAILED": "the server's certificate is not trusted: name the file of its "
    "authority by ?ca_cert=/absolute/path",
    "CertificateError": "the server's certificate is for another name",
    "WRONG_VERSION_NUMBER": "the server speaks no TLS there: ClickHouse's port for https is 8443, "
    "and 8123 is without TLS",
    "FileNotFoundError": "a file that the address names is not there",
    "[X509": "a file that the address names is no certificate",
    "PEM lib": "a file that the address names is no certificate",
    "Read timed out": "the server has not answered in time: it has too much to do, or the query is "
    "too long for its time limit",
}
"""The advice for each part of an error text."""
_AWAY: Final = (
    "does not answer: start the database, or name the address of ClickHouse's HTTP interface, whose "
    "port is 8123, and 8443 with TLS"
)
_REFUSES: Final = "answers no query now: try again later, and see what serves this address"
_CONNECTION: Final = re.compile(r"^HTTPS?Connection(Pool)?\(.*?\): ")


def unanswered(error: Exception, label: str) -> str:
    """Return the place, what to do next and the short cause, where a request got no answer; else an empty text.

    Args:
        error: of the client.
        label: the server's address without its password.
    """
    from clickhouse_connect.driver.exceptions import OperationalError

    if not isinstance(error, OperationalError) or getattr(error, "code", None) is not None:
        return ""
    chain = [error, *_causes(error)]
    if len(chain) == 1:
        return f"{label} {_REFUSES} ({str(error).strip()})"
    place = next((found for each in chain if (found := _place(each))), "")
    cause = ": ".join(part for part in (place, _words(chain[-1])) if part)
    for part, advice in _ADVICE.items():
        if part in str(error):
            return f"{label}: {advice} ({cause})"
    return f"{label} {_AWAY} ({cause})"


def _causes(error: BaseException) -> list[BaseException]:
    """Return the errors within an error, from the outside in; urllib3 keeps some in attributes of its own."""
    found: list[BaseException] = []
    each: BaseException | None = error
    while each is not None and len(found) < 10:
        inner = (
            getattr(each, "reason", None),
            getattr(each, "original_error", None),
            each.__cause__,
            *each.args,
        )
        each = next((one for one in inner if isinstance(one, BaseException)), None)
        if each is not None:
            found.append(each)
    return found


def _place(error: BaseException) -> str:
    # urllib3 warns the program's user where an error of a new connection is asked for its pool.
    asked = getattr(error, "conn", None) or getattr(error, "pool", None)
    host, port = getattr(asked, "host", None), getattr(asked, "port", None)
    return f"{host}:{port}" if host and port else ""


def _words(error: BaseException) -> str:
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return _CONNECTION.sub("", text.strip()) or type(error).__name__
