"""Everything beside a body is limited on every connection, and ambiguous framing is refused."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from ingest_support import until

from mast_trace_collector.config import CollectorConfig
from mast_trace_collector.http_server.limits import HTTPLimits, Pace
from mast_trace_collector.http_server.server import _STANDING, Acceptor, HTTPServer

POST = b"POST /p HTTP/1.1\r\nhost: x\r\n"
CHUNKED = POST + b"transfer-encoding: chunked\r\n\r\n"
MUCH = 200_000


class Served:
    """A server, what its application saw, and what it turned away."""

    def __init__(self, **limits: Any) -> None:
        self.seen: list[tuple[str, int, dict[bytes, bytes]]] = []
        self.refused: Counter[str] = Counter()
        self.go = asyncio.Event()
        self.go.set()
        self.server = HTTPServer(
            self.app,
            "127.0.0.1",
            0,
            limits=HTTPLimits(**limits),
            refused=lambda reason: self.refused.update([reason]),
        )

    async def app(self, scope: Any, receive: Any, send: Any) -> None:
        await self.go.wait()
        size, more = 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            size += len(message["body"])
            more = message["more_body"]
        self.seen.append((scope["path"], size, dict(scope["headers"])))
        text = f"{scope['path']} {size};".encode()
        headers = [(b"content-length", str(len(text)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": text})

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        host, port = self.server.address.removeprefix("http://").split(":")
        return await asyncio.open_connection(host, int(port))

    async def answer(self, *sent: bytes) -> bytes:
        """All that comes back until the server closes the connection."""
        reader, writer = await self.connect()

        async def write() -> None:
            with contextlib.suppress(ConnectionError):
                for piece in sent:
                    writer.write(piece)
                    await writer.drain()

        writing = asyncio.create_task(write())
        try:
            return await asyncio.wait_for(reader.read(), 30)
        except ConnectionError:
            return b""
        finally:
            writing.cancel()
            writer.close()


Serve = Callable[..., Awaitable[Served]]


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    """Starts servers with given limits; they are stopped at the end."""
    started: list[Served] = []

    async def start(**limits: Any) -> Served:
        served = Served(**limits)
        await served.server.start()
        started.append(served)
        return served

    yield start
    for served in started:
        served.go.set()
        await served.server.stop()


def chunk(data: bytes, extension: bytes = b"") -> bytes:
    return b"%x%s\r\n%s\r\n" % (len(data), extension, data)


TOO_MUCH = {
    "a path": [b"GET /" + b"a" * MUCH + b" HTTP/1.1\r\n\r\n"],
    "a method": [b"G" * MUCH],
    "a header without end": [POST + b"x: " + b"y" * MUCH],
    "a name without end": [POST + b"y" * MUCH],
    "headers of all kinds": [
        POST,
        *[b"x%d: %s\r\n" % (n, b"y" * 2000) for n in range(80)],
        b"\r\n",
    ],
    "very many headers": [POST, *[b"x%d: y\r\n" % n for n in range(200)], b"\r\n"],
    "empty headers": [POST, b"x:\r\n" * 200, b"\r\n"],
    "an extension": [CHUNKED, b"5;" + b"e" * MUCH, b"\r\nhello\r\n0\r\n\r\n"],
    "extensions": [CHUNKED, *[chunk(b"hello", b";" + b"e" * 4000)] * 100, b"0\r\n\r\n"],
    "an extension of the last chunk": [CHUNKED, chunk(b"hello"), b"0;" + b"e" * MUCH + b"\r\n\r\n"],
    "a size of many digits": [CHUNKED, b"0" * MUCH + b"5\r\nhello\r\n0\r\n\r\n"],
    "chunks of one byte": [CHUNKED, chunk(b"x") * 60_000, b"0\r\n\r\n"],
    "a trailer without end": [CHUNKED, chunk(b"hello"), b"0\r\nx: " + b"y" * MUCH],
    "trailers": [CHUNKED, b"0\r\n", *[b"x%d: %s\r\n" % (n, b"y" * 2000) for n in range(80)]],
    "very many trailers": [CHUNKED, b"0\r\n", *[b"x%d: y\r\n" % n for n in range(200)], b"\r\n"],
    "trailers after a large body": [
        CHUNKED,
        *[chunk(b"z" * 50_000)] * 40,
        b"0\r\n",
        *[b"x%d: %s\r\n" % (n, b"y" * 2000) for n in range(80)],
    ],
    "headers and trailers together": [
        POST + b"transfer-encoding: chunked\r\nx: " + b"y" * 40_000 + b"\r\n\r\n",
        chunk(b"hello") + b"0\r\ny: " + b"z" * 40_000 + b"\r\n\r\n",
    ],
    "headers after a request": [b"GET /a HTTP/1.1\r\n\r\n" + POST + b"x: " + b"y" * MUCH],
}


@pytest.mark.parametrize("size", [None, 1000, 70_000])
@pytest.mark.parametrize("kind", TOO_MUCH)
async def test_too_much_is_answered_and_the_end(serve: Serve, kind: str, size: int | None) -> None:
    """The request is refused however it is cut into pieces; and the next connection is served."""
    served = await serve()
    sent = b"".join(TOO_MUCH[kind])
    pieces = TOO_MUCH[kind] if size is None else cut(sent, size)
    answer = await served.answer(*pieces)
    statuses = [int(part[:3]) for part in answer.split(b"HTTP/1.1 ")[1:]]
    assert statuses[-1] in {400, 431}, answer[:300]
    # Requests before it are answered, and so is the fault.
    assert statuses[:-1] == ([200] if kind == "headers after a request" else [])
    assert sum(served.refused.values()) == 1
    assert set(served.refused) <= {"header_too_large", "malformed"}
    assert not [seen for seen in served.seen if seen[0] == "/p"]
    assert b"/after 0;" in await served.answer(b"GET /after HTTP/1.1\r\nconnection: close\r\n\r\n")


def cut(sent: bytes, size: int) -> list[bytes]:
    return [sent[start : start + size] for start in range(0, len(sent), size)]


async def test_what_never_becomes_a_request_is_cut_off(serve: Serve) -> None:
    """Empty lines before a request are allowed, and none of them is a sign of life."""
    served = await serve(header_timeout=0.3)
    reader, writer = await served.connect()
    writer.write(b"GET /a HTTP/1.1\r\n\r\n")
    assert await reader.readuntil(b"/a 0;")

    async def lines() -> None:
        with contextlib.suppress(ConnectionError):
            while True:
                writer.write(b"\r\n")
                await writer.drain()
                await asyncio.sleep(0.02)

    writing = asyncio.create_task(lines())
    with contextlib.suppress(ConnectionError):
        assert await asyncio.wait_for(reader.read(), 30) == b""
    writing.cancel()
    writer.close()
    assert served.refused == {"header_timeout": 1}


SMUGGLED = b"GET /smuggled HTTP/1.1\r\nhost: x\r\n\r\n"
FRAMING = {
    "a length and chunks": POST
    + b"content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks and a length": POST
    + b"transfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n0\r\n\r\n",
    "two lengths": POST + b"content-length: 0\r\ncontent-length: 37\r\n\r\n",
    "a list of lengths": POST + b"content-length: 0, 37\r\n\r\n",
    "no path": b"GET  HTTP/1.1\r\nhost: x\r\n\r\n",
    "a header of no name": POST + b": a\r\n\r\n",
    "a negative length": POST + b"content-length: -1\r\n\r\n",
    "a length beyond all numbers": POST + b"content-length: " + b"9" * 40 + b"\r\n\r\n",
    "a signed length": POST + b"content-length: +0\r\n\r\n",
    "a hexadecimal length": POST + b"content-length: 0x0\r\n\r\n",
    "a length of another world": POST + b"content-length: \xef\xbc\x90\r\n\r\n",
    "an encoding in disguise": POST + b"transfer-encoding: xchunked\r\n\r\n0\r\n\r\n",
    "an encoding in quotes": POST + b'transfer-encoding: "chunked"\r\n\r\n0\r\n\r\n',
    "chunks that are not last": POST + b"transfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    "two encodings": POST
    + b"transfer-encoding: chunked\r\ntransfer-encoding: identity\r\n\r\n0\r\n\r\n",
    "a space before the colon": POST + b"transfer-encoding : chunked\r\n\r\n0\r\n\r\n",
    "a folded encoding": POST + b"transfer-encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
    "a folded header": POST + b"x: y\r\n z\r\ncontent-length: 0\r\n\r\n",
    "NUL in a header": POST + b"x: a\0b\r\ncontent-length: 0\r\n\r\n",
    "a lone line feed in a header": POST + b"x: a\ncontent-length: 0\r\n\r\n",
    "a lone carriage return in a header": POST + b"x: a\rcontent-length: 0\r\n\r\n",
    "chunks in HTTP/1.0": b"POST /p HTTP/1.0\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "a chunk of negative size": CHUNKED + b"-1\r\n",
    "a chunk beyond all numbers": CHUNKED + b"f" * 17 + b"\r\n",
    "a chunk with 0x": CHUNKED + b"0x5\r\nhello\r\n0\r\n\r\n",
    "a chunk longer than it says": CHUNKED + b"3\r\nhello\r\n0\r\n\r\n",
    "a chunk that ends with a line feed": CHUNKED + b"5\r\nhello\n0\r\n\r\n",
    "a tunnel": b"CONNECT p:80 HTTP/1.1\r\nhost: p:80\r\n\r\n",
    "a preface of HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "no HTTP": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(100),
    "another version": b"GET /p HTTP/3.7\r\n\r\n",
}


@pytest.mark.parametrize("whole", [True, False], ids=["at once", "byte by byte"])
@pytest.mark.parametrize("kind", FRAMING)
async def test_ambiguous_framing_is_refused(serve: Serve, kind: str, whole: bool) -> None:
    """Ambiguous framing gets one answer, no request behind it, and a log entry at debug level alone."""
    served = await serve()
    sent = FRAMING[kind] + SMUGGLED
    answer = await served.answer(*([sent] if whole else cut(sent, 1)))
    assert [int(part[:3]) for part in answer.split(b"HTTP/1.1 ")[1:]] == [400], answer[:300]
    assert served.seen == []
    assert served.refused == {"malformed": 1}


async def test_the_malformed_is_not_logged(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    served = await serve()
    await served.answer(FRAMING["no HTTP"])
    websocket = (
        b"GET /ws HTTP/1.1\r\nhost: x\r\nconnection: upgrade, close\r\nupgrade: websocket\r\n\r\n"
    )
    assert b"/ws 0;" in await served.answer(websocket)
    assert [record for record in caplog.records if record.levelname != "DEBUG"] == []


@pytest.mark.parametrize(
    ("rate", "came", "enough"), [(0, 0, True), (10, 19, False), (10, 20, True)]
)
def test_a_body_needs_so_many_bytes_in_each_period(
    monkeypatch: pytest.MonkeyPatch, rate: int, came: int, enough: bool
) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    pace = Pace(2.0, rate)
    pace.count(came)
    for now[0], left, expected in ((1.5, 0.5, True), (2.0, 0.0, enough), (4.25, 0.0, rate == 0)):
        assert pace.left == left
        assert pace.next_period() is expected


def test_settings_become_limits() -> None:
    config = CollectorConfig(
        max_header_bytes=2000,
        max_headers=2,
        header_timeout_seconds=3,
        keep_alive_seconds=4,
        max_connections=5,
        body_grace_seconds=6,
        min_body_bytes_per_second=7,
    )
    assert HTTPLimits.of(config) == HTTPLimits(2000, 2, 3, 4, 5, 6, 7)


class TestServed:
    """Honest clients are not affected."""

    async def test_many_chunks_with_extensions_and_trailers(self, serve: Serve) -> None:
        served = await serve()
        sent = CHUNKED.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n")
        sent += chunk(b"a" * 100, b";n=v") * 10_000 + b"0;last\r\ncontent-encoding: gzip\r\n\r\n"
        assert b"/p 1000000;" in await served.answer(sent)
        assert b"content-encoding" not in served.seen[0][2]

    async def test_headers_up_to_the_bound(self, serve: Serve) -> None:
        served = await serve()
        headers = b"".join(b"x%d: %s\r\n" % (n, b"y" * 600) for n in range(97))
        reader, writer = await served.connect()
        for _ in range(3):
            writer.write(b"GET /full HTTP/1.1\r\nhost: x\r\n" + headers + b"\r\n")
            assert b"/full 0;" in await asyncio.wait_for(reader.readuntil(b";"), 30)
        writer.close()
        assert not served.refused

    async def test_requests_sent_at_once_are_answered_in_order(self, serve: Serve) -> None:
        served = await serve()
        large = POST + b"content-length: 300000\r\n\r\n" + b"z" * 300_000
        sent = [b"GET /%d HTTP/1.1\r\nx: %s\r\n\r\n" % (n, b"y" * 9000) for n in range(12)]
        sent += [large, b"GET /last HTTP/1.1\r\nconnection: close\r\n\r\n"]
        answer = await served.answer(b"".join(sent))
        order = [part.split(b"\r\n\r\n")[1] for part in answer.split(b"HTTP/1.1 ")[1:]]
        assert order == [b"/%d 0;" % n for n in range(12)] + [b"/p 300000;", b"/last 0;"]

    async def test_too_many_at_once_are_answered_as_far_as_they_go(self, serve: Serve) -> None:
        """A thousand objects of a request for each packet would fill the memory."""
        served = await serve()
        served.go.clear()
        asking = asyncio.create_task(served.answer(b"GET /a HTTP/1.1\r\n\r\n" * 2000))
        await until(lambda: served.refused)
        served.go.set()
        answer = await asking
        assert answer.count(b"200 OK") == answer.count(b"/a 0;") == 17
        assert served.refused == {"pipelined": 1}

    @pytest.mark.parametrize("offer", [b"h2c", b"websocket"])
    @pytest.mark.parametrize(
        "body",
        [
            b"content-length: 5\r\n\r\nhello",
            b"transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        ],
    )
    async def test_upgrades_are_passed_over(self, serve: Serve, offer: bytes, body: bytes) -> None:
        """Java's client offers HTTP/2 with its first request; the body is read, and the next request."""
        served = await serve()
        sent = (
            POST
            + b"connection: Upgrade, HTTP2-Settings\r\nupgrade: %s\r\n" % offer
            + b"http2-settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA\r\nx: y\r\n"
            + body
        )
        last = b"GET /last HTTP/1.1\r\nconnection: close\r\n\r\n"
        for pieces in ([sent + last], cut(sent + last, 7)):
            answer = await served.answer(*pieces)
            assert [part[:3] for part in answer.split(b"HTTP/1.1 ")[1:]] == [b"200", b"200"]
            assert b"/p 5;" in answer
            assert b"/last 0;" in answer
            assert served.seen[-2][2][b"x"] == b"y"

    async def test_http_1_0(self, serve: Serve) -> None:
        served = await serve()
        answer = await served.answer(b"POST /old HTTP/1.0\r\ncontent-length: 5\r\n\r\nhello")
        assert b"/old 5;" in answer

    async def test_a_sender_that_waits_for_the_word(self, serve: Serve) -> None:
        served = await serve()
        reader, writer = await served.connect()
        writer.write(POST + b"expect: 100-continue\r\ncontent-length: 5\r\n\r\n")
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(b"hello")
        assert b"/p 5;" in await reader.readuntil(b";")
        writer.close()


