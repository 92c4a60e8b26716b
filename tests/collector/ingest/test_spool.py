"""The spool keeps what it acknowledged, and nothing that it did not."""

from __future__ import annotations

import io
import os
import struct
import threading
from concurrent.futures import wait
from typing import TYPE_CHECKING

import pytest
import xxhash
from google.protobuf.proto import parse_length_prefixed
from google.protobuf.unknown_fields import UnknownFieldSet
from hypothesis import given, settings
from hypothesis import strategies as st
from ingest_support import body_of
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from mast_trace.exceptions import CollectorError
from mast_trace_collector.spool import Refused, Segment, Spool, SpoolLimits
from mast_trace_collector.spool.receipt import receipt_path
from mast_trace_collector.spool.record import Record, marker_of, may_be_torn
from mast_trace_collector.spool.segment import SegmentWriter

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LIMITS = SpoolLimits(
    max_bytes=10_000_000,
    min_free_bytes=0,
    segment_bytes=1_000_000,
    segment_items=1_000_000,
    segment_age=0.0,
    duplicate_window=1000,
)


def limits(**changed: float) -> SpoolLimits:
    return SpoolLimits(**{**LIMITS.__dict__, **changed})


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[Spool]:
    spool = Spool(tmp_path / "spool", LIMITS)
    spool.open()
    yield spool
    spool.close()
    spool.release()


def reopened(spool: Spool, **changed: float) -> Spool:
    """What a new process finds after the old one is gone."""
    spool.close()
    spool.release()
    after = Spool(spool._directory, limits(**changed))
    after.open()
    return after


def put(spool: Spool, *payloads: bytes) -> None:
    for ticket in [spool.append(payload, 1) for payload in payloads]:
        ticket.durable.result(timeout=10)


def waiting(spool: Spool) -> list[bytes]:
    """Payloads of all segments; they stay in the spool."""
    segments = []
    while (segment := spool.next_segment(0.0)) is not None:
        segments.append(segment)
    for segment in segments:
        spool.give_back(segment)
    return [bytes(record.payload) for segment in segments for record in segment.read()[0]]


