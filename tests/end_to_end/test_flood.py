"""More than the collector can store: it refuses, its memory stays bounded, nothing gets lost."""

from __future__ import annotations

import contextlib
import os
import random
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from end_to_end.processes import CollectorProcess
from end_to_end.span_sender import post, request_of

if TYPE_CHECKING:
    from collections.abc import Iterator

# A longer flood: MAST_TRACE_TEST_FLOOD_SECONDS=600.
SECONDS = float(os.environ.get("MAST_TRACE_TEST_FLOOD_SECONDS", "3"))
MIB = 2**20
SPOOL, IN_FLIGHT = 32 * MIB, 64 * MIB
# Memory of the embedded engine and the libraries before the first span, generously.
BASE = 600 * MIB
# Memory that the page on sizes promises for a collector that also stores.
STORING = 1229 * MIB

pytestmark = pytest.mark.end_to_end


@pytest.fixture
def collector(tmp_path: Path) -> Iterator[CollectorProcess]:
    process = CollectorProcess(
        tmp_path / "data",
        mast_trace_spool_max_bytes=SPOOL,
        mast_trace_max_inflight_bytes=IN_FLIGHT,
        mast_trace_batch_max_bytes=4 * MIB,
    )
    yield process
    process.close()


def peak_rss(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no VmHWM")


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
@pytest.mark.timeout(300 + SECONDS)
@pytest.mark.parametrize("stores", [False, True], ids=["stores nothing", "stores"])
def test_memory_and_disk_stay_bounded(collector: CollectorProcess, stores: bool) -> None:
    """Senders of a megabyte a request, with a database and without one, until it refuses."""
    collector.start(**({} if stores else {"STORE_NOTHING": "1"}))
    text = "".join(random.Random(1).choices("abcdefgh ", k=MIB // 20)) if stores else ""
    acknowledged: list[str] = []
    refused = [0]
    end = time.monotonic() + SECONDS

    def flood(sender: int) -> None:
        number = 0
        while time.monotonic() < end:
            number += 1
            body, ids = request_of(sender, number, text=text)
            if not stores:
                # Unknown fields count like any other bytes and spare us building spans.
                body += b"\xfa\x7f\x80\x80\x40" + bytes(MIB)
            if post(collector.port, body):
                acknowledged.extend(ids)
            else:
                refused[0] += 1

    senders = [threading.Thread(target=flood, args=(number + 1,)) for number in range(8)]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()
    assert collector.process is not None
    limit = STORING if stores else BASE + SPOOL + IN_FLIGHT
    assert peak_rss(collector.process.pid) < limit
    segments = (collector.data_dir / "spool").glob("*.log")
    assert sum(path.stat().st_size for path in segments) <= SPOOL
    assert stores or refused[0] > 0
    collector.kill()

    collector.start()
    # Also what was stored at the end is bounded: the whole spool in one go.
    process = collector.process
    assert process.stdout is not None
    process.stdout.close()
    process.terminate()
    peak = 0
    while process.poll() is None:
        # Not what the system tells of children that ended: that includes the test's own process.
        with contextlib.suppress(OSError, AssertionError):
            peak = max(peak, peak_rss(process.pid))
        time.sleep(0.02)
    assert process.returncode == 0
    assert 0 < peak < STORING
    assert collector.span_ids() == sorted(acknowledged)
