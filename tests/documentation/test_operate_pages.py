"""The page of alerts has each rule, and pages to operate by name files and messages that exist."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import pytest
from documentation.alert_tables import PAGE, table
from documentation.rule_tables import ROOT

from mast_trace_dashboards.alerts import runbooks
from mast_trace_dashboards.alerts.rules import RULES

if TYPE_CHECKING:
    from pathlib import Path

FOLDERS = [ROOT / "docs" / name for name in ("understand", "operate")]
PAGES = sorted(page for folder in FOLDERS for page in folder.rglob("*.md"))
PACKAGES = ("sdk", "collector", "judge", "dashboards", "lab")
TABLE = re.compile(r"(?:^\|.*\n)+", re.MULTILINE)
FILE = re.compile(
    r"`((?:sdk|instrumentations|collector|judge|dashboards|tests|benchmarks)/[\w/.-]+)`"
)


def test_the_page_has_each_rule_with_its_numbers_and_its_runbook() -> None:
    """`MAST_TRACE_WRITE_GOLDEN=1` writes the table anew."""
    head, rules, rest = PAGE.read_text("utf-8").partition("## Rules\n")
    made = TABLE.sub(lambda _: f"{table()}\n", rest, count=1)
    if os.environ.get("MAST_TRACE_WRITE_GOLDEN"):
        PAGE.write_text(head + rules + made, "utf-8")
        rest = made
    assert made == rest
    assert all(f"/runbooks/{name}.md)" in rest for name in runbooks.names())
    assert all(f"`{rule.uid}`" in rest for rule in RULES)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_file_that_is_named_exists(page: Path) -> None:
    named = FILE.findall(page.read_text("utf-8"))
    assert [path for path in named if not (ROOT / path).exists()] == []


@pytest.mark.parametrize(
    "said",
    [
        "no collector takes spans at ",
        "they wait and are sent again.",
        "span(s) lost, no collector took them at ",
        "does not take spans (",
        "the run has no steps",
        "its texts were not recorded",
        "no spans have arrived for a while",
        "the collector's disk is nearly full",
        "requests are refused: ",
        "without the model: ",
        "but there is neither a key",
        "The judge reached no verdict: ",
    ],
)
def test_what_troubleshooting_quotes_is_still_said(said: str) -> None:
    """A reader looks a symptom up by the words of a log or a page."""
    assert said in (ROOT / "docs" / "operate" / "troubleshooting.md").read_text("utf-8")
    sources = (path for name in PACKAGES for path in (ROOT / name).rglob("*.py"))
    assert any(said in path.read_text("utf-8") for path in sources)
