"""Several collectors on one database: each stops and starts again in order while others go on."""

from __future__ import annotations

import os
import random
import time
from typing import TYPE_CHECKING

import pytest
from end_to_end.processes import CollectorProcess, sending

if TYPE_CHECKING:
    from collections.abc import Iterator
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
