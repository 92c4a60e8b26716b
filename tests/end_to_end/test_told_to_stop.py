"""A process that is asked to stop ends in its time, whatever keeps it, and loses nothing acknowledged."""

from __future__ import annotations

import contextlib
import gzip
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from end_to_end.processes import CollectorProcess
from end_to_end.span_sender import post, request_of
from end_to_end.up_process import CollectProcess, UpProcess, wait_for

if TYPE_CHECKING:
    from mast_trace_collector.storage import Store

pytestmark = pytest.mark.end_to_end

DEADLINE = "3"
# Time that a busy machine may need beyond the deadline, until the end of a process is seen.
PATIENCE = 60
REQUESTS = 20
JOB = Path(__file__).parent / "long_job.py"
DENSE = gzip.compress(b'{"resourceSpans":[' + b'{"a":1},' * 300_000 + b"{}]}")


def slow_senders(port: int, grpc: str) -> list[socket.socket]:
    """Connections that never come to an end: headers, bodies, a call."""
    head = b"POST /v1/traces HTTP/1.1\r\nhost: x\r\n"
    typed = head + b"content-type: application/x-protobuf\r\n"
    sent = [
        b"",
        head,
        typed + b"content-length: 1000000\r\n\r\nabc",
        typed + b"transfer-encoding: chunked\r\n\r\n5\r\nhel",
    ]
    connections = [socket.create_connection(("127.0.0.1", port)) for _ in sent]
    for connection, data in zip(connections, sent, strict=True):
        connection.sendall(data)
    host, _, number = grpc.rpartition(":")
    call = socket.create_connection((host, int(number)))
    call.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0")
    return [*connections, call]


def keep_decoding(port: int) -> None:
    """Requests that take seconds to decode, more than there are decoders."""

    def send() -> None:
        request = b"POST /v1/traces HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
        request += b"content-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(DENSE)
        with (
            contextlib.suppress(ConnectionError),
            socket.create_connection(("127.0.0.1", port)) as connection,
        ):
            connection.sendall(request + DENSE)
            connection.recv(1000)

    for _ in range(6):
        threading.Thread(target=send, daemon=True).start()


def acknowledged(port: int, sender: int) -> set[str]:
    """Span ids of requests that were acknowledged."""
    ids: set[str] = set()
    for number in range(REQUESTS):
        body, spans = request_of(sender, number)
        assert post(port, body)
        ids.update(spans)
    return ids


class HangingModel:
    """An address of a model that takes requests and never answers."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}/v1"
        self.asked = threading.Event()
        self.connections: list[socket.socket] = []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        while True:
            connection, _ = self.listener.accept()
            self.connections.append(connection)
            if connection.recv(1):
                self.asked.set()


def test_up_ends_whatever_keeps_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Slow senders, decoders that compute, a model that hangs: the process ends by itself."""
    model = HangingModel()
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("OPENAI_BASE_URL", model.url)
    up = UpProcess(tmp_path / "data")
    up.settings["MAST_TRACE_SHUTDOWN_TIMEOUT_SECONDS"] = DEADLINE
    up.settings["MAST_TRACE_JUDGE_MODEL"] = "scripted"
    with ExitStack() as stack:
        stack.callback(up.kill_if_running)
        up.start()
        subprocess.run([sys.executable, JOB], env=up.environment(), check=True, timeout=120)
        assert model.asked.wait(60)
        ids = acknowledged(up.port, 1)
        for connection in slow_senders(up.port, up.ready["otlp_grpc"]):
            stack.callback(connection.close)
        keep_decoding(up.port)
        time.sleep(0.5)
        assert up._process is not None
        up._process.send_signal(signal.SIGTERM)
        assert up._process.wait(float(DEADLINE) + PATIENCE) in {0, 1}
        # The next one stores what was left.
        up.start()
        with up.store() as store:
            found = wait_for(
                lambda: counted if ids <= (counted := spans_of(store)).keys() else None
            )
        assert {span: found[span] for span in ids} == dict.fromkeys(ids, 1)


def spans_of(store: Store) -> dict[str, int]:
    """Return the number of rows of every span."""
    rows = store.query("SELECT SpanId, count() AS times FROM otel_traces GROUP BY SpanId")
    return {row["SpanId"]: row["times"] for row in rows}


def test_collect_ends_while_its_database_hangs(tmp_path: Path) -> None:
    """An insert that never returns is not waited for beyond the deadline; the next start stores it."""
    database = CollectorProcess(tmp_path / "database", database_only=True)
    database.start()
    collect = CollectProcess(tmp_path, database.url())
    collect.environment["MAST_TRACE_SHUTDOWN_TIMEOUT_SECONDS"] = DEADLINE
    try:
        port = collect.start()
        ids = acknowledged(port, 1)
        database.signal(signal.SIGSTOP)
        ids |= acknowledged(port, 2)
        slow = slow_senders(port, collect.ready["otlp_grpc"])
        assert collect.stop(float(DEADLINE) + PATIENCE) == 1
        assert "what was acknowledged is on disk" in collect.log.read_text()
        for connection in slow:
            connection.close()
        database.signal(signal.SIGCONT)
        collect.environment["MAST_TRACE_SHUTDOWN_TIMEOUT_SECONDS"] = "120"
        collect.start()
        assert collect.stop() == 0
    finally:
        collect.kill()
        database.signal(signal.SIGCONT)
        database.terminate()
    assert database.span_ids() == sorted(ids)
