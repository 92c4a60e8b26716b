"""The codes and names of the failure modes, with which verdicts are stored."""

from __future__ import annotations

from collections import Counter

from mast_trace.taxonomy import FAILURE_MODES, SPECIFICATION_CODES


def test_the_first_digit_names_the_category() -> None:
    counts = Counter((code[0], mode.category.title) for code, mode in FAILURE_MODES.items())
    assert counts == {
        ("1", "Specification issues"): 5,
        ("2", "Inter-agent misalignment"): 6,
        ("3", "Task verification"): 3,
    }
    assert [mode.code for mode in FAILURE_MODES.values()] == list(FAILURE_MODES)
    assert SPECIFICATION_CODES == ("1.1", "1.2", "1.3", "1.4", "1.5")
