"""OTLP over HTTP, on real sockets."""

from __future__ import annotations

import asyncio
import gzip
import json
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import zstandard
from google.protobuf import json_format
from google.rpc.status_pb2 import Status
from hypothesis import given, settings
from hypothesis import strategies as st
from ingest_support import (
    JSON,
    PROTOBUF,
    body_of,
    connect,
    get,
    post,
    refusals,
    request_of,
    stored_names,
    until,
)
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExportResult

from mast_trace_collector.config import CollectorConfig
from mast_trace_collector.receivers.otlp_http import OTLPHTTPReceiver
from mast_trace_collector.security import Right, new_key

if TYPE_CHECKING:
    from pathlib import Path

    from ingest_support import Launch

    from mast_trace_collector.collector import Collector
    from mast_trace_collector.storage import Store


class TestAccepted:
    """An acknowledged span becomes a row."""

    @pytest.mark.parametrize("compression", list(Compression))
    async def test_spans_of_the_opentelemetry_exporter(
        self, collector: Collector, store: Store, compression: Compression
    ) -> None:
        def export() -> None:
            exporter = OTLPSpanExporter(
                endpoint=f"{collector.http_address}/v1/traces", compression=compression
            )
            provider = TracerProvider()
            provider.add_span_processor(SimpleSpanProcessor(exporter))
            with provider.get_tracer("test").start_as_current_span("from the sdk") as span:
                span.set_attribute("never.seen.before", [1, 2])
            provider.shutdown()

        await asyncio.to_thread(export)
        (row,) = await until(lambda: store.query("SELECT * FROM otel_traces"))
        assert row["SpanName"] == "from the sdk"
        assert row["SpanAttributes"] == {"never.seen.before": "[1,2]"}

    async def test_a_compression_of_others_too(self, collector: Collector, store: Store) -> None:
        answer = await post(
            collector, zstandard.compress(body_of("a")), **{"content-encoding": "zstd"}
        )
        assert answer.status_code == 200
        assert answer.headers["content-type"] == PROTOBUF["content-type"]
        assert ExportTraceServiceResponse.FromString(answer.content) == ExportTraceServiceResponse()
        assert await until(lambda: stored_names(store)) == ["a"]

    async def test_json_is_answered_in_json(self, collector: Collector, store: Store) -> None:
        body = json_format.MessageToJson(request_of("by json")).encode()
        answer = await post(collector, body, **{"content-type": "application/json; charset=utf-8"})
        assert (answer.status_code, answer.json()) == (200, {})
        assert await until(lambda: stored_names(store)) == ["by json"]

    async def test_a_chunked_body_in_many_pieces(self, collector: Collector, store: Store) -> None:
        async def pieces() -> Any:
            body = body_of("in pieces", attributes=50)
            for start in range(0, len(body), 100):
                yield body[start : start + 100]
                await asyncio.sleep(0)

        assert (await post(collector, pieces())).status_code == 200
        assert await until(lambda: stored_names(store)) == ["in pieces"]

    async def test_an_empty_request_is_fine(self, collector: Collector) -> None:
        assert (await post(collector, b"")).status_code == 200

    async def test_odd_spans_are_stored_too(self, collector: Collector, store: Store) -> None:
        """No root, negative duration, the far future: odd, but recorded."""
        request = request_of("a", "b", "c")
        spans = request.resource_spans[0].scope_spans[0].spans
        spans[0].parent_span_id = b"p" * 3
        spans[1].end_time_unix_nano = 1
        spans[2].start_time_unix_nano = spans[2].end_time_unix_nano = 2**64 - 1
        assert (await post(collector, request.SerializeToString())).status_code == 200
        await until(lambda: stored_names(store) == ["a", "b", "c"])


