"""Each failure mode has a page, and what the page says of the judge is what the judge does.

`MAST_TRACE_WRITE_GOLDEN=1 pytest tests/documentation` writes the tables and runs of the pages anew.
"""

from __future__ import annotations

import os

import pytest
from documentation.mode_examples import NO_RULE, PAIRS
from documentation.mode_pages import (
    FOLDER,
    SECTIONS,
    finding_of,
    found_in,
    path_of,
    refreshed,
    refreshed_index,
    sections,
)
from documentation.rule_tables import NONE, claims, examined_by, found_as

from mast_trace.taxonomy import FAILURE_MODES
from mast_trace_judge.local.rules import RULES
from mast_trace_judge.local.rules._registry import code_of

every_mode = pytest.mark.parametrize("code", FAILURE_MODES)


def test_each_mode_has_a_page_and_no_other_is_there() -> None:
    pages = {path_of(code) for code in FAILURE_MODES}
    assert set(FOLDER.glob("*.md")) == {*pages, FOLDER / "index.md"}


def test_the_index_has_each_mode_with_its_figures_of_today() -> None:
    path = FOLDER / "index.md"
    text = path.read_text("utf-8")
    made = refreshed_index(text)
    if os.environ.get("MAST_TRACE_WRITE_GOLDEN"):
        path.write_text(made, "utf-8")
    else:
        assert made == text


@every_mode
def test_a_page_says_what_the_mode_is(code: str) -> None:
    mode = FAILURE_MODES[code]
    text = path_of(code).read_text("utf-8")
    assert text.startswith(f"# {code} {mode.name}\n\n{mode.definition}\n")
    assert tuple(name for name in sections(text) if name) == SECTIONS


@every_mode
def test_a_page_has_the_rules_runs_and_figures_of_today(code: str) -> None:
    """And all of them: a table that it lacks is not made."""
    path = path_of(code)
    text = path.read_text("utf-8")
    made = refreshed(code, text)
    if os.environ.get("MAST_TRACE_WRITE_GOLDEN"):
        path.write_text(made, "utf-8")
        text = made
    assert made == text
    assert examined_by(code) in text
    assert (NONE in text) == (code in NO_RULE)


@every_mode
def test_a_page_speaks_of_each_rule(code: str) -> None:
    """In sentences, beside the table."""
    text = sections(path_of(code).read_text("utf-8"))["Examined by"]
    for rule in RULES:
        if code_of(rule) == code:
            assert text.count(f"`{rule.__name__}`") > 1, f"{rule.__name__} is not explained"


@every_mode
def test_the_run_with_the_fault_shows_the_mode_and_its_twin_does_not(code: str) -> None:
    found = finding_of(code)
    assert found is not None
    assert found_in(code, PAIRS[code].healthy) is None
    assert (found_in(code, PAIRS[code].faulty) is None) == (code in NO_RULE)


def test_the_table_of_claims_has_each_rule_with_its_basis() -> None:
    told = claims()
    assert sorted(told) == sorted(rule.__name__ for rule in RULES)
    for rule in RULES:
        mode, basis = told[rule.__name__]
        assert mode == code_of(rule)
        assert {kind for kind in ("exact", "heuristic") if kind in basis} == found_as(rule.__name__)
