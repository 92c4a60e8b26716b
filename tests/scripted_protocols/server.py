"""An HTTP server that answers model calls from a script, in the protocol of a provider."""

from __future__ import annotations

import itertools
import json
import socket
import struct
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Protocol

from scripted_llm import Reply

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from typing_extensions import Self

Request = dict[str, Any]


@dataclass(frozen=True)
class ScriptedAnswer(Reply):
    """The model's answer, with fields that only some protocols have.

    Attributes:
        thinking: the model's thoughts before its answer.
        cached: tokens of the input that are read from a cache.
        stored: tokens of the input that are written to a cache.
        reset_after: the connection is reset after so many events of a stream; -1 for never.
    """

    thinking: str = ""
    cached: int = 0
    stored: int = 0
    reset_after: int = -1


class Provider(Protocol):
    """The wire format of a provider's answers."""

    @staticmethod
    def streams(path: str, request: Request) -> bool:
        """Return whether the request asks for a stream."""

    @staticmethod
    def whole(path: str, request: Request, answer: ScriptedAnswer, number: int) -> dict[str, Any]:
        """The body of an answer."""

    @staticmethod
    def events(path: str, request: Request, answer: ScriptedAnswer, number: int) -> Iterator[bytes]:
        """The events of a streamed answer."""

    @staticmethod
    def error(status: int, text: str) -> dict[str, Any]:
        """The body of an error."""


class ScriptedProvider(ThreadingHTTPServer):
    """The server, as a context manager.

    Attributes:
        url: its address, without a path.
        requests: the bodies of all requests for answers, in order of arrival.
        paths: their paths.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, provider: Provider, script: Callable[[Request], Reply | str]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.provider = provider
        self.script = script
        self.requests: list[Request] = []
        self.paths: list[str] = []
        self.numbers = itertools.count(1)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self._thread = threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self.shutdown()
        self.server_close()

    def handle_error(self, *_args: Any) -> None:
        """Clients that go away early are part of the tests."""

    def shutdown_request(self, request: Any) -> None:
        """Close a connection; with a shutdown before, a reset would be none."""
        self.close_request(request)


class _Handler(BaseHTTPRequestHandler):
    server: ScriptedProvider
    disable_nagle_algorithm = True
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        server = self.server
        length = int(self.headers.get("content-length") or 0)
        request = json.loads(self.rfile.read(length) or b"{}")
        server.requests.append(request)
        server.paths.append(self.path)
        answer = _answer_of(server.script(request))
        asked = (self.path, request, answer, next(server.numbers))
        if answer.status != 200:
            self._json(answer.status, server.provider.error(answer.status, answer.text))
        elif server.provider.streams(self.path, request):
            self._events(server.provider.events(*asked), answer)
        else:
            self._json(200, server.provider.whole(*asked))

    def _json(self, status: int, value: Any) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _events(self, events: Iterator[bytes], answer: ScriptedAnswer) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")  # so that a cut is seen as one
        self.send_header("connection", "close")
        self.end_headers()
        for number, event in enumerate(events):
            if number == answer.reset_after:
                now = struct.pack("ii", 1, 0)
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, now)
                break
            self.wfile.write(b"%x\r\n%b\r\n" % (len(event), event))
        else:
            self.wfile.write(b"0\r\n\r\n")
        self.close_connection = True

    def log_message(self, *_args: Any) -> None:
        """Say nothing of requests."""


def _answer_of(reply: Reply | str) -> ScriptedAnswer:
    if isinstance(reply, ScriptedAnswer):
        return reply
    if isinstance(reply, str):
        return ScriptedAnswer(reply)
    return ScriptedAnswer(**vars(reply))


def pieces_of(text: str) -> Iterator[str]:
    """The text in pieces of 16 characters."""
    return (text[start : start + 16] for start in range(0, len(text), 16))


def size_of(value: Any) -> int:
    """About as many tokens as a JSON value has."""
    return len(json.dumps(value)) // 4 + 1
