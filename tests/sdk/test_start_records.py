"""A run is known from its beginning, whatever becomes of its process."""

from __future__ import annotations

import json
import logging
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import threading
from concurrent import futures
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import Decision, Sampler, SamplingResult
from receiver import serving_grpc

import mast_trace
from mast_trace import semconv
from mast_trace._settings import SDKSettings
from mast_trace.delivery import start_records
from mast_trace.delivery.encoding import DeliveryLimits
from mast_trace.delivery.provider import make_provider
from mast_trace.delivery.span_queue import SpanQueue
from mast_trace.delivery.start_records import StartRecords, snapshot
from mast_trace.delivery.transport import Fate, open_transport
from mast_trace.messages import Message
from mast_trace.spans import Telemetry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
    from opentelemetry.sdk.trace import ReadableSpan
    from receiver import Receiver

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")


@pytest.fixture
def instrumented(receiver: Receiver) -> Iterator[Callable[..., None]]:
    """Turns recording on, towards the receiver."""

    def on(**options: object) -> None:
        mast_trace.instrument(frameworks=[], endpoint=receiver.url, service_name="desk", **options)  # type: ignore[arg-type]

    yield on
    mast_trace.uninstrument()


def attributes(record: LogRecord) -> dict[str, str]:
    return {each.key: each.value.string_value for each in record.attributes}


def asked(record: LogRecord) -> str:
    (message,) = json.loads(attributes(record)[semconv.INPUT_MESSAGES])
    return str(message["parts"][0]["content"])


class TestRecord:
    """The record that leaves at the beginning of a run."""

    def test_has_the_ids_the_name_and_the_task_of_the_root(
        self, receiver: Receiver, instrumented: Callable[..., None]
    ) -> None:
        """Before anything has ended."""
        instrumented()
        with mast_trace.run("refund", input="Refund order 7.", conversation_id="c-1"):
            assert mast_trace.flush()
            assert (len(receiver.logs), receiver.spans) == (1, [])
        mast_trace.flush()
        (record,), (root,) = receiver.logs, receiver.spans
        assert record.event_name == "mast.run.start"
        assert (record.trace_id, record.span_id) == (root.trace_id, root.span_id)
        assert record.time_unix_nano == root.start_time_unix_nano
        assert record.observed_time_unix_nano == root.start_time_unix_nano
        assert (record.severity_number, record.severity_text) == (9, "INFO")
        assert record.flags == root.flags & 0xFF
        assert record.body.string_value == root.name == "invoke_workflow refund"
        assert attributes(record)[semconv.WORKFLOW_NAME] == "refund"
        assert attributes(record)[semconv.CONVERSATION_ID] == "c-1"
        assert asked(record) == "Refund order 7."
        resource = receiver.log_requests[0].resource_logs[0].resource
        found = {each.key: each.value.string_value for each in resource.attributes}
        assert (found["service.name"], found["telemetry.distro.name"]) == ("desk", "mast-trace")

    @pytest.mark.parametrize(
        ("options", "shown"),
        [({"redact": lambda text: text.replace("7", "#")}, "#"), ({"capture_content": False}, "")],
    )
    def test_holds_no_text_that_a_span_would_not(
        self,
        receiver: Receiver,
        instrumented: Callable[..., None],
        options: dict[str, Any],
        shown: str,
    ) -> None:
        """Redacted texts are redacted in the record as well; without capture it holds none."""
        instrumented(**options)
        with mast_trace.run("refund", input="Refund order 7."):
            mast_trace.flush()
        (record,) = receiver.logs
        assert b"order 7" not in record.SerializeToString()
        assert (semconv.INPUT_MESSAGES in attributes(record)) == bool(shown)
        if shown:
            assert asked(record) == f"Refund order {shown}."

    def test_is_sent_for_a_run_and_not_for_its_parts(
        self, receiver: Receiver, instrumented: Callable[..., None]
    ) -> None:
        """A run inside of another is known by that one."""
        instrumented()
        with mast_trace.run("outer"), mast_trace.run("inner"):
            mast_trace.flush()
        assert [record.body.string_value for record in receiver.logs] == ["invoke_workflow outer"]

    def test_is_not_needed_once_the_root_has_ended(
        self, receiver: Receiver, instrumented: Callable[..., None]
    ) -> None:
        """Records that wait behind a slow request omit runs that are over."""
        receiver.logs_held = threading.Event()
        instrumented()

        def short() -> None:
            with mast_trace.run("short"):
                pass

        with mast_trace.run("first"):
            assert receiver.logs_arrived.acquire(timeout=30)
            with futures.ThreadPoolExecutor() as pool:  # its threads know nothing of this run
                pool.submit(short).result()
            receiver.logs_held.set()
            mast_trace.flush()
        assert [record.body.string_value for record in receiver.logs] == ["invoke_workflow first"]


