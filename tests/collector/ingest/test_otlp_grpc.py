"""OTLP over gRPC, on real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import os
from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio
import pytest
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from ingest_support import body_of, call, request_of, stored_names, until
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SpanExportResult

from mast_trace_collector.otlp.errors import (
    Forbidden,
    RequestError,
    TooLarge,
    TooSlow,
    Unauthenticated,
)
from mast_trace_collector.receivers.otlp_grpc import _code
from mast_trace_collector.security import Right, new_key

if TYPE_CHECKING:
    from pathlib import Path

    from ingest_support import Launch

    from mast_trace_collector.collector import Collector
    from mast_trace_collector.storage import Store

METRICS = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export"


async def refusal(collector: Collector, body: bytes, **options: Any) -> grpc.aio.AioRpcError:
    with pytest.raises(grpc.aio.AioRpcError) as error:
        await call(collector, body, **options)
    return error.value


class TestAccepted:
    """An acknowledged span becomes a row."""

    @pytest.mark.parametrize("compression", [grpc.Compression.NoCompression, grpc.Compression.Gzip])
    async def test_spans_of_the_opentelemetry_exporter(
        self, collector: Collector, store: Store, compression: grpc.Compression
    ) -> None:
        exporter = OTLPSpanExporter(
            endpoint=collector.grpc_address, insecure=True, compression=compression
        )
        span = TracerProvider().get_tracer("test").start_span("from the sdk")
        span.end()
        result = await asyncio.to_thread(exporter.export, [span])
        assert result is SpanExportResult.SUCCESS
        assert await until(lambda: stored_names(store)) == ["from the sdk"]
        await asyncio.to_thread(exporter.shutdown)

    async def test_messages_beyond_usual_limits(self, collector: Collector, store: Store) -> None:
        """LLM spans exceed gRPC's usual 4 MiB easily."""
        request = request_of("large")
        span = request.resource_spans[0].scope_spans[0].spans[0]
        span.attributes.add(key="text").value.string_value = "word " * 2_000_000
        await call(collector, request.SerializeToString())
        assert await until(lambda: stored_names(store)) == ["large"]

    @pytest.mark.parametrize("fails", [False, True])
    async def test_a_call_that_is_cancelled_while_it_is_being_kept_is_counted_if_it_is(
        self, collector: Collector, store: Store, monkeypatch: pytest.MonkeyPatch, fails: bool
    ) -> None:
        def failing(_: int) -> None:
            raise OSError(5, "Input/output error")

        spool = collector._pipelines[0].spool
        with spool._writing:  # the disk is busy
            sending = asyncio.create_task(call(collector, body_of("impatient")))
            await until(lambda: spool._quota.used)
            sending.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await sending
            await until(lambda: collector._ingest.held == 0)
            if fails:
                monkeypatch.setattr(os, "fdatasync", failing)
        await collector.stop()
        assert stored_names(store) == ([] if fails else ["impatient"])
        assert collector.metrics.value("accepted_spans_total") == (0 if fails else 1)


class TestRefused:
    """A refused request gets the status that the protocol names."""

    @pytest.mark.parametrize(
        ("error", "code"),
        [
            (RequestError, grpc.StatusCode.INVALID_ARGUMENT),
            (TooLarge, grpc.StatusCode.RESOURCE_EXHAUSTED),
            (TooSlow, grpc.StatusCode.DEADLINE_EXCEEDED),  # a sender tries this one again
            (Unauthenticated, grpc.StatusCode.UNAUTHENTICATED),
            (Forbidden, grpc.StatusCode.PERMISSION_DENIED),
        ],
    )
    def test_each_error_has_a_code(self, error: type[RequestError], code: grpc.StatusCode) -> None:
        assert _code(error("why")) is code

    async def test_malformed(self, collector: Collector) -> None:
        error = await refusal(collector, b"\xff\xff")
        assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert "no OTLP traces request" in error.details()

    @pytest.mark.parametrize("body", [b"x" * 20_001, b"\0" * 20_000_000])
    async def test_too_large_also_when_compressed(self, launch: Launch, body: bytes) -> None:
        collector = await launch(max_body_bytes=20_000)
        error = await refusal(collector, body, compression=grpc.Compression.Gzip)
        assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED

    async def test_backpressure_says_when_to_come_again(self, launch: Launch) -> None:
        collector = await launch(spool_max_bytes=100)
        error = await refusal(collector, body_of("x", attributes=20))
        assert error.code() is grpc.StatusCode.UNAVAILABLE
        metadata = dict(error.trailing_metadata())
        status = Status.FromString(metadata["grpc-status-details-bin"])
        retry = RetryInfo()
        assert status.details[0].Unpack(retry)
        assert retry.retry_delay.seconds > 0

    async def test_metrics_are_unimplemented(self, collector: Collector) -> None:
        error = await refusal(collector, b"", method=METRICS)
        assert error.code() is grpc.StatusCode.UNIMPLEMENTED
        assert "does not receive" in error.details()

    async def test_without_a_known_key(self, launch: Launch, tmp_path: Path) -> None:
        reader, line = new_key("team-a", frozenset({Right.READ}))
        (tmp_path / "keys").write_text(line)
        collector = await launch(keys_file=tmp_path / "keys")
        refused = await refusal(collector, body_of("x"), key=reader)
        assert refused.code() is grpc.StatusCode.PERMISSION_DENIED
        assert "lacks the right to write" in refused.details()
        assert (await refusal(collector, body_of("x"))).code() is grpc.StatusCode.UNAUTHENTICATED
