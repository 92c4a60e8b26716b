"""Masked texts of one form have one number, and restarts change none."""

import pytest

from mast_trace_judge.patterns.indexing import TextMiner, masked


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("order 4711 of 12.5 EUR", "order <number> of <number> EUR"),
        ("call to https://a.example/x?y=1 failed", "call to <url> failed"),
        ("write to ada@example.org now", "write to <email> now"),
        ("run 1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed ended", "run <id> ended"),
        ("span deadbeef01 ended", "span <id> ended"),
        ("cannot read /home/ada/secret/file.txt", "cannot read <path>"),
        ("no key 'price' in the row", "no key <text> in the row"),
        ("I don't know, and can't tell", "I don't know, and can't tell"),
        ("after 30s and 200ms", "after <number> and <number>"),
    ],
)
def test_what_differs_between_runs_is_masked(text, shown):
    assert masked(text) == shown


def test_a_long_text_is_cut_and_nothing_takes_long():
    """Also not a text that a sender has made for it."""
    for text in ("a" * 10**6, "1-" * 10**5, "'" * 10**5, "/a" * 10**5, "a_1" * 10**5, "x@" * 10**5):
        assert len(masked(text)) < 4000


def test_texts_of_one_form_have_one_number():
    miner = TextMiner()
    place = ("", "2.6", "writer", "", "search")
    first = miner.number(place, masked("connection to 10.0.0.7 timed out after 30 s"))
    assert first
    assert miner.number(place, masked("connection to 10.9.1.2 timed out after 45 s")) == first
    assert miner.number(place, masked("the index is being rebuilt")) != first
    assert miner.number(("", "2.6", "critic", "", "search"), "the index is being rebuilt") != first
    assert miner.number(place, "") == 0


def test_a_miner_that_starts_again_goes_on_with_the_numbers():
    place = ("", "1.1", "planner", "critic", "")
    texts = [
        masked(f"I will skip the review of order {n} to save {word}")
        for n, word in enumerate("abc")
    ]
    one = TextMiner()
    numbers = {one.number(place, text) for text in texts[:2]}
    assert len(numbers) == 1
    other = TextMiner()
    other.learn((place, number, text) for number in numbers for text in texts[:2])
    assert {other.number(place, texts[2])} == numbers


def test_free_texts_do_not_fill_the_memory():
    """The templates of one place are bounded, and one that comes again and again stays."""
    miner = TextMiner()
    place = ("", "1.1", "planner", "", "")
    stays = miner.number(place, "the file is locked by another process")
    for n in range(2000):
        miner.number(place, " ".join(f"w{n}{i}x" for i in range(7)))
        if n % 50 == 0:
            assert miner.number(place, "the file is locked by another process") == stays
    (kept,) = miner._places.values()
    assert len(kept.numbers) <= 401
