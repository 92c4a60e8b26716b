"""OTLP logs over HTTP and gRPC, sent by OpenTelemetry's own exporters."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from ingest_support import JSON, get, post, until
from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter as GRPCExporter
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter as HTTPExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor

if TYPE_CHECKING:
    from mast_trace_collector.collector import Collector
    from mast_trace_collector.storage import Store

EVALUATION = "gen_ai.evaluation.result"


def send(exporter: HTTPExporter | GRPCExporter) -> None:
    """Send an evaluation as a program does."""
    provider = LoggerProvider(shutdown_on_exit=False)
    provider.add_log_record_processor(BatchLogRecordProcessor(exporter))
    record = LogRecord(
        severity_number=SeverityNumber.INFO,
        event_name=EVALUATION,
        attributes={"gen_ai.evaluation.name": "relevance", "gen_ai.evaluation.score.value": 0.9},
    )
    provider.get_logger("tests").emit(record)
    assert provider.force_flush()
    provider.shutdown()


@pytest.mark.parametrize("transport", ["http", "grpc"])
async def test_evaluations_can_be_read(collector: Collector, store: Store, transport: str) -> None:
    exporter: HTTPExporter | GRPCExporter
    if transport == "http":
        exporter = HTTPExporter(endpoint=f"{collector.http_address}/v1/logs")
    else:
        exporter = GRPCExporter(endpoint=f"http://{collector.grpc_address}", insecure=True)
    await asyncio.to_thread(send, exporter)
    rows = await until(lambda: store.query("SELECT Name, Score FROM mast_evaluations"))
    assert rows == [{"Name": "relevance", "Score": 0.9}]


async def test_records_are_counted_beside_the_spans(collector: Collector, store: Store) -> None:
    body = b'{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"stringValue":"a"}},{}]}]}]}'
    assert (await post(collector, body, "/v1/logs", **JSON)).status_code == 200
    assert (await post(collector, b"\xff", "/v1/logs")).status_code == 400
    await until(lambda: store.query("SELECT 1 FROM otel_logs"))
    shown = (await get(collector, "/metrics")).text
    assert 'mast_trace_collector_logs_received_requests_total{transport="http"} 2.0' in shown
    assert "mast_trace_collector_logs_accepted_records_total 2.0" in shown
    assert "mast_trace_collector_accepted_spans_total 0.0" in shown
    assert 'mast_trace_collector_received_requests_total{transport="http"}' not in shown
