"""The figures on the pages are those that were stored, and pages that name one agree."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from types import ModuleType

ROOT = Path(__file__).parents[1]
BENCHMARKS = ROOT / "benchmarks"


def program(path: Path) -> ModuleType:
    """A script among the benchmarks, as a module."""
    spec = importlib.util.spec_from_file_location(f"figures_{path.parent.name}_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look for it
    spec.loader.exec_module(module)
    return module


def cells(page: str, begin: str) -> list[str]:
    """The cells of the first row of a page's tables that begins like this."""
    (row, *_) = (line for line in page.splitlines() if line.startswith(f"| {begin}"))
    return [cell.strip() for cell in row.strip("|").split("|")]


def test_the_page_on_rules_is_made_of_what_was_measured() -> None:
    folder = BENCHMARKS / "judge"
    stored = json.loads((folder / "rules.json").read_text())
    assert program(folder / "rules.py").page(stored) == (folder / "rules.md").read_text()
    assert stored["rows"]


def test_the_page_on_mutants_is_made_of_what_was_measured() -> None:
    folder = BENCHMARKS / "mutants"
    assert program(folder / "tried.py").page() == (folder / "results.md").read_text()


def test_the_tables_of_overhead_are_made_of_what_was_measured() -> None:
    folder = BENCHMARKS / "overhead"
    made = program(folder / "page.py")
    page = (folder / "README.md").read_text()
    stored = json.loads((folder / "results.json").read_text())
    assert set(stored) <= {file.stem for file in (folder / "programs").glob("[!_]*.py")}
    for name, result in stored.items():
        begin, end = made.marks(name)
        assert page.partition(begin)[2].partition(end)[0] == made.table(name, result)
        assert {"mast-trace", *made.FLOORS} <= set(result["rows"])


def test_the_table_of_instructions_is_made_of_what_was_counted() -> None:
    folder = BENCHMARKS / "overhead"
    made = program(folder / "page.py")
    page = (folder / "README.md").read_text()
    stored = json.loads((folder / "instructions.json").read_text())
    begin, end = made.marks("instructions")
    assert page.partition(begin)[2].partition(end)[0] == made.instructions(stored)
    assert set(stored) <= set(made.FRAMEWORKS)
    assert all({"mast-trace", "floor", "none"} <= set(each["rows"]) for each in stored.values())


def test_instructions_are_compared_with_the_same_environment() -> None:
    made = program(BENCHMARKS / "overhead" / "page.py")
    rows = {
        "none": [100_000],
        "floor": [300_000],
        "mast-trace": [390_000, 400_000, 430_000],
        "openlit": [900_000],
        "none, openlit": [500_000],
    }
    table = made.instructions({"langgraph_supervisor": {"steps": 10, "rows": rows}})
    assert "| | **mast-trace** | 30 [29 .. 33] | 1.50 | everything |" in table
    assert "| | openlit 1.45.0 | 40 [40 .. 40] | 2.00 |" in table
    assert "none, openlit" not in table


def test_the_overview_says_what_the_table_of_overhead_says() -> None:
    page = (BENCHMARKS / "overhead" / "README.md").read_text()
    own, peer = cells(page, "**mast-trace**"), cells(page, "openinference 0.1.80")
    cpu, theirs = (float(row[1].split()[0]) for row in (own, peer))
    sent, their_bytes = (int(row[5].replace(",", "")) for row in (own, peer))
    step = re.search(r"By itself the program uses\s+([\d,]+) us of CPU a step", page)
    assert step is not None
    alone = int(step[1].replace(",", ""))
    overview = " ".join((BENCHMARKS / "README.md").read_text().split())
    assert f"adds {cpu / 1000:.1f} ms of CPU to a step of {alone / 1000:.1f} ms" in overview
    assert f"adds {theirs / 1000:.1f} ms, {theirs / cpu:.1f} times as much" in overview
    assert f"sends {their_bytes / sent:.0f} times the bytes" in overview


def test_the_overview_says_what_the_table_of_ingest_says() -> None:
    page = (BENCHMARKS / "ingest" / "README.md").read_text()
    rates = [
        [int(rate.replace(",", "")) for rate in cells(page, begin)[1].split(" to ")]
        for begin in ("agent (", "a flood of nine minutes")
    ]
    least, most = (each // 1000 for each in (min(map(min, rates)), max(map(max, rates))))
    overview = " ".join((BENCHMARKS / "README.md").read_text().split())
    assert f"stores {least},000 to {most},000 agent spans a second" in overview


def test_operators_are_marked_by_the_truth_of_their_labels() -> None:
    """The table of operators names those whose kept labels were often wrong, and the page shows the stored figures."""
    from mast_trace_judge.planted import UNCERTAIN
    from mast_trace_lab.inject.operators import OPERATORS

    folder = BENCHMARKS / "injection"
    made = program(folder / "truth_page.py")
    labels = json.loads((folder / "truth.json").read_text())
    assert {each["operator"] for each in labels} == OPERATORS.keys()
    assert made.wrong_operators(labels) == UNCERTAIN
    page = (folder / "README.md").read_text()
    table = page.partition(made.BEGIN)[2].partition(made.END)[0]
    assert table.strip() == made.table(labels).strip()


@pytest.mark.parametrize(
    "folder", ["sdk", "instrumentations", "collector", "judge", "dashboards", "lab"]
)
def test_no_docstring_gives_a_score(folder: str) -> None:
    """A score belongs where a script writes it; in the code nobody would measure it again."""
    texts = {path: path.read_text("utf-8") for path in (ROOT / folder).rglob("*.py")}
    assert texts
    assert not [path for path, text in texts.items() if re.search(r"\bAUC\b.{0,12}\d", text)]


@pytest.mark.parametrize(("column", "runs"), enumerate((100, 1_000, 10_000), start=2))
def test_sizes_beyond_one_machine_follow_from_their_formulas(column: int, runs: int) -> None:
    page = (ROOT / "docs/operate/sizing.md").read_text()
    spans = 40 * runs
    terabytes = spans * 1_200 * 86_400 * 30 * 1.5 / 1e12
    expected = {
        "spans a second | 40": spans,
        "cores of ingest": ceil(spans * 97e-6),
        "collectors |": ceil(spans / 5_000) + 1,
        "judges without": ceil(runs / 116),
        "TB of disk": round(terabytes),
        "shards": ceil(terabytes / 20),
    }
    for row, number in expected.items():
        assert cells(page, row)[column] == f"{number:,}", row
