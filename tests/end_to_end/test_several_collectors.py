"""Several collectors on one database: each stops and starts again in order while others go on."""

from __future__ import annotations

import itertools
import os
import random
import socket
import socketserver
import threading
import time
from collections import Counter
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import pytest
from end_to_end.processes import CollectorProcess, sending
from end_to_end.span_sender import SPANS, call, post, send

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

COLLECTORS = 3
KILLS = int(os.environ.get("MAST_TRACE_TEST_KILLS", "5"))
SEED = int(os.environ.get("MAST_TRACE_TEST_SEED", "0")) or random.SystemRandom().randrange(10**9)

pytestmark = pytest.mark.end_to_end


@pytest.fixture
def collectors(tmp_path: Path, database: CollectorProcess) -> Iterator[list[CollectorProcess]]:
    made = [
        CollectorProcess(tmp_path / f"collector-{number}", mast_trace_database_url=database.url())
        for number in range(COLLECTORS)
    ]
    yield made
    for process in made:
        process.close()


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_rolling_restarts_under_load_lose_and_double_nothing(
    collectors: list[CollectorProcess], database: CollectorProcess, tmp_path: Path
) -> None:
    """All start at once, so they migrate at once, too; senders see refusals at most, and retry."""
    for collector in collectors:
        collector.spawn()
    for collector in collectors:
        assert collector.process is not None
        assert collector.process.stdout is not None
        assert collector.process.stdout.readline(), collector.log.read_text()[-3000:]
    with sending(tmp_path, [collector.port for collector in collectors]) as end:
        for collector in collectors:
            time.sleep(0.5)
            assert collector.terminate() == 0
            assert not list((collector.data_dir / "spool").glob("*.log"))
            collector.start()
        ids = end()
    for collector in collectors:
        assert collector.terminate() == 0
    database.kill()
    assert database.span_ids() == ids


@contextmanager
def balancer(ports: Mapping[int, int]) -> Iterator[int]:
    """Serve a port whose connections lead to the collectors in turns, as far as they live."""
    turns = itertools.count()

    class Connection(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            for turn in itertools.islice(turns, 2 * COLLECTORS):
                with (
                    suppress(OSError),
                    socket.create_connection(("127.0.0.1", ports[turn % COLLECTORS])) as behind,
                ):
                    threading.Thread(target=passed_on, args=(self.request, behind)).start()
                    passed_on(behind, self.request)
                    return

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = allow_reuse_address = True

    with Server(("127.0.0.1", 0), Connection) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def passed_on(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65_536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_behind_a_balancer_two_of_three_are_killed(
    collectors: list[CollectorProcess], database: CollectorProcess, tmp_path: Path
) -> None:
    """Acknowledged spans are stored, also where the answer came from a collector that was killed then.

    Each collector knows the requests that came to it: one whose answer was lost with its collector is stored
    by both, and counts once.
    """
    http = {number: each.port for number, each in enumerate(collectors)}
    rpc: dict[int, int] = {}
    for number, collector in enumerate(collectors):
        rpc[number] = int(collector.start()["grpc"].rpartition(":")[2])
    stopped, files = threading.Event(), [tmp_path / f"acknowledged-{number}" for number in range(4)]
    with balancer(http) as port, balancer(rpc) as rpc_port:
        ways = [(port, post), (rpc_port, call)] * 2
        senders = [
            threading.Thread(target=send, args=(1 + number, way, file, stopped, through))
            for number, ((way, through), file) in enumerate(zip(ways, files, strict=True))
        ]
        for sender in senders:
            sender.start()
        for number in (0, 1):
            time.sleep(1)
            collectors[number].kill()
        time.sleep(1)
        for number in (0, 1):
            rpc[number] = int(collectors[number].start()["grpc"].rpartition(":")[2])
        time.sleep(1)
        stopped.set()
        for sender in senders:
            sender.join()
    for collector in collectors:
        assert collector.terminate() == 0
    database.kill()
    sent = [file.read_text().split() for file in files]
    assert all(sent), "each way was used"
    acknowledged = sorted(span for each in sent for span in each)
    stored = database.span_ids()
    assert sorted(set(stored)) == acknowledged
    tried = [file.with_suffix(".repeated") for file in files]
    again = {line for file in tried if file.exists() for line in file.read_text().split()}
    twice = {span for span, count in Counter(stored).items() if count > 1}
    assert len(twice) <= SPANS * len(again)
    (counted,) = database.query("SELECT sum(Spans) AS n FROM mast_runs")
    assert int(counted["n"]) == len(acknowledged)


@pytest.mark.long
@pytest.mark.timeout(180 + 30 * KILLS)
def test_kills_of_any_of_them_and_of_the_database_lose_and_double_nothing(
    collectors: list[CollectorProcess], database: CollectorProcess, tmp_path: Path
) -> None:
    """In turns and together, while senders go on to those that are left."""
    dice = random.Random(SEED)
    pair = collectors[:2]
    for collector in pair:
        collector.start()
    with sending(tmp_path, [collector.port for collector in pair]) as end:
        for kill in range(KILLS):
            time.sleep(dice.uniform(0.05, 1.0))
            killed = [[pair[0]], [pair[1]], [database], pair, [pair[0], database]][kill % 5]
            for process in killed:
                process.kill()
            for process in reversed(killed):
                process.start()
        ids = end()
    for collector in pair:
        assert collector.terminate() == 0
        assert not list((collector.data_dir / "spool").glob("*.log"))
        assert not (collector.data_dir / "spool" / "damaged").exists()
    database.kill()
    assert database.span_ids() == ids, f"MAST_TRACE_TEST_SEED={SEED}"
