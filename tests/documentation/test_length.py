"""The documentation stays short: in all, in each sentence, and in its changelog."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from code_blocks import PAGES, ROOT

if TYPE_CHECKING:
    from pathlib import Path

ALL = sorted(PAGES.rglob("*.md"))
FENCED = re.compile(r"^( *)(`{3,}|~{3,}).*?^\1\2 *$", re.MULTILINE | re.DOTALL)
UNITS = re.compile(r"\n\s*\n|^ *(?:[-*:]|\d+\.) |^#.*$|\|", re.MULTILINE)
"""Ends of what holds sentences: a paragraph, an item of a list, a heading, a cell of a table."""
WORD = re.compile(r"\S*\w\S*")


def prose(page: Path) -> str:
    """The text of a page without its code blocks and the targets of its links."""
    return re.sub(r"\]\([^)]*\)", "]", FENCED.sub("", page.read_text("utf-8")))


def sentences(text: str) -> list[int]:
    """The words of each sentence; an abbreviation or a number ends none."""
    parts = (part for unit in UNITS.split(text) for part in re.split(r"[.!?][)*\"”]*\s", unit))
    return [len(WORD.findall(part)) for part in parts]


def test_sentences_are_counted() -> None:
    assert sentences("One two. Three\nfour 0.5 `a.b`: five!\n\n* six | seven") == [2, 5, 0, 1, 1]


def test_the_pages_have_at_most_thirty_thousand_words() -> None:
    assert sum(len(WORD.findall(prose(page))) for page in ALL) <= 30_000


@pytest.mark.parametrize("page", ALL, ids=lambda page: page.stem)
def test_no_sentence_has_more_than_thirty_words(page: Path) -> None:
    assert max(sentences(prose(page))) <= 30


@pytest.mark.parametrize(
    "page",
    ["ag2", "ag2-classic", "crewai", "hand-made-agents", "langgraph", "metagpt", "model-clients"],
)
def test_the_way_to_the_first_proof_is_short(page: str) -> None:
    """Read are the quickstart and all before it, the page of one's framework, and how to prove."""
    readme, _, _ = (ROOT / "README.md").read_text("utf-8").partition("![The web view")
    proof, _, _ = (PAGES / "how-to/confirm.md").read_text("utf-8").partition("## The evidence")
    framework = (PAGES / f"how-to/{page}.md").read_text("utf-8")
    assert "mast-trace up" in readme
    assert "mast-trace prove" in proof
    assert len([*readme.splitlines(), *framework.splitlines(), *proof.splitlines()]) <= 120


def test_the_changelog_says_what_there_is_and_no_more() -> None:
    lines = (ROOT / "CHANGELOG.md").read_text("utf-8").splitlines()
    assert len(lines) <= 80
    assert [line[:8] for line in lines if line.startswith("## ")] == ["## 0.1.0"]
