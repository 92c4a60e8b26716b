"""Room in a spool, and its words where there is none."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import time
from pathlib import Path
from typing import NamedTuple

import pytest
from opened_spool import failing, opened, payloads_of, put, stop

from mast_trace.exceptions import CollectorError
from mast_trace_collector.spool import Record, RequestRefused, Spool, SpoolLimits
from mast_trace_collector.spool.quota import DiskQuota, FolderLock
from mast_trace_collector.spool.segment import (
    Receipt,
    SegmentWriter,
    chain,
    read_receipt,
    receipt_path,
)


class Usage(NamedTuple):
    """A result of `shutil.disk_usage`."""

    total: int
    used: int
    free: float


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    return opened(tmp_path / "spool")


class TestCheck:
    """Tell if a small request would be taken now."""

    def refusal(self, spool: Spool) -> RequestRefused:
        with pytest.raises(RequestRefused) as refused:
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
        with pytest.raises(RequestRefused) as taken:
            spool.append(b"one", 1)
        assert (taken.value.reason, taken.value.retry_after) == ("shutting_down", 1.0)
        assert str(taken.value) == "the collector is stopping"
        spool.release()

    def test_up_to_the_last_byte(self, tmp_path: Path) -> None:
        most = Record.OVERHEAD + 100
        spool = opened(tmp_path, most=most)
        with pytest.raises(RequestRefused) as refused:
            spool.append(b"x" * 101, 1)
        assert (refused.value.reason, refused.value.retry_after) == ("spool_full", 5.0)
        put(spool, b"x" * 100)
        assert spool.waiting_bytes == most
        spool.check()
        with pytest.raises(RequestRefused, match="too much is waiting"):
            spool.append(b"", 0)


class TestCheckAgain:
    """Tell if requests like those that were refused would be taken now."""

    def refusal(self, spool: Spool) -> str:
        with pytest.raises(RequestRefused) as refused:
            spool.check_again()
        return refused.value.reason

    def test_not_before_it_is_opened(self, tmp_path: Path) -> None:
        assert self.refusal(Spool(tmp_path, SpoolLimits(1000, 0, 1, 1, 0.0, 1))) == "shutting_down"

    @pytest.mark.parametrize("reason", ["spool_full", "disk_full"])
    def test_not_while_the_smallest_that_was_refused_does_not_fit(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reason: str
    ) -> None:
        free = 1000 + Record.OVERHEAD
        usage = Usage(10_000, 0, free if reason == "disk_full" else 1 << 60)
        monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
        spool = opened(tmp_path, most=free if reason == "spool_full" else 1 << 60)
        spool.check_again()
        for size in (1002, 1001, 1003):
            with pytest.raises(RequestRefused):
                spool.append(b"x" * size, 1)
        with pytest.raises(RequestRefused):
            spool._quota.check(free + 1)
        assert self.refusal(spool) == reason
        spool.check()
        # Any accepted request shows that the spool takes some.
        put(spool, b"x" * 600)
        spool.check_again()
        for size in (401, 10**6):
            with pytest.raises(RequestRefused):
                spool.append(b"x" * size, 1)
        assert self.refusal(spool) == reason

    def test_not_while_the_disk_takes_nothing(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A quota, a file system that has become read-only: its free space tells nothing."""
        spool = opened(tmp_path)

        with monkeypatch.context() as patch:
            patch.setattr(os, "fdatasync", failing(errno.EDQUOT))
            patch.setattr(os, "fsync", failing(errno.EDQUOT))
            assert isinstance(spool.append(b"1", 1).durable.exception(timeout=10), RequestRefused)
            spool._quota._checked = 0.0
            spool.check()
            assert self.refusal(spool) == "disk_error"
        spool.check_again()
        put(spool, b"1")
        assert not spool._quota.failing
        assert {path.suffix for path in tmp_path.iterdir()} <= {"", ".log", ".acked"}


