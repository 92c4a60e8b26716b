"""Export requests for the tests, and waiting for what they bring about."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from mast_trace_collector.collector import Collector

StartCollector = Callable[..., Awaitable[Collector]]
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
    for number, name in enumerate(names):
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
    """The same, serialised."""
    return request_of(*names, **options).SerializeToString()


async def until(condition: Callable[[], Any], timeout: float = 20.0) -> Any:
    """Wait for a condition that a background thread brings about; its value."""
    deadline = time.monotonic() + timeout
    while not (value := await asyncio.to_thread(condition)):
        assert time.monotonic() < deadline, "it did not come about in time"
        await asyncio.sleep(0.01)
    return value
