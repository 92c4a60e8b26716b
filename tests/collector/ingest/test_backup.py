"""A backup holds what was acknowledged once, and comes back whole or not at all."""

from __future__ import annotations

import json
import os
import shutil
import socket
from contextlib import nullcontext
from dataclasses import asdict, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from collector.storage.otlp_requests import START, log_request
from ingest_support import body_of

from mast_trace.exceptions import CollectorError, ConfigurationError, StorageError
from mast_trace_collector.backup import folder
from mast_trace_collector.backup.folder import (
    DATABASE,
    FORMAT,
    MANIFEST,
    Manifest,
    _check_target,
    _wait_for_what_was_left,
    back_up,
    copy_files,
    read_manifest,
)
from mast_trace_collector.backup.restore import restore
from mast_trace_collector.config import CollectorConfig
from mast_trace_collector.hold import HELD_FILE, NEXT_FILE, Hold
from mast_trace_collector.pipeline import Pipeline, drain
from mast_trace_collector.storage import Store, migrate
from mast_trace_collector.storage.log_writer import LogWriter
from mast_trace_collector.storage.migrations import migrations
from mast_trace_collector.storage.span_writer import SpanWriter
from mast_trace_collector.telemetry import CollectorMetrics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

SPANS = ("a", "b", "c")


def config_of(folder: Path) -> CollectorConfig:
    return CollectorConfig.load(data_dir=folder, spool_min_free_bytes=0)


@pytest.fixture
def config(tmp_path: Path) -> CollectorConfig:
    return config_of(tmp_path / "data")


@pytest.fixture
def store(config: CollectorConfig) -> Iterator[Store]:
    with Store.open(config.store_url) as made:
        migrate(made)
        SpanWriter(made).write([body_of(*SPANS)], token="stored", spans=len(SPANS))
        yield made


def names_of(config: CollectorConfig) -> list[str]:
    with Store.open(config.store_url) as store:
        drain(store, config)
        assert store.query("SELECT Body FROM otel_logs") == [{"Body": "waits"}]
        return [r["SpanName"] for r in store.query("SELECT SpanName FROM otel_traces ORDER BY 1")]


def test_what_cannot_be_stored_is_counted(
    config: CollectorConfig, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_given: object, **_more: object) -> None:
        raise StorageError("refused")

    acknowledge(config, store, "waits")
    monkeypatch.setattr(SpanWriter, "write", refuse)
    assert drain(store, config.model_copy(update={"drain_timeout_seconds": 0.5})) == 1


def acknowledge(config: CollectorConfig, store: Store, name: str) -> None:
    """Leave a span and a log record in the spools, as a collector that is killed does."""
    metrics = CollectorMetrics()
    for pipeline, body in (
        (Pipeline.of_spans(config, SpanWriter(store), metrics), body_of(name)),
        (
            Pipeline.of_logs(config, LogWriter(store), metrics),
            log_request({"body": name, "time_unix_nano": START}),
        ),
    ):
        pipeline.open()
        pipeline.spool.append(body, 1).durable.result(10)
        pipeline.spool.close()
        pipeline.spool.release()


