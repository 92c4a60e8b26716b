"""Remedies for failed exports, by the status of an answer or by the error of a connection."""

from __future__ import annotations

import re
from typing import Final

_SET_KEY = "Set OTEL_EXPORTER_OTLP_HEADERS='authorization=Bearer%20<key>'."
_SET_ANOTHER_KEY = (
    "The key lacks the right to write here; set another in OTEL_EXPORTER_OTLP_HEADERS."
)
_NO_RECEIVER = (
    "Nothing seems to receive OTLP at this address: set OTEL_EXPORTER_OTLP_ENDPOINT to the collector "
    "without a path, such as http://HOST:4318."
)
_TOO_LARGE = "One span is larger than the receiver takes: raise its limit of a request's size."
_PROXY = (
    "Is the proxy of HTTP_PROXY or HTTPS_PROXY right? NO_PROXY names hosts to reach without it."
)
START: Final = "Start a collector with `mast-trace up`, or set OTEL_EXPORTER_OTLP_ENDPOINT."
"""The remedy where nothing listens at the address."""

_BY_STATUS: Final = {
    400: "The receiver cannot read the request: does it take OTLP with protobuf?",
    401: _SET_KEY,
    403: _SET_ANOTHER_KEY,
    404: _NO_RECEIVER,
    405: _NO_RECEIVER,
    407: "The proxy of HTTP_PROXY or HTTPS_PROXY wants a user and a password in its address.",
    413: _TOO_LARGE,
    415: "The receiver takes no OTLP with protobuf over HTTP: it may be another server, or take JSON only.",
    429: "The receiver wants fewer requests: see the limits of its plan or its settings.",
}
_BY_FAMILY: Final = {
    2: _NO_RECEIVER,  # for an answer that is a web page
    3: "Set OTEL_EXPORTER_OTLP_ENDPOINT to where spans are received; redirects are not followed.",
    5: "The receiver, or a proxy before it, failed: see its log.",
}
_BY_GRPC_CODE: Final = {
    "UNAUTHENTICATED": _SET_KEY,
    "PERMISSION_DENIED": _SET_ANOTHER_KEY,
    "UNIMPLEMENTED": "A server that speaks gRPC is there, but it receives no OTLP traces.",
    "RESOURCE_EXHAUSTED": _TOO_LARGE,
}
_BY_FAILURE: Final = (
    ("ProxyError|Unable to connect to proxy|Tunnel connection failed", _PROXY),
    (
        "CERTIFICATE_VERIFY_FAILED",
        "Name the authority of the receiver's certificate in OTEL_EXPORTER_OTLP_CERTIFICATE.",
    ),
    (
        "WRONG_VERSION_NUMBER|RECORD_LAYER|UNKNOWN_PROTOCOL",
        "The server does not use TLS: let OTEL_EXPORTER_OTLP_ENDPOINT begin with http://.",
    ),
    (
        "BadStatusLine",
        (
            "The server does not speak HTTP/1.1. Ports of OTLP over gRPC, such as 4317, need "
            "OTEL_EXPORTER_OTLP_PROTOCOL=grpc; OTLP over HTTP has another port, such as 4318."
        ),
    ),
    (
        "Failed parsing HTTP/2|http1.x server",
        (
            "The server does not speak gRPC. Ports of OTLP over HTTP, such as 4318, need "
            "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf; OTLP over gRPC has another port, such as 4317."
        ),
    ),
    (
        "reset by peer|RemoteDisconnected",
        "The server closed the connection. If it requires TLS, let OTEL_EXPORTER_OTLP_ENDPOINT begin with https://.",
    ),
    (
        "Failed to resolve|DNS resolution failed|getaddrinfo",
        "No host has this name: check OTEL_EXPORTER_OTLP_ENDPOINT.",
    ),
    (
        "timed out|no answer|Deadline",
        "Is the address right, and does a firewall let requests pass?",
    ),
)


def for_status(status: int) -> str:
    """Return the remedy for an HTTP status."""
    return _BY_STATUS.get(status) or _BY_FAMILY.get(status // 100, "")


def for_failure(text: str) -> str:
    """Return the remedy for a connection that failed.

    Args:
        text: the error's text, the names of the errors included.
    """
    for signs, advice in _BY_FAILURE:
        if re.search(signs, text, re.IGNORECASE):
            return advice
    return START


def for_grpc(code: str, text: str) -> str:
    """Return the remedy for a failed call.

    Args:
        code: name of the gRPC status.
        text: details of the status.
    """
    return for_failure(text) if code == "UNAVAILABLE" else _BY_GRPC_CODE.get(code, "")
