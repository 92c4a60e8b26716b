"""Traces of a stored segment, and the report on a damaged one."""

from __future__ import annotations

import datetime as dt
import errno
import logging
import time
from pathlib import Path

import orjson
import pytest
from opened_spool import begin, failing, flip, opened, put, stop, take

from mast_trace_collector.spool import Record, Segment, Spool
from mast_trace_collector.spool import deduplication as module
from mast_trace_collector.spool.damaged import DamagedFiles, Loss
from mast_trace_collector.spool.deduplication import RecentRequests, StoredMarks
from mast_trace_collector.spool.folder import SegmentFolder
from mast_trace_collector.spool.reading import Damage
from mast_trace_collector.spool.segment import RECEIPT

ITEMS = 5


def segment_of(spool: Spool, *payloads: bytes) -> Segment:
    put(spool, *payloads, items=ITEMS)
    spool.seal()
    return take(spool, 0.0)


def digest(number: int) -> bytes:
    return number.to_bytes(16, "big")


class TestRecentRequests:
    """The latest, as many as the window has."""

    def test_the_oldest_are_forgotten_first(self):
        recent = RecentRequests(2)
        for number in range(3):
            recent.remember(digest(number), number)
        assert [recent.get(digest(number)) for number in range(3)] == [None, 1, 2]
        recent.forget(digest(1))
        recent.forget(digest(0))
        assert [recent.get(digest(number)) for number in range(3)] == [None, None, 2]
        recent.remember(digest(2), "changed")
        assert recent.get(digest(2)) == "changed"


