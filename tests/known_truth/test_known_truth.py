"""Sixty confirmations of failures whose truth is known: none names a wrong step, most name the right one.

The programs are those whose frameworks are installed here; ``failures.py`` takes the Pythons of other environments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

pytest.importorskip("clickhouse_connect", reason="needs a store")
pytest.importorskip("ag2")
pytest.importorskip("langgraph_supervisor")

from known_truth.failures import COUNT, FAULTS, NONE, ONE, confirmed, pythons_of, spoilt
from scripted_llm import Call, Reply

if TYPE_CHECKING:
    from pathlib import Path

SINGLE = 45
LEAST = 39
"""Confirmations of 45 that are right: 85 %."""


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_changes_an_answer(fault: str) -> None:
    """Texts and arguments alike, and nothing where it has no place."""
    text, call = "2 of 35 are left.", Call("look", {"page": 1})
    told = spoilt(text, fault, 301).text
    assert told == {FAULTS[0]: "303 of 35 are left.", FAULTS[1]: "2 of 336 are left."}.get(
        fault, "I cannot say."
    )
    asked = spoilt(Reply(calls=(call,)), fault, 301).calls
    assert [each.arguments for each in asked] == ([] if fault == FAULTS[2] else [{"page": 302}])


@pytest.mark.slow
@pytest.mark.end_to_end
@pytest.mark.timeout(600)
def test_a_failure_of_a_program_made_by_hand(tmp_path: Path) -> None:
    """A small part of the long test."""
    hand_made = {"hand_made.py": pythons_of()["hand_made.py"]}
    rows = list(confirmed(tmp_path, hand_made, 1))
    assert [(each["kind"], each["ending"]) for each in rows] == [(ONE, "right")]


@pytest.mark.long
@pytest.mark.timeout(10_800)
def test_sixty_failures_of_known_truth(tmp_path: Path) -> None:
    rows = list(confirmed(tmp_path, pythons_of(), COUNT))
    single = [each for each in rows if each["kind"] == ONE]
    assert (len(rows), len(single)) == (COUNT, SINGLE)
    assert {each["kind"] for each in rows} == {ONE, *NONE}
    assert [each for each in rows if each["ending"] == "wrong"] == []
    assert sum(each["ending"] == "right" for each in single) >= LEAST, rows
