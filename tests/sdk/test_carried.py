"""Work in threads belongs to the run that gave it, and to no other; calls outside of runs are runs of one call."""

from __future__ import annotations

import queue
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from opentelemetry import context, trace
from opentelemetry.sdk.trace import TracerProvider

import mast_trace
from mast_trace import semconv
from mast_trace._session import current_session
from mast_trace.spans import carried, current_run, telemetry

if TYPE_CHECKING:
    import contextvars
    from collections.abc import Callable, Iterator

    from mast_trace.testing import CapturedSpans

pytestmark = pytest.mark.mast_trace(frameworks=[])
RUNS = 1000


@pytest.fixture(autouse=True)
def _anew() -> Iterator[None]:
    carried._warned = False
    telemetry._kept_whole.clear()
    yield
    telemetry._kept_whole.clear()


def call(model: str) -> None:
    session = current_session()
    assert session is not None
    span = session.telemetry.chat(model, input=[mast_trace.messages.Message("hi", role="user")])
    answer = mast_trace.messages.Message("hello")
    span.response(answer, input_tokens=7, output_tokens=3, extra={"thought": "a greeting"})
    span.end()


def in_thread(function: Callable[[], object], **how: bool) -> None:
    thread = threading.Thread(target=function, **how)
    thread.start()
    thread.join()


def owners(spans: CapturedSpans) -> Counter[tuple[str, str]]:
    """The names of runs with the models that are called in them."""
    roots = {s.context.trace_id: s.name.split()[-1] for s in spans.spans if s.parent is None}
    return Counter(
        (roots[s.context.trace_id], s.name.split()[-1])
        for s in spans.spans
        if s.name.startswith("chat")
    )


def test_pools_and_consumers_that_outlive_runs_mix_none_up(captured_spans: CapturedSpans) -> None:
    """A pool and two consumers begin in the first run and serve all, several at once."""
    work: queue.Queue[tuple[str, threading.Event] | None] = queue.Queue()

    def consume() -> None:
        while item := work.get():
            call(f"queue-{item[0]}")
            item[1].set()

    consumers = [threading.Thread(target=consume, daemon=daemon) for daemon in (True, False)]
    with ThreadPoolExecutor(3) as pool, ThreadPoolExecutor(4) as requests:

        def request(name: str) -> None:
            with mast_trace.run(name):
                if not name:
                    for consumer in consumers:
                        consumer.start()
                pool.submit(call, f"pool-{name}").result()
                in_thread(lambda: call(f"thread-{name}"))
                if name != "0":
                    done = threading.Event()
                    work.put((name, done))
                    done.wait(30)

        with mast_trace.run("0"):
            for consumer in consumers:
                consumer.start()
            pool.submit(call, "pool-0").result()
        list(requests.map(request, map(str, range(1, RUNS))))
        pool.submit(call, "after").result()
        for _ in consumers:
            work.put(None)
    found = owners(captured_spans)
    for number in range(RUNS):
        assert found[(str(number), f"pool-{number}")] == 1
        assert found[(f"queue-{number}", f"queue-{number}")] == (number > 0)
        assert found[(str(number), f"thread-{number}")] == (number > 0)
    assert found["after", "after"] == 1
    assert found.total() == 3 * RUNS - 1


def test_a_plain_thread_belongs_to_the_run_while_that_is_open(
    captured_spans: CapturedSpans,
) -> None:
    over = threading.Event()

    def work() -> None:
        call("before")
        over.wait(30)
        call("after")

    with mast_trace.run("first"):
        thread = threading.Thread(target=work)
        thread.start()
        while not any("before" in s.name for s in captured_spans.spans):
            pass
    over.set()
    thread.join()
    assert set(owners(captured_spans)) == {("first", "before"), ("after", "after")}


def test_a_thread_of_a_part_belongs_to_the_whole_run(captured_spans: CapturedSpans) -> None:
    over = threading.Event()
    with mast_trace.run("whole"):
        with mast_trace.run("part"):
            thread = threading.Thread(target=lambda: over.wait(30) and call("later"))
            thread.start()
        over.set()
        thread.join()
    assert set(owners(captured_spans)) == {("whole", "later")}


def test_what_a_thread_derives_from_its_context_ends_with_the_run(
    captured_spans: CapturedSpans,
) -> None:
    over = threading.Event()

    def work() -> None:
        over.wait(30)
        context.attach(context.set_value("theirs", 1))
        call("after")

    with mast_trace.run("first"):
        thread = threading.Thread(target=work)
        thread.start()
    over.set()
    thread.join()
    assert set(owners(captured_spans)) == {("after", "after")}


def test_a_pool_that_a_run_has_made_works_for_others_while_it_is_open(
    captured_spans: CapturedSpans,
) -> None:
    with mast_trace.run("first"), ThreadPoolExecutor(1) as pool:
        pool.submit(call, "own").result()
        before, submit = threading.Event(), []
        other = threading.Thread(
            target=lambda: before.wait(30) and submit.append(pool.submit(call, "other").result()),
            daemon=True,
        )
        token = context.attach(context.Context())
        other.start()
        context.detach(token)
        before.set()
        other.join()
    assert set(owners(captured_spans)) == {("first", "own"), ("other", "other")}