def test_nothing_is_stored_while_it_is_made(
    config: CollectorConfig, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    allowed: list[bool] = []
    for made in (folder.copy_files, folder.backup_database):

        def watched(*given: Any, made: Callable[..., None] = made) -> None:
            with Hold(config.data_dir).share() as may:
                allowed.append(may)
            made(*given)

        monkeypatch.setattr(folder, made.__name__, watched)
    back_up(store, config, tmp_path / "copy")
    assert allowed
    assert not any(allowed)


@pytest.fixture(scope="module")
def backup(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Manifest]:
    """A backup of three stored spans, one that waits in the spool, and a file beside them."""
    folder = tmp_path_factory.mktemp("backup")
    config = config_of(folder / "data")
    with Store.open(config.store_url) as store:
        migrate(store)
        SpanWriter(store).write([body_of(*SPANS)], token="stored", spans=len(SPANS))
        acknowledge(config, store, "waits")
        (config.data_dir / "clickhouse-password").write_text("kept")
        manifest = back_up(store, config, folder / "backups" / "one")
        assert read_manifest(folder / "backups" / "one") == manifest
    with pytest.raises(ConfigurationError, match="holds data already"):
        restore(folder / "backups" / "one", config)
    return folder / "backups" / "one", manifest


def test_stored_and_waiting_spans_come_back(backup: tuple[Path, Manifest], tmp_path: Path) -> None:
    folder, made = backup
    for each in (folder, folder / DATABASE):
        assert each.stat().st_mode & 0o077 == 0, "nobody else reads it"
    assert (made.spans, made.schema) == (len(SPANS), migrations()[-1].version)
    other = config_of(tmp_path / "other")
    assert restore(folder, other) == made
    assert names_of(other) == [*SPANS, "waits"]
    assert (other.data_dir / "clickhouse-password").read_text() == "kept"
    left = {path.name for path in other.data_dir.iterdir()}
    assert not left & {"restoring", "backups"}


@pytest.mark.parametrize(
    ("damaged", "message"),
    [
        (".backup", "cannot be restored"),
        ("metadata/mast_trace/otel_traces.sql", "definitions of its tables are damaged"),
        ("data/mast_trace/otel_traces/*/data.bin", "cannot be restored"),
        ("spans 7", "3 spans were restored, and the backup holds 7"),
        ("spans 2", "3 spans were restored, and the backup holds 2"),
    ],
)
def test_a_damaged_backup_is_refused_and_leaves_nothing(
    backup: tuple[Path, Manifest], tmp_path: Path, damaged: str, message: str
) -> None:
    copy = shutil.copytree(backup[0], tmp_path / "copy")
    if damaged.startswith("spans"):
        wrong = {**asdict(backup[1]), "spans": int(damaged.split()[1])}
        (copy / MANIFEST).write_text(json.dumps(wrong))
    else:
        file = next((copy / DATABASE).glob(damaged))
        file.write_bytes(file.read_bytes()[:-1])
    other = config_of(tmp_path / "other")
    with pytest.raises(StorageError, match=f"nothing was changed: .*{message}|{message}"):
        restore(copy, other)
    assert list(other.data_dir.iterdir()) == []


@pytest.mark.parametrize("there", ["spool", "clickhouse", "clickhouse-password"])
def test_data_is_never_replaced(backup: tuple[Path, Manifest], tmp_path: Path, there: str) -> None:
    other = config_of(tmp_path / "other")
    (other.data_dir / there).mkdir(parents=True)
    with pytest.raises(ConfigurationError, match=rf"holds data already \({there}\)"):
        restore(backup[0], other)
    assert [path.name for path in other.data_dir.rglob("*")] == [there]


@pytest.mark.parametrize(
    ("more", "refused"),
    [({}, False), ({"schema": -1}, False), ({"schema": 1}, True), ({"format": 1}, True)],
)
def test_a_newer_version_is_refused(tmp_path: Path, more: dict[str, int], refused: bool) -> None:
    made = Manifest(FORMAT, 1.5, migrations()[-1].version, "mast_trace", 3, 9)
    changed = replace(made, **{name: getattr(made, name) + by for name, by in more.items()})
    (tmp_path / MANIFEST).write_text(json.dumps({**asdict(changed), "unknown": 1}))
    with pytest.raises(ConfigurationError, match="newer mast-trace") if refused else nullcontext():
        assert read_manifest(tmp_path) == changed


@pytest.mark.parametrize("text", [None, "", "{}", "[]", '{"format": "1"}'])
def test_a_folder_that_is_no_backup_is_refused(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / MANIFEST).write_text(text)
    with pytest.raises(ConfigurationError, match="is no backup"):
        read_manifest(tmp_path)


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        ("one", ""),
        ("data/backups/one", ""),
        ("data/backups", "in the data folder itself"),
        ("data/spool/one", "in the data folder itself"),
        ("data/clickhouse/backups/one", "in the data folder itself"),
        ("engine/one", "in the data folder itself"),
        ("data", "is there already"),
    ],
)
def test_a_target_that_cannot_be_meant_is_refused(
    tmp_path: Path, target: str, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data").mkdir()
    engine = tmp_path / ("engine" if "engine" in target else "data/clickhouse")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1000))
    for needed, short in ((1000, ""), (1001, "MiB left")):
        told = problem or short
        with pytest.raises(ConfigurationError, match=told) if told else nullcontext():
            _check_target(tmp_path / target, tmp_path / "data", engine, needed)


@pytest.mark.parametrize("spool", ["spool_dir", "log_spool_dir"])
@pytest.mark.parametrize(
    ("name", "age", "waits"), [("1.log", 1, True), ("1.log", 0, False), ("1.acked", 1, False)]
)
def test_what_an_earlier_process_left_is_stored_before(
    config: CollectorConfig,
    monkeypatch: pytest.MonkeyPatch,
    spool: str,
    name: str,
    age: int,
    waits: bool,
) -> None:
    """A restored database would not know that it has a segment, of spans or of logs, and store it twice."""
    folder = getattr(config, spool)
    folder.mkdir(parents=True)
    (folder / name).touch()
    started = (folder / name).stat().st_mtime + age
    monkeypatch.setattr("mast_trace_collector.backup.folder._PATIENCE", -1.0)
    with pytest.raises(CollectorError, match="1 segments") if waits else nullcontext():
        _wait_for_what_was_left(config, started, print)


def test_a_failure_leaves_nothing(
    config: CollectorConfig, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor has a backup its name before it is on the disk."""
    with pytest.raises(ConfigurationError, match="is there already"):
        back_up(store, config, tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(os, "sync", lambda: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            back_up(store, config, tmp_path / "backups" / "one")
    assert not list((tmp_path / "backups").iterdir())
    store.command("DROP DATABASE mast_trace SYNC", use_database=False)
    with pytest.raises(StorageError):
        back_up(store, config, tmp_path / "backups" / "one")
    assert not (tmp_path / "backups").exists() or not list((tmp_path / "backups").iterdir())


def test_receipts_are_copied_before_what_they_tell_of(tmp_path: Path) -> None:
    """Written to while it is copied, a copy has at least what its receipt says."""
    source = tmp_path / "source"
    source.mkdir()
    (source / "0001.log").write_bytes(b"")
    (source / "0001.acked").write_bytes(b"0")
    (source / "deeper" / "still").mkdir(parents=True)
    (source / "deeper" / "still" / "0002.log").write_bytes(b"x")
    own = ("clickhouse", "backups", "restoring", "up.json", "up.tmp", HELD_FILE, NEXT_FILE)
    for name in own:
        (source / name).touch()
    os.mkfifo(source / "pipe")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(source / "owner.sock"))
        (source / "gone").symlink_to(source / "nowhere")
        copy_files(source, tmp_path / "copy")
    copied = {path.name: path.stat() for path in (tmp_path / "copy").iterdir()}
    assert (tmp_path / "copy" / "deeper" / "still" / "0002.log").read_bytes() == b"x"
    assert copied.keys() == {"0001.log", "0001.acked", "deeper"}
    assert copied["0001.acked"].st_ctime_ns <= copied["0001.log"].st_ctime_ns
