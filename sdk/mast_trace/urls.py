"""URLs that may hold secrets: parsed in one way, and printed without them everywhere."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlencode

from mast_trace.exceptions import ConfigurationError

HIDDEN: Final = "***"
_SECRET_PARAMETER = re.compile(
    r"(?<=[?&;#])([^=&;#?]*(?:pass|pwd|token|secret|sig|auth|credential|key)[^=&;#?]*=)(.*)",
    re.IGNORECASE | re.DOTALL,
)
"""The secret may contain any character, so it is taken to reach to the end."""
_AUTHORITY_END = re.compile(r"[/?#]")
_PROXIES = ("http_proxy", "https_proxy", "all_proxy")
_AS_IT_IS = "/%:@!$&'()*+,;=~?"
_SHORTEST = 4
"""Shorter secrets occur in texts by chance."""
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*")
_HOST = re.compile(r"\[[0-9A-Fa-f:.%]+\]|[^\s:\[\]@/?#\\\"<>^`{|}\x00-\x20]*")


@dataclass(frozen=True)
class URL:
    """A URL in its parts, decoded.

    Attributes:
        scheme: in lower case.
        user: empty if none is named.
        password: likewise.
        host: without the brackets of IPv6.
        port: None if none is named.
        path: as it was written.
        query: likewise.
    """

    scheme: str
    user: str
    password: str
    host: str
    port: int | None
    path: str
    query: str

    @property
    def options(self) -> dict[str, str]:
        """Parameters of the query, decoded, secrets included."""
        return dict(parse_qsl(self.query, keep_blank_values=True))

    @property
    def text(self) -> str:
        """The whole URL, encoded so that every client parses it the same."""
        query = f"?{quote(self.query, safe=_AS_IT_IS)}" if self.query else ""
        return f"{self.scheme}://{self.authority}{quote(self.path, safe=_AS_IT_IS)}{query}"

    @property
    def base(self) -> str:
        """The same without query and without a slash at its end."""
        return replace(self, path=self.path.rstrip("/"), query="").text

    @property
    def authority(self) -> str:
        """User, password, host and port, encoded."""
        user = quote(self.user, safe="")
        if self.password:
            user += f":{quote(self.password, safe='')}"
        return (f"{user}@" if user else "") + self.place

    @property
    def place(self) -> str:
        """Host and port."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host + (f":{self.port}" if self.port else "")


def parse_url(text: str) -> URL:
    """Read a URL.

    A password may hold ``@`` and ``:`` as they are. With ``/``, ``?`` and ``#`` its end would be
    ambiguous; they have to be written as ``%2F``, ``%3F`` and ``%23``.

    Raises:
        ConfigurationError: it cannot be read, or not in one way only; the text holds no secret.
    """
    scheme, separator, rest = text.partition("://")
    if not separator or not _SCHEME.fullmatch(scheme):
        raise ConfigurationError("this is no URL: it does not begin as scheme://")
    end = found.start() if (found := _AUTHORITY_END.search(rest)) else len(rest)
    if "@" in rest[end:]:
        raise ConfigurationError(
            f"cannot tell where the password in {masked(text)!r} ends: in user and password write / as "
            "%2F, ? as %3F and # as %23, and in what follows the host write @ as %40"
        )
    secret = _SECRET_PARAMETER.search(rest[end:])
    if secret and ("&" in secret[2] or "#" in secret[2]):
        raise ConfigurationError(
            f"cannot tell where the secret in {masked(text)!r} ends: name it last, and write & in it "
            "as %26 and # as %23"
        )
    userinfo, _, address = rest[:end].rpartition("@")
    user, _, password = userinfo.partition(":")
    host, port = _address(address, text)
    path, _, query = rest[end:].partition("#")[0].partition("?")
    return URL(scheme.lower(), unquote(user), unquote(password), unquote(host), port, path, query)


