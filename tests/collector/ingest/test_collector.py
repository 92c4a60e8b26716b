"""One collector as a whole: it starts, stops, and its counters add up."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from google.protobuf import json_format
from ingest_support import JSON, PROTOBUF, body_of, get, post, refusals, request_of, until

from mast_trace.exceptions import CollectorError, ConfigurationError
from mast_trace_collector.collector import Collector
from mast_trace_collector.config import CollectorConfig
from mast_trace_collector.security import new_key
from mast_trace_collector.spool import SpoolLimits
from mast_trace_collector.storage.span_writer import COLUMNS_BYTES, PoisonError, SpanWriter

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ingest_support import Launch

    from mast_trace_collector.storage import Store


async def send(collector: Collector, *bodies: bytes, **headers: str) -> list[int]:
    async with httpx.AsyncClient(base_url=collector.http_address, timeout=30) as client:
        return [
            (await client.post("/v1/traces", content=body, headers=PROTOBUF | headers)).status_code
            for body in bodies
        ]


class TestLifecycle:
    """Starting and stopping, in any order and number."""

    async def test_stopping_at_any_time_is_safe(self, tmp_path: Path, store: Store) -> None:
        collector = Collector(CollectorConfig(data_dir=tmp_path, http_port=0, grpc_port=0), store)
        await collector.stop()
        await collector.start()
        await collector.stop()
        await collector.stop()

    @pytest.mark.parametrize("drain", [True, False])
    async def test_acknowledged_is_stored(self, launch: Launch, store: Store, drain: bool) -> None:
        """While it stops, or after the next start."""
        collector = await launch(batch_max_age_seconds=3600.0)
        assert await send(collector, body_of("a"), body_of("b")) == [200, 200]
        await collector.stop(drain=drain)
        assert store.query("SELECT count() AS n FROM otel_traces") == [{"n": 2 * drain}]
        again = await launch()
        await until(lambda: store.query("SELECT 1 FROM otel_traces LIMIT 1, 1"))
        assert again.metrics.value("recovered_spans_total") == 2 * (not drain)

    async def test_what_a_damaged_file_no_longer_holds_is_counted(
        self, launch: Launch, store: Store, caplog: pytest.LogCaptureFixture
    ) -> None:
        """The counters of spans and of log records are separate, and still add up."""
        entry = {"timeUnixNano": "1700000000000000000", "body": {"stringValue": "entry"}}
        logs = {"resourceLogs": [{"scopeLogs": [{"logRecords": [entry, entry]}]}]}
        collector = await launch(batch_max_age_seconds=3600.0)
        await send(collector, body_of("a", "b", "c"))
        assert (await post(collector, json.dumps(logs), "/v1/logs", **JSON)).status_code == 200
        await collector.stop(drain=False)
        for folder in (collector._config.spool_dir, collector._config.log_spool_dir):
            (path,) = folder.glob("*.log")
            path.write_bytes(bytes(path.stat().st_size))
        again = await launch()
        await send(again, body_of("d"))
        await until(lambda: again.metrics.value("stored_spans_total"))
        shown = again.metrics.exposition().decode()
        for line in (
            "collector_damaged_spans_total 3.0",
            "collector_recovered_spans_total 3.0",
            "collector_stored_spans_total 1.0",
            "collector_logs_damaged_records_total 2.0",
            "collector_logs_recovered_records_total 2.0",
            "collector_damaged_files 2.0",
        ):
            assert f"mast_trace_{line}\n" in shown
        errors = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
        assert ["3 acknowledged spans are lost" in text for text in errors] == [True, False]
        assert "2 acknowledged log records are lost" in errors[1]

    @pytest.mark.parametrize("trouble", ["http", "grpc", "logs"])
    async def test_a_failed_start(self, launch: Launch, tmp_path: Path, trouble: str) -> None:
        """A port that is in use, which is never shared, or the second of two folders."""
        first, folder = await launch(), tmp_path / "other"
        addresses = {"http": first.http_address, "grpc": first.grpc_address}
        if trouble in addresses:
            taken = {f"{trouble}_port": int(addresses[trouble].rpartition(":")[2])}
            with pytest.raises(ConfigurationError, match="cannot listen"):
                await launch(data_dir=folder, **taken)
        else:
            folder.mkdir()
            (folder / "spool-logs").touch()
            with pytest.raises(CollectorError, match="spool-logs"):
                await launch(data_dir=folder)
            (folder / "spool-logs").unlink()
        await launch(data_dir=folder)

    async def test_two_collectors_do_not_share_a_folder(self, launch: Launch) -> None:
        await launch()
        with pytest.raises(CollectorError, match="another collector"):
            await launch()

    async def test_a_stranger_s_address_needs_keys(self, tmp_path: Path, store: Store) -> None:
        with pytest.raises(ConfigurationError, match="refusing to listen"):
            Collector(CollectorConfig(data_dir=tmp_path, host="0.0.0.0"), store)

    async def test_grpc_can_be_switched_off(self, launch: Launch) -> None:
        collector = await launch(grpc_enabled=False)
        assert collector.grpc_address == ""
        assert await send(collector, body_of("a")) == [200]

    async def test_other_paths_are_of_an_application(self, tmp_path: Path, store: Store) -> None:
        async def app(scope, receive, send) -> None:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": scope["path"].encode()})

        config = CollectorConfig(data_dir=tmp_path, http_port=0, grpc_enabled=False)
        collector = Collector(config, store, app=app)
        await collector.start()
        assert (await get(collector, "/runs/7")).text == "/runs/7"
        assert (await get(collector, "/healthz")).text == "ok\n"
        await collector.stop()


@pytest.mark.parametrize(("batch", "of_logs"), [(99, 99), (1 << 30, COLUMNS_BYTES)])
def test_each_signal_has_own_limits(tmp_path: Path, store: Store, batch: int, of_logs: int) -> None:
    config = CollectorConfig(
        data_dir=tmp_path,
        spool_max_bytes=4004,
        spool_min_free_bytes=7,
        batch_max_bytes=batch,
        batch_max_spans=5,
        batch_max_age_seconds=0.5,
        duplicate_window=3,
        insert_threads=4,
    )
    spans, logs = Collector(config, store)._pipelines
    assert spans.spool._limits == SpoolLimits(4004, 7, batch, 5, 0.5, 3)
    assert logs.spool._limits == SpoolLimits(1001, 7, of_logs, 5, 0.5, 3)
    assert [len(each.exporter._threads) for each in (spans, logs)] == [4, 1]
    folders = {each.spool._directory for each in (spans, logs)}
    assert len(folders | {each.dead_letters._directory for each in (spans, logs)}) == 4


class PoisonedWriter(SpanWriter):
    """Finds that spans of one name can never be stored."""

    def write(self, requests: Sequence[bytes], **options: Any) -> int:
        for index, request in enumerate(requests):
            if b"poison" in request:
                raise PoisonError(index, "it does not fit")
        return super().write(requests, **options)


class TestCounters:
    """Everything that arrived is accounted for."""

    async def test_they_add_up(self, launch: Launch, store: Store) -> None:
        collector = await launch(PoisonedWriter(store), max_attributes=3, max_body_bytes=2000)
        as_json = json_format.MessageToJson(request_of("by json")).encode()
        assert await send(
            collector,
            body_of("a", "b"),
            body_of("c"),
            body_of("c"),
            body_of("d") + body_of("left out", attributes=4),
            body_of("poison", "with it"),
            b"\xff",
            b"x" * 3000,
        ) == [200, 200, 200, 200, 200, 400, 413]
        assert await send(collector, as_json, **JSON) == [200]
        assert await send(collector, b"", **{"content-type": "text/plain"}) == [415]
        await until(lambda: collector._pipelines[0].spool.waiting_items == 0)

        value = collector.metrics.value
        for reason in ("malformed", "too_large", "unsupported_media_type"):
            assert refusals(collector, "http", reason) == 1, reason
        assert value("received_requests_total", transport="http") == 9
        assert value("accepted_requests_total", transport="http") == 5
        assert value("duplicate_requests_total", transport="http") == 1
        assert value("accepted_spans_total") == 7
        assert value("rejected_spans_total", reason="excessive") == 1
        assert value("stored_spans_total") == 5
        assert value("dead_lettered_spans_total") == 2
        assert value("dead_letters") == 1
        assert store.query("SELECT count() AS n FROM otel_traces") == [{"n": 5}]

    async def test_they_add_up_under_a_flood(self, launch: Launch, store: Store) -> None:
        """Many senders at once against a small spool: refused and stored are all there is."""
        collector = await launch(spool_max_bytes=20_000, batch_max_bytes=5_000)
        statuses: list[int] = []

        async def sender(number: int) -> None:
            bodies = [body_of(f"{number}.{index}", attributes=20) for index in range(40)]
            statuses.extend(await send(collector, *bodies))

        await asyncio.gather(*(sender(number) for number in range(8)))
        await until(lambda: collector._pipelines[0].spool.waiting_items == 0)
        accepted = statuses.count(200)
        assert statuses.count(503) == len(statuses) - accepted > 0
        value = collector.metrics.value
        assert value("accepted_requests_total", transport="http") == accepted
        assert value("stored_spans_total") == accepted
        assert store.query("SELECT count() AS n FROM otel_traces") == [{"n": accepted}]


async def test_no_key_is_logged(
    launch: Launch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    key, line = new_key("team")
    (tmp_path / "keys").write_text(line)
    collector = await launch(keys_file=tmp_path / "keys")
    good, wrong = f"Bearer {key}", "Bearer geheim"
    assert await send(collector, body_of("a"), b"\xff", authorization=good) == [200, 400]
    assert await send(collector, body_of("a"), authorization=wrong) == [401]
    await collector.stop()
    assert key not in caplog.text
    assert "geheim" not in caplog.text
