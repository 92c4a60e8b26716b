"""A backup holds what was acknowledged once, and comes back whole or not at all."""

from __future__ import annotations

import json
import os
import socket
from typing import TYPE_CHECKING

import pytest
from ingest_support import body_of

from mast_trace.exceptions import ConfigurationError, StorageError
from mast_trace_collector.backup.folder import MANIFEST, back_up, copy_files, read_manifest
from mast_trace_collector.backup.restore import restore
from mast_trace_collector.config import CollectorConfig
from mast_trace_collector.draining import drain
from mast_trace_collector.pipeline import Pipeline
from mast_trace_collector.storage import Store, migrate
from mast_trace_collector.storage.span_writer import SpanWriter
from mast_trace_collector.telemetry import CollectorMetrics

if TYPE_CHECKING:
    from collections.abc import Iterator
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
        return [r["SpanName"] for r in store.query("SELECT SpanName FROM otel_traces ORDER BY 1")]


def acknowledge(config: CollectorConfig, store: Store, *names: str) -> None:
    """Leave a request in the spool, as a collector that is killed does."""
    pipeline = Pipeline.of_spans(config, SpanWriter(store), CollectorMetrics())
    pipeline.open()
    pipeline.spool.append(body_of(*names), len(names)).durable.result(10)
    pipeline.spool.close()
    pipeline.spool.release()


def test_stored_and_waiting_spans_come_back_once_each(
    config: CollectorConfig, store: Store, tmp_path: Path
) -> None:
    acknowledge(config, store, "waits")
    (config.data_dir / "clickhouse-password").write_text("kept")
    made = back_up(store, config, tmp_path / "backups" / "one")
    assert made.spans == len(SPANS)
    store.close()
    other = config_of(tmp_path / "other")
    assert restore(tmp_path / "backups" / "one", other) == made
    assert names_of(other) == [*SPANS, "waits"]
    assert (other.data_dir / "clickhouse-password").read_text() == "kept"
    left = {path.name for path in other.data_dir.iterdir()}
    assert not left & {"restoring", "backups"}


def test_what_a_backup_needs_nobody_else_reads(
    config: CollectorConfig, store: Store, tmp_path: Path
) -> None:
    back_up(store, config, tmp_path / "one")
    assert (tmp_path / "one").stat().st_mode & 0o077 == 0


def test_a_damaged_backup_is_refused_and_leaves_nothing(
    config: CollectorConfig, store: Store, tmp_path: Path
) -> None:
    back_up(store, config, tmp_path / "one")
    store.close()
    damaged = max(
        (tmp_path / "one" / "clickhouse").rglob("*"), key=lambda path: path.stat().st_size
    )
    damaged.write_bytes(damaged.read_bytes()[:-1])
    other = config_of(tmp_path / "other")
    with pytest.raises(StorageError, match="cannot be restored, and nothing was changed"):
        restore(tmp_path / "one", other)
    assert list(other.data_dir.iterdir()) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": 999}, "newer mast-trace"),
        ({"format": 2}, "newer mast-trace"),
        ({"spans": 7}, "3 spans were restored, and the backup holds 7"),
    ],
)
def test_what_does_not_fit_is_refused(
    config: CollectorConfig, store: Store, tmp_path: Path, change: dict[str, int], message: str
) -> None:
    back_up(store, config, tmp_path / "one")
    store.close()
    manifest = tmp_path / "one" / MANIFEST
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), **change}))
    with pytest.raises((ConfigurationError, StorageError), match=message):
        restore(tmp_path / "one", config_of(tmp_path / "other"))


@pytest.mark.parametrize("text", [None, "", "{}", "[]", '{"format": "1"}'])
def test_a_folder_that_is_no_backup_is_refused(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / MANIFEST).write_text(text)
    with pytest.raises(ConfigurationError, match="is no backup"):
        read_manifest(tmp_path)


def test_a_folder_with_data_is_not_restored_over(
    config: CollectorConfig, store: Store, tmp_path: Path
) -> None:
    back_up(store, config, tmp_path / "one")
    with pytest.raises(ConfigurationError, match="holds data already"):
        restore(tmp_path / "one", config)
    other = config_of(tmp_path / "other")
    (other.data_dir / "spool").mkdir(parents=True)
    (config.data_dir / "spool").mkdir(exist_ok=True)
    back_up(store, config, tmp_path / "two")
    with pytest.raises(ConfigurationError, match="spool"):
        restore(tmp_path / "two", other)


def test_a_target_that_cannot_be_meant_is_refused(
    config: CollectorConfig, store: Store, tmp_path: Path
) -> None:
    taken = tmp_path / "taken"
    taken.mkdir()
    inside = config.data_dir / "spool" / "backup"
    for target, message in ((taken, "is there already"), (inside, "in the data folder itself")):
        with pytest.raises(ConfigurationError, match=message):
            back_up(store, config, target)
    server = CollectorConfig.load(data_dir=config.data_dir, database_url="http://h:8123/x")
    with pytest.raises(ConfigurationError, match=r"backup\.sql"):
        back_up(store, server, tmp_path / "new")


def test_a_failed_backup_leaves_nothing_that_looks_like_one(
    config: CollectorConfig, store: Store, tmp_path: Path
) -> None:
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
    (source / "deeper").mkdir()
    os.mkfifo(source / "pipe")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(source / "owner.sock"))
        (source / "gone").symlink_to(source / "nowhere")
        copy_files(source, tmp_path / "copy")
    copied = {path.name: path.stat() for path in (tmp_path / "copy").iterdir()}
    assert copied.keys() == {"0001.log", "0001.acked", "deeper"}
    assert copied["0001.acked"].st_ctime_ns <= copied["0001.log"].st_ctime_ns
