"""URLs are read in one way, and no password is shown, however it is written."""

from __future__ import annotations

import string
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mast_trace.exceptions import ConfigurationError
from mast_trace.urls import check_proxies, conceal, masked, parse_url

# With a mark at both ends, so that a part of it cannot stand in a text by chance.
PASSWORDS = st.text(string.printable, max_size=20).map(lambda middle: f"Zq{middle}qZ")
FORMS = (
    "http://user:{}@host:8123/db",
    "http://user:{}@host/db?database=x",
    "http://:{}@[::1]:8123",
    "https://{}@host/path",
    "http://host:8123/db?password={}",
    "http://host:8123/db?database=x&access_token={}",
    "http://user:other@host/db?API-Key={}",
)


def written(password: str) -> list[str]:
    spellings = (password, quote(password, safe=""), quote_plus(password), quote(password))
    urls = [form.format(spelling) for form in FORMS for spelling in spellings]
    # A token before the host ends with the first colon.
    return [url for url in urls if not (url.startswith("https://") and ":" in password)]


def refusal(url: str) -> str:
    try:
        parse_url(url)
    except ConfigurationError as error:
        return str(error)
    return ""


def leaks(text: str, password: str) -> bool:
    """Return whether the password, or its beginning or end, stands there."""
    return any(part in text for part in (password, "Zq", "qZ"))


@settings(max_examples=300, deadline=None)
@given(password=PASSWORDS)
def test_no_password_is_shown(password: str) -> None:
    for url in written(password):
        assert not leaks(masked(url), password), url
        assert not leaks(refusal(url), password), url


@settings(max_examples=300, deadline=None)
@given(password=PASSWORDS)
def test_a_password_is_understood_or_refused(password: str) -> None:
    """Encoded, it is always understood; as it is, unless nobody could tell where it ends."""
    for form in FORMS[:3]:
        assert parse_url(form.format(quote(password, safe=""))).password == password
        if "%" in password:
            continue
        try:
            assert parse_url(form.format(password)).password == password
        except ConfigurationError:
            assert set(password) & set("/?#")
    for form in FORMS[4:]:
        assert password in parse_url(form.format(quote(password, safe=""))).options.values()


@settings(max_examples=200, deadline=None)
@given(password=PASSWORDS)
def test_what_is_rebuilt_reads_the_same(password: str) -> None:
    for form in FORMS:
        parts = parse_url(form.format(quote(password, safe="")))
        assert parse_url(parts.text) == parts


@settings(max_examples=200, deadline=None)
@given(password=PASSWORDS)
def test_libraries_repeat_no_password(password: str) -> None:
    for form in FORMS[:3]:
        url = form.format(quote(password, safe=""))
        parts = parse_url(url)
        message = (
            f"cannot reach {url} ({parts.text}): {password!r}, {quote_plus(password)} or {password}"
        )
        assert not leaks(conceal(message, url), password)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://me:secret@host:8443/db", "http://me:***@host:8443/db"),
        ("http://host:8123/db", "http://host:8123/db"),
        ("https://token@host/x", "https://***@host/x"),
        ("http://me:a/b@host/db", "http://me:***@host/db"),
        ("http://me:a@b@host/db", "http://me:***@host/db"),
        ("http://host/?database=x&password=y", "http://host/?database=x&password=***"),
        ("http://me:x@host/?password=y", "http://me:***@host/?password=***"),
        ("http://host/?password=a@b", "http://***"),
        ("http://me:forgotten-host", "http://***"),
        ("chdb:///srv/mast-trace", "chdb:///srv/mast-trace"),
        ("http+unix:///run/mast-trace.sock", "http+unix:///run/mast-trace.sock"),
        ("http://[::1]:8123/db", "http://[::1]:8123/db"),
        ("5 % of 10:30 @ noon", "5 % of 10:30 @ noon"),
        ("", ""),
    ],
)
def test_what_is_no_secret_stays_readable(url: str, shown: str) -> None:
    assert masked(url) == shown


def test_what_should_be_a_url_is_hidden_without_its_scheme() -> None:
    assert masked("me:secret@host", always=True) == "***"
    assert masked("me:secret@host") == "me:secret@host"


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("host:8123", "does not begin as scheme://"),
        ("http://me:a/b@host", "%2F"),
        ("http://me:a?b@host", "%3F"),
        ("http://me:pass", "user:password@host:port"),
        ("http://host:99999/", "between 1 and 65535"),
        ("http://host/?password=a&b", "name it last"),
        ("http://ho st/", "user:password@host:port"),
    ],
)
def test_what_cannot_be_read_is_explained(url: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        parse_url(url)


def test_a_proxy_that_cannot_be_read_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "me:pass@proxy:3128")
    check_proxies()
    assert (
        conceal("cannot reach http://me:pass@proxy:3128") == "cannot reach http://me:***@proxy:3128"
    )
    monkeypatch.setenv("HTTPS_PROXY", "http://me:sec/ret@proxy:3128")
    with pytest.raises(ConfigurationError, match="HTTPS_PROXY") as caught:
        check_proxies()
    assert "sec" not in str(caught.value)
    assert "ret" not in str(caught.value).replace("secret", "")
