"""If no collector accepts spans, `doctor` and the program's log give the reason and the remedy."""

from __future__ import annotations

import logging
import ssl
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING

import pytest

import mast_trace
from mast_trace import _frameworks, doctor

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from receiver import Receiver

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
HEADERS = "OTEL_EXPORTER_OTLP_HEADERS"
PROTOCOL = "OTEL_EXPORTER_OTLP_PROTOCOL"


@pytest.fixture(autouse=True)
def no_frameworks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_frameworks, "entry_points", lambda group: [])


def told(endpoint: str) -> str:
    """The one problem that `doctor` finds."""
    (problem,) = doctor.examine(endpoint=endpoint).problems
    return problem


STATUSES = [
    (301, {"Location": "https://me:hunter2@login.test/?token=hunter2"}, "login.test", ENDPOINT),
    (400, {}, "HTTP 400", "protobuf"),
    (401, {}, "HTTP 401", HEADERS),
    (403, {}, "HTTP 403", HEADERS),
    (404, {}, "HTTP 404", ENDPOINT),
    (405, {}, "HTTP 405", ENDPOINT),
    (407, {}, "HTTP 407", "proxy"),
    (413, {}, "HTTP 413", "larger"),
    (415, {}, "HTTP 415", "protobuf"),
    (429, {}, "HTTP 429", "fewer requests"),
    (500, {}, "HTTP 500", "its log"),
    (502, {}, "HTTP 502", "its log"),
    (200, {"Content-Type": "text/html; charset=utf-8"}, "web page", ENDPOINT),
]


@pytest.mark.parametrize(
    ("status", "headers", "reason", "advice"), STATUSES, ids=[str(each[0]) for each in STATUSES]
)
def test_of_an_answer(
    receiver: Receiver,
    caplog: pytest.LogCaptureFixture,
    status: int,
    headers: dict[str, str],
    reason: str,
    advice: str,
) -> None:
    """The status, the address and the next step, by `doctor` and in one line of the log; no secret of a redirect."""
    receiver.answers.extend([(status, {**headers, "Retry-After": "9"})] * 50)
    problem = told(receiver.url)
    caplog.clear()
    mast_trace.instrument(frameworks=[], endpoint=receiver.url)
    with caplog.at_level(logging.WARNING, "mast_trace"):
        for _ in range(3):
            mast_trace.message("a", "b", "c")
            mast_trace.flush(0.4)
    (line,) = caplog.messages
    for text in (problem, line):
        assert all(part in text for part in (receiver.url, reason, advice))
        assert "hunter2" not in text


def test_a_wrong_address_is_not_told_as_a_number_of_spans(
    receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    """600 spans to an address that receives none: the reason is the news, on all accounts."""
    receiver.answers.extend([(404, {})] * 50)
    mast_trace.instrument(frameworks=[], endpoint=receiver.url)
    with caplog.at_level(logging.WARNING, "mast_trace"):
        for _ in range(600):
            mast_trace.message("a", "b", "c")
        assert not mast_trace.flush(20)
    (line,) = caplog.messages
    assert "512" not in line
    assert "HTTP 404 Not Found" in line
    found = doctor.examine()
    assert found.delivered is not None
    assert (found.delivered.refused, found.delivered.error) == (600, "HTTP 404 Not Found")
    assert "HTTP 404 Not Found" in found.problems[0]


@contextmanager
def grpc_server() -> Iterator[str]:
    """The place of a gRPC server that receives no traces."""
    grpc = pytest.importorskip("grpc")
    server = grpc.server(ThreadPoolExecutor(1))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.stop(None)


class _Silent(BaseHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        """Say nothing."""


@contextmanager
def tls_server(folder: Path) -> Iterator[str]:
    """The place of a server behind a certificate that nobody has signed."""
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost"),
            *("-keyout", str(key), "-out", str(certificate), "-days", "2"),
        ],
        check=True,
        capture_output=True,
    )
    server = HTTPServer(("127.0.0.1", 0), _Silent)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


class TestConnections:
    """Connections to an address with no server, or with one of another protocol."""

    def test_to_nobody(self, closed_port: int) -> None:
        """The commonest problem of all."""
        assert "`mast-trace up`" in told(f"http://127.0.0.1:{closed_port}")

    def test_to_a_host_that_there_is_not(self) -> None:
        """A name that nobody has."""
        assert "No host has this name" in told("http://no-such-host.invalid:4318")

    def test_over_http_to_grpc(self) -> None:
        """The two ports of a collector are mixed up easily."""
        with grpc_server() as place:
            problem = told(f"http://{place}")
        assert f"{PROTOCOL}=grpc" in problem
        assert problem.isprintable()

    def test_over_grpc_to_http(self, receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
        """OTLP over gRPC sent to a port for HTTP."""
        pytest.importorskip("grpc")
        monkeypatch.setenv(PROTOCOL, "grpc")
        assert f"{PROTOCOL}=http/protobuf" in told(receiver.url)

    def test_over_grpc_to_another_service(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A server that speaks gRPC about other things."""
        monkeypatch.setenv(PROTOCOL, "grpc")
        with grpc_server() as place:
            assert "receives no OTLP traces" in told(f"http://{place}")

    def test_over_tls_to_a_server_without(self, receiver: Receiver) -> None:
        """https:// where http:// is meant."""
        assert "begin with http://" in told(receiver.url.replace("http:", "https:"))

    def test_without_tls_to_a_server_with(self, tmp_path: Path) -> None:
        """http:// where https:// is meant."""
        with tls_server(tmp_path) as place:
            assert "begin with https://" in told(f"http://{place}")

    def test_to_a_certificate_that_nobody_vouches_for(self, tmp_path: Path) -> None:
        """An authority of one's own."""
        with tls_server(tmp_path) as place:
            assert "OTEL_EXPORTER_OTLP_CERTIFICATE" in told(f"https://{place}")

    def test_through_a_proxy_that_is_not_there(
        self, closed_port: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The proxy is named, not the collector behind it."""
        for name in ("no_proxy", "NO_PROXY"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{closed_port}")
        assert "NO_PROXY" in told("http://collector.invalid:4318")

    def test_that_hang(self, receiver: Receiver) -> None:
        """Connections that give no answer in time."""
        receiver.held = threading.Event()
        found = doctor.examine(endpoint=receiver.url, timeout=0.2)
        receiver.held.set()
        (problem,) = found.problems
        assert "no answer" in problem
        assert "firewall" in problem
