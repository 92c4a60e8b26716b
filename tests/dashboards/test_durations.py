"""Durations are shown in units that fit, and omitted where a span's time is wrong."""

from __future__ import annotations

import pytest

from mast_trace_dashboards.run_outcome import in_words

HOUR = 3_600_000


@pytest.mark.parametrize(
    ("milliseconds", "words"),
    [
        (0, "0 ms"),
        (999, "999 ms"),
        (1000, "1.0 s"),
        (59_949, "59.9 s"),
        (59_999, "1 min 00 s"),
        (61_000, "1 min 01 s"),
        (HOUR, "1 h 00 min"),
        (23 * HOUR + 59 * 60_000, "23 h 59 min"),
        (51 * HOUR, "2 d 03 h"),
        (366 * 24 * HOUR, "366 d 00 h"),
        (367 * 24 * HOUR, "?"),
        (2_063_330 * HOUR, "?"),
        (-1, "?"),
        (float("inf"), "?"),
        (float("nan"), "?"),
    ],
)
def test_a_duration_in_words(milliseconds: float, words: str) -> None:
    assert in_words(milliseconds) == words


def test_the_space_between_number_and_unit_is_the_callers() -> None:
    assert in_words(61_000, space="_") == "1_min 01_s"
