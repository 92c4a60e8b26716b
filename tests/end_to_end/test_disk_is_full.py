"""A full disk makes the collector refuse; it neither crashes nor loses what it acknowledged."""

from __future__ import annotations

import os
import subprocess
import time
import urllib.error
import urllib.request
from typing import TYPE_CHECKING

import pytest
from end_to_end.processes import CollectorProcess
from end_to_end.span_sender import post, request_of
from program_runs import run_program

from mast_trace_collector.spool import RequestRefused, Spool, SpoolLimits

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.end_to_end


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of two megabytes."""
    if os.geteuid() != 0:
        pytest.skip("needs root to mount a small file system")
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = run_program("mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", folder)
    if mounted.returncode:
        pytest.skip(f"cannot mount a small file system: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


@pytest.mark.parametrize("reserve", [0, 500_000])
def test_it_refuses_until_there_is_room(small_disk: Path, tmp_path: Path, reserve: int) -> None:
    """With a reserve for the database, and down to the last byte."""
    collector = CollectorProcess(
        small_disk,
        mast_trace_database_url=f"chdb://{tmp_path}/clickhouse",
        mast_trace_batch_max_age_seconds=3600,
        mast_trace_batch_max_bytes=200_000,
        mast_trace_spool_min_free_bytes=reserve,
    )
    collector.log = tmp_path / "collector.log"
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"\0" * 1_000_000)
    acknowledged: list[str] = []
    refused = 0
    # The database is kept away, so that nothing leaves the spool.
    collector.start(STORE_NOTHING="1")
    try:
        number = 0
        while refused < 20:
            number += 1
            body, ids = request_of(1, number)
            if post(collector.port, body):
                acknowledged += ids
            else:
                refused += 1
        address = f"http://127.0.0.1:{collector.port}"
        assert urllib.request.urlopen(f"{address}/healthz").status == 200
        assert not is_ready(address)
        ballast.unlink()
        while not is_ready(address):
            time.sleep(0.05)
        body, ids = request_of(2, 1)
        while not post(collector.port, body):
            time.sleep(0.05)
        acknowledged += ids
        collector.kill()
        collector.start()
        assert collector.terminate() == 0
        assert collector.span_ids() == sorted(acknowledged)
    finally:
        collector.close()


def is_ready(address: str) -> bool:
    try:
        return bool(urllib.request.urlopen(f"{address}/readyz").status == 200)
    except urllib.error.HTTPError:
        return False


def test_a_write_that_the_disk_cuts_short_is_refused_and_leaves_no_trace(small_disk: Path) -> None:
    """Somebody else may fill the disk between the spool's look at it and its write."""
    limits = SpoolLimits(1 << 40, 0, 500_000, 1_000_000, 0.0, 1000)
    spool = Spool(small_disk / "spool", limits)
    spool.open()
    kept = []
    for number in range(100):
        spool._quota._free, spool._quota._checked = 1 << 60, float("inf")
        payload = number.to_bytes(2, "big") * 40_000
        refusal = spool.append(payload, 1).durable.exception(timeout=10)
        if refusal is not None:
            break
        kept.append(payload)
    assert isinstance(refusal, RequestRefused)
    assert "No space left" in str(refusal)
    assert len(kept) > 0
    spool.close()
    spool.release()
    after = Spool(small_disk / "spool", limits)
    assert after.open() == []
    found = []
    while (segment := after.next_segment(0.0)) is not None:
        found += [bytes(record.payload) for record in segment.read()[0]]
    assert found == kept
    after.close()