class TestMarks:
    """Marks of stored segments on disk."""

    def loaded(self, folder: Path, limit: int) -> tuple[StoredMarks, list[bytes]]:
        marks = StoredMarks(folder, limit)
        return marks, marks.load()

    def names(self, folder: Path) -> list[str]:
        return sorted(path.stem for path in folder.glob("*.stored"))

    def test_they_give_back_what_they_were_given_oldest_first(self, tmp_path):
        marks, _ = self.loaded(tmp_path, 100)
        marks.write("2", [digest(3)])
        marks.write("1", [digest(1), digest(2)])
        marks, digests = self.loaded(tmp_path, 100)
        assert digests == [digest(1), digest(2), digest(3)]
        assert "1" in marks
        assert "3" not in marks

    def test_half_an_identity_is_none(self, tmp_path):
        (tmp_path / "1.stored").write_bytes(digest(1) + digest(2)[:-1])
        (tmp_path / "2.stored").write_bytes(digest(3))
        assert self.loaded(tmp_path, 100)[1] == [digest(1), digest(3)]

    def test_one_that_cannot_be_read_hides_no_other(self, tmp_path):
        (tmp_path / "1.stored").mkdir()
        (tmp_path / "2.stored").write_bytes(digest(3))
        assert self.loaded(tmp_path, 100)[1] == [digest(3)]

    def test_no_fewer_are_kept_than_the_window_needs(self, tmp_path):
        marks, _ = self.loaded(tmp_path, 10)
        for number in range(3):
            marks.write(str(number), [digest(number)] * 5)
        assert self.names(tmp_path) == ["1", "2"]
        marks.write("3", [digest(4)] * 4)
        assert self.names(tmp_path) == ["1", "2", "3"]
        marks.write("4", [digest(5)])
        assert self.names(tmp_path) == ["2", "3", "4"]

    def test_what_an_earlier_process_left_counts(self, tmp_path):
        for number in range(4):
            (tmp_path / f"{number}.stored").write_bytes(digest(number) * 5)
        assert len(self.loaded(tmp_path, 10)[1]) == 20
        assert self.names(tmp_path) == ["2", "3"]

    def test_nor_more_files_than_are_bounded(self, tmp_path, monkeypatch):
        monkeypatch.setattr(module, "_MAX_MARKS", 3)
        marks, _ = self.loaded(tmp_path, 100)
        for number in range(5):
            marks.write(str(number), [digest(number)])
        assert self.names(tmp_path) == ["2", "3", "4"]

    @pytest.mark.parametrize("begun", [True, False])
    def test_a_full_disk_keeps_no_stored_segment(self, tmp_path, monkeypatch, begun):
        """The rest of its mark is removed: half of it would hide a request of the same bytes."""
        spool = opened(tmp_path)
        segment = segment_of(spool, b"one")

        def full(path: Path, data: bytes) -> int:
            if begun:
                with path.open("wb") as file:
                    file.write(data[:8])
            raise OSError(errno.ENOSPC, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(Path, "write_bytes", full)
            spool.commit(segment)
        assert spool.waiting_bytes == 0
        assert [path.name for path in tmp_path.iterdir()] == ["lock"]

    def test_one_that_somebody_has_deleted_is_not_missed(self, tmp_path):
        marks, _ = self.loaded(tmp_path, 5)
        marks.write("1", [digest(1)] * 5)
        (tmp_path / "1.stored").unlink()
        marks.write("2", [digest(2)] * 5)
        assert self.names(tmp_path) == ["2"]


class TestReading:
    """Readings of a segment, as often as it is tried."""

    def test_what_is_gone_counts_once(self, tmp_path, caplog):
        spool = opened(tmp_path)
        payloads = b"first", b"second", b"third"
        segment = segment_of(spool, *payloads)
        assert (spool.read(segment).lost, spool.damaged_files) == (0, 0)
        lost = []
        for payload in (b"first", b"third"):
            flip(segment.path, payload)
            lost += [spool.read(segment).lost, spool.read(segment).lost]
        assert lost == [ITEMS, 0, ITEMS, 0]
        assert [record.lost for record in caplog.records] == [ITEMS, 2 * ITEMS]
        reading = spool.read(segment)
        assert [bytes(record.payload) for record in reading.records] == [b"second"]
        assert reading.gone == {segment.digests[0], segment.digests[2]}
        spool.commit(segment)
        note = orjson.loads((tmp_path / "damaged" / f"{segment.name}.json").read_bytes())
        assert (note["lost"], note["kept"]) == (2 * ITEMS, ITEMS)
        assert note["reason"] == "2 of its 3 requests cannot be read"
        assert note["counted"] == "spans"
        first, second, third = (Record.OVERHEAD + len(each) for each in payloads)
        assert note["unreadable"] == [
            {"offset": 0, "bytes": first},
            {"offset": first + second, "bytes": third},
        ]
        assert spool.damaged_files == 1

    def test_of_what_comes_back_nothing_more_is_lost(self, tmp_path):
        spool = opened(tmp_path)
        segment = segment_of(spool, b"first", b"second")
        whole = segment.path.read_bytes()
        flip(segment.path, b"first")
        assert spool.read(segment).lost == ITEMS
        segment.path.write_bytes(whole)
        reading = spool.read(segment)
        assert (len(reading.records), reading.gone, reading.lost) == (2, frozenset(), 0)

    def test_what_was_lost_before_the_start_is_in_the_note_and_counted_there_alone(self, tmp_path):
        spool = opened(tmp_path)
        segment = segment_of(spool, b"first", b"second", b"third")
        stop(spool)
        flip(segment.path, b"first")
        spool = begin(tmp_path, [ITEMS])
        segment = spool.next_segment(0.0)
        flip(segment.path, b"second")
        assert spool.read(segment).lost == ITEMS
        spool.commit(segment)
        note = orjson.loads((tmp_path / "damaged" / f"{segment.name}.json").read_bytes())
        assert (note["lost"], note["kept"]) == (2 * ITEMS, ITEMS)

    def test_only_what_is_stored_is_remembered_as_stored(self, tmp_path):
        """Should a sender send again what is lost, it is taken; also after a restart."""
        spool = opened(tmp_path)
        segment = segment_of(spool, b"first", b"second")
        flip(segment.path, b"first")
        spool.read(segment)
        spool.commit(segment)
        for _ in range(2):
            assert spool.append(b"second", ITEMS).duplicate
            assert not list(tmp_path.glob(f"*{RECEIPT}"))
            spool = opened(tmp_path)
        assert not spool.append(b"first", ITEMS).duplicate

    def test_of_a_segment_that_is_gone_nothing_is_marked(self, tmp_path):
        spool = opened(tmp_path)
        segment = segment_of(spool, b"first")
        segment.path.unlink()
        reading = spool.read(segment)
        assert (reading.records, reading.lost) == ([], ITEMS)
        spool.commit(segment)
        assert not list(tmp_path.glob("*.stored"))
        note = orjson.loads((tmp_path / "damaged" / f"{segment.name}.json").read_bytes())
        assert note["reason"] == "its file cannot be read (No such file or directory)"

    def test_a_file_that_cannot_be_read_for_now_is_read_later(self, tmp_path, monkeypatch):
        spool = opened(tmp_path)
        segment = segment_of(spool, b"first")

        with monkeypatch.context() as patch:
            patch.setattr("os.open", failing(errno.EMFILE))
            with pytest.raises(OSError, match="Too many"):
                spool.read(segment)
        assert spool.read(segment).lost == 0

    def test_a_stored_one_is_forgotten(self, tmp_path):
        folder = SegmentFolder(tmp_path, 100, "spans")
        spool = opened(tmp_path)
        segment = segment_of(spool, b"first")
        flip(segment.path, b"first")
        assert folder.read(segment).lost == ITEMS
        folder.remove(segment)
        folder.remove(segment)
        assert len(folder.damaged) == 1


class TestDamagedFiles:
    """The folder of damaged files, and the note in it."""

    LOSS = Loss("segment", "a reason", 7, 3, (Damage("segment", 44, 50, False),))

    def test_the_note_says_all_that_is_known(self, tmp_path):
        file = tmp_path / "segment.log"
        file.write_bytes(b"damaged")
        damaged = DamagedFiles(tmp_path, "log records")
        assert len(damaged) == 0
        damaged.set_aside(self.LOSS, [file, tmp_path / "missing"])
        folder = tmp_path / "damaged"
        assert (folder / "segment.log").read_bytes() == b"damaged"
        assert not file.exists()
        note = orjson.loads((folder / "segment.json").read_bytes())
        assert note.pop("found")[-1] == "Z"
        assert note == {
            "name": "segment",
            "reason": "a reason",
            "lost": 7,
            "kept": 3,
            "counted": "log records",
            "unreadable": [{"offset": 44, "bytes": 50}],
        }
        assert len(damaged) == 1
        assert folder.stat().st_mode & 0o777 == 0o700

    def test_the_note_has_the_time_of_the_finding_whatever_the_zone(self, tmp_path, monkeypatch):
        monkeypatch.setenv("TZ", "Asia/Kolkata")
        time.tzset()
        try:
            begun = int(time.time())
            DamagedFiles(tmp_path, "spans").set_aside(self.LOSS, [])
            ended = time.time()
        finally:
            monkeypatch.undo()
            time.tzset()
        note = orjson.loads((tmp_path / "damaged" / "segment.json").read_bytes())
        found = dt.datetime.strptime(note["found"], "%Y-%m-%dT%H:%M:%S%z")
        assert begun <= found.timestamp() <= ended

    def test_nothing_there_is_overwritten(self, tmp_path):
        damaged = DamagedFiles(tmp_path, "spans")
        for content in ("first", "second", "third"):
            file = tmp_path / "segment.log"
            file.write_text(content)
            damaged.set_aside(self.LOSS, [file])
        kept = {path.name: path.read_text() for path in (tmp_path / "damaged").glob("*.log")}
        assert kept == {"segment.log": "first", "1.segment.log": "second", "2.segment.log": "third"}
        assert len(list((tmp_path / "damaged").glob("*.json"))) == 3
        assert len(damaged) == 3

    def test_a_link_to_nowhere_is_set_aside_too(self, tmp_path):
        link = tmp_path / "segment.log"
        link.symlink_to(tmp_path / "nowhere")
        DamagedFiles(tmp_path, "spans").set_aside(self.LOSS, [link])
        assert (tmp_path / "damaged" / "segment.log").is_symlink()

    def test_of_many_areas_the_first_hundred_are_noted(self, tmp_path):
        areas = tuple(Damage("segment", offset, 1, False) for offset in range(200))
        DamagedFiles(tmp_path, "spans").set_aside(Loss("segment", "", 1, 1, areas), [])
        note = orjson.loads((tmp_path / "damaged" / "segment.json").read_bytes())
        assert [area["offset"] for area in note["unreadable"]] == list(range(100))

    def test_the_log_says_how_many_are_lost(self, tmp_path, caplog):
        damaged = DamagedFiles(tmp_path, "log records")
        damaged.report(self.LOSS)
        damaged.report(self.LOSS, "Ask somebody.")
        for told in caplog.records:
            assert (told.levelno, told.segment) == (logging.ERROR, "segment")
            assert (told.lost, told.kept) == (7, 3)
        assert caplog.records[1].message.endswith("Ask somebody.")
