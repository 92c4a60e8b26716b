"""`AllInOne` starts and stops everything in one process, and leaves nothing half done."""

from __future__ import annotations

import asyncio
import socket
import stat
import tempfile
from contextlib import ExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from end_to_end.up_process import wait_for

import mast_trace
from mast_trace.exceptions import ConfigurationError, MastTraceError, StorageError
from mast_trace.urls import parse_url, without_secrets
from mast_trace_collector.config import CollectorConfig
from mast_trace_collector.http_server.owner_socket import socket_path
from mast_trace_collector.security import hash_of
from mast_trace_collector.storage import Store
from mast_trace_dashboards.cli.open_store import locate
from mast_trace_dashboards.local import announcement
from mast_trace_dashboards.local.all_in_one import AllInOne, ReaderPassword
from mast_trace_dashboards.local.announcement import UpConfig
from mast_trace_dashboards.local.demo import check_room, demo_up
from mast_trace_dashboards.queries import QUERIES
from mast_trace_dashboards.web.config import WebConfig
from mast_trace_judge.config import JudgeConfig, WorkerConfig

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


def make(folder: Path, judge: JudgeConfig | None = None, **settings: Any) -> AllInOne:
    ports = {name: settings.pop(name, 0) for name in ("http_port", "grpc_port")}
    web = {name: settings.pop(name) for name in list(settings) if name.startswith("web_")}
    return AllInOne(
        UpConfig.load(**{"clickhouse_port": 0, **settings}),
        CollectorConfig.load(data_dir=folder, **ports),
        judge or JudgeConfig.load(judge_model=""),
        WorkerConfig.load(run_quiet_seconds=0.2, worker_poll_seconds=0.1),
        WebConfig.load(**{"web_port": 0, **web}),
    )


@asynccontextmanager
async def started(
    folder: Path, **settings: Any
) -> AsyncIterator[tuple[AllInOne, announcement.RunningInstance]]:
    up = make(folder, **settings)
    running = await up.start()
    try:
        yield up, running
    finally:
        await up.stop()


def files_with(secret: str, folder: Path) -> list[Path]:
    """The files of a folder that hold the text; the engine's tables are left out."""
    files = [path for path in folder.rglob("*") if path.is_file() and "data" not in path.parts]
    assert files
    return [path for path in files if secret.encode() in path.read_bytes()]


def record_a_run(endpoint: str) -> None:
    mast_trace.instrument(frameworks=[], endpoint=endpoint)
    try:
        with mast_trace.run("job"), mast_trace.agent("worker"):
            mast_trace.message("worker", "user", "Done.")
        assert mast_trace.flush()
    finally:
        mast_trace.uninstrument()


async def test_a_run_is_received_stored_and_judged(tmp_path: Path) -> None:
    """One process serves the collector's and the judge's metrics, and the pages."""
    async with started(tmp_path) as (up, running), httpx.AsyncClient() as client:
        metrics = (await client.get(f"{running.otlp_http}/metrics")).text
        assert "mast_trace_judge_oldest_waiting_seconds 0.0" in metrics
        assert "mast_trace_collector_accepted_spans_total" in metrics
        assert "No runs yet" in (await client.get(running.web)).text
        await asyncio.to_thread(record_a_run, running.otlp_http)
        judged = partial(QUERIES["runs"].one, up.store, states=["judged"])
        row = await asyncio.to_thread(wait_for, judged)
    assert (row["Name"], row["Agents"]) == ("job", ["worker"])


async def test_others_read_and_the_user_writes(tmp_path: Path) -> None:
    """The address that is shown reads; the one in the user's file writes as well."""
    async with started(tmp_path) as (up, running):
        assert announcement.find(tmp_path) == running
        # Neither the announcement nor anything else in the folder holds a password or a token.
        assert up.made_password
        assert files_with(up.made_password, tmp_path) == []
        assert not any(parse_url(url).password for url in (running.clickhouse, running.owner))
        assert running.owner.startswith("http+unix://")

        def read_and_write() -> None:
            insert = "INSERT INTO mast_human_labels (TraceId, Annotator) VALUES ('a', 'me')"
            known = running.clickhouse.replace("default@", f"default:{up.made_password}@")
            with pytest.raises(StorageError, match="password"):
                Store.open(running.clickhouse)
            with Store.open(known) as reader:
                assert reader.query("SELECT 1 AS one") == [{"one": 1}]
                with pytest.raises(StorageError):
                    reader.command(insert)
            with Store.open(running.owner) as owner:
                owner.command(insert)
                assert owner.query("SELECT Annotator FROM mast_human_labels") == [
                    {"Annotator": "me"}
                ]

        await asyncio.to_thread(read_and_write)


