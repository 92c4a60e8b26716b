"""Delivery of spans to a collector: batches, splits, retries, limits, what `flush` says."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any

import pytest
from receiver import receiving

import mast_trace
from mast_trace._settings import SDKSettings
from mast_trace.delivery.limits import Delivered, DeliveryLimits
from mast_trace.delivery.provider import make_provider
from mast_trace.delivery.span_queue import SpanQueue
from mast_trace.delivery.transport import open_transport

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from opentelemetry.trace import Tracer
    from receiver import Receiver


class Exporting:
    """A queue with a tracer before it."""

    def __init__(self, endpoint: str, **limits: Any) -> None:
        settings = SDKSettings.resolve(endpoint=endpoint)
        self.queue = SpanQueue(
            settings.endpoint.value,
            lambda: open_transport(settings),
            limits=DeliveryLimits(**limits),
        )
        self.tracer: Tracer = make_provider("test", self.queue).get_tracer("test")

    def span(self, name: str, size: int = 0, **attributes: Any) -> None:
        self.tracer.start_span(name, attributes={"text": "x" * size, **attributes}).end()

    def delivered(self) -> Delivered:
        return self.queue.delivered()


@pytest.fixture
def exporting() -> Iterator[Callable[..., Exporting]]:
    """Makes queues and closes them."""
    made: list[Exporting] = []

    def make(endpoint: str, **limits: Any) -> Exporting:
        made.append(Exporting(endpoint, **limits))
        return made[-1]

    yield make
    for each in made:
        each.queue.shutdown()


def test_spans_arrive_with_the_service_and_the_distribution(receiver: Receiver) -> None:
    """A collector can tell which program sent a span, and by what."""
    mast_trace.instrument(frameworks=[], endpoint=receiver.url, service_name="shop")
    with mast_trace.run("refund"):
        mast_trace.message("planner", "coder", "Begin.")
    assert mast_trace.flush()
    assert sorted(receiver.names) == ["invoke_workflow refund", "send_message planner"]
    resource = receiver.accepted[0].resource_spans[0].resource
    attributes = {each.key: each.value.string_value for each in resource.attributes}
    assert attributes["service.name"] == "shop"
    assert attributes["telemetry.distro.name"] == "mast-trace"


def test_headers_and_compression_are_sent(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bearer key and gzip, each from where OpenTelemetry keeps it."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20k1,x-team=a")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
    mast_trace.instrument(frameworks=[], endpoint=receiver.url)
    mast_trace.message("a", "b", "hello")
    assert mast_trace.flush()
    sent = receiver.headers[0]
    assert (sent["authorization"], sent["x-team"]) == ("Bearer k1", "a")
    assert sent["content-encoding"] == "gzip"
    assert receiver.names == ["send_message a"]


def test_a_proxy_of_the_environment_is_not_used_for_this_machine(
    receiver: Receiver, closed_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The default collector is on loopback, which no proxy reaches."""
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{closed_port}")
    mast_trace.instrument(frameworks=[], endpoint=receiver.url)
    mast_trace.message("a", "b", "hello")
    assert mast_trace.flush()


class TestFlush:
    """The result of `flush`."""

    def test_is_true_when_there_is_nothing_to_send(self, closed_port: int) -> None:
        """Without spans the result is true, with and without instrumentation."""
        assert mast_trace.flush()
        mast_trace.instrument(frameworks=[], endpoint=f"http://127.0.0.1:{closed_port}")
        assert mast_trace.flush(0.0)

    def test_is_false_when_the_collector_refuses(
        self, exporting: Callable[..., Exporting], receiver: Receiver
    ) -> None:
        """A wrong key is not retried, is counted, and is false once."""
        receiver.answers.append((401, {}))
        export = exporting(receiver.url)
        export.span("refused")
        assert not export.queue.flush(10)
        assert export.delivered().refused == 1
        assert "401" in export.delivered().error
        export.span("accepted")
        assert export.queue.flush(10)
        assert receiver.names == ["accepted"]

    def test_is_false_when_the_collector_takes_only_a_part(
        self, exporting: Callable[..., Exporting], receiver: Receiver
    ) -> None:
        """OTLP's partial success is not a success."""
        receiver.rejects = 1
        export = exporting(receiver.url)
        export.span("one")
        export.span("two")
        assert not export.queue.flush(10)
        assert (export.delivered().accepted, export.delivered().refused) == (1, 1)

    def test_is_false_when_nobody_answers_and_loses_nothing(
        self, exporting: Callable[..., Exporting], closed_port: int
    ) -> None:
        """Spans that could not be sent wait; they arrive once when a collector has come back."""
        export = exporting(f"http://127.0.0.1:{closed_port}")
        export.span("early")
        assert not export.queue.flush(0.05)
        assert export.delivered().waiting == 1
        with receiving(closed_port) as late:
            assert export.queue.flush(20)
            assert late.names == ["early"]

    def test_is_false_when_a_redirect_points_elsewhere(
        self, exporting: Callable[..., Exporting], receiver: Receiver
    ) -> None:
        """A login page behind a redirect is not a collector."""
        receiver.answers.append((302, {"Location": receiver.url}))
        export = exporting(receiver.url)
        export.span("lost")
        assert not export.queue.flush(10)
        assert receiver.names == []


