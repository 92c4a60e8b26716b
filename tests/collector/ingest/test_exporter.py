"""From the spool to the database: nothing is lost, doubled or held up."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
from ingest_support import body_of, request_of, stored_names
from opened_spool import begin, flip, put, take

from mast_trace.exceptions import StorageError
from mast_trace_collector.config import CollectorConfig
from mast_trace_collector.dead_letters import DeadLetters
from mast_trace_collector.exporter import Exporter
from mast_trace_collector.storage import span_writer
from mast_trace_collector.storage.span_writer import OtlpTable, PoisonError, SpanWriter
from mast_trace_collector.telemetry import CollectorMetrics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from mast_trace_collector.dead_letters import DeadLetter
    from mast_trace_collector.spool import Segment
    from mast_trace_collector.storage import Store


class TroubledWriter(SpanWriter):
    """The real writer, behind a step where a test can make something go wrong."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.trouble: Callable[[Sequence[bytes]], None] = lambda _: None
        self.attempts: list[tuple[str, int]] = []

    def write(self, requests: Sequence[bytes], **options: Any) -> int:
        self.attempts.append((options["token"], len(requests)))
        self.trouble(requests)
        return super().write(requests, **options)


class Line:
    """A spool, a exporter and what they report."""

    def __init__(self, folder: Path, store: Store) -> None:
        self.config = CollectorConfig(retry_initial_seconds=0.001, retry_max_seconds=0.01)
        self.metrics = CollectorMetrics()
        self.letters = DeadLetters(folder / "dead-letters")
        self.store = store
        self.writer = TroubledWriter(store)
        self.spool = begin(folder / "spool")
        self.exporter = Exporter(self.spool, self.writer, self.letters, self.config, self.metrics)

    def send(self, *names: str) -> None:
        for name in names:
            put(self.spool, body_of(name))

    def drain(self) -> None:
        """Store until nothing waits."""
        self.exporter.start()
        wait_for(lambda: self.spool.waiting_bytes == 0)

    def stored(self) -> list[str]:
        return stored_names(self.store)

    def count(self, name: str) -> float:
        return self.metrics.value(f"{name}_total")

    def letter(self) -> DeadLetter:
        """The only dead letter."""
        (letter,) = self.letters.letters()
        return letter

    def stop(self, *, drain: bool = True) -> None:
        self.spool.close()
        self.exporter.stop(20.0, drain=drain)
        self.spool.release()


@pytest.fixture
def line(tmp_path: Path, store: Store) -> Iterator[Line]:
    line = Line(tmp_path, store)
    yield line
    line.stop(drain=False)


