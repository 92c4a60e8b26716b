"""Dead letters can be listed, retried and dropped while a collector runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mast_trace.exceptions import CollectorError
from mast_trace_collector.dead_letters import DeadLetters

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def letters(tmp_path: Path) -> DeadLetters:
    return DeadLetters(tmp_path / "dead-letters")


def test_a_letter_keeps_its_bytes_and_its_reason(letters: DeadLetters) -> None:
    payload = b'with\nlines {"and": "json"}\n\x00'
    letters.add("a", payload, 3, "why")
    (letter,) = letters.letters()
    assert (letter.id, letter.items, letter.reason, letter.size) == ("a", 3, "why", len(payload))
    assert letters.payload("a") == payload


def test_letters_come_in_the_order_of_their_failure(letters: DeadLetters) -> None:
    for name in ("b", "c", "a"):
        letters.add(name, b"", 0, "why")
    assert [letter.id for letter in letters.letters()] == ["b", "c", "a"]


def test_the_same_letter_twice_is_one(letters: DeadLetters) -> None:
    letters.add("a", b"x", 1, "first")
    letters.add("a", b"x", 1, "second")
    assert [letter.reason for letter in letters.letters()] == ["second"]


def test_only_letters_that_somebody_asked_for_are_due(letters: DeadLetters) -> None:
    letters.add("a", b"x", 1, "why")
    letters.add("b", b"y", 1, "why")
    assert list(letters.due()) == []
    letters.retry(["b"])
    assert [(letter.id, payload) for letter, payload in letters.due()] == [("b", b"y")]
    assert len(letters) == 2


def test_a_dropped_letter_is_gone(letters: DeadLetters) -> None:
    letters.add("a", b"x", 1, "why")
    letters.drop(["a"])
    assert letters.letters() == []


def test_a_letter_with_dots_in_its_name(letters: DeadLetters) -> None:
    letters.add("000001-abc.17", b"x", 1, "why")
    letters.retry(["000001-abc.17"])
    letters.drop(["000001-abc.17"])
    assert len(letters) == 0


def test_an_unknown_letter_is_an_error_and_nothing_else_happens(letters: DeadLetters) -> None:
    letters.add("a", b"x", 1, "why")
    for act in (letters.retry, letters.drop):
        with pytest.raises(CollectorError, match="no dead letter b"):
            act(["a", "b"])
    assert list(letters.due()) == []
    assert len(letters) == 1


def test_a_letter_that_somebody_has_damaged_hides_no_other(
    letters: DeadLetters, tmp_path: Path
) -> None:
    letters.add("a", b"x", 1, "why")
    (tmp_path / "dead-letters" / "b.dead").write_bytes(b"oops")
    assert {letter.id: letter.reason for letter in letters.letters()} == {
        "a": "why",
        "b": "its description is damaged",
    }


def test_no_folder_means_no_letters(letters: DeadLetters) -> None:
    assert letters.letters() == []
    assert list(letters.due()) == []
