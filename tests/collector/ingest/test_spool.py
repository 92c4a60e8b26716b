"""The spool keeps what it acknowledged, and nothing that it did not."""

from __future__ import annotations

import os
import threading
from concurrent.futures import wait
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opened_spool import begin, failing, payloads_of, put, take, waiting

from mast_trace_collector.spool import RequestRefused, Spool
from mast_trace_collector.spool.record import Record
from mast_trace_collector.spool.segment import SegmentWriter

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    return begin(tmp_path / "spool")


class TestSpool:
    """Order, identity and accounting."""

    def test_hands_on_what_it_acknowledged_in_order(self, spool: Spool) -> None:
        put(spool, b"one", b"two", b"three")
        assert waiting(spool) == [b"one", b"two", b"three"]

    def test_a_committed_segment_is_gone_for_good(self, spool: Spool) -> None:
        put(spool, b"one")
        segment = take(spool)
        spool.commit(segment)
        assert not segment.path.exists()
        assert spool.waiting_bytes == spool.waiting_items == 0
        assert waiting(begin(spool._directory)) == []

    def test_a_segment_that_was_taken_but_not_committed_comes_back(self, spool: Spool) -> None:
        put(spool, b"one")
        taken = take(spool)
        again = take(begin(spool._directory))
        assert (again.name, again.items, again.digests) == (taken.name, 1, taken.digests)

    def test_a_segment_given_back_lets_others_pass(self, spool: Spool) -> None:
        put(spool, b"stuck")
        stuck = take(spool)
        put(spool, b"fine")
        spool.seal()
        spool.give_back(stuck)
        assert payloads_of(take(spool)) == [b"fine"]

    def test_many_threads_share_syncs(self, spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
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
        sizes=st.lists(
            st.sampled_from([0, 1, 600_000, 2**20 - 1, 2**20, 3 * 2**20 + 5]), max_size=6
        ),
        many=st.sampled_from([0, 341, 342, 700]),  # three pieces each
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
        assert payloads_of(segment) == payloads
        assert not payloads or segment.intact()

    def test_the_gathered_go_at_once(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        handed = []
        really = os.writev

        def writev(file: int, views: list[memoryview]) -> int:
            handed.append(len(views))
            return really(file, views)

        writer = SegmentWriter(tmp_path / "000000000001-ab.log")
        monkeypatch.setattr(os, "writev", writev)
        writer.append([Record.of(b"%d" % number, 1) for number in range(400)])
        writer.close(0.0)
        assert handed == [1024, 3 * 400 - 1024]


class TestDuplicates:
    """A request that is sent again is acknowledged and kept once."""

    @pytest.mark.parametrize("stored", [False, True])
    def test_after_a_restart(self, spool: Spool, stored: bool) -> None:
        put(spool, b"one")
        if stored:
            spool.commit(take(spool))
            assert spool.append(b"one", 1).duplicate
        after = begin(spool._directory)
        assert after.append(b"one", 1).duplicate
        assert not after.append(b"two", 1).duplicate

    def test_a_crash_between_mark_and_removal_stores_nothing_twice(self, spool: Spool) -> None:
        put(spool, b"one")
        segment = take(spool)
        kept = segment.path.read_bytes()
        spool.commit(segment)
        segment.path.write_bytes(kept)
        after = begin(spool._directory)
        assert waiting(after) == []
        assert after.append(b"one", 1).duplicate
        assert not segment.path.exists()

    def test_the_window_forgets_the_oldest(self, tmp_path: Path) -> None:
        spool = begin(tmp_path, duplicate_window=10)
        put(spool, *(str(number).encode() for number in range(11)))
        assert not spool.append(b"0", 1).duplicate
        assert spool.append(b"10", 1).duplicate


class TestRefusal:
    """A bound that is reached turns into a refusal, never into a loss or a crash."""

    def test_at_the_bound_a_while(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        spool = begin(tmp_path, max_bytes=1000)
        put(spool, b"a" * 900)
        for _ in range(3):
            with pytest.raises(RequestRefused) as refused:
                spool.append(b"b" * 200, 1)
            assert refused.value.reason == "spool_full"
        (told,) = caplog.messages
        assert "requests are refused: too much is waiting" in told
        spool.commit(take(spool))
        put(spool, b"b" * 200)
        assert caplog.messages[1:] == ["requests are taken again"]

    def test_a_failed_sync_refuses_the_group_and_the_next_one_is_kept(
        self, spool: Spool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        put(spool, b"before")
        real = os.fdatasync

        monkeypatch.setattr(os, "fdatasync", failing(28))
        ticket = spool.append(b"lost", 1)
        with pytest.raises(RequestRefused, match="No space left"):
            ticket.durable.result(timeout=10)
        monkeypatch.setattr(os, "fdatasync", real)
        with pytest.raises(RequestRefused, match="nearly full"):
            spool.append(b"too soon", 1)
        spool._quota._checked = 0.0
        put(spool, b"after")
        assert waiting(spool) == [b"before", b"after"]
        assert not spool.append(b"lost", 1).duplicate
        assert sorted(waiting(begin(spool._directory))) == [b"after", b"before", b"lost"]