class TestRefused:
    """A refused request gets the reason, in the sender's format."""

    async def refused(self, collector: Collector, status: int, body: bytes, **headers: str) -> str:
        answer = await post(collector, body, **headers)
        assert answer.status_code == status
        if (headers or PROTOBUF).get("content-type", "").endswith("protobuf"):
            return Status.FromString(answer.content).message
        return str(answer.json()["message"])

    @pytest.mark.parametrize(
        ("status", "body", "headers"),
        [
            (400, b"\xff\xff", PROTOBUF),
            (400, b"{", JSON),
            (400, b"not gzip", JSON | {"content-encoding": "gzip"}),
            (415, body_of("x"), {"content-type": "text/plain"}),
            (415, body_of("x"), {"content-type": ""}),
            (415, body_of("x"), {"content-type": "application/grpc"}),
            (415, b"", JSON | {"content-encoding": "br"}),
        ],
    )
    async def test_what_cannot_be_read(
        self, collector: Collector, status: int, body: bytes, headers: dict[str, str]
    ) -> None:
        assert await self.refused(collector, status, body, **headers)

    @pytest.mark.parametrize("chunked", [False, True])
    @pytest.mark.parametrize(("size", "status"), [(10_000, 400), (10_001, 413)])
    async def test_a_body_of_many_bytes(
        self, launch: Launch, size: int, status: int, chunked: bool
    ) -> None:
        """Up to the limit it is read, and found to be no JSON."""
        collector = await launch(max_body_bytes=10_000)

        async def pieces() -> Any:
            for start in range(0, size, 1000):
                yield b"x" * min(1000, size - start)

        content = pieces() if chunked else b"x" * size
        assert (await post(collector, content, **JSON)).status_code == status

    async def test_a_zip_bomb(self, launch: Launch) -> None:
        collector = await launch(max_decompressed_bytes=100_000)
        headers = JSON | {"content-encoding": "gzip"}
        bomb = gzip.compress(b"\0" * 20_000_000)
        assert "decompressed" in await self.refused(collector, 413, bomb, **headers)

    async def test_other_methods(self, collector: Collector) -> None:
        answer = await get(collector, "/v1/traces")
        assert (answer.status_code, answer.headers["allow"]) == (405, "POST")

    @pytest.mark.parametrize("path", ["/v1/metrics", "/", "/v1/traces/x"])
    async def test_what_is_not_received_says_so(self, collector: Collector, path: str) -> None:
        answer = await post(collector, b"", path)
        assert answer.status_code == 404
        assert answer.json()["message"]

    async def test_when_the_spool_is_full_the_sender_is_told_to_wait(self, launch: Launch) -> None:
        collector = await launch(spool_max_bytes=100)
        answer = await post(collector, body_of("x", attributes=20))
        assert answer.status_code == 503
        assert int(answer.headers["retry-after"]) > 0
        assert "waiting for the database" in Status.FromString(answer.content).message

    async def test_what_the_server_breaks_off_is_told_and_counted(
        self, collector: Collector
    ) -> None:
        """A server that stops waits for some seconds, and cancels what is still being read."""
        receiver = OTLPHTTPReceiver(collector._ingest, CollectorConfig(), None)  # type: ignore[arg-type]
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        headers = [(b"content-type", b"application/json")]
        scope = {"type": "http", "path": "/v1/traces", "method": "POST", "headers": headers}
        asking = asyncio.create_task(receiver(scope, asyncio.Event().wait, send))  # type: ignore[arg-type]
        await asyncio.sleep(0.01)
        asking.cancel()
        await asking
        assert (sent[0]["status"], b"stopping" in sent[1]["body"]) == (503, True)
        assert refusals(collector, "http", "shutting_down") == 1

    async def test_the_exporter_repeats_the_refused(self, launch: Launch, store: Store) -> None:
        collector = await launch()
        exporter = OTLPSpanExporter(endpoint=f"{collector.http_address}/v1/traces", timeout=20)
        provider = TracerProvider()
        span = provider.get_tracer("test").start_span("patient")
        span.end()
        collector._pipelines[0].spool._quota._max_bytes = 0
        sent = asyncio.create_task(asyncio.to_thread(exporter.export, [span]))
        await until(lambda: refusals(collector, "http", "spool_full"))
        collector._pipelines[0].spool._quota._max_bytes = 1_000_000
        assert await sent is SpanExportResult.SUCCESS
        assert await until(lambda: stored_names(store)) == ["patient"]


class TestKeys:
    """With keys, only their holders write, each into its project."""

    @pytest.fixture
    async def keyed(self, launch: Launch, tmp_path: Path) -> tuple[Collector, dict[str, str]]:
        key, line = new_key("team-a")
        (tmp_path / "keys").write_text(line)
        collector = await launch(keys_file=tmp_path / "keys")
        return collector, {"authorization": f"Bearer {key}"}

    async def test_each_has_its_right(self, launch: Launch, tmp_path: Path, store: Store) -> None:
        keys = {right: new_key("team-a", frozenset({right})) for right in Right}
        (tmp_path / "keys").write_text("\n".join(line for _, line in keys.values()))
        collector = await launch(keys_file=tmp_path / "keys")
        for right, (key, _) in keys.items():
            answer = await post(collector, body_of(right.value, project="theirs"), key=key)
            assert answer.status_code == (200 if right is Right.WRITE else 403)
            if right is not Right.WRITE:
                assert b"lacks the right to write" in answer.content
            shown = await get(collector, "/metrics", authorization=f"Bearer {key}")
            assert shown.status_code == (200 if right is Right.METRICS else 403)
            if right is not Right.METRICS:
                assert "lacks the right to metrics" in shown.text
        assert refusals(collector, "http", "forbidden") == 3
        key, _ = keys[Right.WRITE]
        long = body_of(*["long"] * 3000, attributes=5, project="theirs")
        assert (await post(collector, long, key=key)).status_code == 200
        await until(lambda: set(stored_names(store)) == {"long", "write"})
        assert store.query("SELECT DISTINCT Project FROM otel_traces") == [{"Project": "team-a"}]

    @pytest.mark.parametrize("authorization", ["", "Bearer wrong", "Basic eDp5"])
    async def test_nobody_else_may(
        self, keyed: tuple[Collector, dict[str, str]], authorization: str
    ) -> None:
        collector, _ = keyed
        shown = {"authorization": authorization}
        answers = [
            await post(collector, b"", f"/v1/{name}", **shown) for name in ("traces", "logs")
        ]
        answers.append(await get(collector, "/metrics", **shown))
        assert {(each.status_code, each.headers["www-authenticate"]) for each in answers} == {
            (401, "Bearer")
        }

    async def test_health_alone_needs_no_key(self, keyed: tuple[Collector, dict[str, str]]) -> None:
        collector, headers = keyed
        assert (await get(collector, "/healthz")).status_code == 200
        assert (await get(collector, "/readyz")).status_code == 200
        assert (await get(collector, "/metrics", **headers)).status_code == 403


