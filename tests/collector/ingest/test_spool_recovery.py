"""The whole records before any remains of a crash come back."""

from __future__ import annotations

import io
import os
import struct
from typing import TYPE_CHECKING

import pytest
import xxhash
from google.protobuf.proto import parse_length_prefixed
from google.protobuf.unknown_fields import UnknownFieldSet
from hypothesis import given, settings
from hypothesis import strategies as st
from ingest_support import body_of
from opened_spool import begin, begun, flip, put, stop, take, waiting
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from mast_trace_collector.spool import Segment
from mast_trace_collector.spool.record import Record, marker_of, may_be_torn
from mast_trace_collector.spool.segment import SegmentWriter, receipt_path

if TYPE_CHECKING:
    from pathlib import Path


def written(folder: Path, payloads: list[bytes]) -> Path:
    """A segment as a killed process leaves it."""
    spool = begin(folder)
    put(spool, *payloads)
    stop(spool)
    (path,) = folder.glob("*.log")
    return path


FIRST = f"{7:012d}-00000000deadbeef.log"
"""The name of a segment of the first version."""


def bare(*bodies: bytes) -> list[bytes]:
    """Records of the first version."""
    marker = xxhash.xxh64_digest(FIRST.removesuffix(".log").encode())
    return [
        struct.pack("<8sII", marker, len(body), 1) + xxhash.xxh3_128_digest(body, 1) + body
        for body in bodies
    ]


PAYLOADS = st.lists(st.binary(min_size=1, max_size=60), min_size=1, max_size=8, unique=True)


class TestRecovery:
    """The whole records before any torn tail come back."""

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
        spool, losses = begun(path.parent)
        whole, end = [], 0
        for payload in payloads:
            end += 44 + len(payload)
            if end <= keep:
                whole.append(payload)
        assert waiting(spool) == whole
        lost = 0 if old else len(payloads) - len(whole)
        assert [loss.lost for loss in losses] == [lost] * bool(lost)
        stop(spool)

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
        spool = begin(path.parent)
        assert waiting(spool) == payloads
        assert path.stat().st_size == size
        assert spool.damaged_files == 0
        stop(spool)

    @settings(max_examples=60, deadline=None)
    @given(payloads=PAYLOADS, garbage=st.binary(min_size=1, max_size=200))
    def test_a_garbage_tail_is_no_unfinished_write(
        self, tmp_path_factory: pytest.TempPathFactory, payloads: list[bytes], garbage: bytes
    ) -> None:
        path = written(tmp_path_factory.mktemp("spool"), payloads)
        torn = may_be_torn(memoryview(garbage), 0, marker_of(path.stem))
        with path.open("ab") as file:
            file.write(garbage)
        spool = begin(path.parent, [0] * (not torn))
        assert waiting(spool) == payloads
        stop(spool)

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
        """Records of the first version have no frame; some of them are damaged."""
        records = bare(body_of("a"), body_of("b"), body_of("c"))
        (tmp_path / FIRST).write_bytes(records[0] + records[1][:-1] + b"?" + records[2])
        spool, (loss,) = begun(tmp_path)
        assert loss.lost == 1
        (area,) = loss.areas
        assert (area.offset, area.size) == (len(records[0]), len(records[1]))
        assert waiting(spool) == [body_of("a"), body_of("c")]

    @pytest.mark.parametrize("count", [2, 3])
    def test_no_payload_makes_the_next_one_framed(self, tmp_path: Path, count: int) -> None:
        bodies = [b"one\xca\x3e\x20", b"two\xca\x3e\x20", b"three"][:count]
        records = bare(*bodies)
        (tmp_path / FIRST).write_bytes(b"?" + b"".join(records)[1:])
        spool, (loss,) = begun(tmp_path)
        assert [area.size for area in loss.areas] == [len(records[0])]
        assert waiting(spool) == bodies[1:]

    def test_a_payload_cannot_pass_for_a_record_of_a_damaged_segment(self, tmp_path: Path) -> None:
        other = written(tmp_path / "other", [b"forged"]).read_bytes()
        path = written(tmp_path / "spool", [other, b"true"])
        flip(path, 17)  # the length of the first record
        spool, (loss,) = begun(path.parent)
        assert loss.lost == 1
        assert loss.areas[0].size > len(other)
        assert waiting(spool) == [b"true"]

    def test_an_empty_segment_is_removed(self, tmp_path: Path) -> None:
        """A crash between its creation and its first write leaves it, with or without a receipt."""
        SegmentWriter(tmp_path / FIRST).close(0.0)
        (tmp_path / f"{8:012d}-00000000deadbeef.log").touch()
        begin(tmp_path)
        assert [path.name for path in tmp_path.iterdir()] == ["lock"]

    def test_without_a_receipt_size_and_age_are_the_files(self, tmp_path: Path) -> None:
        """The requests of a segment without a receipt are recognised in the order of their arrival."""
        payloads = [b"one", b"two", b"three"]
        path = written(tmp_path, payloads)
        receipt_path(path).unlink()
        os.utime(path, (1_700_000_000, 1_700_000_000))
        spool = begin(tmp_path)
        segment = take(spool, 0.0)
        assert (segment.size, segment.created) == (path.stat().st_size, 1_700_000_000)
        assert segment.digests == tuple(Record.of(payload, 1).digest for payload in payloads)

    def test_without_a_receipt_every_damage_of_a_segment_counts(self, tmp_path: Path) -> None:
        path = written(tmp_path, [b"one", b"two", b"three", b"four"])
        receipt_path(path).unlink()
        flip(path, b"one", b"three")
        _, (loss,) = begun(tmp_path)
        assert (loss.lost, loss.kept, len(loss.areas)) == (2, 2, 2)

    def test_an_unreadable_file_without_a_receipt_has_no_number(self, tmp_path: Path) -> None:
        path = written(tmp_path, [b"one", b"two"])
        receipt_path(path).unlink()
        path.unlink()
        path.mkdir()
        begin(tmp_path, [0])

    def test_of_two_files_that_hold_one_segment_one_is_a_copy(self, tmp_path: Path) -> None:
        path = written(tmp_path, [b"one", b"two"])
        for number in (8, 9):
            other = tmp_path / f"{number:012d}-00000000deadbeef.log"
            other.write_bytes(path.read_bytes())
        path.unlink()
        spool = begin(tmp_path)
        assert waiting(spool) == [b"one", b"two"]
        assert spool.damaged_files == 1
