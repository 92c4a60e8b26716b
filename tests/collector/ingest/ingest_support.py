"""Export requests for the tests, and waiting for what they bring about."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import httpx
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from mast_trace_collector.collector import Collector

if TYPE_CHECKING:
    from mast_trace_collector.storage import Store

Launch = Callable[..., Awaitable[Collector]]
PROTOBUF = {"content-type": "application/x-protobuf"}
JSON = {"content-type": "application/json"}


def request_of(*names: str, attributes: int = 1, project: str = "") -> ExportTraceServiceRequest:
    """A request with one span of each name."""
    request = ExportTraceServiceRequest()
    resource = request.resource_spans.add()
    resource.resource.attributes.add(key="service.name").value.string_value = "test"
    if project:
        resource.resource.attributes.add(key="mast.project").value.string_value = project
    spans = resource.scope_spans.add().spans
    for number, name in enumerate(names, start=1):
        span = spans.add(
            name=name,
            trace_id=b"t" * 16,
            span_id=number.to_bytes(8, "big"),
            start_time_unix_nano=1_700_000_000_000_000_000,
            end_time_unix_nano=1_700_000_001_000_000_000,
        )
        for index in range(attributes):
            span.attributes.add(key=f"key{index}").value.string_value = "value"
    return request


def body_of(*names: str, **options: int) -> bytes:
    """The request, serialised."""
    return request_of(*names, **options).SerializeToString()


async def until(condition: Callable[[], Any], timeout: float = 20.0) -> Any:
    """Wait for a condition that a background thread brings about; its value."""
    deadline = time.monotonic() + timeout
    while not (value := await asyncio.to_thread(condition)):
        assert time.monotonic() < deadline, "it did not come about in time"
        await asyncio.sleep(0.01)
    return value


async def post(collector: Collector, body: bytes, **headers: str) -> httpx.Response:
    """Send spans over HTTP."""
    async with httpx.AsyncClient(base_url=collector.http_address, timeout=30) as client:
        return await client.post("/v1/traces", content=body, headers=PROTOBUF | headers)


async def get(collector: Collector, path: str, **headers: str) -> httpx.Response:
    """Ask for a page of a collector."""
    async with httpx.AsyncClient(base_url=collector.http_address) as client:
        return await client.get(path, headers=headers)


def stored_names(store: Store) -> list[str]:
    """Return the names of all spans that are stored."""
    return [row["SpanName"] for row in store.query("SELECT SpanName FROM otel_traces ORDER BY 1")]
