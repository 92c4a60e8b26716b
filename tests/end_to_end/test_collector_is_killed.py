"""A collector killed at any moment stores every acknowledged span exactly once."""

from __future__ import annotations

import os
import random
import signal
import time
from typing import TYPE_CHECKING

import pytest
from end_to_end.processes import CollectorProcess, sending
from end_to_end.span_sender import post, request_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

KILLS = int(os.environ.get("MAST_TRACE_TEST_KILLS", "3"))
SEED = int(os.environ.get("MAST_TRACE_TEST_SEED", "0")) or random.SystemRandom().randrange(10**9)

pytestmark = pytest.mark.end_to_end


@pytest.fixture(params=["laid out here", "parsed by clickhouse"])
def collector(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[CollectorProcess]:
    """On both ways from requests to rows: the small batches of these tests would take the first."""
    parse_from = 0 if request.param == "parsed by clickhouse" else 1 << 40
    process = CollectorProcess(tmp_path / "data", parse_from=parse_from)
    yield process
    process.close()


@pytest.mark.slow
@pytest.mark.timeout(300 + 20 * KILLS)
def test_under_load_at_random_moments(collector: CollectorProcess, tmp_path: Path) -> None:
    """Senders go on sending; each kill falls while it serves, or while it starts."""
    dice = random.Random(SEED)
    with sending(tmp_path, [collector.port], threads=4) as end:
        for _ in range(KILLS):
            if dice.random() < 0.25:
                collector.spawn()
                time.sleep(dice.uniform(0.2, 4.0))
            else:
                collector.start()
                time.sleep(dice.uniform(0.0, 1.5))
            collector.kill()
        collector.start()
        time.sleep(0.5)
        ids = end()
    assert collector.terminate() == 0
    assert collector.span_ids() == ids, f"MAST_TRACE_TEST_SEED={SEED}"


def test_at_each_step(collector: CollectorProcess) -> None:
    """Dead between two steps of storing, it neither loses nor doubles what it acknowledged."""
    stored = []
    for sender, point in enumerate(("before_insert", "after_insert", "after_mark"), 1):
        requests = [request_of(sender, number) for number in range(1, 4)]
        # Time for an answer before the first insert, which kills it.
        collector.start(DIE_AT=point, MAST_TRACE_BATCH_MAX_AGE_SECONDS="0.5")
        acknowledged = [post(collector.port, body) for body, _ in requests]
        assert any(acknowledged)
        assert collector.wait() == -signal.SIGKILL
        collector.start()
        for (body, _), done in zip(requests, acknowledged, strict=True):
            # Acknowledged spans are not sent again: that would hide a loss.
            assert done or post(collector.port, body)
        assert collector.terminate() == 0
        stored += [span_id for _, ids in requests for span_id in ids]
    assert collector.span_ids() == sorted(stored)


def test_a_request_whose_answer_was_lost_is_stored_once(collector: CollectorProcess) -> None:
    body, ids = request_of(1, 1)
    collector.start()
    assert post(collector.port, body)
    assert post(collector.port, body)
    collector.kill()
    collector.start()
    assert post(collector.port, body)
    assert collector.terminate() == 0
    collector.start()
    assert post(collector.port, body)
    assert collector.terminate() == 0
    assert collector.span_ids() == ids
