"""A damaged file of the spool loses only its damaged records: the rest is stored once, and all are counted."""

from __future__ import annotations

import os
import shutil
import struct
from typing import TYPE_CHECKING

import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st
from opened_spool import begin, begun, failing, payloads_of, put, stop, take, unreadable
from opened_spool import flip as flip_bit

from mast_trace_collector.spool.record import Record
from mast_trace_collector.spool.segment import RECEIPT, SegmentWriter, receipt_path

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from mast_trace_collector.spool import Spool
    from mast_trace_collector.spool.damaged import Loss

SEGMENTS = 3
RECORDS = 4
ITEMS = 5


def payloads(number: int) -> list[bytes]:
    """Requests of one segment; the third is larger than a page."""
    sizes = [40, 40, 5000, 40]
    return [b"%d-%d" % (number, index) * size for index, size in enumerate(sizes)]


ALL = [payload for number in range(SEGMENTS) for payload in payloads(number)]


def filled(folder: Path) -> tuple[Spool, list[Path]]:
    """A running spool with segments that wait, and their files."""
    spool = begin(folder)
    for number in range(SEGMENTS):
        put(spool, *payloads(number), items=ITEMS)
        spool.seal()
    return spool, sorted(folder.glob("*.log"))


def left(folder: Path) -> list[Path]:
    """The files of segments that a process has left."""
    spool, paths = filled(folder)
    stop(spool)
    return paths


def drain(spool: Spool) -> tuple[list[bytes], int]:
    """Store all that waits; what was stored, and spans found lost meanwhile."""
    stored, lost = [], 0
    while (segment := spool.next_segment(0.0)) is not None:
        found = spool.read(segment)
        if segment.intact():
            assert len(found.records) == len(segment.digests)
        stored += [bytes(record.payload) for record in found.records]
        lost += found.lost
        spool.commit(segment)
    return stored, lost


def changed(
    folder: Path, running: bool, change: Callable[[list[Path]], object]
) -> tuple[Spool, list[bytes], int]:
    """Change the files of a spool that runs, or of one that begins then; what it stores and loses."""
    spool, paths = filled(folder)
    if not running:
        stop(spool)
    change(paths)
    losses: list[Loss] = []
    if not running:
        spool, losses = begun(folder)
    stored, more = drain(spool)
    return spool, stored, more + sum(loss.lost for loss in losses)


def zero(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def zero_the_end(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:400] + bytes(len(data) - 400))


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def truncate_between_records(path: Path) -> None:
    data = path.read_bytes()
    os.truncate(path, data.index(payloads(int(data[44 - 4 : 45 - 4]))[1]) - 40)


def empty(path: Path) -> None:
    os.truncate(path, 0)


def remove(path: Path) -> None:
    path.unlink()


def folder_instead(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "something").write_text("else")


