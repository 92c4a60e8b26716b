"""The codes and names of the failure modes, with which verdicts are stored."""

from __future__ import annotations

from collections import Counter

from mast_trace.taxonomy import FAILURE_MODES, SPECIFICATION_CODES, mode_words


def test_the_first_digit_names_the_category() -> None:
    counts = Counter((code[0], mode.category.title) for code, mode in FAILURE_MODES.items())
    assert counts == {
        ("1", "Specification issues"): 5,
        ("2", "Inter-agent misalignment"): 6,
        ("3", "Task verification"): 3,
    }
    assert [mode.code for mode in FAILURE_MODES.values()] == list(FAILURE_MODES)
    assert SPECIFICATION_CODES == ("1.1", "1.2", "1.3", "1.4", "1.5")


def test_each_mode_has_short_words_of_its_own() -> None:
    words = [mode.short for mode in FAILURE_MODES.values()]
    assert len(set(words)) == len(FAILURE_MODES)
    assert max(map(len, words)) <= 12
    assert mode_words("2.6") == "2.6 misread"
    assert mode_words("9.9") == "9.9"
