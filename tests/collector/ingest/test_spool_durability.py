"""An acknowledged request outlives a power failure, and segments keep their order over restarts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from forgetful_disk import ForgetfulDisk
from hypothesis import given, settings
from hypothesis import strategies as st
from opened_spool import begin, payloads_of, put, stop, take, waiting

from mast_trace_collector.spool import RequestRefused, Spool

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> ForgetfulDisk:
    return ForgetfulDisk(monkeypatch)


@pytest.fixture
def spool(disk: ForgetfulDisk, tmp_path: Path) -> Iterator[Spool]:
    spool = opened(tmp_path / "spool")
    yield spool
    stop(spool)


def opened(folder: Path) -> Spool:
    return begin(folder, segment_bytes=2000)


def refused(spool: Spool, payload: bytes) -> None:
    with pytest.raises(RequestRefused):
        spool.append(payload, 1).durable.result(timeout=30)
    spool._quota._checked = 0.0  # the disk is looked at again at once, not in a second


def found(folder: Path) -> list[bytes]:
    """Payloads that a new process finds."""
    spool = opened(folder)
    payloads = waiting(spool)
    stop(spool)
    return payloads


class TestPowerFailure:
    """Only synced records are left."""

    def test_the_disk_forgets(self, disk: ForgetfulDisk, spool: Spool, tmp_path: Path) -> None:
        """The test's own tool: neither an unsynced name nor unsynced content comes back."""
        put(spool, b"kept")
        (segment,) = spool._directory.glob("*.log")
        with segment.open("ab") as file:
            file.write(b"never synced")
        (spool._directory / "000000000009-ff.log").write_bytes(b"never synced")
        left = disk.after_power_failure(spool._directory, tmp_path / "left")
        assert [path.name for path in left.glob("*.log")] == [segment.name]
        assert b"never synced" not in (left / segment.name).read_bytes()

    def test_a_first_one_survives(self, disk: ForgetfulDisk, spool: Spool, tmp_path: Path) -> None:
        """The name of a new segment is durable, not only its bytes."""
        for number in range(3):
            put(spool, b"%d" % number)
            left = disk.after_power_failure(spool._directory, tmp_path / f"left{number}")
            assert found(left) == [b"%d" % each for each in range(number + 1)]
            spool.seal()

    def test_its_folder_survives(self, disk: ForgetfulDisk, tmp_path: Path) -> None:
        """The names of a new folder and of its parents are durable."""
        disks = tmp_path / "disk"
        disks.mkdir()
        spool = opened(disks / "data" / "spool")
        put(spool, b"kept")
        stop(spool)
        left = disk.after_power_failure(disks, tmp_path / "left")
        assert found(left / "data" / "spool") == [b"kept"]

    def test_a_later_one_survives(self, disk: ForgetfulDisk, spool: Spool, tmp_path: Path) -> None:
        """The file whose sync failed is not written to again: its next sync would say too much."""
        put(spool, b"before")
        disk.fail()
        refused(spool, b"lost")
        put(spool, b"after")
        left = disk.after_power_failure(spool._directory, tmp_path / "left")
        assert found(left) == [b"before", b"after"]

    @settings(max_examples=25, deadline=None)
    @given(
        moves=st.lists(
            st.sampled_from(["put", "put", "large", "fail", "seal", "commit", "restart"]),
            min_size=1,
            max_size=12,
        )
    )
    def test_anything(self, tmp_path_factory: pytest.TempPathFactory, moves: list[str]) -> None:
        """Everything that was acknowledged and not stored is found; what was refused is not."""
        folder = tmp_path_factory.mktemp("power")
        with pytest.MonkeyPatch.context() as patch:
            disk = ForgetfulDisk(patch)
            spool = opened(folder / "spool")
            owed: set[bytes] = set()
            stored: set[bytes] = set()
            for number, move in enumerate(moves):
                payload = b"%d" % number
                match move:
                    case "put" | "large":
                        payload *= 1500 if move == "large" else 1
                        put(spool, payload)
                        owed.add(payload)
                    case "fail":
                        disk.fail()
                        refused(spool, payload)
                    case "seal":
                        spool.seal()
                    case "commit" if (segment := spool.next_segment(0.0)) is not None:
                        gone = set(payloads_of(segment))
                        spool.commit(segment)
                        owed, stored = owed - gone, stored | gone
                    case "restart":
                        spool = opened(folder / "spool")
            left = disk.after_power_failure(folder / "spool", folder / "left")
            # A removal may be forgotten too: such a segment is stored again under its old name.
            assert owed <= set(found(left)) <= owed | stored
            stop(spool)


class TestOrder:
    """Segments are numbered in the order in which they were opened, also by later processes."""

    def test_numbers_go_on_after_a_restart(self, tmp_path: Path) -> None:
        names: list[str] = []
        for start in range(4):
            spool = opened(tmp_path / "spool")
            put(spool, b"%d" % start)
            stop(spool)
            names += [
                path.stem for path in (tmp_path / "spool").glob("*.log") if path.stem not in names
            ]
            assert len(names) == start + 1
        numbers = [int(name.partition("-")[0]) for name in names]
        assert numbers == sorted(set(numbers))
        assert found(tmp_path / "spool") == [b"0", b"1", b"2", b"3"]

    @pytest.mark.parametrize("marked", [True, False])
    def test_a_new_segment_is_no_stored_one(self, tmp_path: Path, marked: bool) -> None:
        """After stored segments only marks are left; without them numbers begin anew, names do not."""
        names: list[str] = []
        for start in range(3):
            spool = opened(tmp_path / "spool")
            for number in range(2):
                put(spool, b"%d %d" % (start, number))
                spool.seal()
            segments = [take(spool) for _ in range(2)]
            assert payloads_of(*segments) == [b"%d 0" % start, b"%d 1" % start]
            names += [segment.name for segment in segments]
            # The later one first, so that its mark is the older.
            for segment in reversed(segments):
                spool.commit(segment)
            stop(spool)
            assert not list((tmp_path / "spool").glob("*.log"))
            for mark in () if marked else (tmp_path / "spool").glob("*.stored"):
                mark.unlink()
        assert len({name.partition("-")[2] for name in names}) == len(names)
        assert not marked or names == sorted(names)