class TestRoom:
    """Disk space that is left to others."""

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
        quota = DiskQuota(tmp_path, 10_000, 400)
        quota.check(600)
        with pytest.raises(RequestRefused, match="nearly full"):
            quota.check(601)
        assert disk["asked"] == 2  # once for the message

    def test_what_is_taken_counts_at_once(self, tmp_path: Path, disk: dict[str, float]) -> None:
        quota = DiskQuota(tmp_path, 10_000, 400)
        quota.check(300)
        quota.take(300)
        disk["now"] += 0.2
        quota.check(300)
        with pytest.raises(RequestRefused, match="nearly full"):
            quota.check(301)
        disk["now"] += 0.01
        quota.check(600)
        assert quota.used == 300

    def test_a_failed_write_fills_it_awhile(self, tmp_path: Path, disk: dict[str, float]) -> None:
        quota = DiskQuota(tmp_path, 10_000, 0)
        quota.check(300)
        disk["now"] += 1.0
        quota.ran_out(44)
        with pytest.raises(RequestRefused, match="nearly full"):
            quota.check(44)
        disk["now"] += 0.3
        quota.check(44)

    def test_what_is_told_once_is_told_again_for_another_reason(
        self, tmp_path: Path, disk: dict[str, float], caplog: pytest.LogCaptureFixture
    ) -> None:
        quota = DiskQuota(tmp_path, 500, 400)
        for size in (601, 501, 501):
            with pytest.raises(RequestRefused):
                quota.check(size)
        quota.take(500)
        disk["free"] = 100
        disk["now"] += 1.0
        quota.give_back(500)
        for _ in range(2):
            with pytest.raises(RequestRefused):
                quota.check(1)
        told = [message.partition(" (")[0] for message in caplog.messages]
        assert told == [
            "requests are refused: too much is waiting for the database",
            "requests are refused: the collector's disk is nearly full, `mast-trace retain` makes room",
        ]

    def test_a_question_alone_ends_no_refusal(
        self, tmp_path: Path, disk: dict[str, float], caplog: pytest.LogCaptureFixture
    ) -> None:
        quota = DiskQuota(tmp_path, 500, 0)
        quota.check(1)
        assert caplog.messages == []
        with pytest.raises(RequestRefused):
            quota.check(501)
        quota.check(0)
        assert len(caplog.messages) == 1
        quota.check(1)
        quota.check(1)
        assert caplog.messages[1:] == ["requests are taken again"]


