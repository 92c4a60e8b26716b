"""Sentences about servers that give no answer, from the errors of the client."""

from __future__ import annotations

import re
from typing import Final

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
    pool = getattr(error, "pool", None)
    host, port = getattr(pool, "host", None), getattr(pool, "port", None)
    return f"{host}:{port}" if host and port else ""


def _words(error: BaseException) -> str:
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return _CONNECTION.sub("", text.strip()) or type(error).__name__
