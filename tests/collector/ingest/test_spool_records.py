"""The bytes of a segment: what is a record, the beginning of one, or none, and whose it is."""

from __future__ import annotations

import errno
import mmap
import os
import struct
from pathlib import Path

import pytest
import xxhash
from opened_spool import begin, begun, failing, put, stop, unreadable

from mast_trace_collector.spool import deduplication as recent_module
from mast_trace_collector.spool.reading import beyond_reading, content, scan
from mast_trace_collector.spool.record import (
    Record,
    _varint,
    claimed_items,
    marker_of,
    may_be_torn,
    owner,
    read_record,
)
from mast_trace_collector.spool.segment import (
    RECEIPT,
    Receipt,
    ReceiptWriter,
    chain,
    read_receipt,
    receipt_path,
)

NAME = "000000000007-00000000deadbeef"
OTHER = "000000000008-00000000deadbeef"
MARKER = marker_of(NAME)
HEADER_FIELD = b"\xca\x3e\x20"


def framed(payload: bytes, items: int = 1, name: str = NAME) -> bytes:
    return b"".join(Record.of(payload, items).parts(marker_of(name)))


def bare(payload: bytes, items: int = 1, name: str = NAME) -> bytes:
    """As the first version wrote it."""
    digest = xxhash.xxh3_128_digest(payload, items)
    return struct.pack("<8sII", marker_of(name), len(payload), items) + digest + payload


def flipped(data: bytes, at: int) -> bytes:
    changed = bytearray(data)
    changed[at] ^= 1
    return bytes(changed)


both = pytest.mark.parametrize("written", [framed, bare])


@both
class TestRecord:
    """One record, of this version and of the first."""

    def test_it_is_read_where_it_stands(self, written):
        data = written(b"before") + written(b"payload", 3) + written(b"after")
        offset = len(written(b"before"))
        record = read_record(memoryview(data), offset, MARKER)
        assert (bytes(record.payload), record.items, record.offset) == (b"payload", 3, offset)
        assert record.size == len(written(b"payload"))
        assert record.digest == Record.of(b"payload", 3).digest

    def test_any_beginning_of_it_may_be_torn_and_the_whole_is_not(self, written):
        before, data = written(b"before"), written(b"payload" * 20)
        for cut in range(1, len(data)):
            assert may_be_torn(memoryview(before + data[:cut]), len(before), MARKER), cut
            assert read_record(memoryview(before + data[:cut]), len(before), MARKER) is None
        assert not may_be_torn(memoryview(before + data), len(before), MARKER)

    def test_a_record_of_another_segment_is_neither_whole_nor_torn(self, written):
        data = written(b"payload" * 20, name=OTHER)
        assert read_record(memoryview(data), 0, MARKER) is None
        assert not may_be_torn(memoryview(data[:-1]), 0, MARKER)

    def test_what_damaged_headers_claim_is_added_up(self, written):
        """Spans of damaged headers are added up: without a receipt this is the best estimate of the loss."""
        data = memoryview(written(b"a" * 50, 2) + written(b"b" * 50, 3) + written(b"c" * 50, 4))
        one = len(data) // 3
        assert claimed_items(data, 0, len(data), MARKER) == 9
        assert claimed_items(data, one, 2 * one, MARKER) == 3
        assert claimed_items(data, 1, 2, MARKER) == 0

    def test_a_header_at_the_end_claims_and_half_of_one_does_not(self, written):
        data = written(b"")
        end = data.index(MARKER) + 32
        assert claimed_items(memoryview(data), 0, end, MARKER) == 1
        assert claimed_items(memoryview(data), 0, end - 1, MARKER) == 0

    def test_no_more_is_claimed_than_could_have_stood_there(self, written):
        data = memoryview(written(b"a", 1_000_000))
        assert claimed_items(data, 0, len(data), MARKER) == len(data)

    def test_it_tells_whose_it_is(self, written, tmp_path):
        path = tmp_path / "file"
        names = {marker_of(name): name for name in (NAME, OTHER)}
        path.write_bytes(written(b"payload", name=OTHER))
        assert owner(content(path), names) == OTHER
        path.write_bytes(written(b"payload", name="unknown"))
        assert owner(content(path), names) is None

    def test_an_empty_one_at_the_end_is_read(self, written):
        data = memoryview(written(b"payload") + written(b""))
        assert read_record(data, len(written(b"payload")), MARKER).payload == b""

    def test_it_is_found_behind_a_single_strange_byte(self, written):
        found = list(scan(NAME, memoryview(mapped(b"?" + written(b"one")))))
        assert [each.size for each in found] == [1, len(written(b"one"))]
        assert found[1].payload == b"one"