class TestSpool:
    """Order, identity and accounting."""

    def test_hands_on_what_it_acknowledged_in_order(self, spool: Spool) -> None:
        put(spool, b"one", b"two", b"three")
        assert waiting(spool) == [b"one", b"two", b"three"]

    def test_an_acknowledged_request_is_on_disk(self, spool: Spool, tmp_path: Path) -> None:
        put(spool, b"precious")
        (segment,) = (tmp_path / "spool").glob("*.log")
        assert b"precious" in segment.read_bytes()

    def test_a_committed_segment_is_gone_for_good(self, spool: Spool) -> None:
        put(spool, b"one")
        segment = spool.next_segment(5.0)
        assert segment is not None
        spool.commit(segment)
        assert not segment.path.exists()
        assert spool.waiting_bytes == spool.waiting_items == 0
        after = reopened(spool)
        assert waiting(after) == []
        after.close()

    def test_a_segment_that_was_taken_but_not_committed_comes_back(self, spool: Spool) -> None:
        put(spool, b"one")
        taken = spool.next_segment(5.0)
        after = reopened(spool)
        again = after.next_segment(5.0)
        assert taken is not None
        assert again is not None
        assert (again.name, again.items, again.digests) == (taken.name, 1, taken.digests)
        after.close()

    def test_segments_are_closed_at_their_size(self, spool: Spool) -> None:
        put(spool, *(bytes([number]) * 400_000 for number in range(6)))
        sizes = []
        while (segment := spool.next_segment(0.0)) is not None:
            sizes.append(segment.size)
        assert all(size < 1_000_000 + 400_100 for size in sizes)
        assert len(sizes) == 2

    def test_segments_are_closed_at_their_number_of_spans(self, tmp_path: Path) -> None:
        """Also where requests gather while one is written."""
        spool = Spool(tmp_path / "spool", limits(segment_items=10, segment_age=60.0))
        spool.open()
        with spool._writing:
            tickets = [spool.append(b"%d" % number, 4) for number in range(7)]
        for ticket in tickets:
            ticket.durable.result(timeout=10)
        items = []
        while (segment := spool.next_segment(0.0)) is not None:
            items.append(segment.items)
        assert items == [12, 12]
        spool.close()
        spool.release()

    def test_segment_names_never_repeat_even_when_the_folder_is_lost(self, tmp_path: Path) -> None:
        names = set()
        for folder in ("first", "second"):
            spool = Spool(tmp_path / folder, LIMITS)
            spool.open()
            put(spool, b"one")
            segment = spool.next_segment(5.0)
            assert segment is not None
            names.add(segment.name)
            spool.close()
        assert len(names) == 2

    def test_a_segment_given_back_lets_others_pass(self, spool: Spool) -> None:
        put(spool, b"stuck")
        stuck = spool.next_segment(5.0)
        put(spool, b"fine")
        spool.seal()
        assert stuck is not None
        spool.give_back(stuck)
        fine = spool.next_segment(5.0)
        assert fine is not None
        assert [record.payload for record in fine.read()[0]] == [b"fine"]

    def test_many_threads_share_syncs_and_lose_nothing(
        self, spool: Spool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        syncs = []
        real = os.fdatasync
        monkeypatch.setattr(os, "fdatasync", lambda file: (syncs.append(1), real(file)))
        payloads = [f"{thread}-{number}".encode() for thread in range(8) for number in range(50)]
        tickets = []

        def send(part: list[bytes]) -> None:
            tickets.extend(spool.append(payload, 1) for payload in part)

        threads = [threading.Thread(target=send, args=(payloads[n::8],)) for n in range(8)]
        with spool._writing:  # the disk is busy while they arrive
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert not wait([ticket.durable for ticket in tickets], timeout=30).not_done
        assert sorted(waiting(spool)) == sorted(payloads)
        assert len(syncs) < len(payloads)

    @given(
        sizes=st.lists(st.sampled_from([0, 1, 700, 2**20 - 1, 2**20, 3 * 2**20 + 5]), max_size=6),
        many=st.sampled_from([0, 1023, 1024, 2500]),
        accepts=st.sampled_from([1, 4096, 2**30]),
    )
    @settings(max_examples=30, deadline=None)
    def test_records_of_any_size_are_written_whole_however_little_the_disk_takes(
        self, tmp_path_factory: pytest.TempPathFactory, sizes: list[int], many: int, accepts: int
    ) -> None:
        """A write takes as much as it likes; it is handed a mebibyte at most, and 1,024 pieces."""
        really = os.writev

        def writev(file: int, views: list[memoryview]) -> int:
            assert len(views) <= 1024
            assert sum(map(len, views)) <= 2**20
            most = max(accepts, len(views[0]) - 1)
            return really(file, views) if accepts > 2**20 else os.write(file, views[0][:most])

        writer = SegmentWriter(tmp_path_factory.mktemp("spool") / "000000000001-ab.log")
        payloads = [os.urandom(size) for size in sizes] + [b"%d" % n for n in range(many)]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "writev", writev)
            writer.append([Record.of(payload, 1) for payload in payloads])
        segment = writer.close(0.0)
        assert [bytes(record.payload) for record in segment.read()[0]] == payloads
        assert not payloads or segment.intact()

    def test_one_process_at_a_time_uses_the_folder(self, spool: Spool, tmp_path: Path) -> None:
        with pytest.raises(CollectorError, match="another collector"):
            Spool(tmp_path / "spool", LIMITS).open()


