"""A collector whose database dies, hangs and comes back stores everything exactly once."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import time
import urllib.request
from typing import TYPE_CHECKING

import pytest
from end_to_end.processes import CollectorProcess, sending
from end_to_end.span_sender import post, request_of
from end_to_end.up_process import CollectProcess

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

OUTAGES = int(os.environ.get("MAST_TRACE_TEST_OUTAGES", "4"))
SEED = int(os.environ.get("MAST_TRACE_TEST_SEED", "0")) or random.SystemRandom().randrange(10**9)

pytestmark = pytest.mark.end_to_end


@pytest.fixture
def collector(tmp_path: Path, database: CollectorProcess) -> Iterator[CollectorProcess]:
    process = CollectorProcess(
        tmp_path / "collector",
        mast_trace_database_url=database.url(),
        mast_trace_retry_initial_seconds=0.05,
        mast_trace_retry_max_seconds=0.5,
    )
    process.start()
    yield process
    process.close()


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
def test_outages(collector: CollectorProcess, database: CollectorProcess, tmp_path: Path) -> None:
    """Senders notice nothing: every request is acknowledged while the database is away."""
    dice = random.Random(SEED)
    with sending(tmp_path, [collector.port]) as end:
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
        ids = end()
    wait_until_stored(collector)
    database.kill()
    assert not list(tmp_path.glob("*.repeated")), "a sender was told to come back"
    assert database.span_ids() == ids, f"MAST_TRACE_TEST_SEED={SEED}"


def test_a_collector_that_was_there_before_its_database(tmp_path: Path) -> None:
    database = CollectorProcess(tmp_path / "database", database_only=True)
    collect = CollectProcess(tmp_path, database.url("late"))
    try:
        body, ids = request_of(1, 1)
        assert post(collect.start(), body)
        database.start()
        wait_for(lambda: not list(collect.spool.glob("*.log")), collect.log)
        assert collect.stop() == 0
        database.kill()
        assert database.span_ids("late.otel_traces") == ids
        # The outage is one matter for one line, not one for every library on the way.
        said = collect.log.read_text()
        assert "urllib3" not in said
        assert "Traceback" not in said
        assert ":write@" not in said
        assert "test:***@" in said
    finally:
        collect.kill()
        database.close()


def test_a_server_that_never_answers_keeps_nobody_waiting(tmp_path: Path) -> None:
    """A server that accepts connections and stays silent delays nobody: the process can be stopped."""
    with socket.create_server(("127.0.0.1", 0), backlog=100) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/mast_trace"
        collect = CollectProcess(tmp_path, url)
        collect.environment["MAST_TRACE_DRAIN_TIMEOUT_SECONDS"] = "0.5"
        try:
            port = collect.start()
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz") as answer:
                assert "has not answered" in json.load(answer)["database"]
            assert post(port, request_of(1, 1)[0])
            assert collect.stop() == 0
        finally:
            collect.kill()
    assert "has not answered within" in collect.log.read_text()
    (segment,) = collect.spool.glob("*.log")
    assert segment.stat().st_size