def mapped(data: bytes) -> mmap.mmap:
    """Memory that can be searched, as a mapped file can."""
    memory = mmap.mmap(-1, len(data))
    memory[:] = data
    return memory


@pytest.mark.parametrize("number", [0, 127, 128, 300, 70_000, 2**31 + 5])
def test_the_length_before_a_record_is_a_varint_of_five_bytes(number):
    data = _varint(number)
    assert len(data) == 5
    assert [byte >> 7 for byte in data] == [1, 1, 1, 1, 0]
    assert sum((byte & 0x7F) << 7 * place for place, byte in enumerate(data)) == number


def test_a_record_whose_frame_is_damaged_is_no_message():
    """The engine, which reads the file as messages, must not be given it."""
    data = framed(b"payload" * 30)
    for at in (0, 1, 4, 5, 7):
        broken = memoryview(flipped(data, at))
        record = read_record(broken, 0, MARKER)
        assert record.payload == b"payload" * 30
        assert not record.is_message(broken, MARKER)
    whole = memoryview(data)
    assert read_record(whole, 0, MARKER).is_message(whole, MARKER)
    cut = memoryview(flipped(data, len(data) - 1))
    assert not read_record(cut, 0, MARKER).is_message(cut, MARKER)
    first = memoryview(bare(b"payload"))
    assert not read_record(first, 0, MARKER).is_message(first, MARKER)


def test_no_bytes_of_a_sender_hide_whose_records_these_are(tmp_path):
    """A sender's bytes may look like a header's first bytes, before and after the first true one."""
    path = tmp_path / "file"
    names = {marker_of(NAME): NAME}
    path.write_bytes(HEADER_FIELD + b"?" * 20 + framed(b"one" + HEADER_FIELD + b"two"))
    assert owner(content(path), names) == NAME


def test_a_frame_that_says_another_length_is_none_of_ours():
    data = framed(b"payload")
    longer = framed(b"payload" * 2)[:5]
    assert not may_be_torn(memoryview(longer + data[5:-1]), 0, MARKER)
    assert not may_be_torn(memoryview(b"\x01" + data[1:-1]), 0, MARKER)
    assert not may_be_torn(memoryview(data[:4] + b"\x80" + data[5:-1]), 0, MARKER)
    assert not may_be_torn(memoryview(data[:5] + b"?" + data[6:-1]), 0, MARKER)


class TestScan:
    """All of a segment, one after the other, without a gap."""

    def found(self, data: bytes) -> list[tuple[str, int, int]]:
        return [
            (type(each).__name__, each.offset, each.size) for each in scan(NAME, memoryview(data))
        ]

    def test_damage_ends_where_the_next_whole_record_begins(self):
        first, second, third = framed(b"first"), framed(b"second"), framed(b"third")
        assert self.found(first + flipped(second, 45) + third) == [
            ("Record", 0, len(first)),
            ("Damage", len(first), len(second)),
            ("Record", len(first) + len(second), len(third)),
        ]

    def test_two_damaged_ones_beside_each_other_are_one_area(self):
        parts = [framed(b"%d" % number) for number in range(4)]
        data = parts[0] + flipped(parts[1], 20) + flipped(parts[2], 20) + parts[3]
        size = len(parts[0])
        assert self.found(data)[1] == ("Damage", size, 2 * size)

    def test_only_what_is_at_the_end_can_be_torn(self):
        whole = framed(b"whole")
        first, _, last = scan(NAME, memoryview(whole[:-6] + whole + whole[:-6]))
        assert (first.torn, last.torn) == (False, True)
        begun, _ = scan(NAME, memoryview(framed(b"long" * 500)[:60] + whole))
        assert not begun.torn, "a longer one than what is left, with a whole one behind it"
        assert first.segment == last.segment == NAME


