"""While a backup is made, what is acknowledged waits in the spool."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import httpx
import pytest
from ingest_support import PROTOBUF, body_of, until

from mast_trace_collector.hold import Hold

if TYPE_CHECKING:
    from pathlib import Path

    from ingest_support import StartCollector

    from mast_trace_collector.storage import Store

HOLDER = """
import sys, time
from pathlib import Path
from mast_trace_collector.hold import Hold
with Hold(Path(sys.argv[1])).take():
    print("held", flush=True)
    time.sleep(600)
"""


def test_who_stores_and_who_holds_exclude_each_other(tmp_path: Path) -> None:
    one, other = Hold(tmp_path), Hold(tmp_path)
    with one.share() as first, other.share() as second:
        assert first
        assert second, "several store at a time"
        with pytest.raises(TimeoutError), other.take(wait=_give_up):
            pytest.fail("held while somebody stores")
    with one.take(), other.share() as may:
        assert not may
    with other.share() as may:
        assert may


def _give_up() -> None:
    raise TimeoutError


def test_a_holder_that_is_killed_holds_no_more(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    with Hold(tmp_path).share() as may:
        assert not may
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    with Hold(tmp_path).share() as may:
        assert may


async def test_a_collector_acknowledges_and_does_not_store_while_held(
    start_collector: StartCollector, store: Store, tmp_path: Path
) -> None:
    """Afterwards storing resumes by itself."""

    def stored() -> int:
        return int(store.query("SELECT count() AS n FROM otel_traces")[0]["n"])

    collector = await start_collector(data_dir=tmp_path)
    async with httpx.AsyncClient() as client:
        url = f"{collector.http_address}/v1/traces"
        with Hold(tmp_path).take():
            answer = await client.post(url, content=body_of("a"), headers=PROTOBUF)
            assert answer.status_code == 200
            await until(lambda: collector.readiness()["waiting_bytes"] > 0)
            await asyncio.sleep(0.5)
            assert stored() == 0
        await until(lambda: stored() == 1)


async def test_a_collector_that_is_told_to_stop_while_held_leaves_what_waits(
    start_collector: StartCollector, store: Store, tmp_path: Path
) -> None:
    collector = await start_collector(data_dir=tmp_path, drain_timeout_seconds=0.3)
    async with httpx.AsyncClient() as client:
        with Hold(tmp_path).take():
            url = f"{collector.http_address}/v1/traces"
            await client.post(url, content=body_of("a"), headers=PROTOBUF)
            await collector.stop()
    assert list((tmp_path / "spool").glob("*.log"))
    again = await start_collector(data_dir=tmp_path)
    await until(lambda: store.query("SELECT 1 FROM otel_traces") != [])
    assert again.readiness()["ready"]
