"""How much a spool holds and since when, and what it says where it takes no more."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from mast_trace.exceptions import CollectorError
from mast_trace_collector.spool import Record, Refused, Segment, Spool, SpoolLimits
from mast_trace_collector.spool.receipt import receipt_path
from mast_trace_collector.spool.room import FolderLock, Room
from mast_trace_collector.spool.segment import SegmentWriter

if TYPE_CHECKING:
    from collections.abc import Iterator


class Usage(NamedTuple):
    """What `shutil.disk_usage` returns."""

    total: int
    used: int
    free: float


def opened(folder: Path, *, most: int = 10_000_000, free: int = 0, window: int = 1000) -> Spool:
    spool = Spool(folder, SpoolLimits(most, free, 1_000_000, 1_000_000, 60.0, window))
    assert spool.open() == []
    return spool


def stop(spool: Spool) -> None:
    spool.close()
    spool.release()


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[Spool]:
    spool = opened(tmp_path / "spool")
    yield spool
    stop(spool)


def put(spool: Spool, payload: bytes) -> None:
    spool.append(payload, 1).durable.result(timeout=10)


def taken(spool: Spool) -> Segment:
    spool.seal()
    segment = spool.next_segment(0.0)
    assert segment is not None
    return segment


class Clock:
    """The time of day, which a test sets."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        patch.setattr(time, "time", lambda: self.now)


