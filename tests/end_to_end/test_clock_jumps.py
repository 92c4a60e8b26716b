"""The machine's clock jumps, back and ahead: what was acknowledged is stored once all the same.

A library in front of the system's (Debian's faketime) tells the collector another time; the monotonic
clock goes on as it does when an administrator or NTP sets the time.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from end_to_end.processes import CollectorProcess
from end_to_end.span_sender import post, request_of

LIBRARY = next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)
JUMPS = ("+0", "-1d", "-400d", "+400d", "+3650d", "-2d", "+0")

pytestmark = [
    pytest.mark.end_to_end,
    pytest.mark.long,
    pytest.mark.skipif(LIBRARY is None, reason="needs Debian's faketime"),
]


@pytest.mark.parametrize("killed", [False, True], ids=["told to stop", "killed"])
def test_nothing_is_lost_or_doubled(tmp_path: Path, killed: bool) -> None:
    told = tmp_path / "time"
    told.write_text(JUMPS[0])
    fake = {
        "LD_PRELOAD": str(LIBRARY),
        "FAKETIME_TIMESTAMP_FILE": str(told),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }
    collector = CollectorProcess(tmp_path / "data")
    acknowledged: set[str] = set()
    try:
        collector.start(**fake)
        for number, jump in enumerate(JUMPS):
            told.write_text(jump)
            for part in range(5):
                body, ids = request_of(number, part)
                assert post(collector.port, body)
                assert post(collector.port, body)  # known again, whatever the time
                acknowledged |= set(ids)
                time.sleep(0.1)
            if killed:
                collector.kill()
                collector.start(**fake)
        collector.terminate()
        collector.start()
        collector.terminate()
        rows = collector.query("SELECT SpanId FROM otel_traces")
    finally:
        collector.close()
    assert sorted(row["SpanId"] for row in rows) == sorted(acknowledged)
