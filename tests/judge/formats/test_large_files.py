"""Files that are large, or unpack to much: little is held at a time, and reading ends in time."""

from __future__ import annotations

import gzip
import json
import os
import threading
import tracemalloc
from contextlib import nullcontext
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from judge.formats.read_files import LINE, OTHER, read
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from mast_trace_judge.transfer.formats.kinds import Transcript
from mast_trace_judge.transfer.formats.own_export import parts_joined
from mast_trace_judge.transfer.json_values import Broken, Value
from mast_trace_judge.transfer.reading import read_source
from mast_trace_judge.transfer.source import check_ratio, source_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fixture_types import Patch


def test_many_lines_are_read_one_at_a_time(tmp_path: Path) -> None:
    """The memory does not grow with the file."""
    line = json.dumps({"messages": [{"role": "user", "content": "x" * 10_000}]}) + "\n"
    (tmp_path / "runs.jsonl").write_text(line * 5_000, encoding="utf-8")
    tracemalloc.start()
    with source_of(tmp_path / "runs.jsonl") as source:
        count = sum(1 for _ in read_source(source))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 5_000
    assert peak < 4_000_000


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_read_as_often_as_a_file(tmp_path: Path) -> None:
    pipe = tmp_path / "runs.jsonl"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(b"{}\n" * 3,), daemon=True)
    writer.start()
    with source_of(pipe) as source:
        assert (source.name, source.stem, source.size) == (str(pipe), "runs", 9)
        for _ in range(2):
            with source.opened() as data:
                assert data.read() == b"{}\n" * 3
    writer.join(10)


def _padded(size: int, *, spread: bool = False) -> str:
    """Return a chat that is so many characters long, on one line or on several."""
    end = "\n" if spread else ""
    bare = len(LINE) + 3 * len(end)
    text = LINE.replace("Yes.", "Yes." + "x" * (size - bare - 1))
    return (
        text.replace('{"messages": ', "{" + end + '"messages": ' + end).replace(
            "}]}", "}]" + end + "}"
        )
        + "\n"
    )


@pytest.mark.parametrize("more", [0, 1], ids=["as much as is held", "one more"])
@pytest.mark.parametrize(
    "kind", ["line", "lines of a value", "lines of a run", "parts", "protobuf"]
)
def test_too_long_a_line_is_named(tmp_path: Path, monkeypatch: Patch, kind: str, more: int) -> None:
    """Lines before and after it are read."""
    for module in ("json_values", "reading", "formats.own_export"):
        monkeypatch.setattr(f"mast_trace_judge.transfer.{module}.LARGEST", 1000)
    path = tmp_path / "runs"
    if kind == "lines of a run":
        said = [json.dumps({"role": "user", "content": "x" * 200}) + "\n" for _ in range(4)]
        rest = 1000 + more - sum(map(len, said[:3]))
        said[3] = said[3].replace("x" * 200, "x" * (200 + rest - len(said[3])))
        path.write_text("".join(said))
        (piece,), refused = read(path)
        assert isinstance(piece.read, Transcript)
        assert len(piece.read.trajectory.steps) == 4 - more
    elif kind == "parts":
        value = {"trace_id": "a", "verdict": None, "labels": []}
        rows = [
            Value(
                number,
                {**value, "trajectory": {"trace_id": "a", "steps": [number]}, "part": number},
                size,
            )
            for number, size in enumerate((400, 600 + more))
        ]
        found = list(parts_joined(rows))
        refused = [each.problem for each in found if isinstance(each, Broken)]
        (whole,) = [each.value for each in found if isinstance(each, Value)]
        assert whole["trajectory"]["steps"] == [0, 1][: 2 - more]
    elif kind == "protobuf":
        request = ExportTraceServiceRequest()
        spans = request.resource_spans.add().scope_spans.add().spans
        spans.add(trace_id=b"\1" * 16, span_id=b"\1" * 8, name="")
        spans[0].name = "x" * (1000 + more - request.ByteSize() - 8)
        spans[0].name += "x" * (1000 + more - request.ByteSize())
        path.write_bytes(request.SerializeToString())
        pieces, refused = read(path)
        assert len(pieces) == 1 - more
    else:
        long = _padded(1000 + more, spread=kind != "line")
        assert len(long) == 1000 + more
        # Where values are spread over lines, all that follows are.
        texts = [f"{LINE}\n", long, f"{OTHER}\n"][kind != "line" :]
        path.write_text("".join(texts), encoding="utf-8")
        pieces, refused = read(path)
        assert len(pieces) == len(texts) - more
    assert len(refused) == more
    assert all("is longer than" in each for each in refused)