class TestContent:
    """A file's bytes, or the error that it has none."""

    @pytest.mark.parametrize(
        ("error", "beyond"),
        [
            (errno.ENOENT, True),
            (errno.EACCES, True),
            (errno.EPERM, True),
            (errno.EISDIR, True),
            (errno.ELOOP, True),
            (errno.ENXIO, True),
            (errno.EMFILE, False),
            (errno.ENFILE, False),
            (errno.ENOMEM, False),
            (errno.EIO, False),
        ],
    )
    def test_what_waiting_does_not_mend(self, error, beyond):
        assert beyond_reading(OSError(error, os.strerror(error))) is beyond

    def test_blocks_that_the_disk_cannot_read_are_zero(self, tmp_path, monkeypatch):
        data = bytes(range(1, 251)) * 100
        path = tmp_path / "file"
        path.write_bytes(data)
        bad = unreadable(lambda _, begin, end: begin <= 8192 < end)
        monkeypatch.setattr(os, "preadv", bad)
        assert bytes(content(path)) == data[:8192] + bytes(4096) + data[12288:]

    def test_a_bad_block_far_behind_is_found_before_it_is_mapped(self, tmp_path, monkeypatch):
        """Mapped, it would end the process."""
        path = tmp_path / "file"
        path.write_bytes(b"x" * (2**21 + 5))

        def bad(_: int, begin: int, end: int) -> bool:
            assert end - begin <= 2**20, "it is not held in memory as a whole"
            return end > 2**21

        monkeypatch.setattr(os, "preadv", unreadable(bad))
        assert bytes(content(path)) == b"x" * 2**21 + bytes(5)

    def test_nothing_stays_open(self, tmp_path):
        path = tmp_path / "file"
        path.write_bytes(b"x" * 5000)
        for _ in range(5):
            assert len(content(path)) == 5000
            with pytest.raises(OSError, match="no regular file"):
                content(tmp_path)
        opened = [os.path.realpath(each) for each in Path("/proc/self/fd").iterdir()]
        assert not {str(path), str(tmp_path)} & set(opened)

    def test_an_empty_one_has_none(self, tmp_path):
        (tmp_path / "file").touch()
        assert bytes(content(tmp_path / "file")) == b""


class TestReceipt:
    """Receipts of what was acknowledged, as far as they can be believed."""

    DIGESTS = (b"1" * 16, b"2" * 16, b"3" * 16)

    def written(self, folder: Path) -> tuple[Path, Receipt]:
        segment = folder / f"{NAME}.log"
        receipt = Receipt(1000, 2, 7, chain(self.DIGESTS[:2]).digest())
        writer = ReceiptWriter(segment)
        writer.write(Receipt(0, 0, 0, chain().digest()))
        writer.write(receipt)
        writer.close()
        return receipt_path(segment), receipt

    def test_it_says_what_was_written_last(self, tmp_path):
        path, receipt = self.written(tmp_path)
        assert read_receipt(path) == receipt
        assert path.stat().st_mode & 0o777 == 0o600

    def test_no_changed_bit_is_believed(self, tmp_path):
        path, _ = self.written(tmp_path)
        data = path.read_bytes()
        for at in range(len(data)):
            path.write_bytes(flipped(data, at))
            assert read_receipt(path) is None
        for wrong in (b"", data[:-1], data + b"\0"):
            path.write_bytes(wrong)
            assert read_receipt(path) is None

    def test_nor_is_that_of_another_segment(self, tmp_path):
        path, _ = self.written(tmp_path)
        assert read_receipt(path.rename(tmp_path / f"{OTHER}{RECEIPT}")) is None
        assert read_receipt(path) is None

    def test_it_covers_what_begins_with_the_acknowledged_in_order(self, tmp_path):
        _, receipt = self.written(tmp_path)
        first, second, third = self.DIGESTS
        assert receipt.covers([first, second])
        assert receipt.covers([first, second, third])
        assert not receipt.covers([first])
        assert not receipt.covers([second, first])
        assert not receipt.covers([first, third])

    def test_one_that_is_there_already_is_not_written_over(self, tmp_path):
        path, receipt = self.written(tmp_path)
        with pytest.raises(FileExistsError):
            ReceiptWriter(path.with_suffix(".log"))
        assert read_receipt(path) == receipt


