"""A collector on free ports over a real embedded store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import opened_spool
import pytest

from mast_trace_collector import exporter
from mast_trace_collector.collector import Collector
from mast_trace_collector.config import CollectorConfig
from mast_trace_collector.storage import Store, migrate

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from ingest_support import Launch


@pytest.fixture(autouse=True)
def no_spool_left() -> Iterator[None]:
    """Stops the spools that a test has begun."""
    yield
    opened_spool.stop_all()


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with Store.open(f"chdb://{tmp_path_factory.mktemp('engine')}") as store:
        migrate(store)
        yield store


@pytest.fixture
def store(engine: Store) -> Store:
    """The module's store, with nothing in it."""
    engine.command("TRUNCATE TABLE otel_traces")
    engine.command("TRUNCATE TABLE otel_logs")
    engine.command("TRUNCATE TABLE mast_run_states")
    return engine


@pytest.fixture
async def launch(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Launch]:
    """Starts collectors with given settings; they are stopped at the end."""
    # So often a pipeline looks whether it is to stop: half a second at the end of every test.
    monkeypatch.setattr(exporter, "_POLL_SECONDS", 0.02)
    started: list[Collector] = []

    async def start(writer: Any = None, **settings: Any) -> Collector:
        defaults = {
            "data_dir": tmp_path / "data",
            "http_port": 0,
            "grpc_port": 0,
            "batch_max_age_seconds": 0.02,
            "spool_min_free_bytes": 0,
            "retry_initial_seconds": 0.01,
            "retry_max_seconds": 0.05,
        }
        collector = Collector(CollectorConfig(**defaults | settings), store, writer=writer)
        await collector.start()
        started.append(collector)
        return collector

    yield start
    for collector in started:
        await collector.stop(drain=False)


@pytest.fixture
async def collector(launch: Launch) -> Collector:
    return await launch()
