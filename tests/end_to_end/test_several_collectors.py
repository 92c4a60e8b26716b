"""Several collectors on one database: each stops and starts again in order while others go on."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from end_to_end.processes import HERE, CollectorProcess

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

COLLECTORS = 3
KILLS = int(os.environ.get("MAST_TRACE_TEST_KILLS", "5"))
SEED = int(os.environ.get("MAST_TRACE_TEST_SEED", "0")) or random.SystemRandom().randrange(10**9)

pytestmark = pytest.mark.end_to_end


@pytest.fixture
def database(tmp_path: Path) -> Iterator[CollectorProcess]:
    process = CollectorProcess(tmp_path / "database", database_only=True)
    process.start()
    yield process
    process.close()


@pytest.fixture
def collectors(tmp_path: Path, database: CollectorProcess) -> Iterator[list[CollectorProcess]]:
    url = f"http://test:write@127.0.0.1:{database.port}/mast_trace"
    made = [
        CollectorProcess(tmp_path / f"collector-{number}", mast_trace_database_url=url)
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
    files = [tmp_path / f"acknowledged-{number}" for number in range(COLLECTORS)]
    senders = [
        subprocess.Popen(
            [sys.executable, HERE / "span_sender.py", str(collector.port), file, "2", str(number)]
        )
        for number, (collector, file) in enumerate(zip(collectors, files, strict=True))
    ]
    try:
        for collector in collectors:
            time.sleep(0.5)
            assert collector.terminate() == 0
            assert not list((collector.data_dir / "spool").glob("*.log"))
            collector.start()
        for sender in senders:
            sender.send_signal(signal.SIGTERM)
        assert [sender.wait(timeout=60) for sender in senders] == [0] * COLLECTORS
    finally:
        for sender in senders:
            sender.kill()
    for collector in collectors:
        assert collector.terminate() == 0
    database.kill()
    ids = sorted(span_id for file in files for span_id in file.read_text().split())
    assert len(ids) == len(set(ids)) > 0
    rows = database.query("SELECT SpanId FROM otel_traces ORDER BY SpanId")
    assert [row["SpanId"] for row in rows] == ids


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
    files = [tmp_path / f"acknowledged-{number}" for number in range(2)]
    senders = [
        subprocess.Popen(
            [sys.executable, HERE / "span_sender.py", str(collector.port), file, "2", str(number)]
        )
        for number, (collector, file) in enumerate(zip(pair, files, strict=True))
    ]
    try:
        for kill in range(KILLS):
            time.sleep(dice.uniform(0.05, 1.0))
            killed = [[pair[0]], [pair[1]], [database], pair, [pair[0], database]][kill % 5]
            for process in killed:
                process.kill()
            for process in reversed(killed):
                process.start()
        for sender in senders:
            sender.send_signal(signal.SIGTERM)
        assert [sender.wait(timeout=120) for sender in senders] == [0, 0]
    finally:
        for sender in senders:
            sender.kill()
    for collector in pair:
        assert collector.terminate() == 0
        assert not list((collector.data_dir / "spool").glob("*.log"))
        assert not (collector.data_dir / "spool" / "damaged").exists()
    database.kill()
    ids = sorted(span_id for file in files for span_id in file.read_text().split())
    assert len(ids) == len(set(ids)) > 0
    rows = database.query("SELECT SpanId FROM otel_traces ORDER BY SpanId")
    assert [row["SpanId"] for row in rows] == ids, f"MAST_TRACE_TEST_SEED={SEED}"