class TestDuplicates:
    """A request that is sent again is acknowledged and kept once."""

    def test_while_it_waits(self, spool: Spool) -> None:
        put(spool, b"one")
        again = spool.append(b"one", 1)
        assert again.duplicate
        assert again.durable.result(timeout=5) is None
        assert waiting(spool) == [b"one"]

    def test_after_it_was_stored(self, spool: Spool) -> None:
        put(spool, b"one")
        segment = spool.next_segment(5.0)
        assert segment is not None
        spool.commit(segment)
        assert spool.append(b"one", 1).duplicate

    @pytest.mark.parametrize("stored", [False, True])
    def test_after_a_restart(self, spool: Spool, stored: bool) -> None:
        put(spool, b"one")
        if stored:
            segment = spool.next_segment(5.0)
            assert segment is not None
            spool.commit(segment)
        after = reopened(spool)
        assert after.append(b"one", 1).duplicate
        assert not after.append(b"two", 1).duplicate
        after.close()

    def test_a_crash_between_mark_and_removal_stores_nothing_twice(self, spool: Spool) -> None:
        put(spool, b"one")
        segment = spool.next_segment(5.0)
        assert segment is not None
        kept = segment.path.read_bytes()
        spool.commit(segment)
        segment.path.write_bytes(kept)
        after = reopened(spool)
        assert waiting(after) == []
        assert after.append(b"one", 1).duplicate
        assert not segment.path.exists()
        after.close()

    def test_the_window_forgets_the_oldest(self, tmp_path: Path) -> None:
        spool = Spool(tmp_path, limits(duplicate_window=10))
        spool.open()
        put(spool, *(str(number).encode() for number in range(11)))
        assert not spool.append(b"0", 1).duplicate
        assert spool.append(b"10", 1).duplicate
        spool.close()

    def test_marks_on_disk_are_bounded_by_the_window(self, tmp_path: Path) -> None:
        spool = Spool(tmp_path, limits(duplicate_window=5))
        spool.open()
        for number in range(20):
            put(spool, str(number).encode())
            segment = spool.next_segment(5.0)
            assert segment is not None
            spool.commit(segment)
        assert len(list(tmp_path.glob("*.stored"))) == 5
        spool.close()
        spool.release()
        after = Spool(tmp_path, limits(duplicate_window=5))
        after.open()
        assert after.append(b"19", 1).duplicate
        assert not after.append(b"3", 1).duplicate
        after.close()


