"""Export requests for the tests, and waiting for what they bring about."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import grpc.aio
import httpx
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from mast_trace_collector.collector import Collector

if TYPE_CHECKING:
    from mast_trace_collector.storage import Store

Launch = Callable[..., Awaitable[Collector]]
PROTOBUF = {"content-type": "application/x-protobuf"}
JSON = {"content-type": "application/json"}
EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"


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


def body_of(*names: str, **options: Any) -> bytes:
    """The request, serialised."""
    return request_of(*names, **options).SerializeToString()


async def until(condition: Callable[[], Any], timeout: float = 20.0) -> Any:
    """Wait for a condition that a background thread brings about; its value."""
    deadline = time.monotonic() + timeout
    while not (value := await asyncio.to_thread(condition)):
        assert time.monotonic() < deadline, "it did not come about in time"
        await asyncio.sleep(0.01)
    return value


async def post(
    collector: Collector, body: Any, path: str = "/v1/traces", key: str = "", **headers: str
) -> httpx.Response:
    """Send a request over HTTP, with a key if there is one."""
    shown = {"authorization": f"Bearer {key}"} if key else {}
    async with httpx.AsyncClient(base_url=collector.http_address, timeout=60) as client:
        return await client.post(path, content=body, headers=PROTOBUF | shown | headers)


async def call(
    collector: Collector, body: bytes, key: str = "", method: str = EXPORT, **options: Any
) -> bytes:
    """Send a request over gRPC, with a key if there is one."""
    if key:
        options["metadata"] = (("authorization", f"Bearer {key}"),)
    async with grpc.aio.insecure_channel(
        collector.grpc_address, options=[("grpc.max_send_message_length", -1)]
    ) as channel:
        answer: bytes = await channel.unary_unary(method)(body, timeout=60, **options)
        return answer


async def connect(collector: Collector) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Open a connection to the receiver of HTTP."""
    host, port = collector.http_address.removeprefix("http://").split(":")
    return await asyncio.open_connection(host, int(port))


def refusals(collector: Collector, transport: str, reason: str) -> float:
    """Return how many requests were refused for a reason."""
    return collector.metrics.value("refused_requests_total", transport=transport, reason=reason)


async def get(collector: Collector, path: str, **headers: str) -> httpx.Response:
    """Ask for a page of a collector."""
    async with httpx.AsyncClient(base_url=collector.http_address) as client:
        return await client.get(path, headers=headers)


def stored_names(store: Store) -> list[str]:
    """Return the names of all spans that are stored."""
    return [row["SpanName"] for row in store.query("SELECT SpanName FROM otel_traces ORDER BY 1")]