def wait_for(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, "it did not come about in time"
        time.sleep(0.005)


def away(calls: int) -> Callable[[Sequence[bytes]], None]:
    """The database is away for the first calls."""
    left = iter(range(calls))

    def check(_: Sequence[bytes]) -> None:
        if next(left, None) is not None:
            raise StorageError("connection refused")

    return check


def poison(*marks: bytes) -> Callable[[Sequence[bytes]], None]:
    """Requests that hold one of the marks can never be stored."""

    def check(requests: Sequence[bytes]) -> None:
        for index, request in enumerate(requests):
            if any(mark in request for mark in marks):
                raise PoisonError(index, "it does not fit")

    return check


class TestStoring:
    """Sent spans are stored, through failures."""

    def test_a_segment_is_one_insert_and_leaves_the_spool(self, line: Line) -> None:
        line.send("a", "b", "c")
        line.drain()
        assert line.stored() == ["a", "b", "c"]
        assert [count for _, count in line.writer.attempts] == [3]
        assert line.count("stored_spans") == 3

    def test_the_engine_reads_it_itself(self, line: Line, caplog: pytest.LogCaptureFixture) -> None:
        line.writer._parse_from = 100
        line.send("a", "b", "c")
        line.drain()
        assert line.stored() == ["a", "b", "c"]
        assert line.count("stored_spans") == 3
        if line.store.embedded_path:
            assert line.writer.attempts == []
        assert not caplog.records

    def test_a_segment_damaged_while_waiting_is_stored_in_part(self, line: Line) -> None:
        line.writer._parse_from = 100
        line.send("a", "b", "c")
        line.spool.seal()
        (path,) = (line.spool._directory).glob("*.log")
        flip(path, path.read_bytes().rindex(b"value"))
        line.drain()
        assert len(line.stored()) == 2
        assert line.count("stored_spans") == 2
        assert line.count("damaged_spans") == 1
        assert line.spool.damaged_files == 1

    def test_a_segment_that_is_gone_holds_nothing_up(self, line: Line) -> None:
        line.send("a")
        line.spool.seal()
        for path in line.spool._directory.glob("*.log"):
            path.unlink()
        line.send("b")
        line.drain()
        assert line.stored() == ["b"]
        assert line.count("damaged_spans") == 1

    def test_nested_spans_are_given_once(self, line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
        line.writer._parse_from = 100
        given = []
        monkeypatch.setattr(OtlpTable, "write", lambda *arguments: given.append(arguments))
        nested = request_of("nested")
        attributes = nested.resource_spans[0].scope_spans[0].spans[0].attributes
        attributes.add(key="map").value.kvlist_value.values.add(key="a").value.int_value = 1
        put(line.spool, nested.SerializeToString())
        line.send("a")
        line.exporter.start()
        wait_for(lambda: line.stored() == ["a", "nested"])
        assert given == []

    def test_a_defect_leaves_another_way(self, line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
        def defect(*_: object, **__: object) -> bool:
            raise KeyError("a defect")

        monkeypatch.setattr(line.writer, "write_file", defect)
        line.send("a")
        line.exporter.start()
        wait_for(lambda: line.stored() == ["a"])

    @pytest.mark.parametrize("way", ["file", "whole", "one by one"])
    @pytest.mark.parametrize("stored", [False, True], ids=["away", "answer lost"])
    def test_a_failing_database_loses_nothing_and_doubles_nothing(
        self,
        line: Line,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
        way: str,
        stored: bool,
    ) -> None:
        times = 2 if stored else 6  # once more than is borne in a row
        failing = iter(range(times))
        trouble, tokens = [], []
        real = getattr(line.writer, "write_file" if way == "file" else "write")

        def storing(requests: Any, **options: Any) -> Any:
            if way == "one by one" and len(requests) > 1:
                raise KeyError("a defect")
            trouble.append(line.exporter.trouble)
            written = real(requests, **options) if stored else None
            if (way == "file" or b"last" in requests[-1]) and next(failing, None) is not None:
                raise StorageError("timeout")
            tokens.append(options["token"])
            return written if stored else real(requests, **options)

        monkeypatch.setattr(line.writer, real.__name__, storing)
        line.writer._parse_from = 100 if way == "file" else 10**9
        line.send("first", "last")
        line.drain()
        assert (line.stored(), len(line.letters)) == (["first", "last"], 0)
        assert set(trouble) == {"", "timeout"}
        assert line.exporter.trouble == ""
        assert line.count("insert_failures") == times
        assert sum("is not stored yet" in each for each in caplog.messages) == 1
        assert line.count("stored_spans") == 2
        assert len(set(tokens)) == (2 if way == "one by one" else 1)

    def test_pauses_double_up_to_the_longest(self, line: Line) -> None:
        line.exporter._config = CollectorConfig(retry_initial_seconds=1, retry_max_seconds=10)
        pauses = {failures: line.exporter._pause(failures) for failures in (1, 2, 4, 5, 5000)}
        for failures, most in {1: 1, 2: 2, 4: 8, 5: 10, 5000: 10}.items():
            assert most / 2 <= pauses[failures] <= most

    def test_a_segment_that_always_fails_lets_others_pass(self, line: Line) -> None:
        def trouble(requests: Sequence[bytes]) -> None:
            if any(b"stuck" in request for request in requests):
                raise StorageError("memory limit exceeded")

        line.writer.trouble = trouble
        line.send("stuck")
        line.spool.seal()
        line.send("fine")
        line.exporter.start()
        wait_for(lambda: line.stored() == ["fine"])
        wait_for(lambda: line.spool.waiting_items == 1)

    def test_other_errors_end_nothing(self, line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
        real = line.spool.next_segment
        errors = iter([RuntimeError("a defect")])

        def next_segment(timeout: float) -> Segment | None:
            for error in errors:
                raise error
            return real(timeout)

        monkeypatch.setattr(line.spool, "next_segment", next_segment)
        line.send("a")
        line.exporter.start()
        wait_for(lambda: line.stored() == ["a"])

    def test_lanes_store_at_the_same_time(self, line: Line) -> None:
        both = threading.Barrier(2)

        def meet(_: Sequence[bytes]) -> None:
            both.wait(timeout=20)

        line.writer.trouble = meet
        line.exporter = Exporter(
            line.spool, line.writer, line.letters, line.config, line.metrics, lanes=2
        )
        for name in ("a", "b"):
            line.send(name)
            line.spool.seal()
        line.drain()
        assert line.stored() == ["a", "b"]

    def test_stopping_does_not_wait_for_a_database_that_is_away(self, line: Line) -> None:
        line.writer.trouble = away(10**9)
        line.send("a")
        line.exporter.start()
        wait_for(lambda: line.exporter.trouble)
        line.stop()
        assert line.spool.waiting_items == 1

    @pytest.mark.parametrize(("timeout", "left"), [(20.0, 1), (0.01, 2)])
    def test_stopping_waits_for_a_begun_insert(self, line: Line, timeout: float, left: int) -> None:
        """The database is closed next, and must not be closed under an insert.

        The folder is let go after the time: from then on the segment is another process's.
        """
        begun, go_on = threading.Event(), threading.Event()

        def trouble(_: Sequence[bytes]) -> None:
            begun.set()
            go_on.wait(20)

        line.writer.trouble = trouble
        line.send("a")
        line.spool.seal()
        line.send("b")
        line.exporter.start()
        assert begun.wait(20)
        stopping = threading.Thread(
            target=line.exporter.stop, args=(timeout,), kwargs={"drain": False}
        )
        stopping.start()
        stopping.join(0 if left == 1 else 20)
        go_on.set()
        stopping.join(20)
        wait_for(lambda: not any(thread.is_alive() for thread in line.exporter._threads))
        assert line.stored() == ["a"]
        assert line.spool.waiting_items == left

    def test_stopping_may_leave_everything(self, line: Line, tmp_path: Path, store: Store) -> None:
        line.send("a")
        line.stop(drain=False)
        assert line.stored() == []
        after = Line(tmp_path, store)
        after.exporter.start()
        after.stop()
        assert after.stored() == ["a"]


def test_a_segment_closed_at_the_end_is_stored(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the spool's answer, that there is nothing, and what the exporter makes of it."""
    answer = line.spool.next_segment

    def nothing_yet(_: float) -> None:
        monkeypatch.setattr(line.spool, "next_segment", answer)
        line.send("a")
        line.spool.close()
        line.exporter._draining = True
        line.exporter._stopping.set()

    monkeypatch.setattr(line.spool, "next_segment", nothing_yet)
    line.exporter.start()
    wait_for(lambda: line.stored() == ["a"])
    line.exporter._draining = False


class TestDeadLetters:
    """A request that can never be stored is set aside with its reason; nothing waits for it."""

    def test_poison_is_set_aside_and_its_neighbours_are_stored(self, line: Line) -> None:
        line.writer.trouble = poison(b"bad1", b"bad2")
        line.send("a", "bad1", "b", "bad2", "c")
        line.drain()
        assert line.stored() == ["a", "b", "c"]
        letters = line.letters.letters()
        assert [letter.reason for letter in letters] == ["it does not fit"] * 2
        payloads = [line.letters.payload(letter.id) for letter in letters]
        assert payloads == [body_of("bad1"), body_of("bad2")]
        assert line.count("dead_lettered_spans") == 2
        assert line.count("stored_spans") == 3

    def test_what_was_stored_before_poison_is_not_stored_by_another_way(
        self, line: Line, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """ClickHouse would parse what is left, but knows nothing of what was laid out by us."""
        monkeypatch.setattr(span_writer, "COLUMNS_BYTES", 1)
        monkeypatch.setattr(line.writer, "_parse_from", 1)
        monkeypatch.setattr(line.writer, "write_file", lambda *_, **__: None)  # as on a server
        line.store.command("ALTER TABLE otel_traces ADD CONSTRAINT c CHECK SpanName != 'bad'")
        try:
            line.send("a", "bad", "b")
            line.drain()
        finally:
            # Other tests use the same store.
            line.store.command("ALTER TABLE otel_traces DROP CONSTRAINT c")
        assert line.stored() == ["a", "b"]
        assert line.letters.payload(line.letter().id) == body_of("bad")

    def test_bytes_that_are_no_request_are_poison(self, line: Line) -> None:
        put(line.spool, b"\xff\xff", items=0)
        line.send("a")
        line.drain()
        assert line.stored() == ["a"]
        assert (line.letters.payload(line.letter().id), line.letter().items) == (b"\xff\xff", 0)

    def test_poison_alone_is_an_end(self, line: Line, caplog: pytest.LogCaptureFixture) -> None:
        line.writer.trouble = poison(b"bad")
        line.send("bad1", "bad2")
        line.drain()
        told = [vars(each) for each in caplog.records if hasattr(each, "dead_letter")]
        letters = [(letter.id, letter.items) for letter in line.letters.letters()]
        assert [(each["dead_letter"], each["spans"]) for each in told] == letters
        assert len(letters) == 2

    def test_a_defect_set_off_by_one_request_harms_only_that(self, line: Line) -> None:
        def trouble(requests: Sequence[bytes]) -> None:
            if any(b"bad" in request for request in requests):
                raise KeyError("a defect")

        line.writer.trouble = trouble
        line.send("a", "bad", "b")
        line.drain()
        assert line.stored() == ["a", "b"]
        assert line.letter().reason == "KeyError('a defect')"
        assert line.count("dead_lettered_spans") == 1
        assert line.count("stored_spans") == 2

    def test_a_crash_sets_each_aside_once(self, line: Line, tmp_path: Path, store: Store) -> None:
        line.writer.trouble = poison(b"bad")
        line.send("a", "bad")
        line.spool.seal()
        line.exporter._write(take(line.spool))
        line.stop(drain=False)
        after = Line(tmp_path, store)
        after.writer.trouble = poison(b"bad")
        after.exporter.start()
        after.stop()
        assert after.stored() == ["a"]
        assert len(after.letters) == 1

    @pytest.mark.parametrize(
        ("payload", "items", "reason"),
        [
            (b"\xff\xff damaged on disk", 0, "no OTLP"),
            (body_of("bad"), 0, "it does not fit"),
            (body_of("bad"), 1, "it does not fit"),
        ],
    )
    def test_retries_are_kept(self, line: Line, payload: bytes, items: int, reason: str) -> None:
        """Damaged bytes are set aside as no spans at all, and stay until somebody drops them."""
        line.writer.trouble = poison(b"bad")
        line.letters.add("one", payload, items, "these bytes of the spool were damaged on disk")
        line.letters.retry(["one"])
        line.exporter.start()
        wait_for(lambda: line.letter().attempts == 2)
        assert (reason in line.letter().reason, line.letter().items) == (True, items)
        assert line.letters.payload("one") == payload

    def test_retried_letters_keep_the_counters_adding_up(self, line: Line) -> None:
        line.writer.trouble = poison(b"bad")
        line.send("a", "bad")
        line.drain()
        line.writer.trouble = poison()
        line.letters.retry([line.letter().id])
        wait_for(lambda: line.stored() == ["a", "bad"])
        wait_for(lambda: len(line.letters) == 0)
        assert line.count("retried_spans") == 1
        # Two were accepted and one was retried.
        assert line.count("stored_spans") + line.count("dead_lettered_spans") == 2 + 1

    def test_a_retried_letter_waits_for_the_database(self, line: Line) -> None:
        line.writer.trouble = away(1)
        line.letters.add("one", body_of("a"), 1, "a reason")
        line.letters.retry(["one"])
        line.exporter.start()
        wait_for(lambda: line.stored() == ["a"])
        wait_for(lambda: len(line.letters) == 0)