class TestBatches:
    """The content of one request."""

    def test_stay_below_the_limit_in_bytes(
        self, exporting: Callable[..., Exporting], receiver: Receiver
    ) -> None:
        """Each request has at most the configured size, however few spans that means."""
        export = exporting(receiver.url, request_bytes=50_000, delay=60)
        for index in range(40):
            export.span(f"s{index}", size=9_000)
        assert export.queue.flush(10)
        assert sorted(receiver.names) == sorted(f"s{index}" for index in range(40))
        assert max(map(len, receiver.bodies)) <= 50_000
        assert len(receiver.bodies) < 20

    def test_count_bytes_and_not_characters(
        self, exporting: Callable[..., Exporting], receiver: Receiver
    ) -> None:
        """Four bytes a character make a batch larger than it looks; it is split."""
        export = exporting(receiver.url, request_bytes=50_000, delay=60)
        for index in range(8):
            export.span(f"s{index}", more="\N{ROBOT FACE}" * 9_000)
        assert export.queue.flush(10)
        assert len(receiver.names) == 8
        assert max(map(len, receiver.bodies)) <= 50_000

    def test_leave_without_waiting_once_they_are_full(
        self, exporting: Callable[..., Exporting], receiver: Receiver
    ) -> None:
        """A burst is sent at once; what is left waits its time."""
        export = exporting(receiver.url, request_spans=3, delay=600)
        for index in range(4):
            export.span(f"s{index}")
        assert receiver.arrived.acquire(timeout=30)
        assert export.delivered().waiting >= 1
        assert export.queue.flush(10)
        assert receiver.names == ["s0", "s1", "s2", "s3"]

    def test_an_oversized_span_does_not_take_its_neighbours_down(
        self, exporting: Callable[..., Exporting], receiver: Receiver
    ) -> None:
        """The collector refuses one span as too large: that one is lost, the rest arrive once."""
        receiver.limit = 20_000
        export = exporting(receiver.url, delay=60)
        for index in range(30):
            export.span(f"s{index}", size=30_000 if index == 13 else 100)
        assert not export.queue.flush(20)
        assert sorted(receiver.names) == sorted(f"s{i}" for i in range(30) if i != 13)
        assert (export.delivered().accepted, export.delivered().refused) == (29, 1)

    def test_a_span_that_cannot_be_encoded_does_not_either(
        self, exporting: Callable[..., Exporting], receiver: Receiver
    ) -> None:
        """A name that is no UTF-8 breaks the encoder; its neighbours arrive."""
        export = exporting(receiver.url, delay=60)
        for name in ("before", "\ud800", "after"):
            export.span(name)
        assert not export.queue.flush(10)
        assert receiver.names == ["before", "after"]
        assert export.delivered().refused == 1


