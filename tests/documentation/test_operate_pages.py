"""Each alert rule has its place on the page of alerts, with its numbers and its runbook."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import pytest
from documentation.alert_tables import PAGE, RUNBOOKS, tables
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


def parts(text: str) -> dict[str, str]:
    """The parts on rules of the page, by the runbook's name, which is the anchor."""
    pieces = re.split(r"^### (.+)$", text.partition("## Rules\n")[2], flags=re.MULTILINE)
    return dict(zip(pieces[1::2], pieces[2::2], strict=True))


def test_each_runbook_has_an_anchor() -> None:
    assert sorted(parts(PAGE.read_text("utf-8"))) == runbooks.names()


def test_each_rule_stands_under_its_runbook_with_its_numbers() -> None:
    """`MAST_TRACE_WRITE_GOLDEN=1` writes the tables anew."""
    text = PAGE.read_text("utf-8")
    if os.environ.get("MAST_TRACE_WRITE_GOLDEN"):
        for name, table in tables().items():
            text = text.replace(parts(text)[name], TABLE.sub(f"{table}\n", parts(text)[name]))
        PAGE.write_text(text, "utf-8")
    told = parts(text)
    for name, table in tables().items():
        assert f"\n{table}\n" in told[name], name
        assert f"[{name}]({os.path.relpath(RUNBOOKS, PAGE.parent)}/{name}.md)" in told[name]
    assert all(f"`{rule.uid}`" in told[rule.runbook] for rule in RULES)


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