async def test_stopping_leaves_the_folder_free(tmp_path: Path) -> None:
    async with started(tmp_path) as (up, running):
        await up.stop()
        assert announcement.find(tmp_path) is None
        with pytest.raises(OSError, match="refused"):
            socket.create_connection(("127.0.0.1", int(running.otlp_http.rsplit(":", 1)[1])))
    async with started(tmp_path) as (up, _):
        assert QUERIES["runs"].run(up.store) == []


async def test_a_failed_start_judges_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For each port: another mast-trace may be judging the same runs."""
    began: list[object] = []

    async def begins(worker: object) -> None:
        began.append(worker)

    monkeypatch.setattr("mast_trace_judge.worker.Worker.run", begins)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for name in ("clickhouse_port", "web_port", "http_port", "grpc_port"):
            with pytest.raises(ConfigurationError, match=str(port)):
                await make(tmp_path, **{name: port}).start()
            await asyncio.sleep(0)
    assert (began, announcement.find(tmp_path)) == ([], None)
    up = make(tmp_path)
    await up.start()
    await asyncio.sleep(0)
    await up.stop()
    assert began == [up.worker]


async def test_a_dead_judge_is_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def dies(_self: object) -> None:
        raise RuntimeError("out of luck")

    monkeypatch.setattr("mast_trace_judge.worker.Worker.run", dies)
    up = make(tmp_path)
    await up.start()
    try:
        with pytest.raises(MastTraceError, match="out of luck"):
            await up.wait(asyncio.Event())
    finally:
        await up.stop()


async def test_what_judges_is_said_at_the_start(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    keyless = make(tmp_path, JudgeConfig.load(judge_model="small-1"))
    assert "(no model: MAST_TRACE_JUDGE_MODEL names small-1, but there" in keyless.judged_by
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{taken.getsockname()[1]}"
        url = f"http://{place}/v1"
        up = make(tmp_path, JudgeConfig.load(judge_model="small-1", judge_base_url=url))
        await up.start()
        try:
            assert f"without it as long as its endpoint {place}" in up.judged_by
        finally:
            await up.stop()


async def test_without_the_judge(tmp_path: Path) -> None:
    async with started(tmp_path, judge_enabled=False) as (up, _):
        assert up.worker is None
        assert up.judged_by == "off"
        stop = asyncio.Event()
        stop.set()
        await up.wait(stop)


def test_a_password_is_known_once_and_kept_as_a_hash(tmp_path: Path) -> None:
    """Grafana's password stays in force from start to start; no file of ours holds it."""
    made = ReaderPassword(tmp_path)
    again = ReaderPassword(tmp_path)
    assert len(made.made) > 20
    assert (again.made, again.hash) == ("", made.hash) == ("", hash_of(made.made))
    file = tmp_path / "clickhouse-password"
    assert made.made not in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    renewed = ReaderPassword(tmp_path, renew=True)
    assert renewed.made
    assert renewed.hash != made.hash
    assert ReaderPassword(tmp_path).hash == renewed.hash


def test_a_password_in_clear_becomes_its_hash(tmp_path: Path, caplog) -> None:
    """The file of an earlier version stays valid, and its password is removed from the disk."""
    file = tmp_path / "clickhouse-password"
    file.write_text("an-earlier-password\n")
    caplog.set_level("INFO")
    kept = ReaderPassword(tmp_path)
    assert (kept.made, kept.hash) == ("", hash_of("an-earlier-password"))
    assert "earlier" not in file.read_text()
    assert len(caplog.records) == 1
    assert "an-earlier-password" not in caplog.text
    assert [path.name for path in tmp_path.iterdir()] == [file.name]