class TestTakingUp:
    """Findings of a process that starts, its words, and the files that it leaves."""

    def filled(self, folder: Path, *payloads: bytes) -> Path:
        spool = begin(folder)
        put(spool, *payloads, items=5)
        stop(spool)
        (path,) = folder.glob("*.log")
        return path

    def test_it_says_where_the_damage_is(self, tmp_path):
        path = self.filled(tmp_path, b"first" * 10, b"second" * 10)
        data = path.read_bytes()
        first = len(framed(b"first" * 10))
        path.write_bytes(flipped(data, first + 50))
        _, (loss,) = begun(tmp_path)
        expected = f"{len(data) - first} of its {len(data)} bytes, from {first} on, hold no request"
        assert loss.reason == f"{expected} of {path.stem}"
        assert (loss.name, loss.lost, loss.kept) == (path.stem, 5, 5)

    def test_it_says_how_much_was_cut_off(self, tmp_path):
        path = self.filled(tmp_path, b"first", b"second")
        size, kept = path.stat().st_size, len(framed(b"first"))
        os.truncate(path, kept)
        spool, (loss,) = begun(tmp_path)
        assert loss.reason == f"it has {kept} bytes where {size} were acknowledged"
        # It counts as what it was: by its size the way into the database is chosen.
        assert spool.waiting_bytes == size

    def test_an_unfinished_write_that_stays_holds_nothing_up(self, tmp_path, monkeypatch):
        path = self.filled(tmp_path, b"first")
        with path.open("ab") as file:
            file.write(framed(b"second", name=path.stem)[:-1])

        monkeypatch.setattr(os, "truncate", failing(errno.EPERM))
        spool = begin(tmp_path)
        segment = spool.next_segment(0.0)
        assert [bytes(each.payload) for each in spool.read(segment).records] == [b"first"]
        spool.commit(segment)
        assert spool.damaged_files == 0

    @pytest.mark.parametrize("receipt", ["garbage", "folder", "of nothing", "of a stored one"])
    def test_other_receipts_alone_tell_of_no_loss(self, tmp_path, receipt):
        path = self.filled(tmp_path, b"first")
        alone = receipt_path(path)
        path.unlink()
        if receipt == "garbage":
            alone.write_bytes(b"garbage")
        elif receipt == "folder":
            alone.unlink()
            alone.mkdir()
        elif receipt == "of nothing":
            alone.write_bytes(Receipt(0, 0, 0, chain().digest()).packed(path.stem))
        else:
            path.with_suffix(".stored").write_bytes(Record.of(b"first", 5).digest)
        begin(tmp_path)
        assert alone.exists() == (receipt == "folder")

    @pytest.mark.parametrize(("older", "lost"), [(-1, []), (0, [5]), (1, [5])])
    def test_an_older_receipt_may_be_of_a_stored_segment(self, tmp_path, monkeypatch, older, lost):
        """As many marks are kept as are bounded; what is not older than they are would have one."""
        monkeypatch.setattr(recent_module, "_MAX_MARKS", 2)
        path = self.filled(tmp_path, b"first")
        path.unlink()
        for number in (1, 2):
            mark = tmp_path / f"{number:012d}-00000000deadbeef.stored"
            mark.write_bytes(bytes(16))
            os.utime(mark, (1000 + number, 1000 + number))
        os.utime(receipt_path(path), (1001 + older, 1001 + older))
        begin(tmp_path, lost)

    def test_segments_of_the_first_version_that_changed_places_get_their_names_back(self, tmp_path):
        tmp_path.joinpath(f"{OTHER}.log").write_bytes(bare(b"first"))
        tmp_path.joinpath(f"{NAME}.log").write_bytes(bare(b"second", name=OTHER))
        begin(tmp_path)
        assert tmp_path.joinpath(f"{NAME}.log").read_bytes() == bare(b"first")
        assert tmp_path.joinpath(f"{OTHER}.log").read_bytes() == bare(b"second", name=OTHER)

    def test_a_move_that_was_broken_off_goes_on(self, tmp_path):
        path = self.filled(tmp_path, b"first")
        path.rename(path.with_suffix(".moved"))
        spool = begin(tmp_path)
        assert spool.waiting_items == 5
        assert path.exists()
