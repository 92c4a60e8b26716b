"""Files that are large, or unpack to much: little is held at a time, and reading ends in time."""

from __future__ import annotations

import gzip
import json
import os
import tracemalloc
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from judge.formats.read_files import LINE, OTHER, read

from mast_trace_judge.transfer.reading import read_source
from mast_trace_judge.transfer.source import check_ratio, source_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


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


def test_a_line_that_is_too_long_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mast_trace_judge.transfer.json_values.LARGEST", 1 << 20)
    long = json.dumps({"messages": [{"role": "user", "content": "x" * (3 << 20)}]})
    (tmp_path / "runs.jsonl").write_text(f"{LINE}\n{long}\n{OTHER}\n", encoding="utf-8")
    pieces, refused = read(tmp_path / "runs.jsonl")
    assert len(pieces) == 2
    assert refused == [":2: it is longer than 1 MiB: write each run on a line"]


@pytest.mark.parametrize("compressed", [gzip.compress, zstandard.compress])
@pytest.mark.parametrize("filler", ["x", "\n", "[", LINE.replace("Yes", "Yes" * 3000) + "\n"])
def test_a_file_that_unpacks_to_gigabytes_is_left_while_it_is_read(
    tmp_path: Path,
    compressed: Callable[[bytes], bytes],
    filler: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The beginning is read, and the rest refused before it is unpacked."""
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
    """A thousand times the same run, whose texts are like none of the others."""
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