def pipe_instead(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def loop_instead(path: Path) -> None:
    path.unlink()
    path.symlink_to(path)


def flip(at: int) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        flip_bit(path, at)

    damage.__name__ = f"flip_{at}"
    return damage


def garbage_behind(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"garbage")


def copied_within(path: Path) -> None:
    """The second record over the fourth, which has its size."""
    data = bytearray(path.read_bytes())
    size = 44 + len(payloads(0)[1])
    data[-size:] = data[size : 2 * size]
    path.write_bytes(data)


DAMAGES = {
    zero: 4,
    zero_the_end: 2,
    truncate: 2,
    truncate_between_records: 3,
    empty: 4,
    remove: 4,
    folder_instead: 4,
    pipe_instead: 4,
    loop_instead: 4,
    flip(2): 0,  # the frame
    flip(9): 1,  # the marker
    flip(17): 1,  # the length
    flip(21): 1,  # the number of spans
    flip(30): 1,  # the digest
    flip(60): 1,  # the payload
    flip(-1): 0,  # what ends the message
    garbage_behind: 0,
    copied_within: 1,
}
"""Each with the requests that it costs."""


@pytest.mark.parametrize("position", range(SEGMENTS), ids=["first", "middle", "last"])
@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
class TestOneSegment:
    """One of three is damaged."""

    def check(self, folder: Path, stored: list[bytes], lost: int, damage: object) -> None:
        gone = DAMAGES[damage]
        assert len(stored) == len(set(stored)) == len(ALL) - gone
        assert set(stored) <= set(ALL)
        assert lost == gone * ITEMS
        assert not list(folder.glob("*.log"))
        assert not list(folder.glob(f"*{RECEIPT}"))
        # A frame that is damaged hides nothing: the record in it is whole.
        assert (folder / "damaged").exists() or not gone

    def test_at_start(self, tmp_path: Path, damage: Callable[[Path], None], position: int) -> None:
        paths = left(tmp_path)
        damage(paths[position])
        spool, losses = begun(tmp_path)
        lost = sum(loss.lost for loss in losses)
        stored, more = drain(spool)
        assert more == 0
        assert spool.damaged_files == bool(DAMAGES[damage] or damage is garbage_behind)
        stop(spool)
        self.check(tmp_path, stored, lost, damage)
        begin(tmp_path)

    def test_running(self, tmp_path: Path, damage: Callable[[Path], None], position: int) -> None:
        spool, paths = filled(tmp_path)
        damage(paths[position])
        stored, lost = drain(spool)
        assert spool.damaged_files == bool(DAMAGES[damage])
        assert spool.waiting_bytes == spool.waiting_items == 0
        for payload in ALL:
            assert spool.append(payload, ITEMS).duplicate == (payload in stored)
        stop(spool)
        for path in (*tmp_path.glob("*.log"), *tmp_path.glob(f"*{RECEIPT}")):
            path.unlink()
        self.check(tmp_path, stored, lost, damage)


class TestSeveralFiles:
    """The damage is in the place of a file, not in its content."""

    @pytest.mark.parametrize("running", [False, True])
    def test_segments_that_changed_places(self, tmp_path: Path, running: bool) -> None:
        def change(paths: list[Path]) -> None:
            first, second, third = paths
            aside = tmp_path / "aside"
            first.rename(aside)
            second.rename(first)
            third.rename(second)
            aside.rename(third)

        spool, stored, lost = changed(tmp_path, running, change)
        assert sorted(stored) == sorted(ALL)
        assert lost == spool.damaged_files == 0

    @pytest.mark.parametrize("running", [False, True])
    @pytest.mark.parametrize("name", ["000000000009-00000000deadbeef.log", "copy.log"])
    def test_a_second_copy(self, tmp_path: Path, running: bool, name: str) -> None:
        def change(paths: list[Path]) -> None:
            shutil.copy(paths[1], tmp_path / name)

        spool, stored, lost = changed(tmp_path, running, change)
        assert (stored, lost) == (ALL, 0)
        assert running or spool.damaged_files == 1

    @pytest.mark.parametrize("running", [False, True])
    def test_a_copy_over_another(self, tmp_path: Path, running: bool) -> None:
        _, stored, lost = changed(tmp_path, running, lambda paths: shutil.copy(paths[2], paths[0]))
        assert (stored, lost) == (ALL[RECORDS:], RECORDS * ITEMS)

    @pytest.mark.parametrize("damage", [zero, truncate, empty, remove, folder_instead])
    def test_a_receipt(self, tmp_path: Path, damage: Callable[[Path], None]) -> None:
        paths = left(tmp_path)
        damage(receipt_path(paths[1]))
        spool = begin(tmp_path)
        assert drain(spool) == (ALL, 0)

    @pytest.mark.parametrize("damage", [zero, truncate, empty, remove, folder_instead])
    def test_a_mark(self, tmp_path: Path, damage: Callable[[Path], None]) -> None:
        spool, _ = filled(tmp_path)
        drain(spool)
        stop(spool)
        damage(sorted(tmp_path.glob("*.stored"))[1])
        spool = begin(tmp_path)
        assert drain(spool) == ([], 0)

    def test_a_file_that_is_none_of_ours(self, tmp_path: Path) -> None:
        left(tmp_path)
        (tmp_path / "nohup.log").write_text("hello")
        spool = begin(tmp_path, [0])
        assert drain(spool) == (ALL, 0)
        assert (tmp_path / "damaged" / "nohup.log").read_text() == "hello"


class TestOneBlock:
    """Any part of any file is overwritten or cut off."""

    @settings(max_examples=80, deadline=None)
    @given(
        position=st.integers(0, SEGMENTS - 1),
        begin=st.floats(0, 1),
        length=st.sampled_from([1, 2, 30, 100, 600, 30_000]),
        byte=st.sampled_from([None, b"\0", b"\xff", b"\xca"]),
        running=st.booleans(),
    )
    def test_what_is_whole_is_stored_once_and_the_rest_is_counted(
        self,
        tmp_path_factory: pytest.TempPathFactory,
        position: int,
        begin: float,
        length: int,
        byte: bytes | None,
        running: bool,
    ) -> None:
        folder = tmp_path_factory.mktemp("spool")
        contents = []

        def change(paths: list[Path]) -> None:
            data = paths[position].read_bytes()
            start = int(len(data) * begin)
            end = min(len(data), start + length)
            rest = b"" if byte is None else byte * (end - start) + data[end:]
            contents.extend([data, data[:start] + rest])
            paths[position].write_bytes(contents[1])

        spool, stored, lost = changed(folder, running, change)
        stop(spool)
        whole = [payload for payload in payloads(position) if _whole(payload, *contents)]
        others = [
            each for number in range(SEGMENTS) if number != position for each in payloads(number)
        ]
        assert sorted(stored) == sorted(others + whole)
        assert lost == (RECORDS - len(whole)) * ITEMS
        if lost:
            (kept,) = (folder / "damaged").glob("*.log")
            assert kept.read_bytes().startswith(contents[1])


def _whole(payload: bytes, data: bytes, changed: bytes) -> bool:
    """Return whether a record's header and payload are as they were; its frame may be damaged."""
    header = data.index(payload) - 32
    end = header + 32 + len(payload)
    # A frame's end may be missing, too, but not if what follows the payload was cut off.
    return changed[header:end] == data[header:end] and len(changed) >= min(len(data), end + 4)


class TestWriting:
    """The segment that is being written is damaged under our hands."""

    @pytest.mark.parametrize("more", [False, True])
    def test_a_deleted_one_is_written_anew(self, tmp_path: Path, more: bool) -> None:
        spool = begin(tmp_path, segment_age=60.0)
        put(spool, b"precious")
        (path,) = tmp_path.glob("*.log")
        path.unlink()
        if more:
            put(spool, b"later")
        spool.seal()
        segment = take(spool)
        assert segment.intact()
        assert payloads_of(segment) == [b"precious", b"later"][: 1 + more]
        stop(spool)

    def test_a_killed_process_leaves_an_exact_receipt(self, tmp_path: Path) -> None:
        """A killed process closes or syncs nothing: the receipt is in the system's memory already."""
        writer = SegmentWriter(tmp_path / "000000000001-00000000deadbeef.log")
        writer.append([Record.of(b"one", 2), Record.of(b"two", 3)])
        zero(writer.path)
        _, losses = begun(tmp_path)
        assert [(loss.lost, loss.kept) for loss in losses] == [(5, 0)]
        writer.close(0.0)

    def test_a_bad_write_is_undone(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        writer = SegmentWriter(tmp_path / "000000000001-00000000deadbeef.log")
        writer.append([Record.of(b"one", 2)])

        with monkeypatch.context() as patch:
            patch.setattr(os, "fdatasync", failing(28))
            with pytest.raises(OSError, match="No space"):
                writer.append([Record.of(b"two", 3)])
        writer.close(0.0)
        spool = begin(tmp_path)
        assert drain(spool) == ([b"one"], 0)


class TestOtherVersions:
    """A folder goes from version to version."""

    def test_without_receipts_damage_is_told_by_its_shape(self, tmp_path: Path) -> None:
        """The headers that are left give the number of lost spans: the last one's is zero."""
        paths = left(tmp_path)
        for path in paths:
            receipt_path(path).unlink()
        flip(17)(paths[0])
        zero_the_end(paths[2])
        spool = begin(tmp_path, [ITEMS, ITEMS])
        stored, _ = drain(spool)
        assert len(stored) == len(ALL) - 3
        assert spool.damaged_files == 2

    def test_a_torn_segment_of_the_first_version_is_no_damage(self, tmp_path: Path) -> None:
        path = tmp_path / f"{7:012d}-00000000deadbeef.log"
        marker = xxhash.xxh64_digest(path.stem.encode())
        record = struct.pack("<8sII", marker, 3, 1) + xxhash.xxh3_128_digest(b"one", 1) + b"one"
        for cut in range(1, len(record)):
            path.write_bytes(record + record[:cut])
            stop(begin(tmp_path))

    def test_receipts_that_an_earlier_version_left_behind_are_no_loss(self, tmp_path: Path) -> None:
        """An earlier version stores our segments and ignores their receipts."""
        paths = left(tmp_path)
        kept = {receipt_path(path): receipt_path(path).read_bytes() for path in paths}
        spool = begin(tmp_path, duplicate_window=RECORDS)
        drain(spool)
        assert len(list(tmp_path.glob("*.stored"))) == 1
        stop(spool)
        for number, (path, data) in enumerate(kept.items()):
            path.write_bytes(data)
            os.utime(path, (number, number))
        begin(tmp_path, duplicate_window=RECORDS)
        assert not list(tmp_path.glob(f"*{RECEIPT}"))


def test_a_bad_block_costs_its_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mapped, it would end the process with SIGBUS."""
    paths = left(tmp_path)
    inode = paths[0].stat().st_ino

    def bad(file: int, start: int, end: int) -> bool:
        return os.fstat(file).st_ino == inode and start < 8192 and end > 4096

    monkeypatch.setattr(os, "preadv", unreadable(bad))
    spool = begin(tmp_path, [ITEMS])
    stored, _ = drain(spool)
    assert len(stored) == len(ALL) - 1


def test_a_file_is_stored_once_readable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its permissions, which root does not feel."""
    paths = left(tmp_path)
    real = os.open

    def refusing(path: Path, *arguments: int, **options: int) -> int:
        if path == paths[1]:
            raise PermissionError(13, "Permission denied", str(path))
        return real(path, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refusing)
        spool = begin(tmp_path, [RECORDS * ITEMS])
    assert drain(spool) == (payloads(0) + payloads(2), 0)
    stop(spool)
    for path in (tmp_path / "damaged").iterdir():
        if path.suffix != ".json":
            path.rename(tmp_path / path.name)
    spool = begin(tmp_path)
    assert drain(spool) == (payloads(1), 0)
