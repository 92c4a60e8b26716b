"""Sends spans until stopped, each request until it is acknowledged.

``span_sender.py PORT ACKNOWLEDGED_FILE THREADS [NUMBER]`` writes the span ids of a request to the
file once it is acknowledged, and ends on SIGTERM when nothing is left unacknowledged. Requests that
were not acknowledged at once are lines of a file beside it, ``.repeated``. Senders of different
numbers send different spans.
"""

from __future__ import annotations

import http.client
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import grpc
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import TraceServiceStub

SPANS = 20


def request_of(sender: int, number: int, *, text: str = "") -> tuple[bytes, list[str]]:
    """A request that no other has the like of, and the ids of its spans, each with a text."""
    request = ExportTraceServiceRequest()
    resource = request.resource_spans.add()
    resource.resource.attributes.add(key="service.name").value.string_value = "sender"
    spans = resource.scope_spans.add().spans
    ids = []
    for index in range(SPANS):
        span_id = (sender << 48 | number << 8 | index + 1).to_bytes(8, "big")
        begun = time.time_ns()
        span = spans.add(
            trace_id=(sender << 64 | number + 1).to_bytes(16, "big"),
            span_id=span_id,
            name="chat scripted",
            start_time_unix_nano=begun,
            end_time_unix_nano=begun + 1000,
        )
        span.attributes.add(key="gen_ai.operation.name").value.string_value = "chat"
        span.attributes.add(key="text").value.string_value = text or f"{number} " * 40
        ids.append(span_id.hex())
    return request.SerializeToString(), ids


def post(port: int, body: bytes) -> bool:
    """Send once; says whether it was acknowledged."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request("POST", "/v1/traces", body, {"content-type": "application/x-protobuf"})
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def call(port: int, body: bytes) -> bool:
    """Do so over gRPC."""
    request = ExportTraceServiceRequest.FromString(body)
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        try:
            TraceServiceStub(channel).Export(request, timeout=20)
        except grpc.RpcError:
            return False
    return True


def send(
    sender: int,
    port: int,
    acknowledged: Path,
    stopped: threading.Event,
    post: Callable[[int, bytes], bool] = post,
) -> None:
    number = 0
    with acknowledged.open("a", buffering=1) as file:
        while not stopped.is_set():
            number += 1
            body, ids = request_of(sender, number)
            while not post(port, body):
                with acknowledged.with_suffix(".repeated").open("a") as repeated:
                    repeated.write(f"{ids[0]}\n")
                time.sleep(0.02)
            file.write("".join(f"{span_id}\n" for span_id in ids))
            time.sleep(0.05)


def main() -> None:
    port, acknowledged, threads = int(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    first = int(sys.argv[4]) * threads if len(sys.argv) > 4 else 0
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    senders = [
        threading.Thread(target=send, args=(first + number + 1, port, acknowledged, stopped))
        for number in range(threads)
    ]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()


if __name__ == "__main__":
    main()