class TestSlow:
    """A peer that only holds on is let go."""

    async def test_a_slow_body(self, serve: Serve) -> None:
        served = await serve(body_grace=0.2, body_rate=1000)
        reader, writer = await served.connect()
        writer.write(POST + b"content-length: 1000000\r\n\r\n")

        async def drip() -> None:
            with contextlib.suppress(ConnectionError):
                while True:
                    writer.write(b"x")
                    await writer.drain()
                    await asyncio.sleep(0.01)

        dripping = asyncio.create_task(drip())
        # Up to its head: a peer that goes on sending is reset at last, perhaps before the end is read.
        answer = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 30)
        dripping.cancel()
        writer.close()
        assert answer.startswith(b"HTTP/1.1 408"), answer
        assert served.refused == {"too_slow": 1}

    async def test_a_body_that_is_fast_enough_but_long(self, serve: Serve) -> None:
        served = await serve(body_grace=0.1, body_rate=1000)
        reader, writer = await served.connect()
        writer.write(POST + b"content-length: 8000\r\n\r\n")
        for _ in range(8):
            writer.write(b"x" * 1000)
            await writer.drain()
            await asyncio.sleep(0.08)
        assert b"/p 8000;" in await asyncio.wait_for(reader.readuntil(b";"), 30)
        writer.close()

    async def test_an_answer_that_nobody_reads(self) -> None:
        refused: Counter[str] = Counter()

        async def endless(_: Any, __: Any, send: Any) -> None:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            for _ in range(1000):
                await send(
                    {"type": "http.response.body", "body": b"z" * 1_000_000, "more_body": True}
                )

        server = HTTPServer(
            endless,
            "127.0.0.1",
            0,
            limits=HTTPLimits(write_timeout=0.2),
            refused=lambda reason: refused.update([reason]),
        )
        await server.start()
        host, port = server.address.removeprefix("http://").split(":")
        _, writer = await asyncio.open_connection(host, int(port), limit=1000)
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        await until(lambda: refused)
        assert refused == {"slow_reader": 1}
        writer.close()
        await server.stop()


