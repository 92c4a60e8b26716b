"""A receiver of OTLP/HTTP on loopback that tests can tell how to answer."""

from __future__ import annotations

import gzip
import threading
import zlib
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
    from opentelemetry.proto.trace.v1.trace_pb2 import Span

_DECOMPRESS = {"gzip": gzip.decompress, "deflate": zlib.decompress}


@dataclass
class Receiver:
    """The received requests, and the answer to them."""

    url: str = ""
    limit: int = 1 << 40
    """Bytes beyond which a request is answered 413."""
    answers: deque[tuple[int, dict[str, str]]] = field(default_factory=deque)
    """Status and headers of the next answers; 200 once there are none left."""
    rejects: int = 0
    """Spans of each request that a success says were rejected."""
    bodies: list[bytes] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    accepted: list[ExportTraceServiceRequest] = field(default_factory=list)
    held: threading.Event | None = None
    """If set: answers wait for it."""
    arrived: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    """Released once per request of spans, before it is answered."""
    log_status: int = 200
    """The answer to requests of log records, which do not use the other answers."""
    log_requests: list[ExportLogsServiceRequest] = field(default_factory=list)
    """Those that came, whatever was answered."""
    logs_arrived: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    """Released once per request of log records, before it is answered."""
    logs_held: threading.Event | None = None
    """If set: answers to requests of log records wait for it."""

    @property
    def logs(self) -> list[LogRecord]:
        return [
            record
            for request in self.log_requests
            for resource in request.resource_logs
            for scope in resource.scope_logs
            for record in scope.log_records
        ]

    @property
    def spans(self) -> list[Span]:
        return [
            span
            for request in self.accepted
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    @property
    def names(self) -> list[str]:
        return [span.name for span in self.spans]

    def take_logs(self, body: bytes, headers: dict[str, str]) -> int:
        body = _DECOMPRESS.get(headers.get("content-encoding", ""), bytes)(body)
        self.log_requests.append(ExportLogsServiceRequest.FromString(body))
        self.logs_arrived.release()
        if self.logs_held is not None:
            self.logs_held.wait(30)
        return self.log_status

    def take(self, body: bytes, headers: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        body = _DECOMPRESS.get(headers.get("content-encoding", ""), bytes)(body)
        self.bodies.append(body)
        self.headers.append(headers)
        self.arrived.release()
        if self.held is not None:
            self.held.wait(30)
        status, answer = self.answers.popleft() if self.answers else (200, {})
        if status == 200 and len(body) > self.limit:
            status = 413
        self.statuses.append(status)
        if status != 200:
            return status, answer, b""
        self.accepted.append(ExportTraceServiceRequest.FromString(body))
        partial = ExportTracePartialSuccess(rejected_spans=self.rejects, error_message="99% full")
        response = ExportTraceServiceResponse(partial_success=partial if self.rejects else None)
        return status, answer, response.SerializeToString()


@contextmanager
def receiving(port: int = 0) -> Iterator[Receiver]:
    """Listen on loopback for the length of the block."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            if self.path.endswith("/v1/logs"):
                status, more, answer = receiver.take_logs(body, headers), {}, b""
            else:
                status, more, answer = receiver.take(body, headers)
            self.send_response(status)
            for name, value in {**more, "Content-Length": str(len(answer))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    receiver.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def serving_grpc(
    answer: Callable[[bytes, Any], bytes], service: str = "", **options: Any
) -> Iterator[str]:
    """Listen on loopback for calls of methods that name a service; yield the address.

    Args:
        answer: takes a request and its context, which can end the call with another status.
        service: a part of the methods' names; other methods are unknown to the server.
        options: of the server.
    """
    import grpc

    class Handler(grpc.GenericRpcHandler):  # type: ignore[misc]
        def service(self, call: Any) -> Any:
            return grpc.unary_unary_rpc_method_handler(answer) if service in call.method else None

    given = [(f"grpc.{name}", value) for name, value in options.items()]
    server = grpc.server(ThreadPoolExecutor(2), handlers=[Handler()], options=given)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.stop(None)
