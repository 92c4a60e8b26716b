"""Faults of a peer that end its connection before, or beside, a request."""

from __future__ import annotations

import http
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mast_trace_collector.http_server.limits import HTTPLimits

MAX_PIPELINED = 16


@dataclass(frozen=True)
class Fault:
    """A fault of a peer.

    Attributes:
        status: of the answer.
        reason: one word for the counter.
        text: the answer.
    """

    status: int
    reason: str
    text: str

    def answer(self) -> bytes:
        """Return the whole answer, the last one on its connection."""
        phrase = http.HTTPStatus(self.status).phrase
        return (
            f"HTTP/1.1 {self.status} {phrase}\r\ncontent-type: text/plain; charset=utf-8\r\n"
            f"content-length: {len(self.text) + 1}\r\nconnection: close\r\n\r\n{self.text}\n"
        ).encode("ascii")


MALFORMED = Fault(400, "malformed", "this is no valid HTTP request")
OLD_CHUNKS = Fault(400, "malformed", "HTTP/1.0 has no transfer-encoding")
PIPELINED = Fault(400, "pipelined", f"more than {MAX_PIPELINED} requests wait for their answers")


def too_large(limits: HTTPLimits) -> Fault:
    """Return the fault of a request with too many bytes beside its body."""
    text = (
        f"the request has more than {limits.header_bytes} bytes beside its body, "
        f"or more than {limits.headers} headers"
    )
    return Fault(431, "header_too_large", text)
