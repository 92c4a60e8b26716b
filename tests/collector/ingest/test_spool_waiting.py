"""Requests that wait in a spool: their amount, their age, and their consumer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from opened_spool import LIMITS, begin, opened, put, stop, take

from mast_trace_collector.spool import Record, Segment, Spool


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    return opened(tmp_path / "spool")


def taken(spool: Spool) -> Segment:
    spool.seal()
    return take(spool, 0.0)


class Clock:
    """The time of day, which a test sets."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        patch.setattr(time, "time", lambda: self.now)


class TestAge:
    """Since when something waits, by the arrival of the oldest request."""

    def test_it_goes_on_to_the_commit(self, spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
        clock = Clock(monkeypatch)
        assert spool.oldest_age() == 0.0
        put(spool, b"first")
        clock.now += 5
        put(spool, b"second")
        clock.now += 5
        assert spool.oldest_age() == 10.0  # in the open segment
        segment = taken(spool)
        clock.now += 5
        put(spool, b"younger")
        assert spool.oldest_age() == 15.0  # taken
        spool.give_back(segment)
        clock.now += 5
        assert spool.oldest_age() == 20.0  # waiting again
        younger = taken(spool)
        spool.commit(younger)
        again = taken(spool)
        assert again == segment
        assert spool.oldest_age() == 20.0
        spool.commit(again)
        assert spool.oldest_age() == 0.0

    def test_of_a_younger_it_is_less(self, spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
        clock = Clock(monkeypatch)
        put(spool, b"first")
        segment = taken(spool)
        clock.now += 7
        put(spool, b"second")
        clock.now += 3
        assert spool.oldest_age() == 10.0
        spool.commit(segment)
        assert spool.oldest_age() == 3.0

    def test_no_age_is_negative(self, spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
        clock = Clock(monkeypatch)
        put(spool, b"first")
        clock.now -= 100
        assert spool.oldest_age() == 0.0
        clock.now += 100.5
        assert spool.oldest_age() == 0.5

    def test_after_a_restart_it_goes_on(self, spool: Spool) -> None:
        put(spool, b"first")
        (path,) = spool._directory.glob("*.log")
        stop(spool)
        hour_ago = time.time() - 3600
        os.utime(path, (hour_ago, hour_ago))
        after = opened(spool._directory)
        assert 3600 <= after.oldest_age() < 3700


class TestWaitingItems:
    """Amounts that wait, over restarts."""

    def test_all_segments_count_until_they_are_stored(self, spool: Spool) -> None:
        for number in (1, 2, 3):
            spool.append(b"%d" % number, number).durable.result(timeout=10)
            spool.seal()
        assert spool.waiting_items == 6
        size = spool.waiting_bytes
        after = opened(spool._directory)
        assert (after.waiting_items, after.waiting_bytes) == (6, size)
        after.commit(taken(after))
        assert (after.waiting_items, after.waiting_bytes) == (5, size - size // 3)

    @pytest.mark.parametrize("noun", ["spans", "log records"])
    def test_they_are_called_what_they_are(self, tmp_path: Path, noun: str) -> None:
        of = (noun,) if noun != "spans" else ()
        spool = Spool(tmp_path, LIMITS, *of)
        spool.open()
        put(spool, b"one")
        segment = taken(spool)
        os.truncate(segment.path, 0)
        spool.read(segment)
        spool.commit(segment)
        (note,) = (tmp_path / "damaged").glob("*.json")
        assert json.loads(note.read_text())["counted"] == noun
        stop(spool)

    def test_a_process_ends_that_has_not_closed_it(self, tmp_path: Path) -> None:
        program = (
            "import sys; from pathlib import Path\n"
            "from mast_trace_collector.spool import Spool, SpoolLimits\n"
            "spool = Spool(Path(sys.argv[1]), SpoolLimits(10000, 0, 1000, 1000, 60.0, 1000))\n"
            "spool.open(); spool.append(b'one', 1).durable.result(timeout=10)\n"
        )
        # The copy that this test has imported, wherever it is run.
        package = Path(sys.modules[Spool.__module__].__file__ or "").parents[2]
        environment = {**os.environ, "PYTHONPATH": str(package)}
        command = [sys.executable, "-c", program, str(tmp_path)]
        subprocess.run(command, env=environment, check=True, timeout=25)
        after = opened(tmp_path)
        assert after.waiting_items == 1


class TestGroups:
    """Requests that gather while one is written."""

    def sizes(self, spool: Spool) -> list[int]:
        found = []
        while (segment := spool.next_segment(0.0)) is not None:
            found.append(len(segment.digests))
        return found

    def gathered(self, folder: Path, **limits: int) -> list[int]:
        spool = begin(folder, segment_age=60.0, **limits)
        with spool._writing:
            tickets = [spool.append(b"%d" % number * 100, 5) for number in range(5)]
        for ticket in tickets:
            ticket.durable.result(timeout=10)
        spool.seal()
        return self.sizes(spool)

    def test_a_segment_ends_with_the_request_that_fills_it(self, tmp_path: Path) -> None:
        one = Record.OVERHEAD + 100
        assert self.gathered(tmp_path / "bytes", segment_bytes=2 * one) == [2, 2, 1]
        assert self.gathered(tmp_path / "spans", segment_items=10) == [2, 2, 1]

    def test_the_same_request_waits_until_the_first_is_durable(self, spool: Spool) -> None:
        with spool._writing:
            first = spool.append(b"same", 1)
            second = spool.append(b"same", 1)
            assert (first.duplicate, second.duplicate) == (False, True)
            assert not second.durable.done()
        assert second.durable.result(timeout=10) is None
        assert first.durable.done()
        assert taken(spool).items == 1


class TestWaiting:
    """A consumer waits for a segment that is old enough, and no longer than it likes."""

    def test_it_gets_what_comes_meanwhile(self, tmp_path: Path) -> None:
        spool = begin(tmp_path)
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(spool.next_segment, 60.0)
            put(spool, b"one")
            assert waiting.result(timeout=50).items == 1

    def test_it_gets_a_segment_once_that_is_old_enough(self, tmp_path: Path) -> None:
        spool = begin(tmp_path, segment_age=0.1)
        put(spool, b"one")
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(spool.next_segment, 20.0).result(timeout=15).items == 1

    def test_it_gets_nothing_where_nothing_comes(self, spool: Spool) -> None:
        assert spool.next_segment(0.01) is None

    def test_closing_ends_the_waiting(self, tmp_path: Path) -> None:
        spool = opened(tmp_path)
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(spool.next_segment, 60.0)
            spool.close()
            assert waiting.result(timeout=50) is None

    def test_a_young_segment_stays_open(self, spool: Spool) -> None:
        spool._seal_if_due()
        put(spool, b"one")
        spool._seal_if_due()
        assert spool.next_segment(0.0) is None
        put(spool, b"two")
        assert taken(spool).items == 2
