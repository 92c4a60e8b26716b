"""Senders that never repeat an acknowledged request, and remember the fate of each."""

from __future__ import annotations

import base64
import http.client
import json
import random
import threading
import time
from typing import TYPE_CHECKING

import grpc
from end_to_end.span_sender import request_of
from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from cases import Protocol

_METHOD = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
_TIMEOUT = 10.0
_HUNG = 180.0
_TYPES = {"protobuf": "application/x-protobuf", "json": "application/json"}
_RECONNECT = [
    ("grpc.initial_reconnect_backoff_ms", 20),
    ("grpc.min_reconnect_backoff_ms", 20),
    ("grpc.max_reconnect_backoff_ms", 100),
]


class Senders:
    """Threads that send until they are stopped.

    A request is sent until it is acknowledged, or once, or its sender hangs up before the answer,
    and then sends it again or never does: each by chance.

    Attributes:
        acknowledged: ids of spans whose request was acknowledged.
        unanswered: ids of spans that were sent without an answer.
    """

    def __init__(self, protocol: Protocol, port: int, seed: int, *, threads: int = 3) -> None:
        self.acknowledged: list[str] = []
        self.unanswered: list[str] = []
        self._protocol, self._port = protocol, port
        self._stopped = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(number + 1, random.Random(seed + number)))
            for number in range(threads)
        ]

    def start(self) -> None:
        """Begin to send."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End; what is in flight is answered, or given up, first."""
        self._stopped.set()
        for thread in self._threads:
            thread.join()

    def wait_for_more(self, failed: Callable[[], bool]) -> None:
        """Return once something more has been acknowledged, or ``failed`` is true.

        Raises:
            RuntimeError: neither, for minutes.
        """
        before, began = len(self.acknowledged), time.monotonic()
        while len(self.acknowledged) == before and not failed():
            if time.monotonic() - began > _HUNG:
                raise RuntimeError(f"nothing was acknowledged for {_HUNG:g} s")
            time.sleep(0.01)

    def _run(self, sender: int, dice: random.Random) -> None:
        post = _gRPC(self._port).post if self._protocol == "grpc" else self._post
        number = 0
        while not self._stopped.is_set():
            number += 1
            body, ids = request_of(sender, number)
            manner = dice.choice(["patient", "patient", "once", "hang up", "hang up, then patient"])
            if self._send(post, _encoded(body, self._protocol), manner):
                self.acknowledged.extend(ids)
            else:
                self.unanswered.extend(ids)
            time.sleep(0.01)

    def _send(self, post: Callable[[bytes, bool], bool], body: bytes, manner: str) -> bool:
        """Send a request in one's manner; whether it was acknowledged in the end."""
        if manner.startswith("hang up"):
            post(body, True)
        if manner == "hang up":
            return False
        while not post(body, False):
            if manner == "once" or self._stopped.is_set():
                return False
            time.sleep(0.02)
        return True

    def _post(self, body: bytes, hang_up: bool) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=_TIMEOUT)
        try:
            headers = {"content-type": _TYPES[self._protocol]}
            connection.request("POST", "/v1/traces", body, headers)
            return not hang_up and connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()


class _gRPC:  # noqa: N801  # the protocol's own spelling
    """A channel of one sender."""

    def __init__(self, port: int) -> None:
        channel = grpc.insecure_channel(f"127.0.0.1:{port}", options=_RECONNECT)
        self._export = channel.unary_unary(_METHOD)

    def post(self, body: bytes, hang_up: bool) -> bool:
        call = self._export.future(body, timeout=_TIMEOUT)
        if hang_up:
            # Time for the request to leave, not for its answer.
            time.sleep(0.002)
            call.cancel()
            return False
        return call.exception() is None


def _encoded(body: bytes, protocol: Protocol) -> bytes:
    """Return a request as the protocol has it."""
    if protocol != "json":
        return body
    shape = MessageToDict(ExportTraceServiceRequest.FromString(body))
    for resource in shape["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                for name in ("traceId", "spanId"):
                    span[name] = base64.b64decode(span[name]).hex()
    return json.dumps(shape).encode()