def masked(text: str, *, always: bool = False) -> str:
    """Return a URL without its secrets; other texts as they are.

    It also works on texts that cannot be parsed as a URL, and hides too much rather than too
    little.

    Args:
        text: the URL.
        always: treat the text as a URL even if it has no scheme: it may still hold a password.
    """
    scheme, separator, rest = text.partition("://")
    if not separator:
        return HIDDEN if always and ("@" in text or "?" in text) else text
    shown = _SECRET_PARAMETER.sub(rf"\1{HIDDEN}", rest)
    head = shown if shown == rest else shown[: -len(HIDDEN)]
    if "@" in rest[len(head) :]:
        return f"{scheme}://{HIDDEN}"
    userinfo, at, address = shown.rpartition("@")
    if at:
        user, colon, _ = userinfo.partition(":")
        return f"{scheme}://{user + ':' if colon else ''}{HIDDEN}@{address}"
    end = found.start() if (found := _AUTHORITY_END.search(shown)) else len(shown)
    try:
        _address(shown[:end], text)
    except ConfigurationError:
        # A password without its host, say.
        return f"{scheme}://{HIDDEN}"
    return f"{scheme}://{shown}"


def without_secrets(text: str) -> str:
    """Return a URL without password and secret parameters; its other parts still work.

    Raises:
        ConfigurationError: it cannot be read.
    """
    parts = parse_url(text)
    kept = {name: value for name, value in parts.options.items() if not _is_secret(name)}
    return replace(parts, password="", query=urlencode(kept)).text


def conceal(text: str, *urls: str) -> str:
    """Return a library's error text without the secrets of the URL and of the proxies."""
    for url in (*urls, *_proxies().values()):
        text = text.replace(url, masked(url, always=True))
        try:
            parts = parse_url(url)
        except ConfigurationError:
            continue
        hidden = [parts.password] + [
            value for name, value in parts.options.items() if _is_secret(name)
        ]
        for secret in hidden:
            if len(secret) >= _SHORTEST:
                for form in _spellings(secret):
                    text = text.replace(form, HIDDEN)
    return text


def check_proxies() -> None:
    """Reject unreadable proxies of the environment, before a library prints them.

    Raises:
        ConfigurationError: a variable cannot be used; the text names it and holds no secret.
    """
    for name, url in _proxies().items():
        try:
            parse_url(url)
        except ConfigurationError as error:
            raise ConfigurationError(f"the proxy in {name}: {error}") from None


def check_key(key: str, name: str) -> str:
    """Return a key that an HTTP header can carry; reject others before a library prints them.

    Raises:
        ConfigurationError: it holds line breaks or other than ASCII; the text names the setting alone.
    """
    if key.isascii() and key.isprintable():
        return key
    raise ConfigurationError(
        f"{name} holds a character that no key has (a line break, or none of ASCII): was it copied whole?"
    )


def _proxies() -> dict[str, str]:
    """The proxies of the environment; their scheme may be left out."""
    given = {name: os.environ.get(name, "") for p in _PROXIES for name in (p, p.upper())}
    return {name: url if "://" in url else f"http://{url}" for name, url in given.items() if url}


def _is_secret(name: str) -> bool:
    return bool(_SECRET_PARAMETER.search(f"?{name}="))


def _spellings(secret: str) -> list[str]:
    """Forms of a secret, the longest first."""
    forms = {secret, quote(secret), quote(secret, safe=""), quote_plus(secret), repr(secret)[1:-1]}
    return sorted(forms, key=len, reverse=True)


def _address(text: str, url: str) -> tuple[str, int | None]:
    host = _HOST.match(text)
    after = text[host.end() :] if host else text
    port = after[1:]
    if host is None or (after and not (after[0] == ":" and re.fullmatch(r"[0-9]{0,5}", port))):
        scheme = url.partition("://")[0]
        raise ConfigurationError(
            f"cannot read host and port of the {scheme} URL: write scheme://user:password@host:port, "
            "with / in a password as %2F, ? as %3F and # as %23"
        )
    if port and not 0 < int(port) < 65536:
        raise ConfigurationError("the port of the URL is not between 1 and 65535")
    return host[0].strip("[]"), int(port) if port else None