@pytest.mark.parametrize(
    ("unpacked", "packed", "fits"),
    [
        (16 << 20, 0, True),
        ((16 << 20) + 1, 0, False),
        (200_000_000, 1_000_000, True),
        (200_000_001, 1_000_000, False),
    ],
)
def test_a_ratio_counts_from_its_limit_on(unpacked: int, packed: int, fits: bool) -> None:
    with nullcontext() if fits else pytest.raises(ValueError, match="200 times its size"):
        check_ratio(unpacked, packed)


@pytest.mark.parametrize("compressed", [gzip.compress, zstandard.compress])
@pytest.mark.parametrize("filler", ["x", "\n", "[", LINE.replace("Yes", "Yes" * 3000) + "\n"])
def test_a_file_that_unpacks_to_gigabytes_is_left_while_it_is_read(
    tmp_path: Path, compressed: Callable[[bytes], bytes], filler: str, monkeypatch: Patch
) -> None:
    unpacked: list[int] = []

    def counted(count: int, packed: int) -> None:
        unpacked.append(count)
        check_ratio(count, packed)

    monkeypatch.setattr("mast_trace_judge.transfer.source.check_ratio", counted)
    monkeypatch.setattr("mast_trace_judge.transfer.source._UNPACKED", 1 << 20)
    unit = filler.encode() * ((1 << 20) // len(filler))
    members = [compressed(unit * 2)] * 16
    (tmp_path / "runs.jsonl").write_bytes(compressed(f"{LINE}\n".encode()) + b"".join(members))
    pieces, refused = read(tmp_path / "runs.jsonl")
    assert pieces
    assert "unpacks to more than 200 times its size" in refused[-1]
    assert unpacked[-1] < 16 << 20


def test_a_file_in_proportion_is_read_whole(tmp_path: Path) -> None:
    lines = [
        json.dumps({"messages": [{"role": "user", "content": os.urandom(9000).hex()}]}) + "\n"
        for _ in range(20)
    ]
    with gzip.open(tmp_path / "runs.jsonl.gz", "wt") as file:
        for _ in range(50):
            file.writelines(lines)
    pieces, refused = read(tmp_path / "runs.jsonl.gz")
    assert (len(pieces), refused) == (1000, [])


def test_a_parquet_file_out_of_proportion_is_refused(tmp_path: Path) -> None:
    table = pa.table({"role": ["user"], "content": ["x" * (1 << 25)]})
    pq.write_table(table, tmp_path / "bomb.parquet", compression="zstd")
    pieces, refused = read(tmp_path / "bomb.parquet")
    assert pieces == []
    assert "unpacks to more than 200 times its size" in refused[0]


def test_a_small_parquet_file_of_much_text_takes_little(tmp_path: Path) -> None:
    """One text of 16 megabytes in a hundred rows, which are more than a gigabyte, were they laid out."""
    rows = pa.array([0] * 100, pa.int32())
    message = pa.DictionaryArray.from_arrays(rows, ["x" * (1 << 24)])
    roles = pa.DictionaryArray.from_arrays(rows, ["user"])
    table = pa.table({"role": roles, "content": message})
    pq.write_table(table, tmp_path / "bomb.parquet")
    pieces, refused = read(tmp_path / "bomb.parquet")
    assert len(pieces) == 1
    assert "its run is longer than 128 MiB: the message is left out" in refused[0]
    assert pa.default_memory_pool().max_memory() < 1 << 29