class TestRetries:
    """Retries, and their end."""

    @pytest.mark.parametrize("status", [408, 429, 502, 503, 504])
    def test_until_the_collector_recovers(
        self, exporting: Callable[..., Exporting], receiver: Receiver, status: int
    ) -> None:
        """A request that may succeed later is sent again and arrives once."""
        receiver.answers.extend([(status, {"Retry-After": "0"})] * 3)
        export = exporting(receiver.url)
        export.span("patient")
        assert export.queue.flush(20)
        assert receiver.names == ["patient"]
        assert receiver.statuses == [status, status, status, 200]

    @pytest.mark.parametrize("retry_after", ["soon", "Fri, 31 Feb 1999 07:07:07 GMT"])
    def test_survive_a_retry_after_that_is_no_time(
        self, exporting: Callable[..., Exporting], receiver: Receiver, retry_after: str
    ) -> None:
        """A header that cannot be read counts as none."""
        receiver.answers.append((503, {"Retry-After": retry_after}))
        export = exporting(receiver.url)
        export.span("patient")
        assert export.queue.flush(20)

    def test_end_after_a_while(
        self, exporting: Callable[..., Exporting], receiver: Receiver
    ) -> None:
        """A request that the collector defers each time does not hold the others up for ever."""
        receiver.answers.extend([(503, {"Retry-After": "0"})] * 2)
        export = exporting(receiver.url, retry_for=0.0)
        export.span("hopeless")
        assert not export.queue.flush(20)
        assert export.delivered().undelivered == 1
        assert receiver.statuses == [503]

    def test_are_announced_once(
        self,
        exporting: Callable[..., Exporting],
        closed_port: int,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        """One line says what is wrong and what to do, however long it lasts."""
        export = exporting(f"http://127.0.0.1:{closed_port}")
        export.span("waiting")
        with caplog.at_level(logging.WARNING, "mast_trace"):
            assert not export.queue.flush(1.2)
        assert len(caplog.messages) == 1
        assert f"127.0.0.1:{closed_port}" in caplog.text
        assert "mast-trace up" in caplog.text


class TestFullQueue:
    """Spans that come faster than they leave."""

    def test_drops_and_counts(
        self, exporting: Callable[..., Exporting], receiver: Receiver
    ) -> None:
        """While the collector hangs, the program goes on and new spans are dropped."""
        receiver.held = threading.Event()
        export = exporting(receiver.url, queue_spans=5, request_spans=1)
        export.span("in flight")
        assert receiver.arrived.acquire(timeout=30)
        for index in range(8):
            export.span(f"s{index}")
        assert export.delivered().dropped == 3
        receiver.held.set()
        assert not export.queue.flush(20)
        assert receiver.names == ["in flight", "s0", "s1", "s2", "s3", "s4"]
        export.span("later")
        assert export.queue.flush(20)

    def test_takes_attributes_of_any_kind(
        self, exporting: Callable[..., Exporting], receiver: Receiver
    ) -> None:
        """Their size is estimated as each span ends: lists of texts, of numbers, of both, of nothing."""
        export = exporting(receiver.url)
        lists: dict[str, Any] = {
            "texts": ["a", "b"],
            "numbers": [1, 2.5],
            "mixed": ["a", 1, True],
            "none": [],
        }
        export.span("lists", **lists)
        assert export.queue.flush(20)
        assert receiver.names == ["lists"]

    def test_is_full_by_bytes_too(
        self, exporting: Callable[..., Exporting], receiver: Receiver
    ) -> None:
        """Few large spans fill it as many small ones do."""
        receiver.held = threading.Event()
        export = exporting(receiver.url, queue_bytes=25_000, request_spans=1)
        export.span("in flight")
        assert receiver.arrived.acquire(timeout=30)
        for index in range(4):
            export.span(f"s{index}", size=10_000)
        assert export.delivered().dropped == 2
        receiver.held.set()


def test_grpc_splits_what_is_too_large(exporting: Callable[..., Exporting]) -> None:
    """The promises hold over gRPC: RESOURCE_EXHAUSTED without a delay means too large."""
    grpc = pytest.importorskip("grpc")
    from concurrent.futures import ThreadPoolExecutor

    from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as service
    from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc as stubs

    names: list[str] = []
    metadata: dict[str, str] = {}

    class Receiving(stubs.TraceServiceServicer):
        def Export(self, request: Any, context: Any) -> Any:  # noqa: N802  # gRPC's name
            metadata.update(context.invocation_metadata())
            spans = request.resource_spans[0].scope_spans[0].spans
            names.extend(span.name for span in spans)
            return service.ExportTraceServiceResponse()

    server = grpc.server(
        ThreadPoolExecutor(1), options=[("grpc.max_receive_message_length", 20_000)]
    )
    stubs.add_TraceServiceServicer_to_server(Receiving(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
            environment.setenv("OTEL_EXPORTER_OTLP_HEADERS", "Authorization=Bearer k1")
            export = exporting(f"http://127.0.0.1:{port}", delay=60)
        for index in range(10):
            export.span(f"s{index}", size=30_000 if index == 4 else 1_000)
        assert not export.queue.flush(20)
    finally:
        server.stop(None)
    assert sorted(names) == sorted(f"s{index}" for index in range(10) if index != 4)
    assert export.delivered().refused == 1
    assert metadata["authorization"] == "Bearer k1"


def test_a_cookie_is_sent_back(receiver: Receiver, exporting: Callable[..., Exporting]) -> None:
    """A load balancer keeps a program with one collector by it; the latest counts."""
    out = exporting(receiver.url)
    for cookie in ("", "node=a", "node=b", ""):
        receiver.answers.append((200, {"Set-Cookie": cookie} if cookie else {}))
        out.span("s")
        assert out.queue.flush(10)
    assert [headers.get("cookie") for headers in receiver.headers] == [
        None,
        None,
        "node=a",
        "node=b",
    ]
    assert len(receiver.spans) == 4
