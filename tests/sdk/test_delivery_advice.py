"""If no collector accepts spans, `doctor` and the program's log give the reason and the remedy."""

from __future__ import annotations

import logging
import ssl
import subprocess
import threading
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING

import pytest
from receiver import serving_grpc

import mast_trace
from mast_trace import doctor

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from receiver import Receiver

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
HEADERS = "OTEL_EXPORTER_OTLP_HEADERS"
PROTOCOL = "OTEL_EXPORTER_OTLP_PROTOCOL"


pytestmark = pytest.mark.usefixtures("known")  # no frameworks


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


CONNECTIONS = {
    "nobody": ("http", "`mast-trace up`"),
    "no such host": ("http", "No host has this name"),
    "plain over tls": ("https", "begin with http://"),
    "plain over grpc": ("grpc", f"{PROTOCOL}=http/protobuf"),
    "grpc over http": ("http", f"{PROTOCOL}=grpc"),
    "another service": ("grpc", "receives no OTLP traces"),
    "tls over http": ("http", "begin with https://"),
    "own authority": ("https", "OTEL_EXPORTER_OTLP_CERTIFICATE"),
}


class TestConnections:
    """Connections to an address with no server, or with one of another protocol."""

    @pytest.mark.parametrize("to", CONNECTIONS)
    def test_to_a_place_that_takes_none(
        self,
        receiver: Receiver,
        closed_port: int,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        to: str,
    ) -> None:
        """The next step is told in words that can be read."""
        pytest.importorskip("grpc")
        scheme, advice = CONNECTIONS[to]
        place = receiver.url.removeprefix("http://")
        with ExitStack() as servers:
            if to in {"nobody", "no such host"}:
                place = (
                    f"127.0.0.1:{closed_port}" if to == "nobody" else "no-such-host.invalid:4318"
                )
            elif to in {"grpc over http", "another service"}:
                served = serving_grpc(lambda *_: b"", "another.Service")
                place = servers.enter_context(served).removeprefix("http://")
            elif to in {"tls over http", "own authority"}:
                place = servers.enter_context(tls_server(tmp_path))
            if scheme == "grpc":
                monkeypatch.setenv(PROTOCOL, scheme)
            problem = told(f"{scheme.replace('grpc', 'http')}://{place}")
        assert advice in problem
        assert problem.isprintable()

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
