"""Attacks of a webhook's receiver: each ends in words, in time, and leads nowhere else."""

from __future__ import annotations

import ipaddress
import socket
import ssl
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from certificates import self_signed

from mast_trace.exceptions import ConfigurationError
from mast_trace_dashboards.alerts.outbox import METADATA, Webhook

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from webhook_receiver import Receiver

BODY = {"status": "firing"}


@contextmanager
def talking(talk: Callable[[socket.socket], None]) -> Iterator[str]:
    """A server that says what it likes on each connection; yields its host and port."""

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                try:
                    talk(connection)
                except OSError:
                    continue

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, daemon=True).start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)


def test_it_is_posted_with_a_key(receiver: Receiver) -> None:
    answer = Webhook(receiver.url).post(BODY, "k1")
    assert not answer.problem
    assert (receiver.bodies, receiver.headers[0]["idempotency-key"]) == ([BODY], "k1")


def test_name_and_password_in_the_address_are_sent_and_never_shown(receiver: Receiver) -> None:
    webhook = Webhook(receiver.url.replace("://", "://ann:s3cret@") + "/T0/secret-path")
    assert not webhook.post(BODY, "").problem
    assert receiver.headers[0]["authorization"] == "Basic YW5uOnMzY3JldA=="
    assert "s3cret" not in webhook.label
    assert "secret-path" not in webhook.label


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirect_is_followed(receiver: Receiver, status: int) -> None:
    answered = f"HTTP/1.1 {status} x\r\nlocation: {receiver.url}\r\ncontent-length: 0\r\n\r\n"
    with talking(lambda connection: reply(connection, answered.encode())) as place:
        answer = Webhook(f"http://{place}/").post(BODY, "")
    assert "redirect" in answer.problem
    assert not answer.unreadable
    assert receiver.bodies == []


def reply(connection: socket.socket, data: bytes) -> None:
    connection.recv(65536)
    connection.sendall(data)


def endless_body(connection: socket.socket) -> None:
    reply(connection, b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
    while True:
        connection.sendall(b"100000\r\n" + b"x" * 0x100000 + b"\r\n")


def test_an_endless_answer_is_not_read() -> None:
    with talking(endless_body) as place:
        assert not Webhook(f"http://{place}/").post(BODY, "").problem


def endless_headers(connection: socket.socket) -> None:
    reply(connection, b"HTTP/1.1 200 OK\r\n")
    while True:
        connection.sendall(b"x-more: " + b"y" * 8000 + b"\r\n")


def drip(connection: socket.socket) -> None:
    """A byte now and then keeps every time-out between two bytes from running out."""
    connection.recv(65536)
    for byte in b"HTTP/1.1 200 OK\r\n" * 1000:
        connection.sendall(bytes([byte]))
        threading.Event().wait(0.05)


def silence(connection: socket.socket) -> None:
    while connection.recv(65536):
        pass


@pytest.mark.parametrize("talk", [endless_headers, drip, silence])
def test_slow_and_endless_answers_end_at_the_deadline(talk: Callable[[Any], None]) -> None:
    with talking(talk) as place:
        answer = Webhook(f"http://{place}/", deadline=0.5).post(BODY, "")
    assert answer.problem
    assert not answer.unreadable


@pytest.mark.parametrize(
    "raw_answer",
    [b"", b"not HTTP at all\x1b[2J\r\n\r\n", b"HTTP/1.1 999999 OK\r\n\r\n", b"\x00" * 1000],
)
def test_what_is_no_answer_is_told_without_its_control_characters(raw_answer: bytes) -> None:
    with talking(lambda connection: reply(connection, raw_answer)) as place:
        problem = Webhook(f"http://{place}/").post(BODY, "").problem
    assert problem
    assert problem.isprintable()
    assert len(problem) <= 200


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "gopher://127.0.0.1:6379/_FLUSHALL",
        "ftp://example.org/x",
        "unix:///run/docker.sock",
        "http://",
        "http://[::1",
        "//example.org/hook",
        "hooks.example.org/x",
        "http://exa\nmple.org/",
        "http://example.org:99999/",
    ],
)
def test_an_address_that_is_none_of_http_is_refused_at_once(url: str) -> None:
    with pytest.raises(ConfigurationError, match="alert_webhook"):
        Webhook(url)


@pytest.mark.parametrize("name", ["localhost", "[::ffff:127.0.0.1]"])
def test_a_forbidden_network_gets_no_byte_whatever_the_name_was(
    receiver: Receiver, name: str
) -> None:
    """The reached address counts, so a changing name changes nothing, nor does one of IPv4 that is written as one of IPv6."""
    loopback = [ipaddress.ip_network("127.0.0.0/8"), ipaddress.ip_network("::1/128")]
    url = receiver.url.replace("127.0.0.1", name)
    problem = Webhook(url, forbidden=loopback).post(BODY, "").problem
    assert "to which no alert is sent" in problem
    assert receiver.bodies == []
    assert not Webhook(url).post(BODY, "").problem, "internal receivers are the operator's choice"


@pytest.mark.parametrize(
    "address", ["169.254.169.254", "fe80::1", "fd00:ec2::254", "100.100.100.200"]
)
def test_metadata_services_are_forbidden(address: str) -> None:
    assert any(ipaddress.ip_address(address) in network for network in METADATA)


def test_a_name_that_no_resolver_takes_is_a_trouble_and_no_traceback() -> None:
    assert Webhook(f"http://{'a' * 80}.example..org/").post(BODY, "").problem


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for localhost that nobody has signed, and its key."""
    return self_signed(tmp_path_factory.mktemp("tls"), "DNS:localhost")


def test_a_certificate_is_verified(
    receiver: Receiver, certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    receiver.server.socket = context.wrap_socket(receiver.server.socket, server_side=True)
    url = receiver.url.replace("http://127.0.0.1", "https://localhost")
    assert "CERTIFICATE_VERIFY_FAILED" in Webhook(url).post(BODY, "").problem
    assert receiver.bodies == []
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    assert not Webhook(url).post(BODY, "").problem
    wrong = url.replace("localhost", "127.0.0.1")
    assert "CERTIFICATE_VERIFY_FAILED" in Webhook(wrong).post(BODY, "").problem
    assert len(receiver.bodies) == 1