async def test_commands_use_the_socket_and_it_goes_with_the_process(tmp_path: Path) -> None:
    """Commands use the socket even if the folder's path is too long; a killed process's socket is replaced."""
    for folder in (tmp_path / "short", tmp_path / ("long" * 40)):
        folder.mkdir()
        place = socket_path(folder)
        place.touch()
        async with started(folder) as (_, running):
            assert stat.S_IMODE(place.stat().st_mode) == 0o600
            assert locate(None, folder) == running.owner
            with await asyncio.to_thread(Store.open, running.owner) as store:
                rows = await asyncio.to_thread(store.query, "SELECT count() AS n FROM mast_runs")
            assert rows == [{"n": 0}]
        assert not place.exists()


async def test_a_server_with_a_password_is_announced_without(tmp_path: Path) -> None:
    """Commands then ask for the address instead of failing to sign in."""
    announced = announcement.RunningInstance(
        pid=1,
        data_dir=str(tmp_path),
        clickhouse=without_secrets("http://me:secret@127.0.0.1:8123/db?password=x"),
        otlp_http="",
        needs_password=True,
    )
    announcement.announce(announced)
    assert "secret" not in (tmp_path / "up.json").read_text()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        place = f"http://me@127.0.0.1:{listening.getsockname()[1]}/db"
        announcement.announce(replace(announced, clickhouse=place))
        with pytest.raises(StorageError, match="MAST_TRACE_DATABASE_URL"):
            locate(None, tmp_path)


def test_the_demo_takes_free_ports_of_this_machine_and_asks_no_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It runs beside the user's own mast-trace, whose settings do not count, and costs nothing."""
    own = dict.fromkeys(("HTTP_PORT", "GRPC_PORT", "CLICKHOUSE_PORT", "WEB_PORT"), "7")
    own |= {"HOST": "0.0.0.0", "WEB_HOST": "0.0.0.0", "JUDGE_MODEL": "m"}
    for name, value in (own | {"JUDGE_BASE_URL": "http://127.0.0.1:1"}).items():
        monkeypatch.setenv(f"MAST_TRACE_{name}", value)
    up = demo_up(tmp_path)
    collector, web = up._collector_config, up._web_config
    ports = (collector.http_port, collector.grpc_port, up.config.clickhouse_port, web.web_port)
    assert ports == (0, 0, 0, 0)
    assert (collector.host, web.web_host) == ("127.0.0.1", "127.0.0.1")
    assert collector.store_url == f"chdb://{tmp_path / 'clickhouse'}"
    assert not up._judge_config.uses_model


@pytest.mark.parametrize(
    ("names", "host"),
    [("", "127.0.0.1"), ("localhost", "localhost"), ("LOCALHOST, x.org", "LOCALHOST")],
)
@pytest.mark.parametrize("everywhere", ["0.0.0.0", "127.0.0.1"])
async def test_the_address_that_is_told_answers(
    tmp_path: Path, names: str, host: str, everywhere: str
) -> None:
    given = {"web_host": everywhere, "web_token": "t" * 32, "web_public_names": names}
    async with started(tmp_path, **given) as (up, running), httpx.AsyncClient() as client:
        expected = host if everywhere == "0.0.0.0" else everywhere
        assert running.web.startswith(f"http://{expected}:")
        answer = await client.get(running.web, follow_redirects=True)
        assert (answer.status_code, up.ways_in) == (401, "with the web_token")


async def test_all_taken_ports_are_named_at_once(tmp_path: Path) -> None:
    with ExitStack() as stack:
        names = ("clickhouse_port", "web_port", "http_port", "grpc_port")
        taken = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in names]
        ports = [each.getsockname()[1] for each in taken]
        with pytest.raises(ConfigurationError) as error:
            await make(tmp_path, **dict(zip(names, ports, strict=True))).start()
    assert [str(port) in str(error.value) for port in ports] == [True] * 4
    assert "--http-port 0" in str(error.value)


def test_the_demo_is_refused_at_once_on_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    check_room()
    monkeypatch.setenv("MAST_TRACE_SPOOL_MIN_FREE_BYTES", str(2**60))
    with pytest.raises(ConfigurationError, match=f"{tmp_path} has .* MiB free.*TMPDIR"):
        check_room()


async def test_the_web_view_is_not_shown_to_the_network_without_a_token(tmp_path: Path) -> None:
    """Refused before anything is served."""
    with pytest.raises(ConfigurationError, match="MAST_TRACE_WEB_TOKEN"):
        await make(tmp_path, web_host="0.0.0.0").start()
