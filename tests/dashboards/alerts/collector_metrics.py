"""A /metrics page as collectors serve it, with numbers of a test's choice."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

REFUSED = "mast_trace_collector_refused_requests_total"


class Page:
    """A page that a test writes and a server serves.

    Attributes:
        text: of the page.
        status: with which it is served.
        asked: path and Authorization header of each request.
    """

    def __init__(self) -> None:
        self.text = ""
        self.status = 200
        self.asked: list[tuple[str, str | None]] = []
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                owner.asked.append((self.path, self.headers["authorization"]))
                body = owner.text.encode()
                self.send_response(owner.status)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"127.0.0.1:{self.server.server_address[1]}"
        self.url = f"http://{self.address}"

    def refused(self, **by_reason: float) -> None:
        """Count refused requests by reason, beside a metric of another name."""
        lines = ["# TYPE mast_trace_collector_refused_requests counter"]
        lines += [f'{REFUSED}{{reason="{name}"}} {n}' for name, n in by_reason.items()]
        lines += [
            "# TYPE mast_trace_collector_spans counter",
            "mast_trace_collector_spans_total 99",
        ]
        self.text = "\n".join([*lines, ""])

    def damaged(self, **by_folder: float) -> None:
        """Count damaged files by folder."""
        name = "mast_trace_collector_damaged_files"
        lines = [f'{name}{{folder="{folder}"}} {n}' for folder, n in by_folder.items()]
        self.text = "\n".join([f"# TYPE {name} gauge", *lines, ""])


@contextmanager
def metrics_page() -> Iterator[Page]:
    """Serve on a free port."""
    made = Page()
    threading.Thread(target=made.server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield made
    finally:
        made.server.shutdown()
        made.server.server_close()
