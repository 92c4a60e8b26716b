"""While a backup is made, what is acknowledged waits in the spool."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from ingest_support import JSON, body_of, post, until

from mast_trace_collector.config import CollectorConfig
from mast_trace_collector.hold import Hold
from mast_trace_collector.pipeline import drain

if TYPE_CHECKING:
    from pathlib import Path

    from ingest_support import Launch

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


async def test_held_spans_are_stored_later(launch: Launch, store: Store, tmp_path: Path) -> None:

    def stored() -> int:
        return int(store.query("SELECT count() AS n FROM otel_traces")[0]["n"])

    collector = await launch(data_dir=tmp_path)
    with Hold(tmp_path).take():
        assert (await post(collector, body_of("a"))).status_code == 200
        await until(lambda: collector.readiness()["waiting_bytes"] > 0)
        await asyncio.sleep(0.5)
        assert stored() == 0
    await until(lambda: stored() == 1)


async def test_waiting_is_drained_or_counted(launch: Launch, store: Store, tmp_path: Path) -> None:
    """As before a backup: while somebody holds, nothing of it can be stored."""
    logs = b'{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"stringValue":"a"}}]}]}]}'
    collector = await launch(data_dir=tmp_path, batch_max_age_seconds=3600.0)
    await post(collector, body_of("a", "b"))
    await post(collector, logs, "/v1/logs", **JSON)
    await collector.stop(drain=False)
    config = CollectorConfig(data_dir=tmp_path, drain_timeout_seconds=0.2)
    with Hold(tmp_path).take():
        assert await asyncio.to_thread(drain, store, config) == 3
    config = CollectorConfig(data_dir=tmp_path, drain_timeout_seconds=30.0)
    assert await asyncio.to_thread(drain, store, config) == 0
    counted = "SELECT toUInt32(count()) AS n FROM "
    assert store.query(f"{counted} otel_traces") == [{"n": 2}]
    assert store.query(f"{counted} otel_logs") == [{"n": 1}]


async def test_stopping_then_leaves_it(launch: Launch, store: Store, tmp_path: Path) -> None:
    collector = await launch(data_dir=tmp_path, drain_timeout_seconds=0.3)
    with Hold(tmp_path).take():
        await post(collector, body_of("a"))
        await collector.stop()
    assert list((tmp_path / "spool").glob("*.log"))
    again = await launch(data_dir=tmp_path)
    await until(lambda: store.query("SELECT 1 FROM otel_traces") != [])
    assert again.readiness()["ready"]
