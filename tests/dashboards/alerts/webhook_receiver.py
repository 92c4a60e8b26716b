"""A webhook that keeps what it is sent."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


class Receiver:
    """A webhook that answers with the given statuses, the last one for ever.

    Attributes:
        bodies: of the requests.
        headers: with what, in lower case.
        answered: the status of each.
        statuses: still to be given.
        unreadable: a text; a body that holds it is answered with 400.
    """

    def __init__(self, port: int = 0) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.answered: list[int] = []
        self.statuses = [200]
        self.unreadable = ""
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                owner.bodies.append(json.loads(body))
                owner.headers.append({k.lower(): v for k, v in self.headers.items()})
                statuses = owner.statuses
                status = statuses.pop(0) if len(statuses) > 1 else statuses[0]
                if owner.unreadable and owner.unreadable in body.decode():
                    status = 400
                owner.answered.append(status)
                self.send_response(status)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/hook"


@contextmanager
def receiving(port: int = 0) -> Iterator[Receiver]:
    """Serve on a port, or on a free one."""
    made = Receiver(port)
    threading.Thread(target=made.server.serve_forever, daemon=True).start()
    try:
        yield made
    finally:
        made.server.shutdown()
        made.server.server_close()
