"""A segment that is stored, or half stored, and damaged before it is committed: each span once."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pytest
from ingest_support import body_of, stored_names
from opened_spool import begun, flip, put, stop, take

from mast_trace.exceptions import StorageError
from mast_trace_collector.config import CollectorConfig
from mast_trace_collector.dead_letters import DeadLetters
from mast_trace_collector.exporter import Exporter
from mast_trace_collector.storage import span_writer as module
from mast_trace_collector.storage.span_writer import SpanWriter
from mast_trace_collector.telemetry import CollectorMetrics

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from mast_trace_collector.spool import Segment
    from mast_trace_collector.storage import Store

NAMES = ("first", "second", "third", "fourth")


class ConnectionRefused(StorageError):
    """The database is away."""


class Half(SpanWriter):
    """The real writer, of a database that goes away after some inserts."""

    def __init__(self, store: Store, inserts: int) -> None:
        super().__init__(store)
        self._left = inserts

    def _insert(self, table: str, *arguments: Any) -> None:
        if table == "otel_traces":
            if not self._left:
                raise ConnectionRefused
            self._left -= 1
        super()._insert(table, *arguments)


class Line:
    """The parts of one process: a spool, a writer, a exporter that is stepped by hand."""

    def __init__(self, folder: Path, writer: SpanWriter) -> None:
        self.letters = DeadLetters(folder / "dead-letters")
        self.spool, losses = begun(folder / "spool")
        self.lost = sum(loss.lost for loss in losses)
        config = CollectorConfig(retry_initial_seconds=0.001)
        self._pipeline = Exporter(self.spool, writer, self.letters, config, CollectorMetrics())

    def write(self, segment: Segment) -> None:
        """Do all of storing a segment but the last step."""
        written = self._pipeline._write_file(segment)
        if not written:
            self._pipeline._write(segment, refused=written is False)

    def drain(self) -> None:
        while (segment := self.spool.next_segment(0.0)) is not None:
            self.write(segment)
            self.spool.commit(segment)
        self.stop()

    def stop(self) -> None:
        stop(self.spool)


def crashed(folder: Path, writer: SpanWriter) -> Path:
    """The segment of a process that ended between insert and commit."""
    line = Line(folder, writer)
    for name in NAMES:
        put(line.spool, body_of(name))
    line.spool.seal()
    segment = take(line.spool)
    with contextlib.suppress(ConnectionRefused):
        line.write(segment)
    line.stop()
    return segment.path


def damage_the_first(path: Path) -> None:
    flip(path, b"first")


def cut_off_the_last(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: data.index(NAMES[-1].encode())])


@pytest.mark.parametrize("damage", [damage_the_first, cut_off_the_last])
def test_what_is_left_takes_the_way_that_all_of_it_took(
    tmp_path: Path, store: Store, damage: Callable[[Path], None]
) -> None:
    """A token is known only to the way on which it came: on the other all would come twice."""
    size = len(NAMES) * len(body_of(NAMES[0]))
    damage(crashed(tmp_path, SpanWriter(store, parse_from=size)))
    after = Line(tmp_path, SpanWriter(store, parse_from=size))
    assert after.lost == 1
    after.drain()
    assert stored_names(store) == sorted(NAMES)


def test_what_comes_after_the_damage_is_no_repetition(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first piece is stored; what then moves to its place would pass for it, and be lost."""
    size = len(body_of(NAMES[0])) + 44
    monkeypatch.setattr(module, "COLUMNS_BYTES", 2 * size)
    damage_the_first(crashed(tmp_path, Half(store, 1)))
    assert len(stored_names(store)) == 2
    Line(tmp_path, SpanWriter(store)).drain()
    assert stored_names(store) == sorted(NAMES)


class Defective(Half):
    """A writer with a defect that any two requests together set off."""

    def write(self, requests: Sequence[bytes], **options: Any) -> int:
        if len(requests) > 1:
            raise KeyError("a defect")
        return super().write(requests, **options)


def test_one_by_one_too(tmp_path: Path, store: Store) -> None:
    damage_the_first(crashed(tmp_path, Defective(store, 2)))
    assert stored_names(store) == ["first", "second"]
    Line(tmp_path, Defective(store, 100)).drain()
    assert stored_names(store) == sorted(NAMES)


def test_a_letter_keeps_its_name(tmp_path: Path, store: Store) -> None:
    """Under another it would be set aside twice, and once retried be stored twice."""
    store.command("ALTER TABLE otel_traces ADD CONSTRAINT c CHECK SpanName NOT LIKE '%d'")
    try:
        path = crashed(tmp_path, SpanWriter(store))
        letters = DeadLetters(tmp_path / "dead-letters")
        before = {letter.id: letters.payload(letter.id) for letter in letters.letters()}
        damage_the_first(path)
        Line(tmp_path, SpanWriter(store)).drain()
    finally:
        # Other tests use the same store.
        store.command("ALTER TABLE otel_traces DROP CONSTRAINT c")
    assert sorted(before.values()) == sorted(map(body_of, ("second", "third")))
    assert {letter.id: letters.payload(letter.id) for letter in letters.letters()} == before
    assert stored_names(store) == ["first", "fourth"]