class TestAge:
    """Since when something waits, by the arrival of the oldest request."""

    def test_it_goes_on_from_the_first_request_to_the_commit(
        self, spool: Spool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        clock = Clock(monkeypatch)
        assert spool.oldest_age() == 0.0
        put(spool, b"first")
        clock.now += 5
        put(spool, b"second")
        clock.now += 5
        assert spool.oldest_age() == 10.0  # in the open segment
        segment = taken(spool)
        clock.now += 5
        put(spool, b"younger")
        assert spool.oldest_age() == 15.0  # taken
        spool.give_back(segment)
        clock.now += 5
        assert spool.oldest_age() == 20.0  # waiting again
        younger = taken(spool)
        spool.commit(younger)
        again = taken(spool)
        assert again == segment
        assert spool.oldest_age() == 20.0
        spool.commit(again)
        assert spool.oldest_age() == 0.0

    def test_of_a_younger_one_that_is_left_it_is_less(
        self, spool: Spool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        clock = Clock(monkeypatch)
        put(spool, b"first")
        segment = taken(spool)
        clock.now += 7
        put(spool, b"second")
        clock.now += 3
        assert spool.oldest_age() == 10.0
        spool.commit(segment)
        assert spool.oldest_age() == 3.0

    def test_a_clock_that_is_set_back_makes_nothing_younger_than_now(
        self, spool: Spool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        clock = Clock(monkeypatch)
        put(spool, b"first")
        clock.now -= 100
        assert spool.oldest_age() == 0.0
        clock.now += 100.5
        assert spool.oldest_age() == 0.5

    def test_after_a_restart_it_goes_on(self, spool: Spool) -> None:
        put(spool, b"first")
        (path,) = spool._directory.glob("*.log")
        stop(spool)
        hour_ago = time.time() - 3600
        os.utime(path, (hour_ago, hour_ago))
        after = opened(spool._directory)
        assert 3600 <= after.oldest_age() < 3700
        stop(after)


class TestWaitingItems:
    """How much waits, of what, over restarts."""

    def test_all_segments_count_until_they_are_stored(self, spool: Spool) -> None:
        for number in (1, 2, 3):
            spool.append(b"%d" % number, number).durable.result(timeout=10)
            spool.seal()
        assert spool.waiting_items == 6
        size = spool.waiting_bytes
        stop(spool)
        after = opened(spool._directory)
        assert (after.waiting_items, after.waiting_bytes) == (6, size)
        after.commit(taken(after))
        assert (after.waiting_items, after.waiting_bytes) == (5, size - size // 3)
        stop(after)

    @pytest.mark.parametrize("noun", ["spans", "log records"])
    def test_they_are_called_what_they_are(self, tmp_path: Path, noun: str) -> None:
        limits = SpoolLimits(10_000, 0, 1000, 1000, 60.0, 1000)
        of = (noun,) if noun != "spans" else ()
        spool = Spool(tmp_path, limits, *of)
        spool.open()
        put(spool, b"one")
        segment = taken(spool)
        os.truncate(segment.path, 0)
        spool.read(segment)
        spool.commit(segment)
        (note,) = (tmp_path / "damaged").glob("*.json")
        assert json.loads(note.read_text())["counted"] == noun
        stop(spool)

    def test_a_process_ends_that_has_not_closed_it(self, tmp_path: Path) -> None:
        """What it acknowledged is there for the next one."""
        program = (
            "import sys; from pathlib import Path\n"
            "from mast_trace_collector.spool import Spool, SpoolLimits\n"
            "spool = Spool(Path(sys.argv[1]), SpoolLimits(10000, 0, 1000, 1000, 60.0, 1000))\n"
            "spool.open(); spool.append(b'one', 1).durable.result(timeout=10)\n"
        )
        # The copy that this test has imported, wherever it is run.
        package = Path(sys.modules[Spool.__module__].__file__ or "").parents[2]
        environment = {**os.environ, "PYTHONPATH": str(package)}
        command = [sys.executable, "-c", program, str(tmp_path)]
        subprocess.run(command, env=environment, check=True, timeout=100)
        after = opened(tmp_path)
        assert after.waiting_items == 1
        stop(after)


class TestGroups:
    """Requests that gather while one is written."""

    def sizes(self, spool: Spool) -> list[int]:
        found = []
        while (segment := spool.next_segment(0.0)) is not None:
            found.append(len(segment.digests))
        return found

    def gathered(self, folder: Path, limits: SpoolLimits, payloads: int) -> list[int]:
        spool = Spool(folder, limits)
        spool.open()
        with spool._writing:
            tickets = [spool.append(b"%d" % number * 100, 5) for number in range(payloads)]
        for ticket in tickets:
            ticket.durable.result(timeout=10)
        spool.seal()
        sizes = self.sizes(spool)
        stop(spool)
        return sizes

    def test_a_segment_ends_with_the_request_that_fills_it(self, tmp_path: Path) -> None:
        """By its bytes or by its spans, to the last one."""
        one = Record.OVERHEAD + 100
        of_bytes = SpoolLimits(10_000, 0, 2 * one, 1000, 60.0, 1000)
        assert self.gathered(tmp_path / "bytes", of_bytes, 5) == [2, 2, 1]
        of_spans = SpoolLimits(10_000, 0, 10_000, 10, 60.0, 1000)
        assert self.gathered(tmp_path / "spans", of_spans, 5) == [2, 2, 1]

    def test_the_same_request_waits_with_the_first_until_that_is_durable(
        self, spool: Spool
    ) -> None:
        with spool._writing:
            first = spool.append(b"same", 1)
            second = spool.append(b"same", 1)
            assert (first.duplicate, second.duplicate) == (False, True)
            assert not second.durable.done()
        assert second.durable.result(timeout=10) is None
        assert first.durable.done()
        assert taken(spool).items == 1


class TestWaiting:
    """A consumer waits for a segment that is old enough, and no longer than it likes."""

    def test_it_gets_what_comes_meanwhile(self, tmp_path: Path) -> None:
        spool = Spool(tmp_path, SpoolLimits(10_000, 0, 1000, 1000, 0.0, 1000))
        spool.open()
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(spool.next_segment, 60.0)
            put(spool, b"one")
            segment = waiting.result(timeout=50)
        assert segment is not None
        assert segment.items == 1
        stop(spool)

    def test_it_gets_a_segment_once_that_is_old_enough(self, tmp_path: Path) -> None:
        """Not only when its own patience ends."""
        spool = Spool(tmp_path, SpoolLimits(10_000, 0, 1000, 1000, 0.1, 1000))
        spool.open()
        put(spool, b"one")
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(spool.next_segment, 20.0)
            segment = waiting.result(timeout=15)
        assert segment is not None
        assert segment.items == 1
        stop(spool)

    def test_it_gets_nothing_where_nothing_comes(self, spool: Spool) -> None:
        assert spool.next_segment(0.01) is None

    def test_closing_ends_the_waiting(self, tmp_path: Path) -> None:
        spool = opened(tmp_path)
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(spool.next_segment, 60.0)
            spool.close()
            assert waiting.result(timeout=50) is None
        spool.release()

    def test_a_young_segment_stays_open(self, spool: Spool) -> None:
        """Also where another consumer has closed the old one just before."""
        spool._seal_if_due()
        put(spool, b"one")
        spool._seal_if_due()
        assert spool.next_segment(0.0) is None
        put(spool, b"two")
        assert taken(spool).items == 2


class TestCheck:
    """Whether a small request would be taken now."""

    def refusal(self, spool: Spool) -> Refused:
        with pytest.raises(Refused) as refused:
            spool.check()
        return refused.value

    def test_not_before_it_is_opened_nor_after_it_is_closed(self, tmp_path: Path) -> None:
        spool = Spool(tmp_path, SpoolLimits(1000, 0, 1000, 1000, 0.0, 1000))
        assert self.refusal(spool).reason == "shutting_down"
        spool.open()
        spool.check()
        spool.close()
        refused = self.refusal(spool)
        assert (refused.reason, refused.retry_after) == ("shutting_down", 1.0)
        assert str(refused) == "the collector is not running"
        with pytest.raises(Refused) as taken:
            spool.append(b"one", 1)
        assert (taken.value.reason, taken.value.retry_after) == ("shutting_down", 1.0)
        assert str(taken.value) == "the collector is stopping"
        spool.release()

    def test_up_to_the_last_byte(self, tmp_path: Path) -> None:
        most = Record.OVERHEAD + 100
        spool = opened(tmp_path, most=most)
        with pytest.raises(Refused) as refused:
            spool.append(b"x" * 101, 1)
        assert (refused.value.reason, refused.value.retry_after) == ("spool_full", 5.0)
        put(spool, b"x" * 100)
        assert spool.waiting_bytes == most
        spool.check()
        with pytest.raises(Refused, match="too much is waiting"):
            spool.append(b"", 0)
        stop(spool)

    def test_not_on_a_disk_that_is_nearly_full(self, tmp_path: Path) -> None:
        spool = opened(tmp_path, free=1 << 60)
        refused = self.refusal(spool)
        assert (refused.reason, str(refused)) == (
            "disk_full",
            "the collector's disk is nearly full",
        )
        stop(spool)


class TestRoom:
    """What of the disk is left to others."""

    @pytest.fixture
    def disk(self, monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
        disk = {"free": 1000, "now": 0.0, "asked": 0}

        def usage(_: Path) -> Usage:
            disk["asked"] += 1
            return Usage(10_000, 0, disk["free"])

        monkeypatch.setattr(shutil, "disk_usage", usage)
        monkeypatch.setattr(time, "monotonic", lambda: disk["now"])
        return disk

    def test_so_much_and_no_more(self, tmp_path: Path, disk: dict[str, float]) -> None:
        room = Room(tmp_path, 10_000, 400)
        room.check(600)
        with pytest.raises(Refused, match="nearly full"):
            room.check(601)
        assert disk["asked"] == 2  # once for the message

    def test_what_is_taken_counts_before_the_disk_is_asked_again(
        self, tmp_path: Path, disk: dict[str, float]
    ) -> None:
        room = Room(tmp_path, 10_000, 400)
        room.check(300)
        room.take(300)
        disk["now"] += 0.2
        room.check(300)
        with pytest.raises(Refused, match="nearly full"):
            room.check(301)
        disk["now"] += 0.01
        room.check(600)
        assert room.used == 300

    def test_after_a_failed_write_it_is_taken_for_full_for_a_moment(
        self, tmp_path: Path, disk: dict[str, float]
    ) -> None:
        room = Room(tmp_path, 10_000, 0)
        room.check(300)
        disk["now"] += 1.0
        room.ran_out()
        with pytest.raises(Refused, match="nearly full"):
            room.check(44)
        disk["now"] += 0.3
        room.check(44)

    def test_what_is_told_once_is_told_again_for_another_reason(
        self, tmp_path: Path, disk: dict[str, float], caplog: pytest.LogCaptureFixture
    ) -> None:
        room = Room(tmp_path, 500, 400)
        for size in (601, 501, 501):
            with pytest.raises(Refused):
                room.check(size)
        room.take(500)
        disk["free"] = 100
        disk["now"] += 1.0
        room.give_back(500)
        for _ in range(2):
            with pytest.raises(Refused):
                room.check(1)
        told = [message.partition(" (")[0] for message in caplog.messages]
        assert told == [
            "requests are refused: too much is waiting for the database",
            "requests are refused: the collector's disk is nearly full",
        ]

    def test_a_question_alone_ends_no_refusal(
        self, tmp_path: Path, disk: dict[str, float], caplog: pytest.LogCaptureFixture
    ) -> None:
        """Only a request that fits shows that requests are taken again."""
        room = Room(tmp_path, 500, 0)
        with pytest.raises(Refused):
            room.check(501)
        room.check(0)
        assert len(caplog.messages) == 1
        room.check(1)
        room.check(1)
        assert caplog.messages[1:] == ["requests are taken again"]


class TestFolder:
    """One process has the folder; nobody else reads it."""

    def test_only_its_owner_may_read_it(self, tmp_path: Path) -> None:
        spool = opened(tmp_path / "new" / "spool")
        put(spool, b"private")
        modes = {path.name: path.stat().st_mode & 0o777 for path in spool._directory.iterdir()}
        assert spool._directory.stat().st_mode & 0o777 == 0o700
        assert set(modes.values()) == {0o600}
        stop(spool)

    def test_another_gets_it_once_it_is_released(self, tmp_path: Path) -> None:
        first, second = FolderLock(tmp_path), FolderLock(tmp_path)
        first.acquire()
        with pytest.raises(CollectorError, match=f"another collector is using .*{tmp_path}"):
            second.acquire()
        first.release()
        first.release()
        second.acquire()
        second.release()

    def test_what_is_no_folder_is_named(self, tmp_path: Path) -> None:
        file = tmp_path / "file"
        file.touch()
        with pytest.raises(CollectorError, match=f"cannot use the folder {file}"):
            Spool(file, SpoolLimits(1000, 0, 1000, 1000, 0.0, 1000)).open()

    def test_one_that_cannot_be_taken_up_is_left_to_others(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        spool = opened(tmp_path)
        put(spool, b"one")
        stop(spool)

        def failing(*_: object) -> None:
            raise OSError(24, "Too many open files")

        with monkeypatch.context() as patch:
            patch.setattr(os, "preadv", failing)
            patch.setattr(os, "open", failing_for_logs(os.open))
            with pytest.raises(CollectorError, match=f"take up the spool {tmp_path}.*Too many"):
                Spool(tmp_path, SpoolLimits(1000, 0, 1000, 1000, 0.0, 1000)).open()
        after = opened(tmp_path)
        assert after.waiting_items == 1
        stop(after)


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def failing_for_logs(real):
    def opening(path: Path, *arguments: int, **options: int) -> int:
        if str(path).endswith(".log"):
            raise OSError(24, "Too many open files")
        return real(path, *arguments, **options)

    return opening


class TestFailedWrites:
    """A disk that fails costs what it did not take, and nothing else."""

    def test_all_that_waited_is_refused_whatever_the_window_remembers(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        spool = opened(tmp_path, window=1)

        def failing(_: int) -> None:
            raise OSError(5, "Input/output error")

        with monkeypatch.context() as patch:
            patch.setattr(os, "fdatasync", failing)
            with spool._writing:
                tickets = [spool.append(b"%d" % number, 1) for number in range(3)]
            for ticket in tickets:
                with pytest.raises(Refused, match="Input/output error") as refused:
                    ticket.durable.result(timeout=10)
                assert (refused.value.reason, refused.value.retry_after) == ("disk_error", 5.0)
        assert spool.waiting_bytes == spool.waiting_items == 0
        spool._room._checked = 0.0
        put(spool, b"1")
        stop(spool)

    def test_a_file_that_is_gone_already_is_no_error(self, tmp_path: Path) -> None:
        writer = SegmentWriter(tmp_path / "000000000001-ab.log")
        writer.close(0.0)
        writer.path.unlink()
        receipt_path(writer.path).unlink()
        writer.remove()

    def test_a_segment_that_cannot_be_begun_leaves_nothing(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Neither a file nor an open one: else a full disk would use up what may be open."""
        before = open_files()
        path = tmp_path / "000000000001-ab.log"

        def failing(*_: object) -> int:
            raise OSError(28, "No space left on device")

        for step in ("pwrite", "fsync"):
            with monkeypatch.context() as patch:
                patch.setattr(os, step, failing)
                with pytest.raises(OSError, match="No space"):
                    SegmentWriter(path)
        receipt_path(path).touch()
        with pytest.raises(FileExistsError):
            SegmentWriter(path)
        receipt_path(path).unlink()
        assert list(tmp_path.iterdir()) == []
        assert open_files() == before

    def test_a_large_one_that_was_deleted_is_written_anew_as_a_whole(self, tmp_path: Path) -> None:
        writer = SegmentWriter(tmp_path / "000000000001-ab.log")
        payloads = [os.urandom(3 * 2**20 + 17), b"more"]
        writer.append([Record.of(payload, 1) for payload in payloads])
        writer.path.unlink()
        segment = writer.close(0.0)
        assert segment.intact()
        assert [bytes(record.payload) for record in segment.read()[0]] == payloads

    def test_a_deleted_one_that_cannot_be_written_anew_is_told_and_ends(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        writer = SegmentWriter(tmp_path / "000000000001-ab.log")
        writer.append([Record.of(b"one", 1)])
        writer.path.unlink()
        writer.path.mkdir()
        assert writer.close(7.0).created == 7.0
        assert f"{writer.path} cannot be written anew" in caplog.messages[-1]