class TestEndpoint:
    """Endpoints that take no log records."""

    @pytest.mark.parametrize("status", [404, 405, 501, 500, 400, 301])
    def test_spans_arrive_all_the_same(
        self,
        receiver: Receiver,
        instrumented: Callable[..., None],
        caplog: pytest.LogCaptureFixture,
        status: int,
    ) -> None:
        """Spans arrive all the same, and the log mentions it at most once, at debug level."""
        caplog.set_level(logging.DEBUG, "mast_trace")
        receiver.log_status = status
        instrumented()
        for name in ("one", "two", "three"):
            with mast_trace.run(name):
                assert mast_trace.flush()
        assert mast_trace.flush()
        assert len(receiver.spans) == 3
        assert [r.levelno for r in caplog.records if r.levelno > logging.DEBUG] == []
        found = [r for r in caplog.records if "takes no log records" in r.message]
        refused = status != 400  # it may be about the content of the record
        assert len(found) == refused
        assert len(receiver.log_requests) == (1 if refused else 3)

    @pytest.mark.parametrize("status", [429, 503])
    def test_one_that_is_busy_is_left_in_peace(
        self, receiver: Receiver, instrumented: Callable[..., None], status: int
    ) -> None:
        """The record is tried again when spans have arrived, a few times."""
        receiver.log_status = status
        instrumented()
        with mast_trace.run("long"):
            for _ in range(9):
                mast_trace.message("a", "b", "c")
                assert mast_trace.flush()
        assert len(receiver.log_requests) == 3

    def test_a_collector_that_comes_late_learns_of_the_run(
        self, receiver: Receiver, instrumented: Callable[..., None]
    ) -> None:
        """The record waits for spans to find it."""
        receiver.log_status = 503
        instrumented()
        with mast_trace.run("long"):
            assert receiver.logs_arrived.acquire(timeout=30)
            mast_trace.flush()
            receiver.log_status = 200
            mast_trace.message("a", "b", "c")
            assert receiver.logs_arrived.acquire(timeout=30)
            assert mast_trace.flush()
            mast_trace.message("a", "b", "d")
            assert mast_trace.flush()
            assert len(receiver.log_requests) == 2

    def test_an_address_of_traces_that_tells_of_no_other_gets_no_records(
        self,
        receiver: Receiver,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """The address for logs cannot be derived."""
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", receiver.url + "/v1/traces/")
        mast_trace.instrument(frameworks=[])
        try:
            with mast_trace.run("one"):
                mast_trace.flush()
        finally:
            mast_trace.uninstrument()
        assert (len(receiver.spans), receiver.logs) == (1, [])

    def test_a_provider_of_the_application_is_told_nothing(self, receiver: Receiver) -> None:
        """An application's provider exports by itself; nothing is sent beside it."""
        mast_trace.instrument(frameworks=[], tracer_provider=TracerProvider())
        try:
            with mast_trace.run("one"):
                mast_trace.flush()
        finally:
            mast_trace.uninstrument()
        assert receiver.logs == []

    def test_grpc_takes_records_too(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """By the service of that signal."""
        pytest.importorskip("grpc")
        arrived: list[bytes] = []
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
        with serving_grpc(lambda request, _: arrived.append(request) or b"", "LogsService") as url:
            mast_trace.instrument(frameworks=[], endpoint=url)
            with mast_trace.run("one"):
                mast_trace.flush()
            mast_trace.uninstrument()
        assert b"invoke_workflow one" in arrived[0]


class TestEndOfRun:
    """The spans of a run that has ended do not wait for others."""

    def test_leave_at_once(self, receiver: Receiver) -> None:
        """Open and ended runs leave soon, though spans may wait for a minute; what ends soon after shares a request and has no record."""
        settings = SDKSettings.resolve(endpoint=receiver.url)
        limits = DeliveryLimits(delay=60.0, pace=2.0)
        queue = SpanQueue(receiver.url, lambda: open_transport(settings), limits=limits)
        telemetry = Telemetry(make_provider("desk", queue))
        try:
            run = telemetry.run("refund")
            telemetry.message("a", ["b"], Message("c"), parent=run.context)
            assert receiver.logs_arrived.acquire(timeout=30)
            assert receiver.spans == []
            run.end()
            assert receiver.arrived.acquire(timeout=30)
            assert receiver.names == ["send_message a", "invoke_workflow refund"]
            for name in ("next", "last"):
                telemetry.run(name).end()
                assert not receiver.arrived.acquire(timeout=0.3)
        finally:
            queue.shutdown()
        assert receiver.names[2:] == ["invoke_workflow next", "invoke_workflow last"]
        assert len(receiver.accepted) == 2
        assert [record.body.string_value for record in receiver.logs] == ["invoke_workflow refund"]

    def test_of_a_run_that_is_not_sampled_nothing_leaves(self, receiver: Receiver) -> None:
        """A sampler may have spans recorded for others' processors alone."""

        class RecordOnly(Sampler):
            def should_sample(self, *_args: object, **_kwargs: object) -> SamplingResult:
                return SamplingResult(Decision.RECORD_ONLY)

            def get_description(self) -> str:
                return "record only"

        settings = SDKSettings.resolve(endpoint=receiver.url)
        queue = SpanQueue(receiver.url, lambda: open_transport(settings))
        provider = TracerProvider(sampler=RecordOnly())
        provider.add_span_processor(queue)
        root = provider.get_tracer("test").start_span("refund")
        queue.run_started(root)  # type: ignore[arg-type]
        root.end()
        queue.shutdown()
        assert (receiver.spans, receiver.logs) == ([], [])

    def test_many_runs_share_requests(self, receiver: Receiver) -> None:
        """Neither beginnings nor ends of runs have a request each."""
        mast_trace.instrument(frameworks=[], endpoint=receiver.url)
        receiver.held = receiver.logs_held = threading.Event()
        for _ in range(100):
            with mast_trace.run("short"):
                pass
        receiver.held.set()
        assert mast_trace.flush()
        mast_trace.uninstrument()
        assert len(receiver.spans) == 100
        assert len(receiver.bodies) + len(receiver.log_requests) <= 4


class TestRecordsThatWait:
    """Beginnings of runs, while no collector takes them."""

    @staticmethod
    def begun(records: StartRecords, *names: str, size: int = 0) -> list[ReadableSpan]:
        """Add the roots of runs of these names."""
        tracer = TracerProvider().get_tracer("test")
        spans = [tracer.start_span(name, attributes={"text": "x" * size}) for name in names]
        roots = [snapshot(span) for span in spans]  # type: ignore[arg-type]
        for root in roots:
            records.add(root)
        return roots

    @staticmethod
    def taken(records: StartRecords, now: float = 0.0) -> list[str]:
        return [span.name for span in records.take(now)]

    @pytest.mark.parametrize(
        ("limits", "kept"), [({"request_bytes": 10_000}, "789"), ({"request_spans": 5}, "56789")]
    )
    def test_take_a_bounded_room(
        self, monkeypatch: pytest.MonkeyPatch, limits: dict[str, int], kept: str
    ) -> None:
        """The oldest gives way, and what remains fits into one request: after each way of leaving anew."""
        monkeypatch.setattr(start_records, "_PAUSE", 0.0)
        records = StartRecords(DeliveryLimits(**limits))
        for _ in range(2):
            for root in self.begun(records, *"abcdef", size=3000):
                assert records.ended(root)
                assert not records.ended(root)
            self.begun(records, *"0123456789", size=3000)
            assert self.taken(records) == list(kept)
            records.settle(Fate.UNREACHABLE)
            assert records.due_in(0.0) is None
            records.spans_arrived()
            assert self.taken(records, now=1.0) == list(kept)
            self.begun(records, "waiting", size=3000)
            records.settle(Fate.REFUSED)
            assert records.take(now=2.0) == []

    def test_say_what_was_known_when_the_run_began(self) -> None:
        """The program goes on, and may write on its span while the record is encoded."""
        root = TracerProvider().get_tracer("test").start_span("refund", attributes={"a": 1})
        record = snapshot(root)  # type: ignore[arg-type]
        root.set_attribute("b", 2)
        assert dict(record.attributes or {}) == {"a": 1}

    def test_of_a_run_that_ended_on_the_way_are_not_sent_again(self) -> None:
        """Its root is exported meanwhile; the records of others wait."""
        records = StartRecords(DeliveryLimits())
        ended, _ = self.begun(records, "ended", "open")
        assert self.taken(records) == ["ended", "open"]
        records.ended(ended)
        records.settle(Fate.LATER)
        records.spans_arrived()
        assert self.taken(records, now=1.0) == ["open"]

    def test_are_not_kept_for_an_endpoint_that_takes_none(self) -> None:
        """For a while, in which their runs are known from their spans."""
        records = StartRecords(DeliveryLimits())
        self.begun(records, "refused")
        records.take(now=0.0)
        records.settle(Fate.REFUSED)
        (late,) = self.begun(records, "late")
        assert (records.due_in(9.0), records.take(now=9.0)) == (None, [])
        assert records.ended(late)

    def test_are_kept_where_failures_do_not_follow_each_other(self) -> None:
        """An endpoint that is busy now and then takes them in the end."""
        records = StartRecords(DeliveryLimits())
        for _ in range(5):
            self.begun(records, "again")
            for fate in (Fate.LATER, Fate.ACCEPTED):
                assert self.taken(records) == ["again"]
                records.settle(fate)
                records.spans_arrived()

    def test_remember_a_bounded_number_of_open_runs(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The end of the oldest goes unnoticed."""
        monkeypatch.setattr(start_records, "_MOST_ROOTS", 2)
        records = StartRecords(DeliveryLimits())
        assert [records.ended(root) for root in self.begun(records, "a", "b", "c")] == [
            False,
            True,
            True,
        ]

    def test_are_not_waited_for_by_who_asked_before_they_came(self) -> None:
        """A flush does not wait for records that come later; in a busy program it would never end."""
        records = StartRecords(DeliveryLimits())
        self.begun(records, "before")
        asked = records.added
        assert records.pending(asked)
        records.take(now=0.0)
        self.begun(records, "after")
        assert records.pending(asked)
        records.settle(Fate.ACCEPTED)
        assert not records.pending(asked)
        assert records.pending(records.added)

    def test_a_single_one_is_kept_however_large(self) -> None:
        """Return whether it fits, the endpoint decides."""
        records = StartRecords(DeliveryLimits(request_bytes=10))
        self.begun(records, "large")
        assert self.taken(records) == ["large"]


class TestKilledProcess:
    """Real programs that do not end by themselves."""

    PROGRAM = """
        import os, sys, time
        import mast_trace
        mast_trace.instrument(frameworks=[], endpoint=sys.argv[1], service_name="killed")
        with mast_trace.run("refund", input="Refund order 7."):
            print("begun", flush=True)
            {body}
        """

    def start(self, folder: Path, receiver: Receiver, body: str) -> subprocess.Popen[str]:
        script = folder / "program.py"
        script.write_text(textwrap.dedent(self.PROGRAM).format(body=body))
        command = [sys.executable, str(script), receiver.url]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    @pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
    def test_has_told_of_its_run(
        self, tmp_path: Path, receiver: Receiver, number: signal.Signals
    ) -> None:
        """The default action of the signals is what it was."""
        program = self.start(tmp_path, receiver, "time.sleep(60)")
        assert program.stdout is not None
        assert program.stdout.readline() == "begun\n"
        assert receiver.logs_arrived.acquire(timeout=30)
        program.send_signal(number)
        assert program.wait(30) == -number
        program.stdout.close()
        assert [asked(record) for record in receiver.logs] == ["Refund order 7."]

    def test_has_told_of_what_ended_without_a_flush(
        self, tmp_path: Path, receiver: Receiver
    ) -> None:
        """Ended spans wait for a second, and not for the end of the run."""
        program = self.start(
            tmp_path, receiver, "mast_trace.message('a', 'b', 'c'); time.sleep(60)"
        )
        assert receiver.arrived.acquire(timeout=30)
        program.kill()
        program.communicate(timeout=30)
        assert receiver.names == ["send_message a"]

    def test_os_exit_right_after_a_flush_loses_nothing(
        self, tmp_path: Path, receiver: Receiver
    ) -> None:
        """The documentation promises this."""
        body = "mast_trace.message('a', 'b', 'c'); mast_trace.flush(); os._exit(3)"
        program = self.start(tmp_path, receiver, body)
        assert program.wait(30) == 3
        assert program.stdout is not None
        program.stdout.close()
        assert receiver.names == ["send_message a"]
        assert len(receiver.logs) == 1

    @needs_fork
    def test_workers_of_a_pool_have_told_of_every_run_that_they_returned(
        self, tmp_path: Path, receiver: Receiver
    ) -> None:
        """`with Pool()` ends its workers by SIGTERM as soon as it has the results, however long sending takes."""
        script = tmp_path / "pool.py"
        script.write_text(
            textwrap.dedent("""
            import multiprocessing, sys, time
            import mast_trace
            from mast_trace.delivery import worker

            encode = worker.encode
            worker.encode = lambda spans: time.sleep(0.3) or encode(spans)

            def work(number):
                with mast_trace.run("run", input=f"Task {number}."):
                    mast_trace.message("a", "b", str(number))
                return number

            if __name__ == "__main__":
                mast_trace.instrument(frameworks=[], endpoint=sys.argv[1])
                with multiprocessing.get_context("fork").Pool(3) as pool:
                    assert pool.map(work, range(7)) == list(range(7))
            """)
        )
        done = subprocess.run([sys.executable, str(script), receiver.url], timeout=60, check=False)
        assert done.returncode == 0
        assert receiver.names.count("invoke_workflow run") == 7
        assert receiver.names.count("send_message a") == 7


def test_a_child_of_a_fork_does_not_tell_of_its_parents_run(
    receiver: Receiver, instrumented: Callable[..., None]
) -> None:
    """Each run's beginning is recorded by the process in which it began."""
    if not hasattr(os, "fork"):
        pytest.skip("this system does not fork")
    instrumented()
    with mast_trace.run("parent"):
        mast_trace.flush()
        child = multiprocessing.get_context("fork").Process(target=mast_trace.flush)
        child.start()
        child.join(30)
    assert child.exitcode == 0
    assert [record.body.string_value for record in receiver.logs] == ["invoke_workflow parent"]
