"""Delivery of spans to a collector: batches, splits, retries, limits, what `flush` says."""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from receiver import receiving, serving_grpc

import mast_trace
from mast_trace._session import current_session
from mast_trace._settings import SDKSettings
from mast_trace.delivery.encoding import Delivered, DeliveryLimits
from mast_trace.delivery.provider import make_provider
from mast_trace.delivery.span_queue import SpanQueue
from mast_trace.delivery.transport import open_transport
from mast_trace.delivery.worker import SpanSender

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from opentelemetry.trace import Tracer
    from receiver import Receiver


class Exporting:
    """A queue with a tracer before it."""

    def __init__(self, endpoint: str, timeout: float = 10.0, **limits: Any) -> None:
        settings = SDKSettings.resolve(endpoint=endpoint)
        self.queue = SpanQueue(
            settings.endpoint.value,
            lambda: open_transport(settings),
            timeout=timeout,
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


class TestFlush:
    """The result of `flush`."""

    def test_is_true_when_there_is_nothing_to_send(self, closed_port: int) -> None:
        """Without spans the result is true, with and without instrumentation."""
        assert mast_trace.flush()
        mast_trace.instrument(frameworks=[], endpoint=f"http://127.0.0.1:{closed_port}")
        assert mast_trace.flush(0.0)

    @pytest.mark.parametrize("status", [401, 302])
    def test_is_false_when_the_collector_refuses(
        self, exporting: Callable[..., Exporting], receiver: Receiver, status: int
    ) -> None:
        """A wrong key, or a login page behind a redirect, is not retried, is counted, and is false once."""
        receiver.answers.append((status, {"Location": receiver.url} if status == 302 else {}))
        export = exporting(receiver.url)
        export.span("refused")
        assert not export.queue.flush(10)
        assert export.delivered().refused == 1
        assert str(status) in export.delivered().error
        export.span("accepted")
        assert export.queue.flush(10)
        assert receiver.names == ["accepted"]

    def test_is_false_when_a_header_cannot_be_written(self, receiver: Receiver) -> None:
        """No request can be sent, and the thread that delivers lives on: also for the record of a run."""
        headers = {"authorization": "Bearer \N{EURO SIGN}"}
        mast_trace.instrument(frameworks=[], endpoint=receiver.url, headers=headers)
        for _ in range(2):
            with mast_trace.run("r"):
                mast_trace.flush(5)
            assert not mast_trace.flush(5)
        session = current_session()
        assert session is not None
        assert session.queue is not None
        assert session.queue.delivered().refused == 2

    @pytest.mark.parametrize(("rejects", "accepted"), [(1, 1), (5, 0)])
    def test_is_false_when_the_collector_takes_only_a_part(
        self,
        exporting: Callable[..., Exporting],
        receiver: Receiver,
        rejects: int,
        accepted: int,
    ) -> None:
        """OTLP's partial success is not a success; at most all spans of the request are refused."""
        receiver.rejects = rejects
        export = exporting(receiver.url)
        export.span("one")
        export.span("two")
        assert not export.queue.flush(10)
        found = export.delivered()
        assert (found.accepted, found.refused) == (accepted, 2 - accepted)

    def test_is_false_when_nobody_answers_and_loses_nothing(
        self,
        exporting: Callable[..., Exporting],
        closed_port: int,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        """Spans that could not be sent wait; they arrive once when a collector has come back.

        One line says what is wrong and what to do, however long it lasts, and no end of a run waits for it.
        """
        export = exporting(f"http://127.0.0.1:{closed_port}", worker_wait=60)
        for outage, name in enumerate(("early", "again"), start=1):
            export.span(name)
            with caplog.at_level(logging.WARNING, "mast_trace"):
                assert not export.queue.flush(0.8)
                while len(caplog.messages) < outage:
                    time.sleep(0.05)  # a loaded machine tries later
            assert len(caplog.messages) == outage
            assert f"127.0.0.1:{closed_port}" in caplog.messages[-1]
            assert "mast-trace up" in caplog.messages[-1]
            assert export.delivered().waiting == 1
            end = threading.Thread(target=export.queue._sender.wait_for_delivery)
            end.start()
            end.join(20)
            assert not end.is_alive()
            with receiving(closed_port) as late:
                assert export.queue.flush(20)
                assert late.names == [name]
            export.queue._sender._transport.close()  # the connection outlives the server

    @pytest.mark.parametrize("outage", [False, True], ids=["only at its end", "before it too"])
    def test_the_end_of_a_program_tells_the_loss_and_promises_nothing(
        self,
        exporting: Callable[..., Exporting],
        closed_port: int,
        caplog: pytest.LogCaptureFixture,
        outage: bool,
    ) -> None:
        """Spans are said to wait only before the end; the remedy is told once, in the first line."""
        export = exporting(f"http://127.0.0.1:{closed_port}", delay=60)
        export.span("lost")
        with caplog.at_level(logging.WARNING, "mast_trace"):
            if outage:
                assert not export.queue.flush(0.8)
            export.queue.shutdown()
        first, last = caplog.messages[0], caplog.messages[-1]
        assert len(caplog.messages) == 1 + outage
        assert ["mast-trace up" in each for each in caplog.messages] == [True, False][: 1 + outage]
        assert ("they wait" in first, "1 span(s) lost" in last) == (outage, True)
        assert export.delivered().undelivered == 1


class TestBatches:
    """The content of one request."""

    @pytest.mark.parametrize(
        ("text", "requests"), [("x" * 9_000, 2), ("\N{ROBOT FACE}" * 9_000, 10)]
    )
    def test_stay_below_the_limit_in_bytes(
        self, exporting: Callable[..., Exporting], receiver: Receiver, text: str, requests: int
    ) -> None:
        """In bytes and not in characters, four of which make a batch larger than it looks.

        A span beyond the limits of request and queue has a request of its own.
        """
        export = exporting(receiver.url, request_bytes=50_000, queue_bytes=100_000, delay=60)
        names = [f"s{index}" for index in range(10)]
        for name in names:
            export.span(name, more=text)
        assert export.queue.flush(10)
        assert max(map(len, receiver.bodies)) <= 50_000
        assert len(receiver.bodies) == requests
        export.span("large", more=text * 12)
        assert export.queue.flush(10)
        assert receiver.names == [*names, "large"]
        assert export.delivered() == Delivered(accepted=11)

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

    def test_do_not_wait_for_what_comes_later(
        self, exporting: Callable[..., Exporting], receiver: Receiver
    ) -> None:
        """Spans that follow each other faster than the delay do not keep the first from leaving."""
        export = exporting(receiver.url, delay=0.3)
        for _ in range(200):
            export.span("s")
            if receiver.arrived.acquire(timeout=0.05):
                break
        assert receiver.bodies

    @pytest.mark.parametrize(("bad", "size"), [("s13", 30_000), ("\ud800", 100)])
    def test_a_bad_span_does_not_take_its_neighbours_down(
        self, exporting: Callable[..., Exporting], receiver: Receiver, bad: str, size: int
    ) -> None:
        """One that the collector refuses as too large, or whose name is no UTF-8, is lost; the rest arrive once."""
        receiver.limit = 20_000
        export = exporting(receiver.url, delay=60)
        for index in range(30):
            export.span(bad if index == 13 else f"s{index}", size=size if index == 13 else 100)
        assert not export.queue.flush(20)
        assert sorted(receiver.names) == sorted(f"s{i}" for i in range(30) if i != 13)
        assert (export.delivered().accepted, export.delivered().refused) == (29, 1)


class TestRetries:
    """Retries, and their end."""

    @pytest.mark.parametrize(
        ("status", "retry_after", "times"),
        [
            *((status, "0", 3) for status in (408, 429, 502, 503, 504)),
            (503, "soon", 1),
            (503, "Fri, 31 Feb 1999 07:07:07 GMT", 1),
            (503, "600", 1),
        ],
    )
    def test_until_the_collector_recovers(
        self,
        exporting: Callable[..., Exporting],
        receiver: Receiver,
        status: int,
        retry_after: str,
        times: int,
    ) -> None:
        """A request that may succeed later is sent again and arrives once; a header that is no time counts as none.

        A flush does not wait as long as the collector asks for.
        """
        receiver.answers.extend([(status, {"Retry-After": retry_after})] * times)
        export = exporting(receiver.url)
        export.span("patient")
        assert export.queue.flush(20)
        assert receiver.names == ["patient"]
        assert receiver.statuses == [*[status] * times, 200]

    def test_after_an_answer_that_does_not_come(
        self, exporting: Callable[..., Exporting], receiver: Receiver
    ) -> None:
        """A collector that hangs may recover as well; the span counts once."""
        receiver.held = threading.Event()
        export = exporting(receiver.url, timeout=0.2)
        export.span("patient")
        assert not export.queue.flush(0.3)
        for _ in range(2):
            assert receiver.arrived.acquire(timeout=30)
        receiver.held.set()
        assert export.queue.flush(20)
        assert export.delivered().accepted == 1

    def test_end_after_a_while(
        self, exporting: Callable[..., Exporting], receiver: Receiver
    ) -> None:
        """A request that the collector defers each time does not hold the others up for ever."""
        receiver.answers.extend([(503, {"Retry-After": "0"})] * 2)
        export = exporting(receiver.url, retry_for=0.0)
        for given_up in (1, 2):
            export.span("hopeless")
            assert not export.queue.flush(20)
            assert export.delivered().undelivered == given_up
        assert receiver.statuses == [503, 503]

    @pytest.mark.parametrize(
        ("asked", "least", "most"),
        [({"Retry-After": "7"}, (7, 7, 7), (7, 7, 7)), ({}, (0.8, 1.6, 3.2), (1.2, 2.4, 4.8))],
    )
    def test_wait_as_long_as_the_collector_asks_or_longer_each_time(
        self,
        exporting: Callable[..., Exporting],
        receiver: Receiver,
        monkeypatch: pytest.MonkeyPatch,
        asked: dict[str, str],
        least: Sequence[float],
        most: Sequence[float],
    ) -> None:
        waits: list[float] = []
        monkeypatch.setattr(SpanSender, "_pause", lambda _, seconds: waits.append(seconds))
        receiver.answers.extend([(503, asked)] * 3)
        export = exporting(receiver.url)
        export.span("patient")
        assert export.queue.flush(20)
        assert len(waits) == 3
        assert all(a <= b <= c for a, b, c in zip(least, waits, most, strict=True))


class TestFullQueue:
    """Spans that come faster than they leave."""

    @pytest.mark.parametrize(
        ("limit", "attributes"),
        [
            ({"queue_spans": 5}, {}),
            ({"queue_bytes": 55_000}, {"size": 10_000}),
            ({"queue_bytes": 55_000}, {"ids": ["x" * 1000] * 10}),
        ],
        ids=["spans", "bytes", "bytes of lists"],
    )
    def test_drops_and_counts(
        self,
        exporting: Callable[..., Exporting],
        receiver: Receiver,
        limit: dict[str, int],
        attributes: dict[str, Any],
    ) -> None:
        """While the collector hangs, the program goes on and new spans are dropped; so are those after the end.

        A span that leaves makes room for one.
        """
        held = receiver.held = threading.Event()
        export = exporting(receiver.url, request_spans=1, **limit)
        export.span("in flight", **attributes)
        assert receiver.arrived.acquire(timeout=30)
        for index in range(8):
            export.span(f"s{index}", **attributes)
        assert export.delivered().dropped == 3
        receiver.held = threading.Event()
        held.set()
        assert receiver.arrived.acquire(timeout=30)
        for name in ("s8", "s9"):
            export.span(name, **attributes)
        assert export.delivered().dropped == 4
        receiver.held.set()
        assert not export.queue.flush(20)
        assert receiver.names == ["in flight", "s0", "s1", "s2", "s3", "s4", "s8"]
        export.span("later", **attributes)
        assert export.queue.flush(20)
        export.queue.shutdown()
        export.span("too late")
        assert (export.delivered().accepted, export.delivered().dropped) == (8, 5)
        export.queue.start_over()  # as in a child that is forked after the end
        export.span("too late")
        assert export.delivered() == Delivered(dropped=1)

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


def test_without_a_thread_the_end_delivers(
    exporting: Callable[..., Exporting], receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An interpreter that shuts down starts no thread. Spans do not wait for the record of a run."""
    start = threading.Thread.start

    def starting(thread: threading.Thread) -> None:
        if thread.name == "mast-trace-export":
            raise RuntimeError("can't start new thread at interpreter shutdown")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", starting)
    receiver.logs_held = threading.Event()
    export = exporting(receiver.url, exit=0.5)
    export.queue.run_started(export.tracer.start_span("root"))  # type: ignore[arg-type]
    export.span("last")
    export.queue.shutdown()
    receiver.logs_held.set()
    assert export.delivered() == Delivered(accepted=1)
    assert receiver.names == ["last"]


def test_grpc_splits_what_is_too_large(exporting: Callable[..., Exporting]) -> None:
    """The promises hold over gRPC: RESOURCE_EXHAUSTED without a delay means too large."""
    pytest.importorskip("grpc")
    names: list[str] = []
    metadata: dict[str, str] = {}

    def receive(request: bytes, of: Any) -> bytes:
        metadata.update(of.invocation_metadata())
        sent = ExportTraceServiceRequest.FromString(request)
        names.extend(span.name for span in sent.resource_spans[0].scope_spans[0].spans)
        return b""

    with (
        pytest.MonkeyPatch.context() as environment,
        serving_grpc(receive, "TraceService", max_receive_message_length=20_000) as url,
    ):
        environment.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
        environment.setenv("OTEL_EXPORTER_OTLP_HEADERS", "Authorization=Bearer k1")
        export = exporting(url, delay=60)
        for index in range(10):
            export.span(f"s{index}", size=30_000 if index == 4 else 1_000)
        assert not export.queue.flush(20)
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