class TestOperations:
    """The endpoints for operators."""

    async def test_metrics_are_in_prometheus_form(self, collector: Collector) -> None:
        await post(collector, body_of("a", "b"))
        text = (await get(collector, "/metrics")).text
        assert 'mast_trace_collector_received_requests_total{transport="http"} 1.0' in text
        assert "mast_trace_collector_accepted_spans_total 2.0" in text
        for name in ("waiting_bytes", "waiting_age_seconds", "insert_seconds_bucket", "up 1.0"):
            assert f"mast_trace_collector_{name}" in text

    async def test_what_never_becomes_a_request_is_counted(self, collector: Collector) -> None:
        reader, writer = await connect(collector)
        writer.write(b"no HTTP\r\n\r\n")
        assert (await asyncio.wait_for(reader.read(), 30)).startswith(b"HTTP/1.1 400")
        writer.close()
        shown = (await get(collector, "/metrics")).text
        name = "mast_trace_collector_turned_away_total"
        assert f'{name}{{reason="malformed",server="receiver"}} 1.0' in shown

    async def test_late_spans_and_rootless_runs_count(self, launch: Launch, store: Store) -> None:
        collector = await launch(run_idle_seconds=0.01)
        orphan = request_of("orphan")
        span = orphan.resource_spans[0].scope_spans[0].spans[0]
        span.trace_id, span.parent_span_id = b"o" * 16, b"p" * 8
        assert (await post(collector, orphan.SerializeToString())).status_code == 200
        seen = (
            "SELECT 1 FROM mast_run_states WHERE LastSeen < now64(3) - toIntervalMillisecond(100)"
        )
        await until(lambda: store.query(seen))
        await until(lambda: b"runs_without_root" in collector.metrics.exposition())
        shown = (await get(collector, "/metrics")).text
        assert "mast_trace_collector_late_spans_total 1.0" in shown
        assert "mast_trace_collector_runs_without_root 1.0" in shown

    async def test_not_ready_while_the_spool_takes_nothing(self, launch: Launch) -> None:
        collector = await launch(spool_min_free_bytes=1 << 60)
        answer = await get(collector, "/readyz")
        assert answer.status_code == 503
        assert "disk is nearly full" in answer.json()["reason"]
        assert (await get(collector, "/healthz")).text == "ok\n"

    @pytest.mark.parametrize(("full", "path", "ready"), [(0, "traces", 503), (1, "logs", 200)])
    async def test_ready_while_spans_are_taken(
        self, collector: Collector, full: int, path: str, ready: int
    ) -> None:
        """A full spool of spans keeps senders away; one of log records does not."""
        collector._pipelines[full].spool._quota._max_bytes = 0
        record = '{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"stringValue":"a"}}]}]}]}'
        body = record if full else json_format.MessageToJson(request_of("a"))
        assert (await post(collector, body, f"/v1/{path}", **JSON)).status_code == 503
        assert (await get(collector, "/readyz")).status_code == ready


async def test_any_body_is_answered_by_success_or_a_mistake(collector: Collector) -> None:

    def fuzz() -> None:
        with httpx.Client(base_url=collector.http_address, timeout=20) as client:

            @settings(max_examples=300, deadline=None)
            @given(
                body=st.one_of(
                    st.binary(max_size=100),
                    st.text(max_size=50).map(str.encode),
                    st.just(body_of("x")),
                    st.just(json.dumps({"resourceSpans": []}).encode()),
                ),
                content_type=st.sampled_from([PROTOBUF["content-type"], JSON["content-type"], "x"]),
                encoding=st.sampled_from(["", "gzip", "deflate", "zstd", "br"]),
            )
            def check(body: bytes, content_type: str, encoding: str) -> None:
                headers = {"content-type": content_type, "content-encoding": encoding}
                status = client.post("/v1/traces", content=body, headers=headers).status_code
                assert status in {200, 400, 415}

            check()

    await asyncio.to_thread(fuzz)
