"""Counts that take long are shown again, and renewed in the background."""

from __future__ import annotations

import threading

import pytest

from mast_trace_dashboards.web.counts import LONGEST, CountCache


class Clock:
    """Seconds that pass when a count says so."""

    now = 0.0

    def __call__(self) -> float:
        return self.now

    def slow(self, made: int = 1) -> int:
        """Counts for two seconds."""
        self.now += 2
        return made


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def counts(clock: Clock) -> CountCache[int]:
    return CountCache(clock)


def test_a_count_is_kept_while_nothing_is_stored(counts: CountCache[int], clock: Clock) -> None:
    numbers = iter(range(9))

    def slow() -> int:
        return clock.slow(next(numbers))

    found = [counts.of("q", 1, slow) for _ in range(3)]
    assert [each.made for each in found] == [0, 0, 0]
    assert all(each.is_newest for each in found)
    assert counts.of("other", 1, slow).made == 1
    counts.forget()
    assert counts.of("q", 1, slow).made == 2


def test_a_newer_count_is_made_once_in_the_background(
    counts: CountCache[int], clock: Clock
) -> None:
    begun, ends, made = threading.Event(), threading.Event(), []

    def newer() -> int:
        made.append(1)
        begun.set()
        assert ends.wait(30)
        return clock.slow(2)

    assert counts.of("q", 1, clock.slow).made == 1
    shown = [counts.of("q", 2, newer) for _ in range(5)]
    assert [(each.made, each.is_newest) for each in shown] == [(1, False)] * 5
    assert begun.wait(30)
    ends.set()
    join_others()
    assert made == [1]
    assert (counts.of("q", 2, newer).made, counts.of("q", 2, newer).is_newest) == (2, True)


def test_a_count_that_is_too_old_is_not_shown(counts: CountCache[int], clock: Clock) -> None:
    def slow() -> int:
        clock.slow()
        return int(clock.now)

    assert counts.of("q", 1, slow).made == 2
    clock.now = LONGEST + 1
    assert counts.of("q", 2, slow).made == LONGEST + 3


def test_a_count_that_fails_is_tried_again(counts: CountCache[int], clock: Clock) -> None:
    def fails() -> int:
        raise RuntimeError("no matter why")

    assert counts.of("q", 1, clock.slow).made == 1
    for _ in range(2):
        assert not counts.of("q", 2, fails).is_newest
        join_others()
    counts.of("q", 2, clock.slow)
    join_others()
    assert counts.of("q", 2, clock.slow).is_newest


def test_a_running_count_is_not_kept_after_forgetting(
    counts: CountCache[int], clock: Clock
) -> None:
    begun, ends = threading.Event(), threading.Event()

    def erased() -> int:
        begun.set()
        assert ends.wait(30)
        return 2

    assert counts.of("q", 1, lambda: 1).made == 1
    counts.of("q", 2, erased)
    assert begun.wait(30)
    counts.forget()
    ends.set()
    join_others()
    clock.now += 1
    found = counts.of("q", 3, lambda: 3)
    assert (found.made, found.is_newest) == (3, True)


def test_few_counts_are_kept(counts: CountCache[int], clock: Clock) -> None:
    for number in range(100):
        counts.of(number, 1, clock.slow)
    before = clock.now
    counts.of(99, 1, clock.slow)
    assert clock.now == before
    counts.of(0, 1, clock.slow)
    assert clock.now > before


def join_others() -> None:
    """Wait for the threads that renew counts."""
    for thread in threading.enumerate():
        if thread.name == "renew a count":
            thread.join(30)