class TestFolder:
    """One process has the folder; nobody else reads it."""

    def test_only_its_owner_may_read_it(self, tmp_path: Path) -> None:
        spool = opened(tmp_path / "new" / "spool")
        put(spool, b"private")
        modes = {path.name: path.stat().st_mode & 0o777 for path in spool._directory.iterdir()}
        assert spool._directory.stat().st_mode & 0o777 == 0o700
        assert set(modes.values()) == {0o600}

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

    def test_a_failed_open_frees_it(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        spool = opened(tmp_path)
        put(spool, b"one")
        stop(spool)

        real = os.open

        def no_logs(path: Path, *arguments: int, **options: int) -> int:
            call = failing(errno.EMFILE) if str(path).endswith(".log") else real
            return call(path, *arguments, **options)

        with monkeypatch.context() as patch:
            patch.setattr(os, "preadv", failing(errno.EMFILE))
            patch.setattr(os, "open", no_logs)
            with pytest.raises(CollectorError, match=f"take up the spool {tmp_path}.*Too many"):
                Spool(tmp_path, SpoolLimits(1000, 0, 1000, 1000, 0.0, 1000)).open()
        after = opened(tmp_path)
        assert after.waiting_items == 1


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


class TestFailedWrites:
    """A disk that fails costs what it did not take, and nothing else."""

    def test_all_waiting_is_refused(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        spool = opened(tmp_path, window=1)

        with monkeypatch.context() as patch:
            patch.setattr(os, "fdatasync", failing(errno.EIO))
            with spool._writing:
                tickets = [spool.append(b"%d" % number, 1) for number in range(3)]
            for ticket in tickets:
                with pytest.raises(RequestRefused, match="Input/output error") as refused:
                    ticket.durable.result(timeout=10)
                assert (refused.value.reason, refused.value.retry_after) == ("disk_error", 5.0)
        assert spool.waiting_bytes == spool.waiting_items == 0
        spool._quota._checked = 0.0
        put(spool, b"1")

    def test_a_file_that_is_gone_already_is_no_error(self, tmp_path: Path) -> None:
        writer = SegmentWriter(tmp_path / "000000000001-ab.log")
        writer.close(0.0)
        writer.path.unlink()
        receipt_path(writer.path).unlink()
        writer.remove()

    def test_failing_leaves_no_file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A failed beginning leaves neither a file nor an open descriptor, which a full disk would use up."""
        before = open_files()
        path = tmp_path / "000000000001-ab.log"

        for step in ("pwrite", "fsync"):
            with monkeypatch.context() as patch:
                patch.setattr(os, step, failing(errno.ENOSPC))
                with pytest.raises(OSError, match="No space"):
                    SegmentWriter(path)
        receipt_path(path).touch()
        with pytest.raises(FileExistsError):
            SegmentWriter(path)
        receipt_path(path).unlink()
        assert list(tmp_path.iterdir()) == []
        assert open_files() == before

    def test_a_segment_is_never_begun_in_a_file_that_is_there(self, tmp_path: Path) -> None:
        path = tmp_path / "000000000001-ab.log"
        path.write_bytes(b"acknowledged")
        with pytest.raises(FileExistsError):
            SegmentWriter(path)
        assert path.read_bytes() == b"acknowledged"

    def test_a_disk_that_takes_nothing_back_either_is_blamed_for_the_first_failure(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The segment holds all that was acknowledged before, and nothing else."""
        writer = SegmentWriter(tmp_path / "000000000001-ab.log")
        writer.append([Record.of(b"one", 1)])

        with monkeypatch.context() as patch:
            patch.setattr(os, "fdatasync", failing(5, "it was not synced"))
            patch.setattr(os, "ftruncate", failing(5, "nor cut off"))
            with pytest.raises(OSError, match="it was not synced"):
                writer.append([Record.of(b"two", 2)])
        assert (writer.size, writer.items) == (Record.OVERHEAD + 3, 1)
        segment = writer.close(0.0)
        assert payloads_of(segment) == [b"one"]

    def test_where_there_is_no_fdatasync_the_drive_is_told_to_empty_its_cache(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As macOS wants it; Linux does not know the request, so it is only looked at here."""
        asked: list[tuple[Path, int]] = []

        def control(file: int, request: int) -> None:
            asked.append((Path(f"/proc/self/fd/{file}").readlink(), request))

        monkeypatch.delattr(os, "fdatasync")
        monkeypatch.setattr(fcntl, "F_FULLFSYNC", 51, raising=False)
        monkeypatch.setattr(fcntl, "fcntl", control)
        writer = SegmentWriter(tmp_path / "000000000001-ab.log")
        writer.append([Record.of(b"one", 1)])
        writer.close(0.0)
        assert asked == [(writer.path, 51)]

    def test_the_receipt_says_what_was_acknowledged_and_the_log_nothing(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        writer = SegmentWriter(tmp_path / "000000000001-ab.log")
        records = [Record.of(b"one", 2), Record.of(b"more", 3)]
        written = []
        for number in range(3):
            written.append(read_receipt(receipt_path(writer.path)))
            writer.append(records[number : number + 1])
        one, two = (record.size for record in records)
        assert written == [
            Receipt(0, 0, 0, chain().digest()),
            Receipt(one, 1, 2, chain([records[0].digest]).digest()),
            Receipt(one + two, 2, 5, chain([record.digest for record in records]).digest()),
        ]
        writer.close(0.0)
        assert caplog.messages == []

    def test_an_empty_one_that_was_deleted_is_not_brought_back(self, tmp_path: Path) -> None:
        writer = SegmentWriter(tmp_path / "000000000001-ab.log")
        writer.path.unlink()
        writer.close(0.0)
        assert not writer.path.exists()

    def test_a_large_one_that_was_deleted_is_written_anew_as_a_whole(self, tmp_path: Path) -> None:
        writer = SegmentWriter(tmp_path / "000000000001-ab.log")
        payloads = [os.urandom(3 * 2**20 + 17), b"more"]
        writer.append([Record.of(payload, 1) for payload in payloads])
        writer.path.unlink()
        segment = writer.close(0.0)
        assert segment.intact()
        assert payloads_of(segment) == payloads

    def test_a_deleted_one_that_cannot_be_written_anew_is_told_and_ends(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        writer = SegmentWriter(tmp_path / "000000000001-ab.log")
        writer.append([Record.of(b"one", 1)])
        writer.path.unlink()
        writer.path.mkdir()
        assert writer.close(7.0).created == 7.0
        assert f"{writer.path} cannot be written anew" in caplog.messages[-1]
