"""`backup` beside a running `mast-trace up` and of a closed folder; `restore` of both."""

from __future__ import annotations

import asyncio
import json
import shutil
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from end_to_end.span_sender import request_of

from mast_trace_collector.config import CollectorConfig
from mast_trace_collector.storage import Store, migrate
from mast_trace_collector.storage.removal.tombstone_file import FILE, read_tombstones
from mast_trace_collector.storage.span_writer import SpanWriter
from mast_trace_dashboards.cli.app import run
from mast_trace_dashboards.local.all_in_one import AllInOne
from mast_trace_dashboards.local.announcement import UpConfig
from mast_trace_dashboards.web.config import WebConfig
from mast_trace_judge.config import JudgeConfig, WorkerConfig

if TYPE_CHECKING:
    from pathlib import Path

PROTOBUF = {"content-type": "application/x-protobuf"}


@pytest.fixture(autouse=True)
def _no_database_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MAST_TRACE_DATABASE_URL", raising=False)


def spans_in(folder: Path) -> list[str]:
    with Store.open(f"chdb://{folder}/clickhouse") as store:
        return [row["SpanId"] for row in store.query("SELECT SpanId FROM otel_traces ORDER BY 1")]


async def test_a_backup_beside_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "data"
    up = AllInOne(
        UpConfig.load(clickhouse_port=0, judge_enabled=False),
        CollectorConfig.load(data_dir=data, http_port=0, grpc_port=0, spool_min_free_bytes=0),
        JudgeConfig.load(judge_model=""),
        WorkerConfig.load(),
        WebConfig.load(web_port=0),
    )
    body, ids = request_of(1, 1)
    running = await up.start()
    try:
        async with httpx.AsyncClient() as client:
            url = f"{running.otlp_http}/v1/traces"
            assert (await client.post(url, content=body, headers=PROTOBUF)).status_code == 200
        arguments = ["--data-dir", str(data), "--json"]
        assert await asyncio.to_thread(run, ["backup", str(tmp_path / "one"), *arguments]) == 0
        told: dict[str, Any] = json.loads(capsys.readouterr().out)
        assert await asyncio.to_thread(run, ["restore", str(tmp_path / "one"), *arguments]) == 1
        assert "stop it first" in capsys.readouterr().err
    finally:
        await up.stop()
    assert told["folder"] == str(tmp_path / "one")
    other = tmp_path / "other"
    assert run(["restore", str(tmp_path / "one"), "--data-dir", str(other)]) == 0
    assert "Next: mast-trace up" in capsys.readouterr().out
    # Acknowledged spans are in the database or in the spool: a backup of the copy stores it.
    assert run(["backup", str(tmp_path / "two"), "--data-dir", str(other)]) == 0
    assert spans_in(other) == ids


@pytest.mark.parametrize("kept", [True, False], ids=["the file is there", "the file is lost"])
def test_no_erased_run_back(tmp_path: Path, capsys: pytest.CaptureFixture[str], kept: bool) -> None:
    data = tmp_path / "data"
    body, ids = request_of(1, 2)
    with Store.open(f"chdb://{data}/clickhouse") as store:
        migrate(store)
        SpanWriter(store).write([body], token="t")
        (run_id,) = {row["TraceId"] for row in store.query("SELECT TraceId FROM otel_traces")}
    assert run(["backup", str(tmp_path / "old"), "--data-dir", str(data)]) == 0
    assert run(["erase", run_id, "--yes", "--data-dir", str(data)]) == 0
    new = tmp_path / "new"
    if kept:
        new.mkdir()
        shutil.copy2(data / FILE, new / FILE)
    capsys.readouterr()
    assert run(["restore", str(tmp_path / "old"), "--data-dir", str(new)]) == 0
    warned = FILE in capsys.readouterr().err
    assert (warned, spans_in(new)) == ((False, []) if kept else (True, ids))
    assert [each.trace_id for each in read_tombstones(new / FILE)] == [run_id] if kept else True
    # A backup of the new folder has all that it holds.
    assert run(["backup", str(tmp_path / "newer"), "--data-dir", str(new)]) == 0
    newest = tmp_path / "newest"
    if kept:  # also where the backup has a file of its own
        newest.mkdir()
        shutil.copy2(data / FILE, newest / FILE)
    assert run(["restore", str(tmp_path / "newer"), "--data-dir", str(newest)]) == 0
    assert spans_in(newest) == spans_in(new)


def test_a_server_is_not_backed_up_by_us(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MAST_TRACE_DATABASE_URL", "http://clickhouse:8123/mast_trace")
    for command in ("backup", "restore"):
        assert run([command, str(tmp_path / "x"), "--data-dir", str(tmp_path)]) == 2
        printed = capsys.readouterr().err
        assert "backup.sql" in printed or "is no backup" in printed


def test_nothing_to_back_up_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["backup", str(tmp_path / "x"), "--data-dir", str(tmp_path / "none")]) == 1
    assert "holds no database" in capsys.readouterr().err