class TestRefusal:
    """A bound that is reached turns into a refusal, never into a loss or a crash."""

    def test_at_the_size_bound_until_room_is_made(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        spool = Spool(tmp_path, limits(max_bytes=1000))
        spool.open()
        put(spool, b"a" * 900)
        for _ in range(3):
            with pytest.raises(Refused) as refused:
                spool.append(b"b" * 200, 1)
            assert refused.value.reason == "spool_full"
        (told,) = caplog.messages
        assert "requests are refused: too much is waiting" in told
        segment = spool.next_segment(5.0)
        assert segment is not None
        spool.commit(segment)
        put(spool, b"b" * 200)
        assert caplog.messages[1:] == ["requests are taken again"]
        spool.close()

    def test_when_the_disk_must_keep_room_for_the_database(self, tmp_path: Path) -> None:
        spool = Spool(tmp_path, limits(min_free_bytes=1 << 60))
        spool.open()
        with pytest.raises(Refused) as refused:
            spool.append(b"one", 1)
        assert refused.value.reason == "disk_full"
        spool.close()

    def test_after_closing(self, spool: Spool) -> None:
        spool.close()
        with pytest.raises(Refused, match="stopping"):
            spool.append(b"one", 1)

    def test_a_failed_sync_refuses_the_group_and_the_next_one_is_kept(
        self, spool: Spool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        put(spool, b"before")
        real = os.fdatasync

        def failing(file: int) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fdatasync", failing)
        ticket = spool.append(b"lost", 1)
        with pytest.raises(Refused, match="No space left"):
            ticket.durable.result(timeout=10)
        monkeypatch.setattr(os, "fdatasync", real)
        with pytest.raises(Refused, match="nearly full"):
            spool.append(b"too soon", 1)
        spool._room._checked = 0.0
        put(spool, b"after")
        assert waiting(spool) == [b"before", b"after"]
        assert not spool.append(b"lost", 1).duplicate
        after = reopened(spool)
        assert sorted(waiting(after)) == [b"after", b"before", b"lost"]
        after.close()


def written(folder: Path, payloads: list[bytes]) -> Path:
    """A segment as a killed process leaves it."""
    spool = Spool(folder, LIMITS)
    spool.open()
    put(spool, *payloads)
    spool.close()
    spool.release()
    (path,) = folder.glob("*.log")
    return path


PAYLOADS = st.lists(st.binary(min_size=1, max_size=60), min_size=1, max_size=8, unique=True)


class TestRecovery:
    """Whatever a crash leaves of the tail, the whole records before it come back."""

    @settings(max_examples=60, deadline=None)
    @given(payloads=PAYLOADS, cut=st.floats(0, 1), old=st.booleans())
    def test_any_truncation_loses_only_the_records_it_cuts(
        self, tmp_path_factory: pytest.TempPathFactory, payloads: list[bytes], cut: float, old: bool
    ) -> None:
        """A segment of an earlier version has no receipt: what is cut off may be unfinished."""
        path = written(tmp_path_factory.mktemp("spool"), payloads)
        keep = int(path.stat().st_size * cut)
        os.truncate(path, keep)
        if old:
            receipt_path(path).unlink()
        spool = Spool(path.parent, LIMITS)
        losses = spool.open()
        whole, end = [], 0
        for payload in payloads:
            end += 44 + len(payload)
            if end <= keep:
                whole.append(payload)
        assert waiting(spool) == whole
        lost = 0 if old else len(payloads) - len(whole)
        assert [loss.lost for loss in losses] == [lost] * bool(lost)
        spool.close()
        spool.release()

    @settings(max_examples=60, deadline=None)
    @given(payloads=PAYLOADS, more=st.binary(min_size=1, max_size=60), cut=st.floats(0, 0.999))
    def test_what_was_never_acknowledged_is_cut_off(
        self,
        tmp_path_factory: pytest.TempPathFactory,
        payloads: list[bytes],
        more: bytes,
        cut: float,
    ) -> None:
        path = written(tmp_path_factory.mktemp("spool"), payloads)
        size = path.stat().st_size
        torn = b"".join(Record.of(more, 1).parts(marker_of(path.stem)))
        with path.open("ab") as file:
            file.write(torn[: int(len(torn) * cut)])
        spool = Spool(path.parent, LIMITS)
        assert spool.open() == []
        assert waiting(spool) == payloads
        assert path.stat().st_size == size
        assert spool.damaged_files == 0
        spool.close()
        spool.release()

    @settings(max_examples=60, deadline=None)
    @given(payloads=PAYLOADS, garbage=st.binary(min_size=1, max_size=200))
    def test_a_garbage_tail_is_no_unfinished_write(
        self, tmp_path_factory: pytest.TempPathFactory, payloads: list[bytes], garbage: bytes
    ) -> None:
        path = written(tmp_path_factory.mktemp("spool"), payloads)
        torn = may_be_torn(memoryview(garbage), 0, marker_of(path.stem))
        with path.open("ab") as file:
            file.write(garbage)
        spool = Spool(path.parent, LIMITS)
        assert [loss.lost for loss in spool.open()] == [0] * (not torn)
        assert waiting(spool) == payloads
        spool.close()
        spool.release()

    @settings(max_examples=60, deadline=None)
    @given(payloads=PAYLOADS, where=st.floats(0, 0.999), bit=st.integers(0, 7))
    def test_a_flipped_bit_damages_one_record_only(
        self,
        tmp_path_factory: pytest.TempPathFactory,
        payloads: list[bytes],
        where: float,
        bit: int,
    ) -> None:
        path = written(tmp_path_factory.mktemp("spool"), payloads)
        data = bytearray(path.read_bytes())
        position = int(len(data) * where)
        data[position] ^= 1 << bit
        path.write_bytes(data)
        hit, begin = 0, 0
        while position >= begin + 44 + len(payloads[hit]):
            begin += 44 + len(payloads[hit])
            hit += 1
        # What only makes a message of the record may be damaged: the record is whole.
        lost = 8 <= position - begin < 40 + len(payloads[hit])
        digests = tuple(Record.of(payload, 1).digest for payload in payloads)
        assert not Segment(path, len(data), 0, digests, 0.0).intact()
        spool = Spool(path.parent, LIMITS)
        losses = spool.open()
        assert waiting(spool) == payloads[:hit] + payloads[hit + lost :]
        assert [loss.lost for loss in losses] == [1] * lost
        spool.close()
        spool.release()

    def test_a_segment_is_what_was_written_or_it_is_not_intact(self, tmp_path: Path) -> None:
        path = written(tmp_path, [b"one", b"two" * 100])
        size = path.stat().st_size
        digests = tuple(Record.of(payload, 1).digest for payload in (b"one", b"two" * 100))
        segment = Segment(path, size, 2, digests, 0.0)
        assert segment.intact()
        path.write_bytes(path.read_bytes() + b"more")
        assert not segment.intact()
        os.truncate(path, size - 1)
        assert not segment.intact()

    def test_a_segment_is_a_stream_of_delimited_messages(self, tmp_path: Path) -> None:
        """As the Protobuf library reads it: OTLP requests with two fields that OTLP lacks."""
        path = written(tmp_path, [body_of("a", "b"), body_of("c")])
        data = io.BytesIO(path.read_bytes())
        names = []
        while (message := parse_length_prefixed(ExportTraceServiceRequest, data)) is not None:
            spans = message.resource_spans[0].scope_spans[0].spans
            names.append([span.name for span in spans])
            assert [field.field_number for field in UnknownFieldSet(message)] == [1001, 1000]
        assert names == [["a", "b"], ["c"]]

    def test_a_segment_of_the_first_version_is_stored(self, tmp_path: Path) -> None:
        """Its records have no frame; some of them are damaged."""
        path = tmp_path / f"{7:012d}-00000000deadbeef.log"
        marker = xxhash.xxh64_digest(path.stem.encode())
        records = [
            struct.pack("<8sII", marker, len(body), 1) + xxhash.xxh3_128_digest(body, 1) + body
            for body in (body_of("a"), body_of("b"), body_of("c"))
        ]
        path.write_bytes(records[0] + records[1][:-1] + b"?" + records[2])
        spool = Spool(tmp_path, LIMITS)
        (loss,) = spool.open()
        assert loss.lost == 1
        assert [(area.offset, area.size) for area in loss.areas] == [
            (len(records[0]), len(records[1]))
        ]
        assert waiting(spool) == [body_of("a"), body_of("c")]
        spool.close()

    @pytest.mark.parametrize("count", [2, 3])
    def test_in_a_first_version_no_payload_makes_the_next_record_a_framed_one(
        self, tmp_path: Path, count: int
    ) -> None:
        path = tmp_path / f"{7:012d}-00000000deadbeef.log"
        marker = xxhash.xxh64_digest(path.stem.encode())
        bodies = [b"one\xca\x3e\x20", b"two\xca\x3e\x20", b"three"][:count]
        records = [
            struct.pack("<8sII", marker, len(body), 1) + xxhash.xxh3_128_digest(body, 1) + body
            for body in bodies
        ]
        path.write_bytes(b"?" + b"".join(records)[1:])
        spool = Spool(tmp_path, LIMITS)
        (loss,) = spool.open()
        assert [area.size for area in loss.areas] == [len(records[0])]
        assert waiting(spool) == bodies[1:]
        spool.close()

    def test_a_payload_cannot_pass_for_a_record_of_a_damaged_segment(self, tmp_path: Path) -> None:
        """What looks like a record in another segment is not one in this."""
        other = written(tmp_path / "other", [b"forged"]).read_bytes()
        path = written(tmp_path / "spool", [other, b"true"])
        data = bytearray(path.read_bytes())
        data[17] ^= 1  # the length of the first record
        path.write_bytes(data)
        spool = Spool(path.parent, LIMITS)
        (loss,) = spool.open()
        assert loss.lost == 1
        assert loss.areas[0].size > len(other)
        assert waiting(spool) == [b"true"]
        spool.close()

    def test_an_empty_segment_is_removed(self, tmp_path: Path) -> None:
        """A crash between its creation and its first write leaves it, with or without a receipt."""
        path = tmp_path / f"{7:012d}-00000000deadbeef.log"
        SegmentWriter(path).close(0.0)
        (tmp_path / f"{8:012d}-00000000deadbeef.log").touch()
        spool = Spool(tmp_path, LIMITS)
        assert spool.open() == []
        assert [path.name for path in tmp_path.iterdir()] == ["lock"]
        spool.close()
