"""Receives the OTLP/HTTP requests of a program as one request; for recordings of real programs."""

from __future__ import annotations

import gzip
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

if TYPE_CHECKING:
    from collections.abc import Iterator


class Receiver:
    """Accepts everything and keeps the spans. Use it as a context manager.

    Attributes:
        url: its address; spans go to ``/v1/traces`` below it.
        request: all that came to ``/v1/traces``, in the order of arrival.
    """

    def __init__(self) -> None:
        self.request = ExportTraceServiceRequest()
        kept = self.request

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                length = self.headers.get("content-length")
                body = self.rfile.read(int(length)) if length else b"".join(self.chunks())
                if self.headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                if self.path == "/v1/traces":
                    kept.MergeFromString(body)
                self.send_response(200)
                self.send_header("content-type", "application/x-protobuf")
                self.send_header("content-length", "0")
                self.end_headers()

            def chunks(self) -> Iterator[bytes]:
                """The body as exporters of Node.js send it."""
                while size := int(self.rfile.readline(), 16):
                    yield self.rfile.read(size)
                    self.rfile.readline()
                self.rfile.readline()

            def log_message(self, *_args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Receiver:  # noqa: PYI034  # runs where typing_extensions may be missing
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._server.shutdown()
        self._server.server_close()