def test_only_our_values_are_carried(captured_spans: CapturedSpans) -> None:
    """Threads do not inherit the traces of other tools, whose pools may be traced in another way."""
    seen: list[object] = []
    with mast_trace.run("first"), ThreadPoolExecutor(1) as pool:
        token = context.attach(context.set_value("theirs", 1))
        pool.submit(lambda: seen.append(context.get_value("theirs"))).result()
        in_thread(lambda: seen.append(context.get_value("theirs")))
        context.detach(token)
        pool.submit(call, "own").result()
    assert seen == [None, None]
    assert set(owners(captured_spans)) == {("first", "own")}


def test_a_helper_of_a_daemon_belongs_to_its_run_and_a_class_of_its_own_does_not(
    captured_spans: CapturedSpans,
) -> None:
    """A service that answers in daemon threads starts helpers that are daemons, too."""

    class Service(threading.Thread):
        pass

    def request() -> None:
        with mast_trace.run("request"):
            in_thread(lambda: call("helper"), daemon=True)
            service = Service(target=lambda: call("service"), daemon=True)
            service.start()
            service.join()

    in_thread(request, daemon=True)
    assert set(owners(captured_spans)) == {("request", "helper"), ("service", "service")}


def test_a_call_after_its_run_is_no_missing_one(
    captured_spans: CapturedSpans, caplog: pytest.LogCaptureFixture
) -> None:
    over = threading.Event()
    with mast_trace.run("first"):
        run = current_run()
        thread = threading.Thread(target=lambda: over.wait(30) and call("later"), daemon=True)
        thread.start()
    over.set()
    thread.join()
    assert run is not None
    assert set(owners(captured_spans)) == {("later", "later")}
    assert caplog.records == []


def test_a_service_inherits_no_run_where_threads_inherit_the_context(
    captured_spans: CapturedSpans, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python 3.14 without a GIL; elsewhere its way of starting a thread is done by hand."""
    monkeypatch.setattr(carried, "_INHERITED", True)

    class Service(threading.Thread):
        _context: contextvars.Context | None = None

        def run(self) -> None:
            assert self._context is not None
            self._context.run(call, "asked")

    with mast_trace.run("first"):
        service = Service()
        service.start()
        service.join()
    assert set(owners(captured_spans)) == {("asked", "asked")}


def test_a_run_whose_service_calls_a_model_says_that_calls_may_be_missing(
    captured_spans: CapturedSpans, caplog: pytest.LogCaptureFixture
) -> None:
    with mast_trace.run("first"):
        in_thread(lambda: [call("lost"), call("lost")], daemon=True)
    with mast_trace.run("second"):
        call("kept")
    marked = [s.name for s in captured_spans.spans if semconv.CALLS_MISSING in s.attributes]
    assert marked == ["invoke_workflow first"]
    assert len(caplog.records) == 1


def test_a_call_outside_of_runs_is_a_run_of_its_own_kind(captured_spans: CapturedSpans) -> None:
    """In another tool's trace it is a span like others where they are exported together, else it is linked."""
    elsewhere = TracerProvider().get_tracer("other").start_span("request")
    session = current_session()
    assert session is not None
    together = session.provider.get_tracer("other").start_span("request")
    for around in (trace.INVALID_SPAN, elsewhere, together):
        with trace.use_span(around):
            call("m")
    alone, linked, inside = [s for s in captured_spans.spans if s.name == "chat m"]
    assert [s.attributes.get(semconv.RUN_KIND) for s in (alone, linked, inside)] == ["call"] * 2 + [
        None
    ]
    assert (alone.parent, linked.parent) == (None, None)
    assert [link.context for link in linked.links] == [elsewhere.get_span_context()]
    assert inside.parent == together.get_span_context()


def test_of_very_many_only_some_keep_their_texts_and_all_their_tokens(
    captured_spans: CapturedSpans,
) -> None:
    for _ in range(100):
        call("m")
    with mast_trace.run("r"):
        call("m")
    spans = [s for s in captured_spans.spans if s.name == "chat m"]
    assert {s.attributes[semconv.INPUT_TOKENS] for s in spans} == {7}
    for texts in (semconv.INPUT_MESSAGES, semconv.OUTPUT_MESSAGES, semconv.RESPONSE_EXTRA):
        whole = [s for s in spans if texts in s.attributes]
        assert (len(spans), len(whole)) == (101, telemetry._WHOLE_CALLS + 1)


def test_it_is_off_by_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    for value, on in (("false", False), ("true", True)):
        monkeypatch.setenv("MAST_TRACE_CARRY_RUNS", value)
        mast_trace.instrument(frameworks=[], tracer_provider=TracerProvider())
        assert carried._on is on
        mast_trace.uninstrument()
