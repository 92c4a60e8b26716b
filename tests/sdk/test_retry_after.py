"""Servers that ask to wait are understood."""

import time
from email.utils import formatdate

import pytest
from requests.structures import CaseInsensitiveDict

from mast_trace.retry_after import doubled, retry_after


@pytest.mark.parametrize(
    ("headers", "low", "high"),
    [
        ({"Retry-After": "3"}, 3, 3),
        ({"retry-after": "1.5"}, 1.5, 1.5),
        ({"Retry-After-Ms": "250", "Retry-After": "3"}, 0.25, 0.25),
        ({"Retry-After": formatdate(time.time() + 86_400, usegmt=True)}, 43_200, 86_401),
        ({"Retry-After": formatdate(time.time() - 7200, usegmt=True)}, 0, 0),
        ({"Retry-After": "-5"}, 0, 0),
    ],
)
def test_every_spelling_is_read(headers, low, high):
    """Seconds, milliseconds and dates; nobody waits for what is over."""
    assert low <= retry_after(CaseInsensitiveDict(headers)) <= high


@pytest.mark.parametrize("text", ["", "soon", "nan", "inf", "-inf", "1e999", "Mon, 99 Foo 2026"])
def test_what_cannot_be_read_is_not_waited_for(text):
    """Unreadable and endless delays are ignored."""
    assert retry_after({"retry-after": text}) is None
    assert retry_after({}) is None


@pytest.mark.parametrize(("failures", "pause"), [(1, 0.5), (3, 2.0), (9, 60.0), (10**6, 60.0)])
def test_each_pause_is_twice_the_one_before_up_to_the_longest(failures: int, pause: float) -> None:
    assert doubled(0.5, failures, 60.0) == pause