class TestConnections:
    """A number of connections that cannot be exceeded, of which idle ones make room."""

    @pytest.mark.parametrize("more", [0, 3])
    async def test_the_longest_idle_makes_room(self, serve: Serve, more: int) -> None:
        """Those above the limit were let in while the others were young, and go too."""
        served = await serve(connections=3)
        idle = [await served.connect() for _ in range(3 + more)]
        await until(lambda: len(served.server._server.server_state.connections) == 3 + more)
        await asyncio.sleep(0.25)
        answer = await served.answer(b"GET /new HTTP/1.1\r\nconnection: close\r\n\r\n")
        assert b"/new 0;" in answer
        for reader, _ in idle[: 1 + more]:
            assert await asyncio.wait_for(reader.read(), 30) == b""
        reader, writer = idle[1 + more]
        writer.write(b"GET /old HTTP/1.1\r\n\r\n")
        assert b"/old 0;" in await asyncio.wait_for(reader.readuntil(b";"), 30)
        assert served.refused == {"evicted": 1 + more}
        for _, writer in idle:
            writer.close()

    async def test_busy_ones_do_not(self, serve: Serve) -> None:
        served = await serve(connections=2)
        served.go.clear()
        busy = [asyncio.create_task(served.answer(b"GET /busy HTTP/1.0\r\n\r\n")) for _ in range(2)]
        await until(lambda: len(served.server._server.server_state.tasks) == 2)
        answers = await asyncio.gather(
            *(served.answer(b"GET /more HTTP/1.0\r\n\r\n") for _ in range(40))
        )
        assert {answer.split(b" ", 2)[1] for answer in answers if answer} == {b"503"}
        assert served.refused["too_many_connections"] + sum(map(bool, answers)) == 40
        served.go.set()
        assert all(b"/busy 0;" in answer for answer in await asyncio.gather(*busy))

    async def test_those_whose_handshake_lasts_count(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A peer that never ends its handshake has no more places than others."""
        refused: list[str] = []
        monkeypatch.setattr(Acceptor, "_enter", lambda *_: asyncio.sleep(60))
        with socket.create_server(("127.0.0.1", 0)) as listener:
            listener.setblocking(False)
            known, most = [object()], 3
            acceptor = Acceptor(
                *(listener, Any, known, {}, most), handshake=60, tls=None, refused=refused.append
            )
            for number in range(most + _STANDING + 1 - len(known)):
                assert refused == [], number
                acceptor._admit(socket.socket())
            assert refused == ["too_many_connections"]
            acceptor.close()
            for entering in acceptor._entering:
                entering.cancel()
            await acceptor.wait_closed()
            assert not acceptor._entering


async def test_a_server_that_stops_answers_first_and_keeps_no_connection(serve: Serve) -> None:
    served = await serve()
    served.go.clear()
    busy = asyncio.create_task(served.answer(b"GET /busy HTTP/1.1\r\n\r\n"))
    reader, writer = await served.connect()
    await until(lambda: served.server._server.server_state.tasks)
    stopping = asyncio.create_task(served.server.stop())
    await asyncio.sleep(0.3)
    assert not stopping.done()
    served.go.set()
    assert b"/busy 0;" in await busy
    await asyncio.wait_for(stopping, 20)
    assert await asyncio.wait_for(reader.read(), 20) == b""
    writer.close()


async def test_a_request_that_never_ends_does_not_keep_the_server(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mast_trace_collector.http_server.server._STOP_SECONDS", 0.2)
    served = await serve()
    served.go.clear()
    _, writer = await served.connect()
    writer.write(POST + b"content-length: 0\r\n\r\n")
    await until(lambda: served.server._server.server_state.tasks)
    await asyncio.wait_for(served.server.stop(), 20)
    writer.close()
