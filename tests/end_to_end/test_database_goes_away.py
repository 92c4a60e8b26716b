"""A collector whose database dies, hangs and comes back stores everything exactly once."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from end_to_end.processes import HERE, CollectorProcess
from end_to_end.span_sender import post, request_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

OUTAGES = int(os.environ.get("MAST_TRACE_TEST_OUTAGES", "4"))
SEED = int(os.environ.get("MAST_TRACE_TEST_SEED", "0")) or random.SystemRandom().randrange(10**9)

pytestmark = pytest.mark.end_to_end


@pytest.fixture
def database(tmp_path: Path) -> Iterator[CollectorProcess]:
    process = CollectorProcess(tmp_path / "database", database_only=True)
    process.start()
    yield process
    process.close()


@pytest.fixture
def collector(tmp_path: Path, database: CollectorProcess) -> Iterator[CollectorProcess]:
    url = f"http://test:write@127.0.0.1:{database.port}/mast_trace"
    process = CollectorProcess(
        tmp_path / "collector",
        mast_trace_database_url=url,
        mast_trace_retry_initial_seconds=0.05,
        mast_trace_retry_max_seconds=0.5,
    )
    process.start()
    yield process
    process.close()


def stored(database: CollectorProcess) -> list[str]:
    """The span ids in the database, which must not run."""
    rows = database.query("SELECT SpanId FROM otel_traces ORDER BY SpanId")
    return [row["SpanId"] for row in rows]


def wait_for(condition: Callable[[], object], log: Path) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, log.read_text()[-3000:]
        time.sleep(0.05)


def wait_until_stored(collector: CollectorProcess) -> None:
    spool = collector.data_dir / "spool"
    wait_for(lambda: not list(spool.glob("*.log")), collector.log)


@pytest.mark.slow
@pytest.mark.timeout(120 + 20 * OUTAGES)
def test_under_load(
    collector: CollectorProcess, database: CollectorProcess, tmp_path: Path
) -> None:
    """Senders notice nothing: every request is acknowledged while the database is away."""
    dice = random.Random(SEED)
    acknowledged = tmp_path / "acknowledged"
    sender = subprocess.Popen(
        [sys.executable, HERE / "span_sender.py", str(collector.port), acknowledged, "2"]
    )
    try:
        for outage in range(OUTAGES):
            time.sleep(dice.uniform(0.1, 1.0))
            if outage % 2:
                database.signal(signal.SIGSTOP)
                time.sleep(dice.uniform(0.1, 1.0))
                database.signal(signal.SIGCONT)
            else:
                database.kill()
                time.sleep(dice.uniform(0.1, 1.0))
                database.start()
        sender.send_signal(signal.SIGTERM)
        assert sender.wait(timeout=60) == 0
    finally:
        sender.kill()
    wait_until_stored(collector)
    database.kill()
    ids = acknowledged.read_text().split()
    assert len(ids) > 0
    assert not acknowledged.with_suffix(".repeated").exists(), "a sender was told to come back"
    assert stored(database) == sorted(ids), f"MAST_TRACE_TEST_SEED={SEED}"


def test_a_kill_during_an_outage(collector: CollectorProcess, database: CollectorProcess) -> None:
    """Spans acknowledged during the outage outlive both processes."""
    database.kill()
    body, ids = request_of(1, 1)
    assert post(collector.port, body)
    collector.kill()
    database.start()
    collector.start()
    wait_until_stored(collector)
    database.kill()
    assert stored(database) == ids


def test_a_collector_that_was_there_before_its_database(tmp_path: Path) -> None:
    """The collector acknowledges at once, and creates the tables when the server comes."""
    database = CollectorProcess(tmp_path / "database", database_only=True)
    ready = tmp_path / "ready.json"
    url = f"http://test:write@127.0.0.1:{database.port}/late"
    command = [sys.executable, "-m", "mast_trace_dashboards", "collect", "--url", url]
    command += ["--data-dir", tmp_path / "collector", "--ready-file", ready]
    log = tmp_path / "collector.log"
    with log.open("w") as errors:
        collector = subprocess.Popen(
            [*command, "--http-port", "0", "--grpc-port", "0"], stderr=errors, stdout=errors
        )
    try:
        wait_for(ready.exists, log)
        port = int(json.loads(ready.read_text())["otlp_http"].rpartition(":")[2])
        body, ids = request_of(1, 1)
        assert post(port, body)
        database.start()
        wait_for(lambda: not list((tmp_path / "collector" / "spool").glob("*.log")), log)
        collector.send_signal(signal.SIGTERM)
        assert collector.wait(timeout=60) == 0
        database.kill()
        rows = database.query("SELECT SpanId FROM late.otel_traces ORDER BY SpanId")
        assert [row["SpanId"] for row in rows] == ids
        # The outage is one matter for one line, not one for every library on the way.
        assert "urllib3" not in log.read_text()
        assert "Traceback" not in log.read_text()
        assert ":write@" not in log.read_text()
        assert "test:***@" in log.read_text()
    finally:
        collector.kill()
        collector.wait()
        database.close()


def test_a_server_that_never_answers_keeps_nobody_waiting(tmp_path: Path) -> None:
    """A server that accepts connections and stays silent delays nobody: the process can be stopped."""
    import socket

    with socket.create_server(("127.0.0.1", 0), backlog=100) as silent:
        command = [sys.executable, "-m", "mast_trace_dashboards", "collect", "--http-port", "0"]
        command += ["--grpc-port", "0", "--data-dir", str(tmp_path), "--json", "--url"]
        command.append(f"http://127.0.0.1:{silent.getsockname()[1]}/mast_trace")
        own = {**os.environ, "MAST_TRACE_DRAIN_TIMEOUT_SECONDS": "0.5"}
        with (
            (tmp_path / "log").open("wb") as log,
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, env=own) as process,
        ):
            assert process.stdout is not None
            addresses = json.loads(process.stdout.readline())
            port = int(addresses["otlp_http"].rpartition(":")[2])
            assert post(port, request_of(1, 1)[0])
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
    assert "has not answered within" in (tmp_path / "log").read_text()
    (segment,) = (tmp_path / "spool").glob("*.log")
    assert segment.stat().st_size
